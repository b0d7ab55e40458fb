#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Lay out every C file by .clang-format: format.sh, or format.sh --check to fail on a difference.
# The version is pinned to Debian 12's clang-format 14: others lay some lines out differently.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=(-i)
case "${1:-}" in
'') ;;
--check) mode=(--dry-run -Werror) ;;
*)
    echo "usage: format.sh [--check]" >&2
    exit 2
    ;;
esac

tool=clang-format
command -v clang-format-14 >/dev/null && tool=clang-format-14
if ! command -v "$tool" >/dev/null; then
    echo "format.sh: clang-format is missing: apt-get install clang-format" >&2
    exit 1
fi
if [[ $("$tool" --version) != *' 14.'* ]]; then
    echo "format.sh: version 14 is wanted, this is $("$tool" --version)" >&2
    exit 1
fi
find src include tests benchmarks \( -name '*.c' -o -name '*.h' \) -print0 |
    xargs -0 -r "$tool" "${mode[@]}"
