#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Install the Debian packages that are missing: deps.sh [build|test]
#   build   what run.sh needs: compiler, CMake, the libraries, python3 for the benchmark
#   test    the same and what test.sh needs: clang, hiredis, cmocka, redis-server as the oracle
# Says nothing when all is there. Needs root or sudo only when something is missing. Installing
# redis-server starts no service; one that runs already is left alone.
set -euo pipefail

build_packages=(cmake make gcc libc6-dev pkg-config libjemalloc-dev libhugetlbfs-dev
    libxxhash-dev liblzf-dev python3)
test_packages=(clang clang-14 clang-format libclang-rt-14-dev libhiredis-dev libcmocka-dev
    redis-server redis-tools)

case "${1:-build}" in
build) wanted=("${build_packages[@]}") ;;
test) wanted=("${build_packages[@]}" "${test_packages[@]}") ;;
*)
    echo "usage: deps.sh [build|test]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "deps.sh: no apt-get here; these Debian packages or their like are needed: ${wanted[*]}" >&2
    exit 0 # CMake names what is missing
fi

missing=()
for package in "${wanted[@]}"; do
    status=$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
    [[ $status == ii* ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
        echo "deps.sh: run as root: apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi

# The package's scripts ask policy-rc.d whether they may start a service. Ours says no for
# redis-server and passes other questions to the policy that was there.
policy=/usr/sbin/policy-rc.d
saved=$policy.before-goblin
restore_policy() {
    if [[ -e $saved ]]; then
        "${as_root[@]}" mv -f "$saved" "$policy"
    else
        "${as_root[@]}" rm -f "$policy"
    fi
}
deny_redis_service() {
    trap restore_policy EXIT
    trap 'exit 130' INT TERM
    if [[ -e $policy && ! -e $saved ]]; then
        "${as_root[@]}" mv "$policy" "$saved"
    fi
    "${as_root[@]}" tee "$policy" >/dev/null <<POLICY
#!/bin/sh
for word in "\$@"; do
    case "\$word" in redis-server*) exit 101 ;; esac
done
if [ -x "$saved" ]; then exec "$saved" "\$@"; fi
exit 0
POLICY
    "${as_root[@]}" chmod 755 "$policy"
}

install_redis=no
for package in "${missing[@]}"; do
    [[ $package != redis-server ]] || install_redis=yes
done
[[ $install_redis == no ]] || deny_redis_service

echo "deps.sh: installing ${missing[*]}" >&2
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
log=$(mktemp)
install_missing() {
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >"$log" 2>&1
}
# The lists may be absent or old on a fresh machine: refresh them only when they do not serve.
if ! install_missing; then
    "${apt[@]}" update </dev/null >>"$log" 2>&1 || true
    if ! install_missing; then
        cat "$log" >&2
        rm -f "$log"
        exit 1
    fi
fi
rm -f "$log"

# Not at the next boot either: the tests start their own.
if [[ $install_redis == yes ]]; then
    if [[ -d /run/systemd/system ]]; then
        "${as_root[@]}" systemctl disable redis-server >/dev/null 2>&1 || true
    elif command -v update-rc.d >/dev/null; then
        "${as_root[@]}" update-rc.d redis-server disable >/dev/null 2>&1 || true
    fi
fi
