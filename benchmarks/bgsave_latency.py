#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a client waits for while a snapshot is saved in the background, and what that costs, beside redis-server.

    bgsave_latency.py SERVER [--peer redis-server] [--keys 4000000] [--value-bytes 200] [--trials 3] [-- OPTION ...]

Both servers hold the same strings. In turns each saves with BGSAVE while one connection sends one request at a time:
GETs of random keys, then as many SETs among them. Options behind -- go to SERVER. Run as root the server and this
client have real-time priority meanwhile, so that other work on the machine does not hold them up; the child has not.
Printed: median, 99.9 % and worst wait during the save and for a while before it, how long BGSAVE itself took to answer
(the fork), what is on transparent huge pages before and after, how long the save took, memory copied on write, and the
peak: resident memory of the server and what was copied. Only the Python standard library is used.
"""
import argparse
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

LOAD_BATCH = 500
REQUESTS = 50000


def encode(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


class Server:
    def __init__(self, name, command):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.name, self.dir = name, tempfile.mkdtemp(prefix="bgsave-latency-")
        self.process = subprocess.Popen(command + ["--port", str(self.port), "--dir", self.dir, "--save", ""],
                                        stdout=subprocess.DEVNULL)
        self.pid = self.process.pid
        for _ in range(100):
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port))
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb", 1 << 20)

    def command(self, *words):
        self.socket.sendall(encode(*words))
        line = self.file.readline()
        if line[:1] == b"-":
            raise SystemExit(f"{self.name}: {line.decode().strip()}")
        return self.file.read(int(line[1:]) + 2)[:-2] if line[:1] == b"$" else line.strip()

    def info(self, *fields):
        lines = dict(line.split(":", 1) for line in self.command(b"INFO").decode().split("\r\n") if ":" in line)
        return [lines[f] for f in fields]

    def load(self, keys, value):
        for first in range(0, keys, LOAD_BATCH):
            words = [w for i in range(first, min(first + LOAD_BATCH, keys)) for w in (b"key:%012d" % i, value)]
            self.command(b"MSET", *words)

    def rss(self):
        with open(f"/proc/{self.pid}/status") as f:
            return sum(int(line.split()[1]) * 1024 for line in f if line.startswith(("VmRSS:", "HugetlbPages:")))

    def huge(self):
        """Bytes on transparent huge pages."""
        with open(f"/proc/{self.pid}/smaps_rollup") as f:
            return sum(int(line.split()[1]) * 1024 for line in f if line.startswith("AnonHugePages:"))

    def real_time(self, on):
        policy, priority = (os.SCHED_RR | os.SCHED_RESET_ON_FORK, 1) if on else (os.SCHED_OTHER, 0)
        for pid in (self.pid, 0):
            for thread in os.listdir(f"/proc/{pid or os.getpid()}/task"):
                os.sched_setscheduler(int(thread), policy, os.sched_param(priority))

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def waits(server, requests, going_on):
    """Microseconds of each request until going_on says no."""
    taken, i, clock = [], 0, time.perf_counter_ns
    send, receive = server.socket.sendall, server.socket.recv
    while going_on():
        for _ in range(50):
            request = requests[i % len(requests)]
            begin = clock()
            send(request)
            receive(4096)
            taken.append((clock() - begin) / 1000)
            i += 1
    return sorted(taken)


def child_lives(server):
    try:
        with open(f"/proc/{server.pid}/task/{server.pid}/children") as f:
            return f.read().strip() != ""
    except OSError:
        return False


def one_save(server, requests):
    until = time.perf_counter() + 1
    quiet = waits(server, requests, lambda: time.perf_counter() < until)
    huge = server.huge()
    begin = time.perf_counter()
    server.command(b"BGSAVE")
    answered = time.perf_counter() - begin
    busy = waits(server, requests, lambda: child_lives(server))
    took = time.perf_counter() - begin
    time.sleep(0.2)
    status, copied, fork_us = server.info("rdb_last_bgsave_status", "rdb_last_cow_size", "latest_fork_usec")
    if status != "ok":
        raise SystemExit(f"{server.name}: the save failed")
    at = lambda list_, share: list_[min(len(list_) - 1, int(len(list_) * share))]
    return {"quiet p99.9, us": at(quiet, 0.999), "quiet max, us": quiet[-1],
            "p50, us": at(busy, 0.5), "p99, us": at(busy, 0.99), "p99.9, us": at(busy, 0.999), "max, us": busy[-1],
            "requests": len(busy), "BGSAVE answered, ms": answered * 1000, "fork, ms": int(fork_us) / 1000,
            "on huge pages before, MB": huge / 1e6, "and after, MB": server.huge() / 1e6, "save, s": took, "copied, MB": int(copied) / 1e6, "peak, MB": (server.rss() + int(copied)) / 1e6}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--peer", default=shutil.which("redis-server"))
    parser.add_argument("--keys", type=int, default=4000000)
    parser.add_argument("--value-bytes", type=int, default=200)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--no-real-time", action="store_true")
    parser.usage = parser.format_usage()[len("usage: "):].strip() + " [-- OPTION ...]"
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments, options = parser.parse_args(sys.argv[1:at]), sys.argv[at + 1:]

    rng = random.Random(1)
    value, other = b"v" * arguments.value_bytes, b"w" * arguments.value_bytes
    names = [b"key:%012d" % rng.randrange(arguments.keys) for _ in range(REQUESTS)]
    reads = [encode(b"GET", n) for n in names]
    half = [encode(b"SET", n, other) if i % 2 else encode(b"GET", n) for i, n in enumerate(names)]

    commands = [("Goblin Core", [arguments.server] + options)]
    if arguments.peer:
        commands.append(("redis-server", [arguments.peer]))
    servers = [Server(name, command) for name, command in commands]
    try:
        for s in servers:
            s.load(arguments.keys, value)
            print(f"{s.name}: {s.rss() / 1e6:,.0f} MB resident with {arguments.keys:,} keys", flush=True)
        for what, requests in (("reads", reads), ("half of them writes", half)):
            figures = {s.name: [] for s in servers}
            for trial in range(arguments.trials):
                for s in servers if trial % 2 else servers[::-1]:
                    if os.getuid() == 0 and not arguments.no_real_time:
                        s.real_time(True)
                    try:
                        figures[s.name].append(one_save(s, requests))
                    finally:
                        if os.getuid() == 0 and not arguments.no_real_time:
                            s.real_time(False)
            print(f"\n| {what}; median of {arguments.trials} (least to most) | " + " | ".join(figures) + " |")
            print("|---|" + "--:|" * len(servers))
            for row in figures[servers[0].name][0]:
                cells = []
                for s in servers:
                    all_ = [f[row] for f in figures[s.name]]
                    cells.append(f"{statistics.median(all_):,.1f} ({min(all_):,.1f} to {max(all_):,.1f})")
                print(f"| {row} | " + " | ".join(cells) + " |", flush=True)
    finally:
        for s in servers:
            s.stop()


main()
