# SPDX-License-Identifier: BSD-3-Clause
"""The huge-page benchmark's traffic from Python, with blocking sockets: for where loadgen is not built. Reports like
loadgen."""

import os
import random
import time

from .server import Client
from .system import BenchError, MIB, process_cpu

KEY = "bench:hash"


class PythonClient:
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

    def load(self, server, dataset, on_progress):
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

    def exchange(self, server, batches, connections, seconds):
        """Keep one batch outstanding on every connection; the latencies of all batches in ns."""
        socks = [Client(server.port).sock for _ in range(connections)]
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

    def run(self, server, data, workload, pipeline, connections, seed):
        rng = random.Random(seed)
        batches = [self.batch(rng, workload.name, pipeline) for _ in range(max(200, 100_000 // pipeline))]
        try:
            self.exchange(server, batches, connections, 0.3)
            cpu, own, start = process_cpu(server.pid), time.process_time_ns(), time.monotonic()
            lat = sorted(self.exchange(server, batches, connections, self.args.seconds))
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
