# SPDX-License-Identifier: BSD-3-Clause
"""Bytes each: as loaded, along the growth, at its peak, after churn, and for idle connections."""

import resource
import socket
import time

from .peer_rows import CHURN, CHURN_BUDGET, IDLE_BUDGET, IDLE_CONNECTIONS, PEAK_BUDGET, Load
from .server import HOST
from .system import read_kb_fields, resident

CURVE_STEPS = 30
SETTLE_S = 0.3
GONE_S = 0.12  # for a server to see that loadgen's connections are closed, and its cron to shorten buffers
WARM = ("HSET warm:h + fld:{seq} {value}", "ZADD warm:z + {score} mem:{seq}", "RPUSH warm:l + {value}",
        "SADD warm:s + mem:{seq}")


def held(server):
    return resident(server.pid)["true_resident_bytes"]


def peak(server):
    m = read_kb_fields(f"/proc/{server.pid}/status", ("VmHWM", "HugetlbPages"))
    return m["VmHWM"] + m["HugetlbPages"]


def fresh(bench, name):
    """(server, bytes) of one that has served a little, so that what it sets up once is not counted."""
    server = bench.start(name)
    for command in WARM:
        bench.loadgen.command(server, Load(command).words(), ops=100, fields=2000, pipeline=10, connections=1)
    for key in ("warm:h", "warm:z", "warm:l", "warm:s"):
        server.command("DEL", key)
    time.sleep(SETTLE_S)
    return server, held(server)


def fill(bench, server, memory, first, count):
    """count elements (or keys), from the first on."""
    repeat = memory.repeat or 1
    words = Load(memory.command, repeat=repeat).words() if memory.repeat else memory.command
    ops = count // repeat
    bench.loadgen.command(server, words, ops=ops, first=first, fields=memory.fields, value_bytes=memory.value_bytes,
                          seed=1 + first, pipeline=max(1, min(ops, 50, 20_000 // (repeat * memory.per))), connections=4)


def marks(bench, memory):
    """Numbers of elements at which memory is read; the last is where growth ends."""
    count = bench.scaled(memory.count, least=min(memory.count, 20_000))
    if not memory.curve:
        return [count]
    begin = bench.scaled(memory.curve)
    return sorted({begin + (count - begin) * i // CURVE_STEPS // 20 * 20 for i in range(CURVE_STEPS)} | {count})


def part(bench, memory):
    row = f"mem.{memory.name}"
    if not bench.wanted(row):
        return 0.0, None
    at = marks(bench, memory)
    guess = len(bench.names) * (1.2 + 0.15 * len(at)) + at[-1] * memory.us / 1e6

    def run():
        bench.row(row, kind="mem", title=memory.title, budget=memory.budget, budget_peak=PEAK_BUDGET, entries=at[-1])
        for name in bench.names:
            bench.step(f"{row}, {name}")
            server, before = fresh(bench, name)
            done, curve = 0, []
            for n in at:
                fill(bench, server, memory, done, n - done)
                done = n
                time.sleep(SETTLE_S if n in (at[0], at[-1]) else GONE_S)  # a long load leaves longer buffers
                curve.append([n, round((held(server) - before) / n / memory.per, 2)])
            top = (peak(server) - before) / done / memory.per
            bench.stop(server)
            sizes = [each for _, each in curve]
            bench.add(row, name, bytes=sizes[-1], worst=max(sizes), best=min(sizes), peak=round(top, 2),
                      peak_ratio=round(top / sizes[-1], 3))
            if memory.curve:
                bench.rows[row].setdefault("curve", {})[name] = curve
        bench.passed(guess, row, "worst")

    return guess, run


def churn_part(bench, name):
    row = f"mem.churn.{name}"
    if not bench.wanted(row):
        return 0.0, None
    load, remove, insert = CHURN[name]
    n = bench.scaled(1_000_000, step=40)
    guess = len(bench.names) * (1.5 + n * 3e-6)

    def run():
        bench.row(row, kind="mem", title=f"{name}: half deleted, as many inserted / as loaded", budget=CHURN_BUDGET, entries=n)
        for server_name in bench.names:
            bench.step(f"{row}, {server_name}")
            server, before = fresh(bench, server_name)
            command = lambda words, ops: bench.loadgen.command(server, words, ops=ops, fields=n, connections=4, pipeline=50)
            command(Load(load).words(), n // 20)
            time.sleep(SETTLE_S)
            loaded = held(server) - before
            command(remove, n // 2)
            command(insert, n // 2)
            time.sleep(SETTLE_S)
            bench.add(row, server_name, ratio=round((held(server) - before) / loaded, 3))
            bench.stop(server)
        bench.passed(guess, row, "ratio")

    return guess, run


def idle_part(bench):
    if not bench.wanted("mem.idle"):
        return 0.0, None

    def run():
        bench.row("mem.idle", kind="mem", title="idle connection", budget=IDLE_BUDGET, entries=IDLE_CONNECTIONS)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * IDLE_CONNECTIONS), hard))
        for name in bench.names:
            server, before = fresh(bench, name)
            clients = [socket.create_connection((HOST, server.port)) for _ in range(IDLE_CONNECTIONS)]
            for c in clients:
                c.sendall(b"*1\r\n$4\r\nPING\r\n")
                c.recv(64)
            time.sleep(SETTLE_S)
            bench.add("mem.idle", name, bytes=round((held(server) - before) / IDLE_CONNECTIONS, 1))
            for c in clients:
                c.close()
            bench.stop(server)
        bench.passed(3.0, "mem.idle", "bytes")

    return 3.0, run
