# SPDX-License-Identifier: BSD-3-Clause
"""Data sets and workloads of the huge-page benchmark."""

from .system import BenchError

PER_COMMAND = 20  # elements in one command of a load


class Dataset:
    """One big key. arena and index are estimates of bytes an element, for sizing the pool beforehand."""

    def __init__(self, name, count, value_bytes, command=None):
        self.name, self.count, self.value_bytes, self.command = name, count, value_bytes, command

    @property
    def arena_bytes(self):
        """Records on 4-byte borders: a hash's lengths, field of 18 and value; a zset's length, score and member."""
        if self.name == "zset":
            return self.count * 28
        if self.name == "list":
            return self.count * (self.value_bytes + 1)
        lengths = 2 + (3 if self.value_bytes > 127 else 0)
        return self.count * ((lengths + 18 + self.value_bytes + 3) // 4 * 4)

    @property
    def index_bytes(self):
        return self.count * {"zset": 18, "list": 0}.get(self.name, 7)

    def load(self, loadgen, server, on_progress):
        """Fill it; loadgen's report with ops counted in elements."""
        if self.command is None:
            return loadgen.call(server, ["load", "--progress"], on_progress, key=self.key, fields=self.count,
                                value_bytes=self.value_bytes)
        report = loadgen.fill(server, self.command, self.count // PER_COMMAND, fields=self.count,
                              value_bytes=self.value_bytes)
        report["server"]["cpu_ns_per_op"] /= PER_COMMAND
        report["new_items"] = server.command({"zset": "ZCARD", "list": "LLEN"}[self.name], self.key)
        return report

    @property
    def key(self):
        return "bench:" + self.name


def datasets(args):
    count = args.fields - args.fields % PER_COMMAND or PER_COMMAND
    return {
        "hash": Dataset("hash", args.fields, args.value_bytes),
        "hash1k": Dataset("hash1k", args.large_fields, args.large_bytes),
        "zset": Dataset("zset", count, args.value_bytes, "ZADD bench:zset" + " {score} m:{seq}" * PER_COMMAND),
        "list": Dataset("list", count, args.value_bytes, "RPUSH bench:list" + " {value}" * PER_COMMAND)}


class Workload:
    def __init__(self, name, dataset, what, command=None, elements=None):
        self.name, self.dataset, self.what, self.command, self.elements = name, dataset, what, command, elements

    def run(self, loadgen, server, data, **options):
        """One run; a range that is not as long as it must be is an error."""
        if self.command is None:
            kind = self.name if self.name != "hget1k" else "hget"
            return loadgen.call(server, ["run", kind], key=data.key, fields=data.count, value_bytes=data.value_bytes,
                                **options)
        report = loadgen.command(server, self.command, fields=max(1, data.count - 200), value_bytes=data.value_bytes,
                                 **options)
        if self.elements and report["elements_per_op"] < min(self.elements, data.count - 200) * 0.98:
            raise BenchError(f"{self.name}: {report['elements_per_op']:.1f} elements a reply, not {self.elements}")
        return report


WORKLOADS = {w.name: w for w in (
    Workload("hget", "hash", "random HGET"),
    Workload("hset", "hash", "random HSET"),
    Workload("mixed", "hash", "90 % HGET, 10 % HSET"),
    Workload("hget1k", "hash1k", "random HGET of large values"),
    Workload("zrange", "zset", "ZRANGE of 100 at random ranks", "ZRANGE bench:zset {n} {n+99}", 100),
    Workload("zrangebyscore", "zset", "ZRANGEBYSCORE of 100 at random scores",
             "ZRANGEBYSCORE bench:zset {score} +inf LIMIT 0 100", 100),
    Workload("lrange", "list", "LRANGE of 100 at random places", "LRANGE bench:list {n} {n+99}", 100))}
