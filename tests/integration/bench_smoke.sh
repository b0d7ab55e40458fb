#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The huge-page benchmark end to end, small: it loads, verifies every reply, compares and reports.
#   GOBLIN_CORE  the server (default: build-release/goblin-core); benchmarks/loadgen lies beside it
# Runs with and without huge pages in the pool: --allow-fallback makes both a success.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
server=${GOBLIN_CORE:-$root/build-release/goblin-core}
script=$root/benchmarks/tlb_arena_benchmark.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
passed=0

check() { # NAME EXPECTED_STATUS ACTUAL_STATUS
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1: exit status $3, expected $2"
        cat "$work/out"
    fi
}

run() { # NAME EXPECTED_STATUS ARGUMENTS...
    name=$1 expected=$2
    shift 2
    status=0
    "$script" "$@" >"$work/out" 2>&1 </dev/null || status=$?
    check "$name" "$expected" "$status"
}

small="--fields 20000 --trials 2 --seconds 0.2 --allow-fallback"
# shellcheck disable=SC2086
{
    run "loadgen, all workloads" 0 "$server" $small --workload hget,hset,mixed --json "$work/result.json"
    run "python client" 0 "$server" $small --python-client --pipeline 10 --rounds 1
}
run "a missing server is refused" 2 "$work/no-such-server"
run "a file that is no program is refused" 2 "$root/CMakeLists.txt"
run "a server that exits is reported" 1 /bin/false --fields 10 --python-client
run "odd options are refused" 2 "$server" --fields 0

status=0
python3 - "$work/result.json" >"$work/out" 2>&1 <<'PY' || status=$?
import json, sys
r = json.load(open(sys.argv[1]))
assert len(r["trials"]) == 2 * 3 * 2, len(r["trials"])
for row in r["trials"]:
    for arm in ("plain", "hugetlb"):
        assert row[arm]["ops"] > 0 and row[arm]["server"]["cpu_ns_per_op"] > 0, row
assert r["memory"]["plain"]["hugetlb_bytes"] == 0, r["memory"]
assert all(s["verdict"] for s in r["summary"])
PY
check "the JSON report is whole" 0 "$status"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
