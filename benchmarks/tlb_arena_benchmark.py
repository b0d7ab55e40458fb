#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does it pay to keep the arena on huge pages?

Starts the server twice, side by side, once plain and once with --arena-hugetlb, loads the same
hash into both and runs the same random requests on both in turns: trial by trial, the order
alternating, so that whatever disturbs the machine disturbs both. Then it says how much of the
arena really was on huge pages, what both servers really occupy (VmRSS + HugetlbPages), and by how
much speed, CPU time per request and latency differ.

    sysctl -w vm.nr_hugepages=512
    ./benchmarks/tlb_arena_benchmark.py ./build-release/goblin-core --fields 8000000

Pool: a field costs about 20 + VALUE_BYTES bytes of arena. The line above, with its 16-byte values,
takes 275 MiB, 138 pages of 2 MiB; the 512 pages hold values of up to about 100 bytes.

Requests come from loadgen (C, built beside the server), or from this script with --python-client,
which can be slower than the server and then hides part of a difference in ops/s; CPU time
per request is measured at the server and does not suffer.
"""

import argparse
import ctypes
import datetime
import json
import os
import platform
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HOST = "127.0.0.1"
KEY = "bench:hash"
MIB = 1 << 20
HUGE_ENOUGH = 0.90  # of the arena: below it the run is called partial
LUCK = 0.03         # two processes of the same program differed by up to so much, by where they lie in memory
HUGE_NONE = 0.10    # of the arena: below it there is nothing to compare

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
EXIT_NO_HUGE, EXIT_PARTIAL, EXIT_INTERRUPTED = 4, 5, 130
EXIT_CODES = f"""exit status:
  {EXIT_OK}    the comparison ran, with the arena on huge pages
  {EXIT_FAILED}    something failed: a server died, a wrong reply, no loadgen
  {EXIT_USAGE}    bad options, or no server at the given path
  {EXIT_NO_HUGE}    the --arena-hugetlb server got (nearly) no huge pages; no trial was run
  {EXIT_PARTIAL}    the comparison ran, but with under {HUGE_ENOUGH:.0%} of the arena on huge pages
  {EXIT_INTERRUPTED}  interrupted
With --allow-fallback, {EXIT_NO_HUGE} and {EXIT_PARTIAL} become {EXIT_OK}; the table still says what it shows.
"""


class BenchError(Exception):
    """Ends the run; the text is for the user."""

    def __init__(self, text, code=EXIT_FAILED):
        super().__init__(text)
        self.code = code


# ---- words on the terminal ---------------------------------------------------------------------


class Progress:
    """One line that changes on a terminal, plain lines elsewhere."""

    def __init__(self):
        self.live = sys.stderr.isatty()
        self.shown = False

    def step(self, text):
        if self.live:
            sys.stderr.write("\r\033[K" + text)
            self.shown = True
            sys.stderr.flush()

    def line(self, text=""):
        if self.shown:
            sys.stderr.write("\r\033[K")
            self.shown = False
        print(text, file=sys.stderr, flush=True)


say = Progress()


def mib(count):
    return f"{count / MIB:,.1f} MiB"


# ---- /proc -------------------------------------------------------------------------------------


def read_kb_fields(path, names):
    """{name: bytes} of the lines "Name:   123 kB" in a /proc file; a missing line is 0."""
    found = dict.fromkeys(names, 0)
    with open(path) as f:
        for line in f:
            name, _, rest = line.partition(":")
            if name in found:
                words = rest.split()
                found[name] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return found


def pool_state():
    m = read_kb_fields("/proc/meminfo", ("HugePages_Total", "HugePages_Free", "HugePages_Rsvd", "Hugepagesize",
                                         "MemAvailable"))
    return {"total": m["HugePages_Total"], "available": max(0, m["HugePages_Free"] - m["HugePages_Rsvd"]),
            "page_bytes": m["Hugepagesize"] or 2 * MIB, "mem_available": m["MemAvailable"]}


def resident(pid):
    """What the process occupies. VmRSS leaves out hugetlb pages, so both are added up."""
    m = read_kb_fields(f"/proc/{pid}/status", ("VmRSS", "HugetlbPages", "VmPTE"))
    try:
        thp = read_kb_fields(f"/proc/{pid}/smaps_rollup", ("AnonHugePages",))["AnonHugePages"]
    except OSError:
        thp = 0
    return {"vmrss_bytes": m["VmRSS"], "hugetlb_bytes": m["HugetlbPages"], "pte_bytes": m["VmPTE"],
            "thp_bytes": thp, "true_resident_bytes": m["VmRSS"] + m["HugetlbPages"]}


def process_cpu(pid):
    """(ns on a CPU of all threads, user ns, system ns); the last two are sampled by the kernel."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    user, system = int(fields[11]) * tick, int(fields[12]) * tick
    total = 0
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/schedstat") as f:
                total += int(f.read().split()[0])
    except OSError:
        total = user + system
    return total, user, system


