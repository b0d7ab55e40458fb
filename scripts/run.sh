#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Build the server and start it: run.sh [server options]
# Installs what is missing (deps.sh build), builds build-release/ and becomes the server, so that
# signals and the exit status are its own.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
"$root/scripts/deps.sh" build

log=$(mktemp)
if ! (cd "$root" && cmake --preset release -DGC_TESTS=OFF &&
    cmake --build build-release -j "$(nproc)") >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    exit 1
fi
rm -f "$log"

# Built by sudo: the tree still belongs to who called it.
if [[ $(id -u) -eq 0 && -n ${SUDO_UID:-} && -n ${SUDO_GID:-} ]]; then
    chown -R "$SUDO_UID:$SUDO_GID" "$root/build-release"
fi
exec "$root/build-release/goblin-core" "$@"
