#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Everything that must hold before a change lands: test.sh
#   layout      format.sh --check, layers.sh
#   compilers   gcc and clang without a warning
#   tests       all of ctest on the release build and under ASan + UBSan
#   fuzz        each target of tests/fuzz for FUZZ_SECONDS (10) seconds, from its corpus
# Ends with one line "N passed, N failed, N skipped" and exits non-zero on a failure. What a machine
# cannot do (a huge-page pool, cgroups) is skipped with its reason. Builds in build-release,
# build-asan, build-clang and build-fuzz; a second run rebuilds only what changed.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
jobs=$(nproc)
fuzz_seconds=${FUZZ_SECONDS:-10}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0 skipped=0
failures=()

note() {
    printf '%-28s %s\n' "$1" "$2"
}

# check NAME COMMAND...: one check, its output shown only when it fails.
check() {
    local name=$1 begin=$SECONDS
    shift
    if "$@" >"$logs/log" 2>&1 </dev/null; then
        passed=$((passed + 1))
        note "$name" "ok ($((SECONDS - begin)) s)"
        return 0
    fi
    failed=$((failed + 1))
    failures+=("$name")
    note "$name" "FAILED ($((SECONDS - begin)) s)"
    tail -n 80 "$logs/log"
    return 1
}

# A build whose log must hold no warning: for the trees where -Werror would rebuild all.
build_without_warning() {
    local dir=$1
    shift
    cmake --build "$dir" -j "$jobs" "$@" || return 1
    if grep -q 'warning:' "$logs/log"; then
        echo "the build printed warnings"
        return 1
    fi
}

# One number of a JUnit report's <testsuite> line.
junit_count() {
    sed -n "/<testsuite/,/>/s/.*[[:space:]]$2=\"\([0-9]*\)\".*/\1/p" "$1" | head -n 1
}

# run_ctest NAME DIR OPTIONS...: counts every program, shows the failed ones and why tests skipped.
run_ctest() {
    local name=$1 dir=$2 begin=$SECONDS report=$logs/junit.xml tests bad skips
    shift 2
    rm -f "$report"
    ctest --test-dir "$dir" --no-tests=error --output-on-failure --timeout 300 \
        --output-junit "$report" "$@" >"$logs/log" 2>&1 </dev/null
    local status=$?
    tests=$(junit_count "$report" tests 2>/dev/null)
    bad=$(junit_count "$report" failures 2>/dev/null)
    skips=$(junit_count "$report" skipped 2>/dev/null)
    if [[ -z $tests || ($status -ne 0 && ${bad:-0} -eq 0) ]]; then
        failed=$((failed + 1))
        failures+=("$name")
        note "$name" "FAILED: ctest ended with $status"
        tail -n 80 "$logs/log"
        return
    fi
    passed=$((passed + tests - bad - skips))
    failed=$((failed + bad))
    skipped=$((skipped + skips))
    note "$name" "$tests programs, $bad failed, $skips skipped ($((SECONDS - begin)) s)"
    if [[ $bad -gt 0 ]]; then
        failures+=("$name")
        grep -vE '^ *[0-9]+/[0-9]+ Test .*Passed|^ +Start ' "$logs/log" | tail -n 200
    fi
    grep -hoE 'SKIP: .*' "$dir/Testing/Temporary/LastTest.log" 2>/dev/null | sort -u |
        sed 's/^/    /'
}

test_tree() {
    local name=$1 dir=$2
    run_ctest "$name: unit" "$dir" -j "$jobs" -E '^integration\.'
    # Alone, one after another: they measure memory and change the kernel's page pool.
    run_ctest "$name: integration" "$dir" -R '^integration\.'
}

fuzz_one() {
    local target=$1 stem=$2 scratch=$logs/fuzz-$2
    mkdir -p "$scratch"
    local corpora=("$scratch")
    [[ -d tests/fuzz/corpus/$stem ]] && corpora+=("tests/fuzz/corpus/$stem")
    "build-fuzz/tests/$target" -max_total_time="$fuzz_seconds" -timeout=20 -rss_limit_mb=4096 \
        -artifact_prefix="$scratch/" -print_final_stats=1 "${corpora[@]}" && return 0
    for found in "$scratch"/{crash,leak,timeout,oom}-*; do
        [[ -e $found ]] && echo "input of $found:" && base64 "$found" | head -n 40
    done
    return 1
}

fuzz_all() {
    local sources=(tests/fuzz/*.c) targets=() source
    [[ -e ${sources[0]} ]] || return 0
    for source in "${sources[@]}"; do
        targets+=("fuzz_$(basename "$source" .c)")
    done
    check "fuzz: configure" cmake --preset fuzz -DGC_TESTS=ON || return 1
    check "fuzz: build" cmake --build build-fuzz -j "$jobs" --target "${targets[@]}" || return 1
    for source in "${sources[@]}"; do
        local stem
        stem=$(basename "$source" .c)
        check "fuzz: $stem" fuzz_one "fuzz_$stem" "$stem"
    done
}

check "packages" scripts/deps.sh test
check "format" scripts/format.sh --check
check "layers" scripts/layers.sh

if check "clang: configure" cmake -S . -B build-clang -DCMAKE_C_COMPILER=clang \
    -DCMAKE_BUILD_TYPE=Debug -DGC_WERROR=ON -DGC_TESTS=OFF; then
    check "clang: no warning" cmake --build build-clang -j "$jobs"
fi
if check "release: configure" cmake --preset release -DGC_TESTS=ON &&
    check "release: no warning" build_without_warning build-release; then
    test_tree release build-release
fi
if check "asan: configure" cmake --preset asan -DGC_TESTS=ON -DGC_WERROR=ON &&
    check "asan: build" cmake --build build-asan -j "$jobs"; then
    test_tree asan build-asan
fi
fuzz_all

if [[ $(id -u) -eq 0 && -n ${SUDO_UID:-} && -n ${SUDO_GID:-} ]]; then
    chown -R "$SUDO_UID:$SUDO_GID" build-release build-asan build-clang build-fuzz 2>/dev/null
fi
[[ ${#failures[@]} -eq 0 ]] || printf 'failed: %s\n' "${failures[@]}"
echo "total time ${SECONDS} s"
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
