#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Server CPU per operation on sets, lists and sorted sets, beside redis-server, and the tail of a growing sorted set.

    collection_rows.py SERVER [--peer redis-server] [--members 1000000] [--grow 8000000] [--trials 3]

Both servers run at once on free ports; trials alternate; a figure is the median of the trials, in brackets the ratio to
the peer. Each row sends its commands in pipelines of 50 on one connection and divides the CPU time of the server's
threads (/proc/PID/schedstat) by their number. Only the Python standard library is used.
"""
import argparse
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PIPELINE = 50
GROW_BATCH = 32


def encode(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


class Server:
    def __init__(self, name, command):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.name, self.dir = name, tempfile.mkdtemp(prefix="collection-rows-")
        self.process = subprocess.Popen([command, "--port", str(self.port), "--dir", self.dir, "--save", ""],
                                        stdout=subprocess.DEVNULL)
        for _ in range(100):
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port))
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb", 1 << 20)

    def cpu_ns(self):
        with open(f"/proc/{self.process.pid}/schedstat") as f:
            return int(f.read().split()[0])

    def read(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(f"{self.name}: {rest.decode()}")
        if kind == b"$" and rest != b"-1":
            self.file.read(int(rest) + 2)
        elif kind == b"*" and rest != b"-1":
            for _ in range(int(rest)):
                self.read()

    def run(self, requests):
        for i in range(0, len(requests), PIPELINE):
            part = requests[i:i + PIPELINE]
            self.socket.sendall(b"".join(part))
            for _ in part:
                self.read()

    def ns_per_op(self, requests):
        start = self.cpu_ns()
        self.run(requests)
        return (self.cpu_ns() - start) / len(requests)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def many(name, key, words, per=100):
    return [encode(name, key, *words[i:i + per]) for i in range(0, len(words), per)]


def member(i):
    return b"member:%09d" % i


def load(server, n):
    rng = random.Random(1)
    scored = [w for i in range(n) for w in (b"%r" % (rng.random() * 1e6), member(i))]
    server.run(many(b"ZADD", b"z", scored))
    server.run(many(b"SADD", b"s1", [member(i) for i in range(n)]))
    server.run(many(b"SADD", b"s2", [member(i) for i in range(n // 2, n // 2 + n)]))
    server.run(many(b"RPUSH", b"l", [b"element%09d" % i for i in range(n)]))


def rows(n):
    """name, requests of one trial; trials are given different seeds so that removals find their members."""
    def pick(seed, count):
        return random.Random(seed).sample(range(n), count)

    some, few = min(20000, n // 4), min(2000, n // 4)
    yield "ZREM, ZADD of it again", lambda t: [r for i in pick(t, some) for r in (
        encode(b"ZREM", b"z", member(i)), encode(b"ZADD", b"z", b"%d.5" % i, member(i)))]
    yield "ZPOPMIN", lambda t: [encode(b"ZPOPMIN", b"z")] * few
    yield "ZRANK", lambda t: [encode(b"ZRANK", b"z", member(i)) for i in pick(t, some)]
    yield "SADD, there already", lambda t: [encode(b"SADD", b"s1", member(i)) for i in pick(t, some)]
    yield "SADD, new", lambda t: [encode(b"SADD", b"new", b"x%d:%d" % (t, i)) for i in range(some)]
    yield "SISMEMBER, hit", lambda t: [encode(b"SISMEMBER", b"s1", member(i)) for i in pick(t, some)]
    yield "SISMEMBER, miss", lambda t: [encode(b"SISMEMBER", b"s1", b"no%d" % i) for i in pick(t, some)]
    yield "SPOP", lambda t: [encode(b"SPOP", b"s2")] * few
    yield "SINTERCARD of two large sets", lambda t: [encode(b"SINTERCARD", b"2", b"s1", b"s2")]
    yield "LPUSH", lambda t: [encode(b"LPUSH", b"l", b"element%09d" % i) for i in range(some)]
    yield "RPUSH", lambda t: [encode(b"RPUSH", b"l", b"element%09d" % i) for i in range(some)]
    yield "LPOP", lambda t: [encode(b"LPOP", b"l")] * some
    yield "LINDEX, random", lambda t: [encode(b"LINDEX", b"l", b"%d" % i) for i in pick(t, few)]
    yield "LRANGE 100, middle", lambda t: [encode(b"LRANGE", b"l", b"%d" % (n // 2), b"%d" % (n // 2 + 99))] * few
    yield "LINSERT by pivot near the head", lambda t: [
        encode(b"LINSERT", b"l", b"BEFORE", b"element%09d" % 500, b"inserted")] * few


def compare(servers, n, trials):
    figures = {}
    for name, make in rows(n):
        for t in range(trials):
            requests = make(t)
            for server in servers if t % 2 else servers[::-1]:
                figures.setdefault(name, {}).setdefault(server.name, []).append(server.ns_per_op(requests))
    print(f"| server CPU, ns an operation, {n:,} members | {servers[0].name} | {servers[1].name} |")
    print("|---|--:|--:|")
    for name, by in figures.items():
        ours, peer = (statistics.median(by[s.name]) for s in servers)
        print(f"| {name} | {ours:,.0f} ({ours / peer:.2f}) | {peer:,.0f} |", flush=True)


def grow(server, n):
    """Microseconds of each batch of ZADDs while one sorted set grows."""
    rng, took = random.Random(2), []
    for i in range(0, n, GROW_BATCH):
        batch = b"".join(encode(b"ZADD", b"grown", b"%r" % (rng.random() * 1e6), member(j))
                         for j in range(i, i + GROW_BATCH))
        begin = time.perf_counter_ns()
        server.socket.sendall(batch)
        for _ in range(GROW_BATCH):
            server.file.readline()
        took.append((time.perf_counter_ns() - begin) / 1000)
    return took


def tail(servers, n, rounds=2):
    print(f"\n| us a batch of {GROW_BATCH} ZADD, growing 0 to {n:,} | p50 | p99.9 | p99.99 | max in every round |")
    print("|---|--:|--:|--:|--:|")
    runs = {s.name: [] for s in servers}
    for _ in range(rounds):
        for server in servers:
            runs[server.name].append(grow(server, n))
            server.run([encode(b"DEL", b"grown")])
    for name, took in runs.items():
        least = sorted(min(batch) for batch in zip(*took))
        at = [least[min(len(least) - 1, int(len(least) * p))] for p in (0.5, 0.999, 0.9999)]
        print(f"| {name} | " + " | ".join(f"{v:,.0f}" for v in at) + f" | {least[-1]:,.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", help="path of goblin-core")
    parser.add_argument("--peer", default=shutil.which("redis-server"))
    parser.add_argument("--members", type=int, default=1_000_000)
    parser.add_argument("--grow", type=int, default=1_000_000, help="members of the growing sorted set; 0: skip it")
    parser.add_argument("--trials", type=int, default=3)
    args = parser.parse_args()
    if not args.peer:
        sys.exit("no redis-server found: install Debian's redis-server, or give --peer PATH")
    servers = [Server("goblin-core", args.server), Server("redis-server", args.peer)]
    try:
        for server in servers:
            load(server, args.members)
        compare(servers, args.members, args.trials)
        if args.grow:
            tail(servers, args.grow)
    finally:
        for server in servers:
            server.stop()


if __name__ == "__main__":
    main()
