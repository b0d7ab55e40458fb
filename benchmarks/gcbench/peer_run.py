# SPDX-License-Identifier: BSD-3-Clause
"""What peers.py measures: for each family of rows fresh servers side by side with the same data, asked in turns, the order
turning with the trial."""

import fnmatch
import math
import os
import re
import time

from . import bgsave, growth, memory_rows, persist_rows
from .peer_rows import BGSAVE, CHURN, FAMILIES, GROWTH, MEMORY, P1_CONNECTIONS, P1_RATIO, PER_COMMAND, PERSIST
from .server import Server, stop_all
from .stats import paired_ratio
from .system import BenchError, busy_seconds, say

LEAST_ENTRIES = 20_000
TICKS_S = 0.2        # the machine's busy time comes in ticks: of a shorter run it says nothing
NOISE_CORES = 0.3    # an open loop beside more other work than this is run again,
AGAIN = 2            # so often at most; what had the least beside it counts


def short(n):
    """1m, 8m, 200k: the entries in the name of a row."""
    for unit, letter in ((1_000_000, "m"), (1000, "k")):
        if n % unit == 0:
            return f"{n // unit}{letter}"
    return str(n)


class Clock:
    """How far a run is, in the seconds that its parts were guessed to take."""

    def __init__(self):
        self.total = self.done = 0.0
        self.begin = time.monotonic()

    def rate(self):
        """Seconds that one guessed second takes; not believed before a tenth is done."""
        elapsed, part = time.monotonic() - self.begin, self.done / max(self.total, 1e-9)
        seen = elapsed / max(self.done, 1e-9)
        return 1.0 + (seen - 1.0) * min(1.0, part * 10) if self.done else 1.0

    def prefix(self):
        left = max(0.0, self.total - self.done) * self.rate()
        gone = time.monotonic() - self.begin
        return f"[{100 * self.done / max(self.total, 1e-9):3.0f} %, {gone:.0f} s, about {left:.0f} s to go]"


