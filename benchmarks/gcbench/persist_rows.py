# SPDX-License-Identifier: BSD-3-Clause
"""SAVE of one large key, and the start from the file it wrote."""

import os
import time

from .peer_rows import Load
from .server import stop_all
from .system import BenchError, process_cpu


def save(server):
    cpu, begin = process_cpu(server.pid)[0], time.monotonic()
    server.command("SAVE")
    took = time.monotonic() - begin
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(server.dir) for f in files)
    return {"save_s": round(took, 4), "save_cpu_s": round((process_cpu(server.pid)[0] - cpu) / 1e9, 4), "file_bytes": size}


def restart(server, card, count):
    """Stop it and start it again from its file, until it answers."""
    server.stop()
    begin = time.monotonic()
    server.start(120)
    took = time.monotonic() - begin
    if server.command(*card.split()) != count:
        raise BenchError(f"{server.name}: {card} after a restart is not {count:,}")
    return {"start_s": round(took, 4), "start_cpu_s": round(process_cpu(server.pid)[0] / 1e9, 4)}


def part(bench, persist):
    row = f"persist.{persist.name}"
    if not bench.wanted(row):
        return 0.0, None
    count = bench.scaled(persist.count)
    trials = min(3, bench.args.trials)
    guess = len(bench.names) * (0.5 + count * 1.2e-6) + trials * count * 1.3e-6

    def run():
        bench.row(row, kind="persist", title=persist.title, entries=count,
                  budget={"save_s": persist.save_s, "start_s": persist.start_s})
        for name in bench.names:
            bench.step(f"{row}, loading {name}")
            bench.load(bench.start(name), Load(persist.command), count)
        for trial in range(trials):
            for server in bench.order(list(bench.servers), trial):
                bench.step(f"{row}, trial {trial + 1}, {server.name}")
                bench.add(row, server.name, **save(server), **restart(server, persist.card, count))
        stop_all(bench.servers)
        bench.passed(guess, row, "save_s")

    return guess, run
