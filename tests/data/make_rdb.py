#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make the RDB files of tests/data/rdb and what they hold: make_rdb.py FOLDER

Every NAME.rdb has a NAME.txt beside it, a line a key, sorted; describe() says how. The text comes
from a real redis-server that has loaded the file, so it owes nothing to the code under test. Two
kinds of files:

  old_*    encodings that no redis-server of today writes, put together by the functions here from
           docs/persistence.md; redis-server 7.0 loads them
  saved_*  saved by redis-server 7.0 under settings that force each encoding it has
  new_*    of versions 11 and 12, which redis-server 7.0 does not load: the text is written here

Needs redis-server 7.0 (Debian 12's). Output is the same at each run but for the fields of time and
memory in the saved ones: run it only when a file is to be added or changed.
"""
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

FAR_S = 2100000000  # 2036: 32 bits, signed
FAR_MS = 4100000000123

# ---- the format ------------------------------------------------------------------------------


def crc64_table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x95AC9329AC4BC9B5 if crc & 1 else 0)
        table.append(crc)
    return table


CRC_TABLE = crc64_table()


def crc64(data):
    crc = 0
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc


def length(n):
    if n < 1 << 6:
        return bytes([n])
    if n < 1 << 14:
        return bytes([0x40 | n >> 8, n & 0xFF])
    if n < 1 << 32:
        return b"\x80" + struct.pack(">I", n)
    return b"\x81" + struct.pack(">Q", n)


def string(s):
    return length(len(s)) + s


def integer(n):
    """A string in integer form."""
    for form, fmt in enumerate("bhi"):
        size = 8 << form
        if -(1 << size - 1) <= n < 1 << size - 1:
            return bytes([0xC0 | form]) + struct.pack("<" + fmt, n)
    raise ValueError(n)


def lzf(s):
    """A string in compressed form: runs of one repeated block as one reference each, the rest
    literal."""
    out = bytearray()
    at = 0
    literal = bytearray()

    def flush():
        for i in range(0, len(literal), 32):
            part = literal[i:i + 32]
            out.append(len(part) - 1)
            out.extend(part)
        literal.clear()

    while at < len(s):
        best, distance = 0, 0
        for back in range(1, min(at, 8191) + 1):
            n = 0
            while n < 264 and at + n < len(s) and s[at + n] == s[at + n - back]:
                n += 1
            if n > best:
                best, distance = n, back
            if back > 300:
                break
        if best >= 3:
            flush()
            off, n = distance - 1, best - 2
            if n < 7:
                out.extend([n << 5 | off >> 8, off & 0xFF])
            else:
                out.extend([7 << 5 | off >> 8, n - 7, off & 0xFF])
            at += best
        else:
            literal.append(s[at])
            at += 1
    flush()
    return b"\xC3" + length(len(out)) + length(len(s)) + bytes(out)


def ziplist(elements, small=True, wide_previous=False):
    """small: integers of 4, 8 and 24 bits may be used (version 6 on). wide_previous: give the length
    of the entry before in five bytes, as entries do that once had a longer neighbour."""
    out = bytearray()
    previous = 0
    last = 10
    for e in elements:
        last = 10 + len(out)
        if previous < 254 and not wide_previous:
            entry = bytes([previous])
        else:
            entry = b"\xFE" + struct.pack("<I", previous)
        if isinstance(e, int):
            if small and 0 <= e <= 12:
                entry += bytes([0xF1 + e])
            elif small and -128 <= e <= 127:
                entry += b"\xFE" + struct.pack("<b", e)
            elif -32768 <= e <= 32767:
                entry += b"\xC0" + struct.pack("<h", e)
            elif small and -(1 << 23) <= e < 1 << 23:
                entry += b"\xF0" + struct.pack("<i", e)[:3]
            elif -(1 << 31) <= e < 1 << 31:
                entry += b"\xD0" + struct.pack("<i", e)
            else:
                entry += b"\xE0" + struct.pack("<q", e)
        elif len(e) < 64:
            entry += bytes([len(e)]) + e
        elif len(e) < 16384:
            entry += bytes([0x40 | len(e) >> 8, len(e) & 0xFF]) + e
        else:
            entry += b"\x80" + struct.pack(">I", len(e)) + e
        out += entry
        previous = len(entry)
    count = min(len(elements), 65535)
    return struct.pack("<IIH", 11 + len(out), last, count) + bytes(out) + b"\xFF"


def listpack(elements):
    out = bytearray()
    for e in elements:
        if isinstance(e, int):
            entry = bytes([e]) if 0 <= e < 128 else b"\xF4" + struct.pack("<q", e)
        elif len(e) < 64:
            entry = bytes([0x80 | len(e)]) + e
        else:
            entry = bytes([0xE0 | len(e) >> 8, len(e) & 0xFF]) + e
        back = bytes([len(entry)]) if len(entry) < 128 else bytes(
            [len(entry) >> 7, 0x80 | len(entry) & 0x7F])
        out += entry + back
    return struct.pack("<IH", 7 + len(out), len(elements)) + bytes(out) + b"\xFF"


def intset(numbers, size):
    fmt = {2: "h", 4: "i", 8: "q"}[size]
    return struct.pack("<II", size, len(numbers)) + b"".join(
        struct.pack("<" + fmt, n) for n in sorted(numbers))


def zipmap(pairs, unused=0, count=None):
    def zlen(n):
        return bytes([n]) if n < 254 else b"\xFE" + struct.pack("<I", n)

    out = bytes([min(len(pairs), 254) if count is None else count])
    for field, value in pairs:
        out += zlen(len(field)) + field + zlen(len(value)) + bytes([unused]) + value + b"?" * unused
    return out + b"\xFF"


def text_score(score):
    if score == float("inf"):
        return b"\xFE"
    if score == float("-inf"):
        return b"\xFF"
    text = ("%.17g" % score).encode()
    return bytes([len(text)]) + text


def file_of(version, *sections, checksum=True):
    data = b"REDIS%04d" % version + b"".join(sections) + b"\xFF"
    if version >= 5:
        data += struct.pack("<Q", crc64(data) if checksum else 0)
    return data


def select(n):
    return b"\xFE" + length(n)


def aux(name, value):
    return b"\xFA" + string(name) + value


def key(type_, name, *value):
    return bytes([type_]) + string(name) + b"".join(value)


# ---- a server --------------------------------------------------------------------------------


class Server:
    def __init__(self, dump=None, settings=()):
        self.folder = tempfile.TemporaryDirectory()
        if dump is not None:
            with open(self.path("dump.rdb"), "wb") as f:
                f.write(dump)
        command = ["redis-server", "--port", "0", "--unixsocket", self.path("socket"), "--dir",
                   self.folder.name, "--save", "", "--logfile", self.path("log"), *settings]
        self.process = subprocess.Popen(command)
        self.socket = socket.socket(socket.AF_UNIX)
        for _ in range(200):
            try:
                self.socket.connect(self.path("socket"))
                break
            except OSError:
                time.sleep(0.05)
        self.file = self.socket.makefile("rb")
        while True:
            answer = self.call("PING")
            if answer == b"PONG":
                break
            time.sleep(0.05)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.socket.close()
        self.folder.cleanup()

    def reply(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"+" or kind == b"-":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if rest == b"-1":
                return None
            data = self.file.read(int(rest) + 2)
            return data[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        raise RuntimeError("the server has gone: " + open(self.path("log")).read()[-2000:])

    def call(self, *words):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(
            b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        answer = self.reply()
        if isinstance(answer, bytes) and answer.startswith(b"ERR"):
            raise RuntimeError(answer)
        return answer

    def save(self):
        self.call("SAVE")
        with open(self.path("dump.rdb"), "rb") as f:
            return f.read()


# ---- what a file holds -------------------------------------------------------------------------


def shown(b):
    """Letters, digits and a few more as they are, any other byte as %XX."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:+"
    return "".join(chr(c) if c in plain else "%%%02X" % c for c in b)


def line_of(db, name, expire_ms, kind, value):
    """db, key, expiry in ms or -1, type, then the value: hashes and sets sorted, scores as %.17g."""
    if kind == "string":
        words = [shown(value)]
    elif kind == "list":
        words = [shown(e) for e in value]
    elif kind == "set":
        words = sorted(shown(e) for e in value)
    elif kind == "hash":
        words = sorted(shown(f) + "=" + shown(v) for f, v in value)
    else:
        words = [shown(m) + "=" + "%.17g" % s for m, s in value]
    return " ".join([str(db), shown(name), str(expire_ms), kind, *words])


def pairs_of(flat):
    return list(zip(flat[::2], flat[1::2]))


def describe(server):
    lines = []
    for db in range(16):
        server.call("SELECT", db)
        for name in server.call("KEYS", "*"):
            kind = server.call("TYPE", name).decode()
            if kind == "string":
                value = server.call("GET", name)
            elif kind == "list":
                value = server.call("LRANGE", name, 0, -1)
            elif kind == "set":
                value = server.call("SMEMBERS", name)
            elif kind == "hash":
                value = pairs_of(server.call("HGETALL", name))
            elif kind == "zset":
                flat = server.call("ZRANGE", name, 0, -1, "WITHSCORES")
                value = [(m, float(s)) for m, s in pairs_of(flat)]
            else:
                continue
            lines.append(line_of(db, name, server.call("PEXPIRETIME", name), kind, value))
    return "\n".join(sorted(lines)) + "\n"


# ---- the files ---------------------------------------------------------------------------------

WORDS = [b"", b"a", b"hello", b"x" * 63, b"y" * 64, b"z" * 253, b"w" * 254, b"v" * 300, b"u" * 20000]
NUMBERS = [0, 1, 12, 13, -1, 127, 128, -128, -129, 32767, 32768, -32768, -32769, 8388607, 8388608,
           -8388608, -8388609, 2147483647, 2147483648, -2147483648, -2147483649, 9223372036854775807,
           -9223372036854775808]


def old_files():
    mixed = [e for pair in zip(NUMBERS, WORDS + WORDS + WORDS) for e in pair]
    pairs = [(b"field:%d" % i, b"v" * (i * 13 % 300)) for i in range(40)]
    yield "old_1", file_of(
        1, select(0), key(0, b"s", string(b"plain")), key(0, b"n", integer(-5)),
        key(0, b"z", lzf(b"abcabcabc" * 50)),
        b"\xFD" + struct.pack("<i", FAR_S) + key(0, b"expires", string(b"later")),
        b"\xFD" + struct.pack("<i", 1000000000) + key(0, b"expired", string(b"gone")),
        key(1, b"list", length(3), string(b"a"), integer(1000), lzf(b"q" * 300)),
        key(2, b"set", length(3), string(b"a"), integer(70000), string(b"b")),
        key(3, b"zset", length(6),
            *[string(b"m%d" % i) + text_score(s)
              for i, s in enumerate([1, -2.5, 0.1, 1e300, float("inf"), float("-inf")])]),
        select(3), key(4, b"hash", length(2), string(b"f"), string(b"v"), integer(7), integer(8)))
    yield "old_2", file_of(
        2, select(0), key(9, b"zipmap", string(zipmap(pairs))),
        key(9, b"zipmap:unused", string(zipmap(pairs[:5], unused=3))),
        key(9, b"zipmap:uncounted", string(zipmap(pairs[:7], count=254))),
        key(9, b"zipmap:lzf", lzf(zipmap(pairs[:9]))),
        key(9, b"zipmap:lengths", string(zipmap([(b"f" * 253, b"v" * 253), (b"g" * 254, b"w" * 254)]))),
        key(10, b"ziplist", string(ziplist(mixed, small=False))),
        key(10, b"ziplist:lzf", lzf(ziplist([b"same"] * 60, small=False))),
        key(11, b"intset:2", string(intset([1, -1, 300, -32768, 32767], 2))),
        key(11, b"intset:4", string(intset([1, -1, 300, 1 << 20, -(1 << 31)], 4))),
        key(11, b"intset:8", lzf(intset([n for n in NUMBERS], 8))),
        key(12, b"zset", string(ziplist([b"a", 1, b"b", b"1.5", b"c", b"1e20", 7, b"inf"],
                                        small=False))))
    yield "old_4", file_of(
        4, select(0), b"\xFC" + struct.pack("<q", FAR_MS) +
        key(13, b"hash", string(ziplist([b"f", b"v", b"g", 12345678, 5, 6], small=False))),
        key(13, b"hash:wide", string(ziplist([b"f", b"v", b"g", 1], small=False,
                                             wide_previous=True))))
    yield "old_6", file_of(
        6, select(0), key(10, b"list", string(ziplist(mixed))),
        key(12, b"zset", string(ziplist([b"-a", b"-inf", b"a", -1, b"b", 0, b"c", b"0.25"]))),
        key(13, b"hash", string(ziplist([e for i in range(100) for e in (b"f%d" % i, i * 99)]))))
    yield "old_6_no_checksum", file_of(6, select(2), key(0, b"k", string(b"v")), checksum=False)
    yield "old_7", file_of(
        7, aux(b"redis-ver", string(b"3.2.0")), aux(b"redis-bits", integer(64)), select(0),
        b"\xFB" + length(2) + length(0),
        key(14, b"quicklist", length(3), string(ziplist(mixed)), lzf(ziplist([b"again"] * 100)),
            string(ziplist(NUMBERS))),
        key(14, b"quicklist:one", length(1), string(ziplist([b"x"]))))
    yield "old_9", file_of(
        9, select(0), b"\xF8" + length(1000) + key(0, b"idle", string(b"v")),
        b"\xF9\x05" + key(0, b"frequent", string(b"v")),
        b"\xFC" + struct.pack("<q", FAR_MS) + b"\xF9\xFF" +
        key(5, b"zset_2", length(3), string(b"a") + struct.pack("<d", 0.1),
            string(b"b") + struct.pack("<d", float("-inf")),
            string(b"c") + struct.pack("<d", 5e-324)),
        key(0, b"long", b"\x80" + struct.pack(">I", 5) + b"12 45"),
        key(0, b"longer", b"\x81" + struct.pack(">Q", 5) + b"12 46"))


def fill(server):
    rng = random.Random(7)
    for i, word in enumerate(WORDS):
        server.call("SET", b"word:%d" % i, word)
    for i, n in enumerate(NUMBERS):
        server.call("SET", b"number:%d" % i, n)
        server.call("PEXPIREAT", b"number:%d" % i, FAR_MS + i)
    server.call("SELECT", 5)
    for count in (1, 30, 200):
        for i in range(count):
            element = rng.choice(WORDS[:8] + NUMBERS) if i % 2 else i * i
            server.call("HSET", "hash:%d" % count, "f%d" % i, element)
            server.call("HSET", "hash:%d" % count, i - 5, i * 1000)
            server.call("SADD", "set:%d" % count, "m%d" % i, i)
            server.call("SADD", "ints:%d" % count, i * rng.choice([1, -7, 100000]))
            score = rng.choice([i, i / 7, -i * 1e10, i * 1e-10])
            server.call("ZADD", "zset:%d" % count, "%.17g" % score, "m%d" % i)
            server.call("RPUSH", "list:%d" % count, element, "e%d" % i)
    server.call("ZADD", "zset:limits", "inf", "a", "-inf", "b", "0.1", "c", "1.7976931348623157e308",
                "d", "9007199254740993", "e")
    server.call("RPUSH", "list:long", *[b"p" * n for n in (4094, 4095, 4096, 8177, 16373, 16377)],
                b"q" * 16378, b"r" * 16379)


SETTINGS = {
    "saved_default": [],
    "saved_plain": ["--hash-max-listpack-entries", "0", "--zset-max-listpack-entries", "0",
                    "--set-max-intset-entries", "0", "--list-max-listpack-size", "1",
                    "--rdbcompression", "no"],
    "saved_packed": ["--hash-max-listpack-entries", "100000", "--hash-max-listpack-value", "100000",
                     "--zset-max-listpack-entries", "100000", "--set-max-intset-entries", "100000",
                     "--list-max-listpack-size", "-5"],
    "saved_lfu": ["--maxmemory-policy", "allkeys-lfu", "--maxmemory", "1gb"],
    "saved_lru": ["--maxmemory-policy", "allkeys-lru", "--maxmemory", "1gb", "--rdbchecksum", "no"],
}


def saved_files():
    for name, settings in SETTINGS.items():
        with Server(settings=settings) as server:
            fill(server)
            yield name, server.save()


def unsupported_file():
    """A stream with groups, consumers and pending entries, a function library, and keys around."""
    with Server() as server:
        server.call("SET", "before", "1")
        server.call("FUNCTION", "LOAD", "#!lua name=mylib\nredis.register_function('f', "
                    "function() return 1 end)")
        for i in range(300):
            server.call("XADD", "stream", "%d-1" % (i + 1), "field", i, "other", "x" * i)
        for group in ("one", "two"):
            server.call("XGROUP", "CREATE", "stream", group, "0")
            for consumer in ("c1", "c2"):
                server.call("XREADGROUP", "GROUP", group, consumer, "COUNT", 40, "STREAMS", "stream",
                            ">")
        server.call("XADD", "stream:small", "5-5", "a", "b")
        server.call("SET", "{z}after", "2")
        return server.save(), describe(server)


def new_files():
    members = [b"a", 5, b"c" * 100, b"-"]
    yield "new_11", file_of(11, select(0), key(20, b"set", string(listpack(members)))), line_of(
        0, b"set", -1, "set", [b"a", b"5", b"c" * 100, b"-"])
    yield "new_12", file_of(
        12, select(0), b"\xFB\x01\x00", b"\xF4" + length(12539) + length(1) + length(0),
        key(16, b"hash", string(listpack([b"f", 5, b"g", b"v"])))), line_of(
            0, b"hash", -1, "hash", [(b"f", b"5"), (b"g", b"v")])


def write(folder, name, data, text):
    with open(os.path.join(folder, name + ".rdb"), "wb") as f:
        f.write(data)
    with open(os.path.join(folder, name + ".txt"), "w") as f:
        f.write(text)
    print("%-20s %7d bytes, %4d keys" % (name, len(data), text.count("\n")))


def main():
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        sys.exit("usage: make_rdb.py FOLDER   (one that is there: its files are written over)")
    folder = sys.argv[1]
    for files in (old_files(), saved_files()):
        for name, data in files:
            with Server(data) as server:
                text = describe(server)
            write(folder, name, data, text)
    data, text = unsupported_file()
    write(folder, "unsupported", data, text)
    for name, data, text in new_files():
        write(folder, name, data, text + "\n")


main()
