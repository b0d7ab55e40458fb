# SPDX-License-Identifier: BSD-3-Clause
"""The rows of peers.py: what is sent, how often, and what is asked of us. No code that measures.

Commands are loadgen's (`loadgen --help` has the places in braces). A budget of memory or time is absolute; one of CPU is
the share of what the first peer spends in the same run. Row names are KIND.FAMILY.NAME, with the number of entries behind
where --entries decides about it: cpu.zset.zscore.8m."""

from dataclasses import dataclass, field

PER_COMMAND = 20  # elements in one command of a load


@dataclass
class Load:
    """A command sent until `count` elements are there; count and first are shares of the family's entries."""
    command: str        # one element's words behind " + ", repeated PER_COMMAND times
    count: float = 1.0
    first: float = 0.0
    value_bytes: int = 16
    in_order: bool = False  # one connection only
    repeat: int = PER_COMMAND

    def words(self):
        head, _, element = self.command.partition(" + ")
        return head + (" " + element) * self.repeat


@dataclass
class Step:
    """One command of a group. With a name it is a row; without, it only puts things back."""
    command: str
    name: str = ""
    title: str = ""
    ratio: float = 1.0        # the budget
    elements: float = None    # that a reply must have on average, to be sure that it did what is meant
    single: bool = False      # sent once, not --ops times


@dataclass
class Group:
    """Steps that are measured one behind the other, on one server and then on the next. {seq} and {once} go on from trial
    to trial, and are the same for all steps of one."""
    steps: list
    ops: int
    us: float = 2.0           # of all servers together for one request: for the estimate only
    connections: int = 16
    pipeline: int = 50
    p1: bool = False          # measured at pipeline 1 too
    open: bool = False        # and in an open loop

    def named(self):
        return [s for s in self.steps if s.name]


@dataclass
class Family:
    name: str
    sized: bool               # --entries says how many; else `entries`
    loads: list
    load_us: float            # of all servers together for one entry
    groups: list
    cards: dict = field(default_factory=dict)  # {command: share of the entries}: what must still hold after each group
    entries: int = 1_000_000


def one(command, name, title, ops, us=2.0, **more):
    group = {k: more.pop(k) for k in ("p1", "open", "connections", "pipeline") if k in more}
    return Group([Step(command, name, title, **more)], ops, us, **group)


TEN = range(10)

STRINGS = Family("string", True, [Load("MSET + key:{seq} {value}")], 1.6, [
    one("GET key:{id}", "get", "GET", 600_000, 1.5, ratio=0.25, elements=1, p1=True, open=True),
    one("SET key:{id} {value}", "set", "SET", 500_000, 1.7, ratio=0.25, p1=True, open=True),
    one("MGET" + " key:{id}" * 10, "mget", "MGET of 10", 80_000, 13, elements=10),
], {"DBSIZE": 1.0})

HASH = Family("hash", True, [Load("HSET h + fld:{seq} {value}")], 2.0, [
    one("HGET h fld:{id}", "hget", "HGET", 600_000, 1.8, ratio=0.25, elements=1, p1=True, open=True),
    one("HSET h fld:{id} {value}", "hset", "HSET", 500_000, 2.2, ratio=0.25, p1=True, open=True),
    one("HMGET h" + " fld:{id}" * 10, "hmget", "HMGET of 10", 80_000, 13, elements=10),
    Group([Step("DEL tmp", single=True),
           Step("HSET tmp fld:{seq} {value}", "hset_growing", "HSET of new fields, from an empty hash", 0.40)], 500_000, 2.0),
], {"HLEN h": 1.0})

HASHES = Family("hashes", False, [Load("HSET hh:{seq} + " + " ".join(f"field{i:03d} {{value}}" for i in range(100)),
                                       value_bytes=8, repeat=1)], 40, [
    one("HGETALL hh:{id}", "hgetall", "HGETALL of 100", 60_000, 11, ratio=0.25, elements=200),
], entries=10_000)