class Bench:
    """State of one run. Parts add to self.rows; self.servers is what must be stopped whatever happens."""

    def __init__(self, args, loadgen, cpus, base):
        self.args, self.loadgen, self.base, self.cpus = args, loadgen, base, cpus
        self.servers, self.rows, self.count, self.clock = [], {}, 0, Clock()
        self.names, self.all_cpus = list(args.servers), os.sched_getaffinity(0)

    # ---- for the parts ----

    def wanted(self, row):
        only = self.args.only
        return not only or any(row == o or row.startswith(o + ".") or fnmatch.fnmatchcase(row, o) for o in only)

    def scaled(self, n, least=LEAST_ENTRIES, step=PER_COMMAND):
        """A number of entries at this --scale."""
        n = max(min(n, least), int(n * self.args.scale))
        return max(step, n - n % step)

    def requests(self, n):
        return max(min(n, 500), int(n * self.args.scale ** 0.75))

    def start(self, name, repeatable=False):
        """A fresh server of the kind with this name; repeatable: one whose indexes grow at the same entries each time."""
        self.count += 1
        folder = os.path.join(self.base, str(self.count))
        os.mkdir(folder)
        server = Server(name, self.args.servers[name], folder, self.cpus[0])
        if repeatable and os.path.basename(server.argv[0]) == "goblin-core":
            server.argv += ["--hash-seed", "1"]
        self.servers.append(server)
        server.start()
        return server

    def stop(self, server):
        server.stop()
        self.servers.remove(server)

    def order(self, things, trial):
        turn = trial % len(things)
        return things[turn:] + things[:turn]

    def add(self, row, server, **figures):
        trials = self.rows[row]["trials"].setdefault(server, {})
        for metric, value in figures.items():
            trials.setdefault(metric, []).append(value)

    def row(self, row, **about):
        self.rows.setdefault(row, {**about, "trials": {}})

    def step(self, text):
        say.step(f"{self.clock.prefix()} {text}")

    def passed(self, seconds, row=None, metric=None):
        """A part is done that was guessed to take so long; say what it found."""
        self.clock.done += seconds
        if row:
            say.line(f"{self.clock.prefix()} {row}: " + self.in_short(row, metric))

    def in_short(self, row, metric):
        trials, words = self.rows[row]["trials"], []
        base = trials.get(self.args.baseline, {}).get(metric)
        for name in self.names:
            values = trials.get(name, {}).get(metric)
            if values:
                text = f"{name} {sorted(values)[len(values) // 2]:,.4g}"
                if base and name != self.args.baseline:
                    text += f" (x {paired_ratio(values, base)['median']:.2f})"
                words.append(text)
        return ", ".join(words)

    # ---- commands: families ----

    def load(self, server, load, entries):
        count = int(entries * load.count)
        words = load.words()
        self.step(f"loading {server.name}: {words.split(' ', 2)[0]}, {count:,} entries")
        self.loadgen.command(server, words, ops=max(1, count // load.repeat), fields=count, value_bytes=load.value_bytes,
                             first=int(entries * load.first), pipeline=min(50, max(1, count // load.repeat)),
                             connections=1 if load.in_order or count < 2000 else 4)

    def cards(self, family, server, entries):
        for words, share in family.cards.items():
            have, want = server.command(*words.split()), int(entries * share)
            if have != want:
                raise BenchError(f"{server.name}: {words} is {have:,}, not {want:,}: a row did not do what it should")

    def measure(self, server, group, step, entries, ops, first, mode):
        """One step on one server: what loadgen says of it, or nothing for a preparation."""
        half = entries // 2
        words = step.command.replace("{half}", str(half)).replace("{half+99}", str(half + 99)).replace("{ops}", str(ops))
        if step.single:
            server.command(*words.split())
            return None
        ranged = "{n+" in words or "LIMIT" in words
        options = {"ops": ops, "fields": max(1, entries - 200) if ranged else entries, "first": first,
                   "seed": 1 + first, "pipeline": min(ops, group.pipeline), "connections": group.connections}
        if mode == "p1":
            options |= {"pipeline": 1, "connections": P1_CONNECTIONS}
        elif mode == "open":
            options |= {"pipeline": 1, "connections": P1_CONNECTIONS, "rate": float(self.args.rate), "warmup": 0.2,
                        "ops": None, "seconds": self.args.open_seconds}
        busy, begin = busy_seconds(), time.monotonic()
        report = self.loadgen.command(server, words, **options)
        elapsed = time.monotonic() - begin
        known = (report["server"]["cpu_share"] + report["client"]["cpu_share"]) * report["seconds"]
        report["foreign_cores"] = max(0.0, (busy_seconds() - busy - known) / elapsed) if elapsed > TICKS_S else 0.0
        if step.elements and report["elements_per_op"] < 0.98 * step.elements:
            raise BenchError(f"{server.name}: {report['elements_per_op']:.2f} elements in a reply to {words}, "
                             f"not {step.elements}")
        return report

    def quietest(self, again, *what):
        reports = [self.measure(*what)]
        while again and reports[-1]["foreign_cores"] > NOISE_CORES and len(reports) <= AGAIN:
            reports.append(self.measure(*what))
        return min(reports, key=lambda r: r["foreign_cores"]) if again else reports[0]

    def note(self, row, server, report, mode):
        figures = {"cpu_ns": round(report["server"]["cpu_ns_per_op"], 1), "ops": round(report["ops_per_sec"]),
                   "client_share": round(report["client"]["cpu_share"], 3),
                   "server_share": round(report["server"]["cpu_share"], 3),
                   "foreign": round(report["foreign_cores"], 2)}
        if mode != "cpu":
            figures |= {k + "_us": report["batch_latency_us"][k] for k in ("p50", "p99", "p999")}
        if mode == "open":
            self.rows[row].setdefault("quantiles", {}).setdefault(server.name, []).append(report["quantiles_us"])
        self.add(row, server.name, **figures)

    def group(self, family, group, mode, entries, suffix, seconds):
        row_of = lambda s: f"{mode}.{family.name}.{s.name}{suffix}"
        steps = [s for s in group.named() if self.wanted(row_of(s))]
        if not steps:
            return
        for s in steps:
            held = self.group_ops(group, mode) if group.steps[0].single else entries  # those that grow from nothing
            self.row(row_of(s), kind=mode, family=family.name, title=s.title, entries=held,
                     budget={"cpu": s.ratio, "p1": P1_RATIO, "open": 1.0}[mode], **(
                         {"rate": self.args.rate} if mode == "open" else {}))
        ops = self.group_ops(group, mode)
        for trial in range(self.trials(mode)):
            first = self.used
            for server in self.order(self.servers, trial):
                self.step(f"{row_of(steps[0])}, trial {trial + 1}, {server.name}")
                for s in group.steps:
                    report = self.quietest(mode == "open", server, group, s, entries, ops, first, mode)
                    if report and s in steps:
                        self.note(row_of(s), server, report, mode)
            self.used += ops
        for server in self.servers:
            self.cards(family, server, entries)
        self.passed(seconds, row_of(steps[-1]), "p999_us" if mode == "open" else "cpu_ns")
        for s in steps[:-1]:
            self.passed(0, row_of(s), "cpu_ns")

    def trials(self, mode):
        return min(3, self.args.trials) if mode == "open" else self.args.trials

    def group_ops(self, group, mode):
        return self.requests(group.ops) if mode == "cpu" else self.requests(min(50_000, group.ops))

    def group_guess(self, group, mode):
        steps = sum(1 for s in group.steps if not s.single) * len(self.names)
        if mode == "open":
            return self.trials(mode) * steps * (self.args.open_seconds + 0.3)
        us = group.us / len(self.names) if mode == "cpu" else group.us / 2 + 9
        return self.args.trials * steps * (0.08 + self.group_ops(group, mode) * us / 1e6)

    def family(self, family, full):
        """(guessed seconds, what measures it) for one family at one number of entries; nothing when no row is wanted."""
        entries = self.scaled(full, least=1000 if full < LEAST_ENTRIES else LEAST_ENTRIES, step=2 * PER_COMMAND)
        suffix = "." + short(full) if family.sized else ""
        todo = [(g, mode) for g in family.groups for mode in ("cpu", "p1", "open")
                if (mode == "cpu" or getattr(g, mode)) and any(
                    self.wanted(f"{mode}.{family.name}.{s.name}{suffix}") for s in g.named())]
        growing = 1 + 0.33 * max(0.0, math.log2(entries / 1e6))  # an insert into more entries costs more
        guess = len(self.names) * 0.3 + entries * family.load_us * growing / 1e6
        if not todo:
            return 0.0, None

        def run():
            self.used = 0
            for name in self.names:
                server = self.start(name)
                for load in family.loads:
                    self.load(server, load, entries)
                self.cards(family, server, entries)
            self.passed(guess)
            for g, mode in todo:
                self.group(family, g, mode, entries, suffix, self.group_guess(g, mode))
            stop_all(self.servers)

        return guess + sum(self.group_guess(g, mode) for g, mode in todo), run

    # ---- the whole ----

    def plan(self):
        parts = [memory_rows.part(self, m) for m in MEMORY]
        parts += [memory_rows.churn_part(self, name) for name in CHURN] + [memory_rows.idle_part(self)]
        for family in FAMILIES:
            for full in self.args.entries if family.sized else [family.entries]:
                parts.append(self.family(family, full))
        for g in GROWTH:
            for full in self.args.entries:
                parts.append(growth.part(self, g, full, f"grow.{g.name}.{short(full)}"))
        parts += [persist_rows.part(self, p) for p in PERSIST] + [bgsave.part(self, BGSAVE)]
        return [(seconds, run) for seconds, run in parts if run]

    def run(self):
        parts = self.plan()
        if not parts:
            raise BenchError("--only selects no row; --list shows their names")
        self.clock.total = sum(seconds for seconds, _ in parts)
        say.line(f"about {self.clock.total / 60:.1f} minutes on a machine like that of docs/benchmarks.md")
        if self.args.estimate:
            return None
        self.clock.begin = time.monotonic()
        for _, run in parts:
            run()
        return self.rows


def all_rows(entries):
    """Every row's name, in the order in which they run."""
    sizes = ["." + short(n) for n in entries]
    names = [f"mem.{m.name}" for m in MEMORY] + [f"mem.churn.{c}" for c in CHURN] + ["mem.idle"]
    for family in FAMILIES:
        for suffix in sizes if family.sized else [""]:
            for mode in ("cpu", "p1", "open"):
                names += [f"{mode}.{family.name}.{s.name}{suffix}" for g in family.groups
                          if mode == "cpu" or getattr(g, mode) for s in g.named()]
    names += [f"grow.{g.name}{suffix}" for g in GROWTH for suffix in sizes]
    return names + [f"persist.{p.name}" for p in PERSIST] + [f"bgsave.{name}" for name, _, _ in BGSAVE]


def parse_entries(text):
    """1M,8M as numbers."""
    found = []
    for word in text.split(","):
        m = re.fullmatch(r"(\d+)([kKmM]?)", word)
        if not m or int(m[1]) == 0:
            raise ValueError(word)
        found.append(int(m[1]) * {"": 1, "k": 1000, "m": 1_000_000}[m[2].lower()])
    return found
