# SPDX-License-Identifier: BSD-3-Clause
"""The huge-page benchmark's measurement: rounds of fresh servers, loaded alike, asked in turns."""

import os
import time

from . import walk
from .arms import HUGE_NONE, Arm, least_share, obtained
from .kernel import Cost, DtlbMisses, Sampler
from .server import Server, stop_all
from .stats import RateSearch, probe_failure, probe_seconds, slowest_rate
from .system import (BenchError, EXIT_NO_HUGE, busy_seconds, memory_state, mib, pool_command, pools,
                     resident, say)
from .workloads import WORKLOADS, datasets


class Bench:
    """State of one run; servers is what must be stopped whatever happens."""

    def __init__(self, args, client, cpus, base):
        self.args, self.client, self.base = args, client, base
        self.server_cpu = cpus[0]
        self.servers, self.skipped, self.count = [], {}, 0
        self.misses = DtlbMisses()
        self.arms = [Arm(name) for name in args.arms]
        self.data = datasets(args)
        self.result = {"rounds": [], "trials": [], "p99": []}

    def skip(self, arm, reason):
        self.skipped[arm.name] = reason
        self.arms.remove(arm)
        say.line(f"arm {arm.name} is left out: {reason}")

    def must_have_huge(self):
        if not any(a.huge for a in self.arms):
            raise BenchError("this is NOT a huge-page comparison: no arm with huge pages is left; no trial was run "
                             "(--allow-fallback runs it all the same)", EXIT_NO_HUGE)

    # ---- before anything starts ----

    def check_machine(self):
        for arm in list(self.arms):
            reason = arm.impossible()
            if reason and not self.args.allow_fallback:
                self.skip(arm, reason)
            elif reason:
                say.line(f"WARNING: arm {arm.name} runs without what it asks for: {reason}")
        if not self.args.allow_fallback:
            self.must_have_huge()
        self.check_pools()

    def check_pools(self):
        """Say whether the pools hold the largest data set in all arms at once; warn about memory too."""
        names = {WORKLOADS[w].dataset for w in self.args.workloads}
        need, largest = {}, 0
        for data in (self.data[n] for n in names):
            total = {}
            for arm in self.arms:
                for page, count in arm.pages_needed(data.arena_bytes, data.index_bytes).items():
                    total[page] = total.get(page, 0) + count
            for page, count in total.items():
                need[page] = max(need.get(page, 0), count)
            largest = max(largest, data.arena_bytes + data.index_bytes)
        have = pools()
        for page, count in need.items():
            free = have.get(page, {"available": 0, "total": 0})
            say.line(f"huge pages of {mib(page)}: about {count} needed, {free['available']} of {free['total']} "
                     "available")
            if free["available"] < count:
                say.line("WARNING: the pool is too small, part will fall back to ordinary pages. Fix it with\n    "
                         + pool_command(page, free["total"] + count - free["available"]))
        ordinary = largest * sum(1 for a in self.arms if not a.page)
        available = memory_state()["available"]
        if ordinary > available:
            say.line(f"WARNING: the servers need about {mib(ordinary)} of ordinary memory, {mib(available)} are "
                     "available; fewer --fields or --arms may be wise")

    def walk(self):
        say.step("random reads on each kind of page")
        used = [self.data[WORKLOADS[w].dataset] for w in self.args.workloads]
        found = walk.measure(self.args.server, max(d.arena_bytes + d.index_bytes for d in used), self.server_cpu)
        self.result["walk"] = found
        say.line(walk.title(found) + "".join(f"; {k} {one:,.1f}, 16 at once {many:,.1f}"
                                             for k, (one, many) in found.get("kinds", {}).items()))

    # ---- one round ----

    def start(self, order):
        """Fresh servers for the arms. One that does not know its options is left out."""
        self.count += 1
        folder = os.path.join(self.base, str(self.count))
        os.mkdir(folder)
        for arm in order:
            server = Server(arm.name, [self.args.server, *arm.options, *self.args.server_args], folder,
                            self.server_cpu)
            server.arm = arm
            self.servers.append(server)
            try:
                server.start()
            except BenchError as e:
                if arm.name == "plain" or server.process.poll() is None:
                    raise
                self.servers.remove(server)
                self.skip(arm, "the server does not start with its options: " + str(e).splitlines()[-1].strip(" |"))

    def load(self, data, report):
        for server in list(self.servers):
            start = time.monotonic()

            def progress(done):
                say.step(f"loading {server.name}: {done:,} of {data.count:,} ({time.monotonic() - start:.0f} s)")

            progress(0)
            before, cost = pools(), Cost(server.pid, self.misses)
            load = self.client.load(server, data, progress)
            if load["new_items"] != data.count:
                raise BenchError(f"the {server.name} server counted {load['new_items']:,} new elements, "
                                 f"not {data.count:,}")
            load["cost"] = cost.since()
            taken = {str(p): before[p]["free"] - now["free"] for p, now in pools().items()}
            got = obtained(server.arm, server)
            report["load"][server.name], report["obtained"][server.name] = load, got
            report["pool_pages_taken"][server.name] = taken
            say.line(f"loaded {server.name} with {data.name}: {data.count:,} in {load['seconds']:.1f} s, "
                     f"{load['server']['cpu_ns_per_op']:.0f} ns of server CPU and "
                     f"{load['cost']['minor_faults'] / data.count:.4f} page faults each" + self.coverage(server.arm, got))
            share = least_share(server.arm, got)
            if share is not None and share < HUGE_NONE and not self.args.allow_fallback:
                server.stop()
                self.servers.remove(server)
                self.skip(server.arm, f"it got (nearly) no huge pages: {got['reason'] or 'the server says no reason'}")

    def coverage(self, arm, got):
        if not arm.huge:
            return ""
        words = [f"{got[k + '_share']:.0%} of the {k}" for k, asked in (("arena", arm.arena_huge),
                                                                       ("index", arm.index))
                 if asked and got[k + "_share"] is not None]
        text = "; on huge pages: " + " and ".join(words) if words else ""
        if got["fallback_bytes"]:
            text += f" ({mib(got['fallback_bytes'])} fell back: {got['reason']})"
        return text

    def round(self, name, idx, trials):
        data = self.data[name]
        workloads = [WORKLOADS[w] for w in self.args.workloads if WORKLOADS[w].dataset == name]
        order = self.arms if idx % 2 == 0 else self.arms[::-1]
        report = {"dataset": name, "count": data.count, "value_bytes": data.value_bytes, "load": {}, "obtained": {},
                  "pool_pages_taken": {}, "cached_before": memory_state()["cached"]}
        self.start(list(order))
        sampler = Sampler(self.servers)
        try:
            self.load(data, report)
            if not self.args.allow_fallback:
                self.must_have_huge()
            time.sleep(0.5)  # let freed buffers go back before memory is read
            report["memory"] = {s.name: resident(s.pid) for s in self.servers}
            report["cached"] = memory_state()["cached"]
            for trial in trials:
                self.trial(data, workloads, trial)
            if self.args.p99_us:
                for workload in workloads:
                    for pipeline in self.args.pipeline:
                        self.p99(data, workload, pipeline, idx)
        finally:
            report["pte"] = sampler.stop()
        self.result["rounds"].append(report)
        stop_all(self.servers)

    # ---- trials ----

    def connections(self, pipeline):
        return self.args.connections or (50 if pipeline == 1 else 16)

    def run_once(self, server, data, workload, pipeline, seed):
        busy, start, cost = busy_seconds(), time.monotonic(), Cost(server.pid, self.misses)
        report = self.client.run(server, data, workload, pipeline, self.connections(pipeline), seed)
        elapsed = time.monotonic() - start
        # loadgen's warm-up is part of what was busy, so it counts both parties for all of it.
        known = (report["server"]["cpu_share"] + report["client"]["cpu_share"]) * elapsed
        report["foreign_cores"] = max(0.0, (busy_seconds() - busy - known) / elapsed)
        report["cost"] = cost.since()
        report.pop("quantiles_us", None)  # hundreds of runs go into one file
        return report

    def trial(self, data, workloads, trial):
        """All arms in turn, the order turning with the trial."""
        turn = trial % len(self.servers)
        order = self.servers[turn:] + self.servers[:turn]
        for workload in workloads:
            for pipeline in self.args.pipeline:
                row = {"workload": workload.name, "pipeline": pipeline, "trial": trial + 1, "arms": {},
                       "connections": self.connections(pipeline), "order": [s.name for s in order]}
                for server in order:
                    say.step(f"trial {trial + 1} of {self.args.trials}: {workload.name}, pipeline {pipeline}, "
                             f"{server.name}")
                    row["arms"][server.name] = self.run_once(server, data, workload, pipeline, self.args.seed + trial)
                self.result["trials"].append(row)
                base = row["arms"][self.arms[0].name]["ops_per_sec"]
                say.line(f"trial {trial + 1} of {self.args.trials}, {workload.name} pipeline {pipeline}: " + ", ".join(
                    f"{a.name} {row['arms'][a.name]['ops_per_sec']:,.0f}"
                    + (f" ({row['arms'][a.name]['ops_per_sec'] / base - 1:+.1%})" if i else " ops/s")
                    for i, a in enumerate(self.arms)))

    # ---- highest rate at which p99 holds ----

    def p99(self, data, workload, pipeline, idx):
        """One search for each arm, a probe of each in turn."""
        closed = {}
        for row in self.result["trials"]:
            if (row["workload"], row["pipeline"]) == (workload.name, pipeline):
                for name, report in row["arms"].items():
                    closed.setdefault(name, []).append(report["ops_per_sec"])
        start, floor = 0.5 * min(min(v) for v in closed.values()), slowest_rate(pipeline)
        searches = {s.name: RateSearch(start, floor=floor) for s in self.servers}
        probes = {s.name: [] for s in self.servers}
        while not all(s.done for s in searches.values()):
            for server in self.servers:
                search = searches[server.name]
                if not search.done:
                    probe = self.probe(server, data, workload, pipeline, search.next_rate(), len(probes[server.name]))
                    probes[server.name].append(probe)
                    search.report(probe["failure"] is None)
        for name, search in searches.items():
            self.result["p99"].append({"workload": workload.name, "pipeline": pipeline, "arm": name, "round": idx,
                                       "rate": search.low, "too_high": search.high, "resolved": search.resolved,
                                       "floor": floor, "client_was_limit": self.client_failed(probes[name]),
                                       "probes": probes[name]})
        say.line(f"p99 <= {self.args.p99_us} us, {workload.name} pipeline {pipeline}: "
                 + ", ".join(f"{n} {s.low:,.0f} a second" if s.low else f"{n} not even {floor:,.0f} a second"
                             for n, s in searches.items()))

    def probe(self, server, data, workload, pipeline, rate, idx):
        seconds = probe_seconds(rate, pipeline, self.args.p99_seconds)
        say.step(f"p99 under {self.args.p99_us} us: {workload.name}, pipeline {pipeline}, {server.name}: "
                 f"{rate:,.0f} a second for {seconds:.1f} s")
        r = self.client.open(server, data, workload, pipeline, self.connections(pipeline), rate, seconds,
                             self.args.seed + idx)
        return {"rate": rate, "seconds": seconds, "ops_per_sec": r["ops_per_sec"], "batches": r["batches"],
                "p99_us": r["batch_latency_us"]["p99"], "failure": probe_failure(r, seconds, self.args.p99_us),
                "lag_p99_us": r["send_lag_us"]["p99"], "server_share": r["server"]["cpu_share"]}

    def client_failed(self, probes):
        """Wherever it failed, the client was late itself and the server had time left."""
        failed = [p for p in probes if p["failure"]]
        return bool(failed) and all(p["lag_p99_us"] > self.args.p99_us / 2 and p["server_share"] < 0.9
                                    for p in failed)

    # ---- the whole ----

    def measure(self):
        self.check_machine()
        args = self.args
        self.walk()
        used = list(dict.fromkeys(WORKLOADS[w].dataset for w in args.workloads))
        for name in used:
            for idx in range(args.rounds):
                self.round(name, idx, range(idx * args.trials // args.rounds, (idx + 1) * args.trials // args.rounds))
        self.result["arms"] = [a.name for a in self.arms]
        self.result["skipped"] = self.skipped
        self.result["dtlb"] = self.misses.reason or "counted"
        return self.result


class LoadgenClient:
    """What Bench asks of a client, by loadgen."""

    def __init__(self, loadgen, args):
        self.loadgen, self.args = loadgen, args

    def load(self, server, data, on_progress):
        return data.load(self.loadgen, server, on_progress)

    def run(self, server, data, workload, pipeline, connections, seed):
        return workload.run(self.loadgen, server, data, pipeline=pipeline, connections=connections,
                            seconds=self.args.seconds, warmup=min(0.2, self.args.seconds), seed=seed)

    def open(self, server, data, workload, pipeline, connections, rate, seconds, seed):
        return workload.run(self.loadgen, server, data, pipeline=pipeline, connections=connections, seconds=seconds,
                            warmup=0.2, seed=seed, rate=float(max(1, rate)))