ZSET = Family("zset", True, [Load("ZADD z + {score} mem:{seq}")], 6.5, [
    one("ZSCORE z mem:{id}", "zscore", "ZSCORE", 500_000, 2.2, ratio=0.25, elements=1, p1=True, open=True),
    one("ZADD z {score} mem:{id}", "zadd_update", "ZADD, update", 150_000, 9, ratio=0.22, p1=True, open=True),
    one("ZRANK z mem:{id}", "zrank", "ZRANK", 200_000, 5, ratio=0.22, elements=1, p1=True),
    one("ZRANGE z {n} {n+99}", "zrange", "ZRANGE of 100", 30_000, 40, ratio=0.12, elements=100),
    one("ZRANGEBYSCORE z {score} +inf LIMIT 0 10", "zrangebyscore", "ZRANGEBYSCORE of 10", 100_000, 9, ratio=0.16,
        elements=10),
    Group([Step("ZREM z mem:{once}", "zrem", "ZREM"),
           Step("ZADD z {score} mem:{once}", "zadd_new", "ZADD, new", 0.28)], 50_000, 8),
    Group([Step("DEL tmp", single=True),
           Step("ZADD tmp {score} mem:{seq}", "zadd_growing", "ZADD of new members, from an empty set", 0.28)], 250_000, 4),
    Group([Step("ZPOPMIN z", "zpopmin", "ZPOPMIN", elements=2), Step("ZADD z {score} pop:{seq}")], 30_000, 8),
], {"ZCARD z": 1.0})


def by_scores(key, what, score):
    return [
        one(f"ZRANK {key} mem:{{id}}", f"zrank_{what}", f"ZRANK, {what} scores", 150_000, 5, elements=1),
        one(f"ZADD {key} {score} mem:{{id}}", f"zadd_update_{what}", f"ZADD, update, {what} scores", 100_000, 9),
        Group([Step(f"ZREM {key} mem:{{once}}", f"zrem_{what}", f"ZREM, {what} scores"),
               Step(f"ZADD {key} {score} mem:{{once}}", f"zadd_new_{what}", f"ZADD, new, {what} scores")], 50_000, 7),
        Group([Step(f"ZPOPMIN {key}", f"zpopmin_{what}", f"ZPOPMIN, {what} scores", elements=2),
               Step(f"ZADD {key} {score} pop:{{seq}}")], 30_000, 7)]


SCORES = Family("scores", False, [Load("ZADD zd + {score} mem:{seq}"), Load("ZADD zi + {n} mem:{seq}"),
                                  Load("ZADD ze + 1 mem:{once}")], 12,
                by_scores("zd", "double", "{score}") + by_scores("zi", "integer", "{n}") + by_scores("ze", "equal", "1"),
                {"ZCARD zd": 1.0, "ZCARD zi": 1.0, "ZCARD ze": 1.0})

LIST = Family("list", False, [Load("RPUSH l + ele:{seq}", in_order=True)], 0.4, [
    Group([Step("DEL q", single=True), Step("LPUSH q {value}", "lpush", "LPUSH, from an empty list", 0.49),
           Step("RPOP q", "rpop", "RPOP", 0.44, elements=1)], 500_000, 0.7, p1=True),
    Group([Step("DEL q", single=True), Step("RPUSH q {value}", "rpush", "RPUSH, from an empty list"),
           Step("LPOP q", "lpop", "LPOP", elements=1)], 500_000, 0.7),
    Group([Step("LPUSH l {value}", "lpush_onto", "LPUSH to a list made by RPUSH"), Step("LPOP l {ops}", single=True)],
          300_000, 0.8),
    one("LINDEX l {n}", "lindex", "LINDEX, random", 200_000, 3, ratio=0.15, elements=1),
    one("LINDEX l {half}", "lindex_middle", "LINDEX of the middle", 200_000, 3, ratio=0.15, elements=1),
    one("LRANGE l 0 99", "lrange_head", "LRANGE of 100, head", 80_000, 6, elements=100),
    one("LRANGE l {half} {half+99}", "lrange_middle", "LRANGE of 100, middle", 60_000, 8, ratio=0.26, elements=100),
    one("LRANGE l {n} {n+99}", "lrange_random", "LRANGE of 100, random", 60_000, 8, ratio=0.26, elements=100),
    Group([Step("LINSERT l BEFORE ele:000000000500 inserted", "linsert", "LINSERT by a pivot near the front"),
           Step("LREM l 0 inserted", single=True)], 2000, 45),
], {"LLEN l": 1.0})

