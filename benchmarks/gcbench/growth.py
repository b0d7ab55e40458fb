# SPDX-License-Identifier: BSD-3-Clause
"""The tail of growing: how long each batch of inserts waits while a structure grows from nothing.

Every round sends the same batches to a fresh server. A stall that the structure causes comes in each round at the same
place, one that the machine causes does not: the least of each place over all rounds is what recurs. The less rounds there are
the more luck is left in it. Our server gets the same seed each time: with another one its segments grow at other entries, and
the least of the rounds would hide them. redis-server grows by the number of entries alone."""

import array
import os

from .peer_rows import GROWTH_BUDGET_US, GROWTH_LONG, GROWTH_ROUNDS
from .stats import recurring

CURVE_POINTS = 120
SHARES = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
WORST = 5


def at(ranked, share):
    return ranked[min(len(ranked) - 1, int(len(ranked) * share))] / 1000


def one_round(bench, server, growth, entries):
    """Nanoseconds of each batch, in order, and the server's CPU time for an element."""
    path = os.path.join(bench.base, "series")
    report = bench.loadgen.command(server, growth.command, ops=entries, fields=entries, pipeline=growth.batch,
                                   connections=1, series=path)
    took = array.array("I")
    with open(path, "rb") as f:
        took.frombytes(f.read())
    os.unlink(path)
    return took, report["server"]["cpu_ns_per_op"]


def summary(rounds, growth):
    """What recurs: its quantiles, its worst places, and the worst along the growth."""
    least = recurring(rounds)
    ranked = sorted(least)
    worst = sorted(range(len(least)), key=lambda i: -least[i])[:WORST]
    width = max(1, len(least) // CURVE_POINTS)
    return {"quantiles_us": [[q, round(at(ranked, q), 1)] for q in SHARES] + [[1.0, ranked[-1] / 1000]],
            "worst": [[i * growth.batch, round(least[i] / 1000, 1)] for i in worst],
            "curve": [[i * growth.batch, round(max(least[i:i + width]) / 1000, 1)] for i in range(0, len(least), width)]}


def part(bench, growth, full, row):
    if not bench.wanted(row):
        return 0.0, None
    entries = bench.scaled(full, step=growth.batch)
    rounds = min(growth.long_rounds if entries > GROWTH_LONG else GROWTH_ROUNDS, bench.args.trials)
    guess = rounds * (0.4 * len(bench.names) + entries * growth.us / 1e6)

    def run():
        bench.row(row, kind="grow", title=growth.title, entries=entries, batch=growth.batch, budget=GROWTH_BUDGET_US,
                  rounds=rounds, recurring={})  # stays empty when the run ends before its last round
        took = {name: [] for name in bench.names}
        for i in range(rounds):
            for name in bench.order(bench.names, i):
                bench.step(f"{row}, round {i + 1}, {name}")
                server = bench.start(name, repeatable=True)
                series, cpu_ns = one_round(bench, server, growth, entries)
                bench.stop(server)
                took[name].append(series)
                ranked = sorted(series)
                bench.add(row, name, p50_us=at(ranked, 0.5), p999_us=at(ranked, 0.999), p9999_us=at(ranked, 0.9999),
                          max_us=ranked[-1] / 1000, cpu_ns=round(cpu_ns, 1))
        for name in bench.names:
            found = summary(took[name], growth)
            bench.rows[row]["recurring"][name] = found
            bench.add(row, name, recurring_us=found["quantiles_us"][-1][1])
        bench.passed(guess, row, "recurring_us")

    return guess, run
