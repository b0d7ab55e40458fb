# SPDX-License-Identifier: BSD-3-Clause
"""What a client waits for while a snapshot is saved in the background, and what that costs: one connection with one request
at a time, GETs of random keys, or SETs among them. Server, its child and this client share all CPUs meanwhile."""

import os
import random
import time

from .peer_rows import BGSAVE_BUDGET_US, BGSAVE_KEYS, BGSAVE_VALUE_BYTES, Load
from .server import Client, stop_all
from .stats import quantile
from .system import BenchError, resident

REQUESTS = 50_000


def encode(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


def requests_of(keys, every):
    """Requests, built beforehand; each `every`-th writes (0: none)."""
    rng, value = random.Random(1), b"w" * BGSAVE_VALUE_BYTES
    names = [b"key:%012d" % rng.randrange(keys) for _ in range(REQUESTS)]
    return [encode(b"SET", n, value) if every and i % every else encode(b"GET", n) for i, n in enumerate(names)]


def waits(client, requests, going_on):
    """Microseconds of each request until going_on says no."""
    taken, i, clock = [], 0, time.perf_counter_ns
    send, receive = client.sock.sendall, client.sock.recv
    while going_on():
        for _ in range(50):
            begin = clock()
            send(requests[i % len(requests)])
            receive(4096)
            taken.append((clock() - begin) / 1000)
            i += 1
    return taken


def child_lives(server):
    try:
        with open(f"/proc/{server.pid}/task/{server.pid}/children") as f:
            return f.read().strip() != ""
    except OSError:
        return False


def one_save(server, requests):
    client = Client(server.port)
    until = time.perf_counter() + 0.5
    quiet = waits(client, requests, lambda: time.perf_counter() < until)
    huge = resident(server.pid)["thp_bytes"]
    begin = time.perf_counter()
    client.command("BGSAVE")
    answered = time.perf_counter() - begin
    busy = waits(client, requests, lambda: child_lives(server))
    took = time.perf_counter() - begin
    client.close()
    time.sleep(0.2)
    info = server.info("persistence") | server.info("stats")
    if info["rdb_last_bgsave_status"] != "ok" or not busy:
        raise BenchError(f"{server.name}: the background save failed, or was over before it could be seen")
    copied, held = int(info["rdb_last_cow_size"]), resident(server.pid)
    return {"quiet_p999_us": quantile(quiet, 0.999), "p50_us": quantile(busy, 0.5), "p99_us": quantile(busy, 0.99),
            "p999_us": quantile(busy, 0.999), "max_us": max(busy), "answered_ms": round(answered * 1000, 2),
            "fork_ms": int(info["latest_fork_usec"]) / 1000, "save_s": round(took, 3), "copied_mb": round(copied / 1e6, 2),
            "peak_mb": round((held["true_resident_bytes"] + copied) / 1e6, 1),
            "huge_before_mb": round(huge / 1e6, 1), "huge_after_mb": round(held["thp_bytes"] / 1e6, 1)}


def part(bench, kinds):
    """All kinds that are wanted, on the same servers."""
    kinds = [k for k in kinds if bench.wanted(f"bgsave.{k[0]}")]
    if not kinds:
        return 0.0, None
    keys = bench.scaled(BGSAVE_KEYS)
    trials = min(3, bench.args.trials)
    loading = len(bench.names) * (0.5 + keys * 1e-6)
    saving = trials * (1.0 * len(bench.names) + keys * 1.7e-6)

    def run():
        load = Load("MSET + key:{seq} {value}", value_bytes=BGSAVE_VALUE_BYTES)
        for server_name in bench.names:
            server = bench.start(server_name)
            bench.load(server, load, keys)
            os.sched_setaffinity(server.pid, bench.all_cpus)
        bench.passed(loading)
        for name, title, every in kinds:
            row = f"bgsave.{name}"
            bench.row(row, kind="bgsave", title=title, entries=keys, value_bytes=BGSAVE_VALUE_BYTES, budget=BGSAVE_BUDGET_US)
            requests = requests_of(keys, every)
            for trial in range(trials):
                for server in bench.order(list(bench.servers), trial):
                    bench.step(f"{row}, trial {trial + 1}, {server.name}")
                    bench.add(row, server.name, **one_save(server, requests))
            bench.passed(saving, row, "p999_us")
        stop_all(bench.servers)

    return loading + saving * len(kinds), run