SET = Family("set", False, [Load("SADD s1 + mem:{seq}"), Load("SADD s2 + mem:{seq}", first=0.5)], 4.0, [
    one("SISMEMBER s1 mem:{id}", "sismember_hit", "SISMEMBER, hit", 300_000, 2.2, p1=True),
    one("SISMEMBER s1 non:{id}", "sismember_miss", "SISMEMBER, miss", 300_000, 2.0),
    one("SADD s1 mem:{id}", "sadd_existing", "SADD, there already", 300_000, 2.2),
    Group([Step("SADD s1 new:{seq}", "sadd_new", "SADD, new"), Step("SREM s1 new:{seq}", "srem", "SREM")], 150_000, 2.5),
    Group([Step("SINTER s1 s2", "sinter", "SINTER of two sets, half in common")], 3, 700_000, connections=1, pipeline=1),
    Group([Step("SINTERCARD 2 s1 s2", "sintercard", "SINTERCARD of them")], 3, 400_000, connections=1, pipeline=1),
    Group([Step("SPOP s2", "spop", "SPOP", elements=1), Step("SADD s2 pop:{seq}")], 50_000, 4),
], {"SCARD s1": 1.0, "SCARD s2": 1.0})

FAMILIES = [STRINGS, HASH, HASHES, ZSET, SCORES, LIST, SET]


# ---- memory -------------------------------------------------------------------------------------


@dataclass
class Memory:
    """Bytes each after loading; with `curve` also the worst and the best size from `curve` elements on."""
    name: str
    title: str
    command: str      # as in Load
    count: int        # elements, or keys where a command makes a whole key
    budget: float
    repeat: int = PER_COMMAND
    curve: int = 0
    value_bytes: int = 16
    fields: int = 1_000_000  # {n} and {score} lie below
    per: int = 1      # fields of a key, when the figure is for one of them
    us: float = 2.0


def of_fields(n):
    return " ".join(f"field:{i:010d} {{value}}" for i in range(n))