def busy_seconds():
    """CPU seconds of the whole machine that were not idle, steal left out."""
    with open("/proc/stat") as f:
        t = [int(x) for x in f.readline().split()[1:8]]
    return (t[0] + t[1] + t[2] + t[5] + t[6]) / os.sysconf("SC_CLK_TCK")


def cpu_model():
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


# ---- a small RESP client -----------------------------------------------------------------------


class Client:
    def __init__(self, port):
        self.sock = socket.create_connection((HOST, port), timeout=60)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.sock.makefile("rb", 1 << 16)

    def close(self):
        self.file.close()
        self.sock.close()

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, text = line[:1], line[1:-2]
        if kind == b"-":
            raise BenchError("the server answered: " + text.decode(errors="replace"))
        if kind == b"$":
            size = int(text)
            return None if size < 0 else self.file.read(size + 2)[:-2]
        return int(text) if kind == b":" else text

    def command(self, *args):
        parts = [b"*%d\r\n" % len(args)]
        for arg in args:
            parts.append(b"$%d\r\n%b\r\n" % (len(arg.encode()), arg.encode()))
        self.sock.sendall(b"".join(parts))
        return self.reply()


# ---- servers -----------------------------------------------------------------------------------


def free_port():
    with socket.socket() as s:
        s.bind((HOST, 0))
        return s.getsockname()[1]


class Server:
    """One arm of the comparison: a server process in its own directory."""

    def __init__(self, name, path, options, base, cpu):
        self.name, self.cpu = name, cpu
        self.port = free_port()
        self.dir = os.path.join(base, name)
        os.mkdir(self.dir)
        self.log_path = os.path.join(base, name + ".log")
        self.argv = [path, "--port", str(self.port), "--dir", self.dir, "--save", "", *options]
        self.process = None

    def start(self):
        def prepare():
            # The server must not outlive this script, even when it is killed.
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)
            if self.cpu is not None:
                os.sched_setaffinity(0, {self.cpu})

        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=prepare)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            self.check_alive()
            try:
                client = Client(self.port)
                try:
                    client.command("PING")
                    return
                finally:
                    client.close()
            except OSError:
                time.sleep(0.02)
        raise BenchError(f"the {self.name} server did not answer PING within 30 s\n{self.log_tail()}")

    @property
    def pid(self):
        return self.process.pid

    def log_tail(self, count=15):
        with open(self.log_path, errors="replace") as f:
            lines = f.read().splitlines()[-count:] or ["(empty)"]
        return "\n".join([f"last lines of its log ({' '.join(self.argv)}):"] + ["  | " + x for x in lines])

    def check_alive(self):
        code = self.process.poll()
        if code is None:
            return
        if code >= 0:
            how = f"exited with status {code}"
        else:
            how = f"was killed by {signal.Signals(-code).name}"
            if -code == signal.SIGBUS:
                how += " (as a rule: a huge page that was promised could not be had)"
        raise BenchError(f"the {self.name} server {how}\n{self.log_tail()}")

    def info(self):
        """INFO memory as a dictionary."""
        client = Client(self.port)
        try:
            text = client.command("INFO", "memory").decode(errors="replace")
        finally:
            client.close()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


# ---- clients: loadgen, or this script ----------------------------------------------------------


class Loadgen:
    """The C load generator. load and run return its JSON report."""

    def __init__(self, path, args, cpu):
        self.path, self.args, self.cpu = path, args, cpu

    def call(self, server, words, on_progress=None):
        a = self.args
        argv = [self.path, *words, "--host", HOST, "--port", str(server.port), "--key", KEY,
                "--fields", str(a.fields), "--value-bytes", str(a.value_bytes), "--pid", str(server.pid)]
        if self.cpu is not None:
            argv += ["--cpu", str(self.cpu)]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        complaints = []
        try:
            for line in process.stderr:
                if line.startswith("progress "):
                    on_progress(int(line.split()[1]))
                else:
                    complaints.append(line.strip())
            out = process.stdout.read()
            process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode != 0:
            time.sleep(0.3)  # a server that dies closes its connections before it can be waited for
            server.check_alive()
            raise BenchError(f"loadgen failed on the {server.name} server: " + ("; ".join(complaints) or "no message"))
        return json.loads(out)

    def load(self, server, on_progress):
        return self.call(server, ["load", "--progress"], on_progress)

    def run(self, server, workload, pipeline, seed):
        words = ["run", workload, "--pipeline", str(pipeline), "--connections", str(self.args.connections),
                 "--seconds", str(self.args.seconds), "--warmup", "0.3", "--seed", str(seed)]
        return self.call(server, words)


