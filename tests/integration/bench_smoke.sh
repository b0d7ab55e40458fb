#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The huge-page benchmark end to end, small: it loads, verifies every reply, compares and reports.
#   GOBLIN_CORE   the server (default: build-release/goblin-core); benchmarks/loadgen lies beside it
#   GC_SANITIZED  not empty: a build with sanitizers, which the benchmark is not for
# Runs with and without huge pages in the pool: --allow-fallback makes both a success. Judges no timing.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
server=${GOBLIN_CORE:-$root/build-release/goblin-core}
script=$root/benchmarks/tlb_arena_benchmark.py

skip() {
    echo "SKIP: bench_smoke: $1"
    exit 77
}

[ -z "${GC_SANITIZED:-}" ] || skip "a benchmark says nothing about a build with sanitizers"
command -v python3 >/dev/null || skip "python3 is not installed"
[ -x "$(dirname "$server")/benchmarks/loadgen" ] || skip "benchmarks/loadgen is not built"

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

small="--fields 20000 --seconds 0.05 --rounds 1 --allow-fallback"
# shellcheck disable=SC2086
{
    run "loadgen, workloads on a hash" 0 "$server" $small --trials 2 --workloads hget,hset,mixed \
        --json "$work/result.json"
    run "loadgen, the other data sets" 0 "$server" $small --trials 1 --workloads hget1k,zrange,zrangebyscore,lrange \
        --arms plain,thp+index --pipeline 10
    run "python client" 0 "$server" $small --trials 1 --python-client --pipeline 10
}
run "a missing server is refused" 2 "$work/no-such-server"
run "a file that is no program is refused" 2 "$root/CMakeLists.txt"
run "a server that exits is reported" 1 /bin/false --fields 10 --python-client --allow-fallback
run "odd options are refused" 2 "$server" --fields 0

status=0
python3 - "$work/result.json" >"$work/out" 2>&1 <<'PY' || status=$?
import json, sys
r = json.load(open(sys.argv[1]))
arms = ["plain", "huge2m", "huge2m+index"]
assert r["arms"] == arms, r["arms"]
assert len(r["trials"]) == 2 * 3 * 2, len(r["trials"])
for row in r["trials"]:
    for arm in arms:
        assert row["arms"][arm]["ops"] > 0 and row["arms"][arm]["server"]["cpu_ns_per_op"] > 0, row
memory = r["rounds"][0]["memory"]
assert memory["plain"]["hugetlb_bytes"] == 0, memory
for arm in arms:
    m = memory[arm]
    assert m["true_resident_bytes"] == m["vmrss_bytes"] + m["hugetlb_bytes"] > 20000 * 36, memory
    assert r["rounds"][0]["pte"][arm]["p95_bytes"] > 0, r["rounds"][0]["pte"]
kinds = r["walk"]["kinds"]
assert "plain" in kinds and all(ns > 0 for found in kinds.values() for ns in found), kinds
assert len(r["summary"]) == 6 and all(s["reading"] for s in r["summary"])
PY
check "the JSON report is whole" 0 "$status"

status=0
PYTHONPATH=$root/benchmarks python3 - >"$work/out" 2>&1 <<'PY' || status=$?
from gcbench.stats import PROBE_BATCHES, RateSearch, paired, probe_failure, probe_seconds, verdict

for capacity in (500, 3_000, 100_000, 7_000_000):  # what a server can hold, found to 5 %
    search = RateSearch(60_000, floor=1_000)
    while not search.done:
        search.report(search.next_rate() <= capacity)
    assert search.resolved, capacity
    if capacity < 1_000:
        assert search.low == 0
    else:
        assert search.low <= capacity < search.high <= 1.05 * search.low, (capacity, search.low, search.high)

good = {"overrun": False, "seconds": 2.0005, "batches": PROBE_BATCHES, "batch_latency_us": {"p99": 900.0}}
assert probe_failure(good, 2.0, 1000) is None
for bad in ({"overrun": True}, {"seconds": 2.05}, {"batches": PROBE_BATCHES - 1}, {"batch_latency_us": {"p99": 1001.0}}):
    assert probe_failure(good | bad, 2.0, 1000), bad
assert probe_seconds(1e6, 1, 2.0) == 2.0 and probe_seconds(1000, 1, 2.0) * 1000 > PROBE_BATCHES

base = [100, 104, 97, 101, 99, 102]
assert verdict(paired(base, base), 6) == "noise"
assert verdict(paired([103, 99, 101, 98, 104, 97], base), 6) == "noise"
assert verdict(paired([b * x for b, x in zip(base, (0.6, 0.99, 0.99, 0.99, 0.99, 0.99))], base), 6) == "unsure"
assert verdict(paired([b * 0.98 for b in base], base), 6) == "luck"
assert verdict(paired([b * 0.9 for b in base], base), 6) == "sure"
assert verdict(paired([b * 0.9 for b in base[:2]], base[:2]), 2) == "few"
PY
check "rates are found and noise is not called a difference" 0 "$status"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
