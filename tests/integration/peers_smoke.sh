#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The comparison with other servers end to end, small, with our own server as its peer: every kind of row, the JSON, a page.
#   GOBLIN_CORE   the server (default: build-release/goblin-core); benchmarks/loadgen lies beside it
#   GC_SANITIZED  not empty: a build with sanitizers, which the benchmark is not for
# Judges no timing.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
server=${GOBLIN_CORE:-$root/build-release/goblin-core}

skip() {
    echo "SKIP: peers_smoke: $1"
    exit 77
}

[ -z "${GC_SANITIZED:-}" ] || skip "a benchmark says nothing about a build with sanitizers"
command -v python3 >/dev/null || skip "python3 is not installed"
[ -x "$(dirname "$server")/benchmarks/loadgen" ] || skip "benchmarks/loadgen is not built"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

peers() {
    status=0
    "$root/benchmarks/peers.py" "$@" >"$work/out" 2>&1 </dev/null || status=$?
}

fail() {
    echo "FAILED: $1"
    cat "$work/out"
    exit 1
}

# One row at least of each kind, and every list and set command, whose groups put back what they take.
peers --server "goblin-core='$server'" --without redis-server --server "peer='$server'" --scale 0.01 --trials 1 --open-seconds 0.1 \
    --only 'mem.small.list,mem.churn.hash,cpu.list,cpu.set,p1.string.get,open.string.get,grow.set,persist.zset' \
    --json "$work/result.json"
[ "$status" = 0 ] || fail "a small run"
printf 'before\n<!-- peers: cpu list -->\nold\n<!-- end -->\n<!-- peers: bgsave -->\nkept\n<!-- end -->\nafter\n' >"$work/page.md"
peers --render "$work/result.json" --page "$work/page.md"
[ "$status" = 0 ] || fail "a page"
cp "$work/page.md" "$work/out"
if grep -q '^old$' "$work/page.md"; then fail "the old table is still there"; fi
for text in '| LINDEX, random |' kept before after; do
    grep -qF "$text" "$work/page.md" || fail "the page lacks: $text"
done
python3 - "$work/result.json" >"$work/out" 2>&1 <<'PY' || fail "the JSON is not whole"
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
for kind in ("mem", "cpu", "p1", "open", "grow", "persist"):
    assert any(r["kind"] == kind for r in rows.values()), kind
for name, row in rows.items():
    assert set(row["trials"]) == {"goblin-core", "peer"}, name
    for figures in row["trials"].values():
        assert all(v >= 0 for values in figures.values() for v in values), name
PY

peers --only no.such.row --server "goblin-core='$server'"
[ "$status" = 1 ] || fail "a row that is not there is refused"
peers --server goblin-core=/no/such/server
[ "$status" = 2 ] || fail "a server that is not there is refused"
echo "passed"