class PythonClient:
    """The same traffic from this script, with blocking sockets. Reports like loadgen."""

    def __init__(self, args, cpu):
        self.args = args
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
        self.pool = random.Random(20240607).randbytes(MIB + args.value_bytes)

    def value(self, idx):
        at = idx * 2654435761 % MIB
        return self.pool[at:at + self.args.value_bytes]

    def pair(self, idx):
        return b"$18\r\nfield:%012d\r\n$%d\r\n%b\r\n" % (idx, self.args.value_bytes, self.value(idx))

    def load(self, server, on_progress):
        client, per, fields = Client(server.port), 100, self.args.fields
        start, cpu = time.monotonic(), process_cpu(server.pid)[0]
        new_items = 0
        for first in range(0, fields, 10 * per):
            heads = range(first, min(first + 10 * per, fields), per)
            for head in heads:
                items = range(head, min(head + per, fields))
                client.sock.sendall(b"*%d\r\n$4\r\nHSET\r\n$%d\r\n%b\r\n" % (2 + 2 * len(items), len(KEY), KEY.encode())
                                    + b"".join(map(self.pair, items)))
            new_items += sum(client.reply() for _ in heads)
            on_progress(first)
        client.close()
        return {"ops": fields, "new_items": new_items, "seconds": time.monotonic() - start,
                "server": {"cpu_ns_per_op": (process_cpu(server.pid)[0] - cpu) / fields}}

    def batch(self, rng, workload, pipeline):
        """(request bytes, the replies that are right for it)."""
        head = b"$%d\r\n%b\r\n" % (len(KEY), KEY.encode())
        ids = [rng.randrange(self.args.fields) for _ in range(pipeline)]
        if workload == "hset":
            return (b"".join(b"*4\r\n$4\r\nHSET\r\n" + head + self.pair(i) for i in ids), b":0\r\n" * pipeline)
        return (b"".join(b"*3\r\n$4\r\nHGET\r\n" + head + b"$18\r\nfield:%012d\r\n" % i for i in ids),
                b"".join(b"$%d\r\n%b\r\n" % (self.args.value_bytes, self.value(i)) for i in ids))

    def exchange(self, server, batches, seconds):
        """Keep one batch outstanding on every connection; the latencies of all batches in ns."""
        socks = [Client(server.port).sock for _ in range(self.args.connections)]
        latencies, pending, turn = [], [], 0
        end = time.perf_counter_ns() + int(seconds * 1e9)
        while True:
            if len(pending) == len(socks) or time.perf_counter_ns() >= end:
                if not pending:
                    break
                sock, want, sent_at = pending.pop(0)
                got = bytearray()
                while len(got) < len(want):
                    part = sock.recv(len(want) - len(got))
                    if not part or got[:1] == b"-" or part[:1] == b"-" and not got:
                        raise BenchError(f"wrong reply from the {server.name} server: {bytes(got + part)[:80]!r}")
                    got += part
                latencies.append(time.perf_counter_ns() - sent_at)
                if got != want:
                    raise BenchError(f"wrong reply from the {server.name} server: {bytes(got)[:80]!r}")
            if time.perf_counter_ns() < end:
                sock, (request, want) = socks[turn % len(socks)], batches[turn % len(batches)]
                turn += 1
                pending.append((sock, want, time.perf_counter_ns()))
                sock.sendall(request)
        for sock in socks:
            sock.close()
        return latencies

    def run(self, server, workload, pipeline, seed):
        rng = random.Random(seed)
        batches = [self.batch(rng, workload, pipeline) for _ in range(max(200, 100_000 // pipeline))]
        try:
            self.exchange(server, batches, 0.3)
            cpu, own, start = process_cpu(server.pid), time.process_time_ns(), time.monotonic()
            lat = sorted(self.exchange(server, batches, self.args.seconds))
            seconds, own = time.monotonic() - start, time.process_time_ns() - own
            total, user, system = (x - y for x, y in zip(process_cpu(server.pid), cpu))
        except (OSError, BenchError):
            time.sleep(0.3)
            server.check_alive()
            raise
        ops = len(lat) * pipeline
        share = user / max(1, user + system)
        at = lambda q: lat[min(len(lat) - 1, int(len(lat) * q))] / 1e3
        return {"ops": ops, "seconds": seconds, "ops_per_sec": ops / seconds,
                "batch_latency_us": {"p50": at(.5), "p99": at(.99), "p999": at(.999), "max": lat[-1] / 1e3},
                "client": {"cpu_ns_per_op": own / ops, "cpu_share": own / 1e9 / seconds, "cpu_ns": own},
                "server": {"cpu_ns_per_op": total / ops, "cpu_share": total / 1e9 / seconds, "cpu_ns": total,
                           "user_ns_per_op": total / ops * share, "sys_ns_per_op": total / ops * (1 - share),
                           "user_accounted_ns": user, "sys_accounted_ns": system}}


def find_loadgen(args):
    """--loadgen, or the one of the build that made the server."""
    build = os.path.dirname(os.path.abspath(args.server))
    path = args.loadgen or os.path.join(build, "benchmarks", "loadgen")
    if os.access(path, os.X_OK) and os.path.isfile(path):
        return path
    if args.loadgen:
        raise BenchError(f"--loadgen {path}: no such program", EXIT_USAGE)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    raise BenchError(f"the load generator is not built ({path}).\nBuild it with\n"
                     f"    cmake -S {root} -B {build} && cmake --build {build} --target loadgen\n"
                     f"or name one with --loadgen PATH, or use --python-client.")


# ---- the pool ----------------------------------------------------------------------------------


def arena_estimate(args, page_bytes):
    """(arena bytes, pages) that the data needs: records {lengths, field, value} on 4-byte borders."""
    lengths = 2 + (3 if args.value_bytes > 127 else 0)
    record = (lengths + 18 + args.value_bytes + 3) // 4 * 4
    chunk = max(page_bytes, args.hash_chunk_bytes or 0)
    count = -(-args.fields * record // chunk)
    slack = 4 + count // 50  # the chunk being filled, chunk headers and tails
    return args.fields * record, (count + slack) * (chunk // page_bytes)


def check_pool(args):
    """Say before any work is done whether the pool can hold the arena; warn about memory too."""
    pool = pool_state()
    need_bytes, need_pages = arena_estimate(args, pool["page_bytes"])
    say.line(f"arena: about {mib(need_bytes)} for {args.fields:,} fields with {args.value_bytes}-byte values, "
             f"{need_pages} huge pages of {pool['page_bytes'] // MIB} MiB; the pool has {pool['available']} "
             f"of {pool['total']} available")
    if pool["available"] < need_pages:
        say.line(f"WARNING: the pool is too small, part of the arena will fall back to ordinary pages. Fix it with\n"
                 f"    sysctl -w vm.nr_hugepages={pool['total'] + need_pages - pool['available']}")
    both = 2 * (need_bytes + 10 * args.fields) - min(pool["available"] * pool["page_bytes"], need_bytes)
    if both > pool["mem_available"]:
        say.line(f"WARNING: both servers need about {mib(both)} of ordinary memory, {mib(pool['mem_available'])} "
                 f"are available; fewer --fields may be wise")
    if args.value_bytes > 60_000:
        say.line("WARNING: values this large may be kept outside the arena, on ordinary pages")
    return need_bytes


def number_in(info, name):
    text = info.get(name, "")
    return int(text) if text.isdigit() else None


def check_obtained(args, server, need_bytes):
    """After loading: how much of the arena is on huge pages and why the rest is not."""
    info, huge = server.info(), resident(server.pid)["hugetlb_bytes"]
    fell = number_in(info, "arena_fallback_bytes")
    reason = info.get("arena_fallback_reason", "").strip()
    whole = huge + fell if fell is not None else max(huge, need_bytes)
    share = huge / whole if whole else 0.0
    say.line(f"huge pages obtained: {mib(huge)} (HugetlbPages of the process), {share:.0%} of the arena")
    if fell:
        say.line(f"fell back to ordinary pages: {mib(fell)}; reason: {reason or 'the server gives none'}")
        if fell >= 2 * MIB:
            pool = pool_state()
            short = -(-fell // pool["page_bytes"]) + 1 - pool["available"]
            if short > 0:
                say.line(f"    sysctl -w vm.nr_hugepages={pool['total'] + short}    would hold all of it")
            else:
                say.line(f"the pool still has {pool['available']} pages: something else forbids them (a cgroup, a NUMA "
                         "policy), or it was filled too late")
    elif fell is None:
        say.line("the server's INFO has no arena_fallback_bytes: it cannot say what fell back, or why")
    obtained = {"hugetlb_bytes": huge, "arena_bytes": whole, "share": share, "fallback_bytes": fell,
                "fallback_reason": reason, "info_arena_huge_bytes": number_in(info, "arena_huge_bytes")}
    if share < HUGE_NONE:
        text = ("this is NOT a huge-page comparison: the --arena-hugetlb server holds its arena on ordinary pages")
        if not args.allow_fallback:
            raise BenchError(text + "; no trial was run (--allow-fallback runs it all the same)", EXIT_NO_HUGE)
        say.line("WARNING: " + text)
    return obtained


# ---- trials ------------------------------------------------------------------------------------


def load_all(args, client, servers, need_bytes):
    """Load the servers in the order given; (what the pool gave, the clients' reports)."""
    obtained, reports = None, {}
    for server in servers:
        start = time.monotonic()

        def progress(done):
            say.step(f"loading {server.name}: {done:,} of {args.fields:,} fields ({time.monotonic() - start:.0f} s)")

        progress(0)
        report = client.load(server, progress)
        if report["new_items"] != args.fields:
            raise BenchError(f"the {server.name} server counted {report['new_items']:,} new fields, "
                             f"not {args.fields:,}")
        reports[server.name] = report
        say.line(f"loaded {server.name}: {args.fields:,} fields in {report['seconds']:.1f} s, "
                 f"{report['server']['cpu_ns_per_op']:.0f} ns of server CPU each")
        if server.name == "hugetlb":
            obtained = check_obtained(args, server, need_bytes)
    return obtained, reports


def run_trials(args, client, servers, trials):
    """[{workload, pipeline, trial, plain: report, hugetlb: report}], arms in alternating order."""
    rows, cells = [], [(w, p) for w in args.workload for p in args.pipeline]
    for trial in trials:
        order = servers if trial % 2 == 0 else servers[::-1]
        for workload, pipeline in cells:
            row = {"workload": workload, "pipeline": pipeline, "trial": trial + 1, "order": [s.name for s in order]}
            for server in order:
                say.step(f"trial {trial + 1} of {args.trials}: {workload}, pipeline {pipeline}, {server.name}")
                busy, start = busy_seconds(), time.monotonic()
                report = client.run(server, workload, pipeline, args.seed + trial)
                elapsed = time.monotonic() - start
                # loadgen's warm-up is part of what was busy, so it counts both parties for all of it.
                known = (report["server"]["cpu_share"] + report["client"]["cpu_share"]) * elapsed
                report["foreign_cores"] = max(0.0, (busy_seconds() - busy - known) / elapsed)
                row[server.name] = report
            rows.append(row)
            ratio = row["hugetlb"]["ops_per_sec"] / row["plain"]["ops_per_sec"] - 1
            say.line(f"trial {trial + 1} of {args.trials}, {workload} pipeline {pipeline}: "
                     f"plain {row['plain']['ops_per_sec']:,.0f}, hugetlb {row['hugetlb']['ops_per_sec']:,.0f} ops/s "
                     f"({ratio:+.1%})")
    return rows


METRICS = (
    ("ops/s", "ops_per_sec", lambda r: r["ops_per_sec"], "{:,.0f}", +1),
    ("server CPU ns/op", "server_cpu_ns_per_op", lambda r: r["server"]["cpu_ns_per_op"], "{:,.0f}", -1),
    ("batch p50 us", "p50_us", lambda r: r["batch_latency_us"]["p50"], "{:,.1f}", -1),
    ("batch p99 us", "p99_us", lambda r: r["batch_latency_us"]["p99"], "{:,.1f}", -1),
    ("batch p99.9 us", "p999_us", lambda r: r["batch_latency_us"]["p999"], "{:,.1f}", -1),
)


def pooled_user_ns(reports):
    """(user ns per op over all trials, its relative error). The kernel samples user against system
    time at its ticks, so one short trial says little: k samples are uncertain by about 1/sqrt(k)."""
    tick = 1e9 / os.sysconf("SC_CLK_TCK")
    user = sum(r["server"]["user_accounted_ns"] for r in reports)
    both = user + sum(r["server"]["sys_accounted_ns"] for r in reports)
    cpu, ops = sum(r["server"]["cpu_ns"] for r in reports), sum(r["ops"] for r in reports)
    share = user / both if both else 0.0
    samples = both / tick
    error = ((1 - share) / (share * samples)) ** 0.5 if share and samples else 1.0
    return cpu * share / ops, error


def summarize(rows):
    """One workload at one pipeline: medians of both arms and the paired differences."""
    out = {"workload": rows[0]["workload"], "pipeline": rows[0]["pipeline"], "metrics": {}}
    for label, name, get, _, _ in METRICS:
        plain, huge = [get(r["plain"]) for r in rows], [get(r["hugetlb"]) for r in rows]
        deltas = [h / p - 1 for p, h in zip(plain, huge) if p]
        out["metrics"][name] = {
            "label": label, "plain": statistics.median(plain), "hugetlb": statistics.median(huge),
            "plain_spread": (max(plain) - min(plain)) / (statistics.median(plain) or 1),
            "hugetlb_spread": (max(huge) - min(huge)) / (statistics.median(huge) or 1),
            "delta": {"median": statistics.median(deltas), "min": min(deltas), "max": max(deltas), "all": deltas}}
    user = {arm: pooled_user_ns([r[arm] for r in rows]) for arm in ("plain", "hugetlb")}
    out["user_ns_per_op"] = {arm: user[arm][0] for arm in user}
    out["user_error"] = {arm: user[arm][1] for arm in user}
    for side in ("server", "client"):
        out[side + "_share"] = {arm: statistics.median(r[arm][side]["cpu_share"] for r in rows) for arm in user}
    out["client_ns_per_op"] = {arm: statistics.median(r[arm]["client"]["cpu_ns_per_op"] for r in rows) for arm in user}
    out["foreign_cores"] = max(r[arm]["foreign_cores"] for r in rows for arm in user)
    out["verdict"] = verdict(out, len(rows))
    return out


def judge(metric, better, trials):
    """One clause: which way a metric went and whether the trials agree on it."""
    d = metric["delta"]
    word = "more" if d["median"] > 0 else "less"
    text = f"{abs(d['median']):.1%} {word} {metric['label'].removesuffix(' ns/op')} with huge pages"
    if trials < 3:
        return f"{text}, but {trials} trial(s) cannot tell that from noise"
    if d["min"] <= 0 <= d["max"]:
        return f"no difference in {metric['label']} beyond the noise ({d['min']:+.1%} to {d['max']:+.1%})"
    if abs(d["median"]) < LUCK:
        return f"{text}, but two equal servers can differ by as much"
    return f"{text}, in every one of {trials} trials ({'better' if d['median'] * better > 0 else 'worse'})"


def verdict(s, trials):
    """What may honestly be read from one block of the table."""
    lines = [judge(s["metrics"]["ops_per_sec"], +1, trials) + "; "
             + judge(s["metrics"]["server_cpu_ns_per_op"], -1, trials) + "."]
    client, server = min(s["client_share"].values()), min(s["server_share"].values())
    if max(s["client_share"].values()) > 0.9 and server < 0.95:
        lines.append(f"The client was the limit (it used {client:.0%} of a CPU, the server {server:.0%}): "
                     "ops/s understates the difference, CPU per op does not.")
    plain, huge = (s["user_ns_per_op"][arm] for arm in ("plain", "hugetlb"))
    error = (s["user_error"]["plain"] ** 2 + s["user_error"]["hugetlb"] ** 2) ** 0.5
    if plain and abs(huge / plain - 1) <= 2 * error:
        lines.append(f"User time alone: no difference beyond its sampling error (2 x {error:.1%}).")
    if s["foreign_cores"] > 0.2:
        lines.append(f"Other work took up to {s['foreign_cores']:.1f} CPUs meanwhile: on a quieter machine the "
                     "spread would be smaller.")
    return lines


# ---- the table ---------------------------------------------------------------------------------


def row(label, plain, huge, delta=""):
    return f"  {label:<26}{plain:>16}{huge:>16}   {delta}".rstrip()


def spread(d):
    return f"{d['median']:+.1%}  [{d['min']:+.1%} .. {d['max']:+.1%}]"


def memory_block(args, memory):
    p, h = memory["plain"], memory["hugetlb"]
    delta = lambda k: f"{h[k] / p[k] - 1:+.1%}" if p[k] else ""
    per = lambda m: f"{m['true_resident_bytes'] / args.fields:.1f} B"
    return [
        row("huge-page-backed", mib(p["hugetlb_bytes"]), mib(h["hugetlb_bytes"])),
        row("VmRSS", mib(p["vmrss_bytes"]), mib(h["vmrss_bytes"])),
        row("true resident", mib(p["true_resident_bytes"]), mib(h["true_resident_bytes"]),
            delta("true_resident_bytes") + "  (VmRSS + HugetlbPages)"),
        row("true resident per field", per(p), per(h)),
        row("page tables (VmPTE)", mib(p["pte_bytes"]), mib(h["pte_bytes"]), delta("pte_bytes")),
        row("transparent huge pages", mib(p["thp_bytes"]), mib(h["thp_bytes"])),
    ]


def trial_block(args, s):
    count = args.connections
    lines = ["", f"{s['workload']}, pipeline {s['pipeline']}, {count} connection{'s' * (count > 1)}"
                 f"   (medians; difference per trial: median [min .. max])"]
    for label, name, _, fmt, _ in METRICS:
        m = s["metrics"][name]
        lines.append(row(label, fmt.format(m["plain"]), fmt.format(m["hugetlb"]), spread(m["delta"])))
        if name == "server_cpu_ns_per_op":
            u, e = s["user_ns_per_op"], s["user_error"]
            error = (e["plain"] ** 2 + e["hugetlb"] ** 2) ** 0.5
            lines.append(row("  of it user, all trials", f"{u['plain']:,.0f}", f"{u['hugetlb']:,.0f}",
                             f"{u['hugetlb'] / u['plain'] - 1:+.1%}  (sampled, +- {error:.1%})" if u["plain"] else ""))
    ops = s["metrics"]["ops_per_sec"]
    lines.append(row("spread of ops/s", f"{ops['plain_spread']:.1%}", f"{ops['hugetlb_spread']:.1%}"))
    for side in ("server", "client"):
        lines.append(row(f"{side} CPU in use", *(f"{s[side + '_share'][arm]:.0%}" for arm in ("plain", "hugetlb"))))
    lines.append(row("client CPU ns/op", *(f"{s['client_ns_per_op'][arm]:,.0f}" for arm in ("plain", "hugetlb"))))
    return lines + ["  => " + line for line in s["verdict"]]


def headline(result):
    share, memory = result["obtained"]["share"], result["memory"]
    if share < HUGE_NONE:
        lines = ["THIS IS NOT A HUGE-PAGE COMPARISON: both servers hold their arenas on ordinary pages."]
    elif share < HUGE_ENOUGH:
        lines = [f"PARTIAL: only {share:.0%} of the arena is on huge pages; the rest fell back "
                 f"({result['obtained']['fallback_reason'] or 'no reason given'})."]
    else:
        lines = [f"{share:.0%} of the --arena-hugetlb server's arena is on huge pages."]
    plain = memory["plain"]
    if plain["thp_bytes"] > plain["true_resident_bytes"] / 10:
        lines.append("The plain server is not on 4 KB pages: the kernel gave it transparent huge pages.")
    return lines


def table(args, result):
    m = result["machine"]
    lines = ["", f"{m['cpu']}, {m['cpus']} CPUs, Linux {m['kernel']}; {args.fields:,} fields, {args.value_bytes}-byte "
                 f"values; {args.trials} trials of {args.seconds:g} s "
                 f"on {args.rounds} pair{'s' * (args.rounds > 1)} of servers; client: {result['client']}"]
    lines += headline(result) + ["", row("", "plain", "hugetlb")]
    lines += memory_block(args, result["memory"])
    for s in result["summary"]:
        lines += trial_block(args, s)
    return "\n".join(lines)


# ---- options and the whole run -----------------------------------------------------------------


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def positive_list(text):
    return [positive(x) for x in text.split(",")]


def workload_list(text):
    names = text.split(",")
    if not set(names) <= {"hget", "hset", "mixed"}:
        raise argparse.ArgumentTypeError("hget, hset or mixed, separated by commas")
    return names


def at_least(least, kind):
    def parse(text):
        value = kind(text)
        if not value >= least:
            raise argparse.ArgumentTypeError(f"must be at least {least}")
        return value
    parse.__name__ = kind.__name__
    return parse


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, epilog=EXIT_CODES,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("server", metavar="SERVER", help="the server binary, e.g. ./build-release/goblin-core")
    p.add_argument("--fields", type=positive, default=8_000_000, help="fields of the hash (default %(default)s)")
    p.add_argument("--value-bytes", type=at_least(0, int), default=16, help="bytes of each value (default %(default)s)")
    p.add_argument("--trials", type=positive, default=6,
                   help="trials; an even number has both orders equally often (default %(default)s)")
    p.add_argument("--rounds", type=positive, default=2,
                   help="pairs of fresh servers that share the trials, since where a process happens to lie in "
                        "memory moves its speed by a few percent (default %(default)s)")
    p.add_argument("--seconds", type=at_least(0.05, float), default=3.0, help="length of one run (default %(default)s)")
    p.add_argument("--pipeline", type=positive_list, default=[50, 1], metavar="P[,P...]",
                   help="requests sent at once, one block of the table for each (default 50,1)")
    p.add_argument("--connections", type=positive, default=16, help="(default %(default)s)")
    p.add_argument("--workload", type=workload_list, default=["hget"], metavar="W[,W...]",
                   help="hget, hset, mixed (10 %% hset); one block for each (default hget)")
    p.add_argument("--seed", type=at_least(0, int), default=1, help="of the random fields (default %(default)s)")
    p.add_argument("--hash-chunk-bytes", type=positive, metavar="N", help="passed to both servers")
    p.add_argument("--python-client", action="store_true", help="requests from this script instead of loadgen")
    p.add_argument("--loadgen", metavar="PATH", help="(default: benchmarks/loadgen beside the server)")
    p.add_argument("--server-cpu", type=at_least(0, int), metavar="N", help="CPU of both servers (default: the first)")
    p.add_argument("--client-cpu", type=at_least(0, int), metavar="N", help="CPU of the client (default: the second)")
    p.add_argument("--allow-fallback", action="store_true", help="go on, and exit with 0, without huge pages")
    p.add_argument("--json", metavar="FILE", help="write everything measured to this file")
    args = p.parse_args()
    if args.rounds > args.trials:
        p.error(f"--rounds {args.rounds} needs at least as many --trials")
    if args.python_client and args.loadgen:
        p.error("--loadgen has no meaning with --python-client")
    if args.python_client and "mixed" in args.workload:
        p.error("--python-client does hget and hset only")
    return args


def check_paths(args):
    if not os.path.isfile(args.server):
        raise BenchError(f"no server at {args.server}; build it with\n    cmake --preset release && "
                         "cmake --build build-release", EXIT_USAGE)
    if not os.access(args.server, os.X_OK):
        raise BenchError(f"{args.server} is not an executable file", EXIT_USAGE)
    if args.json:
        folder = os.path.dirname(os.path.abspath(args.json))
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            raise BenchError(f"--json {args.json}: cannot write there", EXIT_USAGE)
    args.server = os.path.abspath(args.server)


def choose_cpus(args):
    """(server's CPU, client's CPU); (None, None) when there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    for name, cpu in (("--server-cpu", args.server_cpu), ("--client-cpu", args.client_cpu)):
        if cpu is not None and cpu not in allowed:
            raise BenchError(f"{name} {cpu}: this process may run on {allowed}", EXIT_USAGE)
    if len(allowed) < 2:
        say.line("WARNING: one CPU only, client and servers share it: ops/s says little, CPU per op still counts")
        return None, None
    client = args.client_cpu
    server = args.server_cpu if args.server_cpu is not None else next(c for c in allowed if c != client)
    if client is None:
        client = next(c for c in allowed if c != server)
    return server, client


def machine():
    return {"cpu": cpu_model(), "cpus": os.cpu_count(), "kernel": platform.release(), "pool": pool_state(),
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


def stop_all(servers):
    for server in servers:
        server.stop()
    servers.clear()


def one_round(args, base, servers, client, server_cpu, need_bytes, idx):
    """Start and load a fresh pair. The first pair has huge pages first: without them there is no
    point in going on; the order alternates after that."""
    os.mkdir(base)
    options = ["--hash-chunk-bytes", str(args.hash_chunk_bytes)] if args.hash_chunk_bytes else []
    arms = [("hugetlb", [*options, "--arena-hugetlb"]), ("plain", options)]
    for name, extra in arms if idx % 2 == 0 else arms[::-1]:
        servers.append(Server(name, args.server, extra, base, server_cpu))
        servers[-1].start()
    obtained, load = load_all(args, client, servers, need_bytes)
    time.sleep(0.5)  # let freed buffers go back before memory is read
    return {"obtained": obtained, "load": load, "memory": {s.name: resident(s.pid) for s in servers}}


def compare(args, base, servers):
    """The whole measurement; servers is filled so that the caller can stop them whatever happens."""
    server_cpu, client_cpu = choose_cpus(args)
    path = None if args.python_client else find_loadgen(args)
    need_bytes = check_pool(args)
    client = PythonClient(args, client_cpu) if path is None else Loadgen(path, args, client_cpu)
    result = {"machine": machine(), "client": "python" if path is None else "loadgen", "options": vars(args),
              "server_cpu": server_cpu, "client_cpu": client_cpu, "rounds": []}
    rows = []
    for idx in range(args.rounds):
        trials = range(idx * args.trials // args.rounds, (idx + 1) * args.trials // args.rounds)
        report = one_round(args, os.path.join(base, str(idx)), servers, client, server_cpu, need_bytes, idx)
        rows += run_trials(args, client, servers, trials)
        result["rounds"].append(report)
        if idx + 1 < args.rounds:
            stop_all(servers)
    result["obtained"] = min((r["obtained"] for r in result["rounds"]), key=lambda o: o["share"])
    result["memory"] = result["rounds"][-1]["memory"]
    cells = dict.fromkeys((r["workload"], r["pipeline"]) for r in rows)
    result["summary"] = [summarize([r for r in rows if (r["workload"], r["pipeline"]) == c]) for c in cells]
    result["trials"] = rows
    return result


def exit_code(args, result):
    if args.allow_fallback or result["obtained"]["share"] >= HUGE_ENOUGH:
        return EXIT_OK
    return EXIT_PARTIAL


def main():
    args = parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits it ignored
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    servers, base = [], None
    try:
        check_paths(args)
        base = tempfile.mkdtemp(prefix="tlb-arena-")
        result = compare(args, base, servers)
        say.line()
        print(table(args, result).lstrip("\n"), flush=True)
        if args.json:
            with open(args.json, "w") as f:
                json.dump(result, f, indent=1)
                f.write("\n")
        return exit_code(args, result)
    except BenchError as e:
        say.line(f"error: {e}")
        return e.code
    except OSError as e:
        say.line(f"error: {e}")
        for server in servers:
            if server.process is not None and server.process.poll() is not None:
                say.line(f"the {server.name} server is gone\n{server.log_tail()}")
        return EXIT_FAILED
    except KeyboardInterrupt:
        say.line("interrupted; servers stopped, nothing kept")
        return EXIT_INTERRUPTED
    finally:
        stop_all(servers)
        if base:
            shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