MEMORY = [
    Memory("hash", "hash field 16 + 16", "HSET big + fld:{seq} {value}", 4_000_000, 42, curve=1_000_000, us=2),
    Memory("zset.double", "sorted-set member 16, double score", "ZADD big + {score} mem:{seq}", 2_000_000, 44,
           curve=1_000_000, us=5),
    Memory("zset.integer", "sorted-set member 16, integer score", "ZADD big + {n} mem:{seq}", 2_000_000, 40,
           curve=1_000_000, us=5),
    Memory("zset.equal", "sorted-set member 16, all scores equal", "ZADD big + 1 mem:{once}", 2_000_000, 40,
           curve=1_000_000, us=6, fields=2_000_000),
    Memory("set", "set member 16", "SADD big + mem:{seq}", 2_000_000, 25, curve=1_000_000, us=2),
    Memory("list.16", "list element 16, 1 M", "RPUSH big + {value}", 1_000_000, 17.4, us=0.5),
    Memory("list.100", "list element 100, 1 M", "RPUSH big + {value}", 1_000_000, 101.5, value_bytes=100, us=0.8),
    Memory("string", "string, key 16 + value 16", "MSET + key:{seq} {value}", 2_000_000, 48, curve=1_000_000, us=1.5),
    Memory("small.hash", "small hash, 10 x (8 + 8), whole key",
           "HSET k:00{seq} " + " ".join(f"field-{i:02d} {{value}}" for i in TEN), 200_000, 230, 0, value_bytes=8, us=9),
    Memory("small.zset", "small sorted set, 10 x (8 + 8), whole key", "ZADD k:00{seq}" + " {n} {value}" * 10, 200_000, 190, 0,
           value_bytes=8, us=12),
    Memory("small.zset4", "sorted set of 4 x 12, whole key", "ZADD k:00{seq}" + " {n} {value}" * 4, 400_000, 110, 0,
           value_bytes=12, us=6),
    Memory("small.list", "small list, 10 x 8, whole key", "RPUSH k:00{seq}" + " {value}" * 10, 200_000, 140, 0,
           value_bytes=8, us=5),
    Memory("small.set", "small set, 10 x 8, whole key", "SADD k:00{seq}" + " {value}" * 10, 200_000, 140, 0,
           value_bytes=8, us=12),
    Memory("hash.100", "hash of 100 fields 16 + 16, a field, key included", "HSET k:00{seq} " + of_fields(100), 10_000, 46, 0,
           per=100, us=60),
    Memory("hash.500", "hash of 500 fields", "HSET k:00{seq} " + of_fields(500), 2_000, 46, 0, per=500, us=300),
    Memory("hash.2000", "hash of 2000 fields", "HSET k:00{seq} " + of_fields(2000), 500, 46, 0, per=2000, us=1500),
]

CHURN = {  # load, delete a scattered half, insert as many others: against what a fresh load held
    "hash": ("HSET big + fld:{seq} {value}", "HDEL big fld:{once}", "HSET big new:{seq} {value}"),
    "zset": ("ZADD big + {score} mem:{seq}", "ZREM big mem:{once}", "ZADD big {score} new:{seq}"),
    "string": ("MSET + key:{seq} {value}", "DEL key:{once}", "SET new:{seq} {value}"),
}
CHURN_BUDGET = 1.25
PEAK_BUDGET = 1.15
IDLE_BUDGET = 2048
IDLE_CONNECTIONS = 1000

# ---- pauses and persistence ---------------------------------------------------------------------


@dataclass
class Growth:
    name: str
    title: str
    command: str
    us: float            # of all servers together for one element
    batch: int = 32
    long_rounds: int = 3  # rounds where it grows beyond GROWTH_LONG


GROWTH = [
    Growth("hash", "a hash, 16 + 16", "HSET g fld:{seq} {value}", 5),
    Growth("zset", "a sorted set, double scores", "ZADD g {score} mem:{seq}", 11),
    Growth("set", "a set", "SADD g mem:{seq}", 5, long_rounds=2),  # its index is the hash's
    Growth("string", "the keyspace, 16 + 16", "SET key:{seq} {value}", 4.5, long_rounds=2),
    Growth("zset.single", "a sorted set, one ZADD at a time", "ZADD g {score} mem:{seq}", 26, batch=1, long_rounds=2),
]
GROWTH_BUDGET_US = 300
GROWTH_ROUNDS, GROWTH_LONG = 3, 2_000_000


@dataclass
class Persist:
    name: str
    title: str
    command: str
    count: int
    card: str
    save_s: float
    start_s: float


PERSIST = [
    Persist("hash", "hash fields", "HSET big + fld:{seq} {value}", 4_000_000, "HLEN big", 0.5, 0.8),
    Persist("zset", "sorted-set members", "ZADD big + {score} mem:{seq}", 1_000_000, "ZCARD big", 0.12, 0.2),
]

BGSAVE_KEYS, BGSAVE_VALUE_BYTES, BGSAVE_BUDGET_US = 4_000_000, 200, 160
BGSAVE = [("reads", "reads only", 0), ("half", "half of them writes", 2)]
P1_RATIO, P1_CONNECTIONS = 0.8, 50
