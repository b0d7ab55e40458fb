#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The same work on several servers of the Redis protocol, side by side: memory, server CPU an operation, latency, pauses.

    ./benchmarks/peers.py --entries 1M,8M --json result.json --plot plots
    ./benchmarks/peers.py --only cpu.zset,cpu.list
    ./benchmarks/peers.py --render result.json --page docs/benchmarks.md

Builds nothing: our server is build-release/goblin-core and the load generator benchmarks/loadgen beside it, redis-server
is found in PATH. More servers come with --server NAME=COMMAND; {port} and {dir} in COMMAND are filled in, without them
--port, --dir and --save "" are added. Servers run at once on one CPU and loadgen on another; each row is measured on one
server and then on the next, the order turning with the trial, and ratios are medians of the ratios within a trial.

The figure for commands is the CPU time of all the server's threads for one operation: it hardly depends on the client or
on what else the machine does. KIND is mem, cpu (16 connections, pipeline 50), p1 (50 connections, pipeline 1), open (an
open loop at --rate), grow, persist or bgsave; --list shows all rows.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

from gcbench import peer_report, plot
from gcbench.loadgen import Loadgen, find_loadgen
from gcbench.peer_run import Bench, all_rows, parse_entries
from gcbench.server import stop_all
from gcbench.system import (BenchError, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, choose_cpus, machine,
                            must_be_writable, say)

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OURS, PEER = "goblin-core", "redis-server"


def positive(kind):
    def parse(text):
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError("must be above 0")
        return value
    parse.__name__ = kind.__name__
    return parse


def named_server(text):
    name, sign, command = text.partition("=")
    try:
        words = shlex.split(command)
    except ValueError as e:
        raise argparse.ArgumentTypeError(f"{name}: {e}")
    if not sign or not name or "/" in name or not words:
        raise argparse.ArgumentTypeError("NAME=COMMAND")
    return name, words


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--server", action="append", default=[], type=named_server, metavar="NAME=COMMAND",
                   help=f"one more server, or another command for {OURS} or {PEER}")
    p.add_argument("--without", action="append", default=[], metavar="NAME", help=f"leave out {OURS} or {PEER}")
    p.add_argument("--baseline", metavar="NAME", help=f"what ratios refer to (default {PEER})")
    p.add_argument("--only", type=lambda t: [w for w in t.split(",") if w], default=[], metavar="ROWS",
                   help="names of rows, beginnings of them up to a dot, or globs, separated by commas")
    p.add_argument("--entries", type=parse_entries, default=parse_entries("1M"), metavar="N[,N...]",
                   help="entries of the large hash, sorted set and keyspace, e.g. 1M,8M (default 1M)")
    p.add_argument("--scale", type=positive(float), default=1.0,
                   help="sizes times SCALE, requests times SCALE**0.75, for a quick look (default 1)")
    p.add_argument("--trials", type=positive(int), default=5, help="(default %(default)s)")
    p.add_argument("--rate", type=positive(int), default=40_000, help="open loop: requests a second (default %(default)s)")
    p.add_argument("--open-seconds", type=positive(float), default=2.0, help="its length (default %(default)s)")
    p.add_argument("--loadgen", metavar="PATH", help="(default: benchmarks/loadgen beside our server)")
    p.add_argument("--server-cpu", type=int, metavar="N", help="CPU of all servers (default: the first)")
    p.add_argument("--client-cpu", type=int, metavar="N", help="CPU of loadgen (default: the second)")
    p.add_argument("--json", metavar="FILE", help="write everything measured to this file")
    p.add_argument("--plot", metavar="DIR", help="draw SVG plots into this folder (needs gnuplot)")
    p.add_argument("--render", nargs="+", metavar="FILE", help="measure nothing, show results written with --json; of rows "
                   "that are in several files the last counts")
    p.add_argument("--page", metavar="FILE", help="with --render: put the tables between the page's markers "
                   "<!-- peers: NAME --> and <!-- end -->")
    p.add_argument("--list", action="store_true", help="show the names of all rows")
    p.add_argument("--estimate", action="store_true", help="say how long it would take")
    args = p.parse_args()
    if args.page and not args.render:
        p.error("--page needs --render")
    return args


def find_servers(args):
    """{name: argv}, ours first."""
    given = dict(args.server)
    servers = {OURS: [os.path.join(ROOT, "build-release", OURS)], PEER: [shutil.which(PEER) or PEER]}
    servers = {n: c for n, c in {**servers, **given}.items() if n not in args.without}
    args.baseline = args.baseline or (PEER if PEER in servers else list(servers)[-1])
    if args.baseline not in servers or len(servers) < 2:
        raise BenchError("at least two servers are needed, one of them the --baseline", EXIT_USAGE)
    for name, command in servers.items():
        path = shutil.which(command[0])
        if path is None:
            hints = {OURS: "cmake --preset release && cmake --build build-release", PEER: "apt install redis-server"}
            hint = f"; have it with\n    {hints[name]}" if name in hints else ""
            raise BenchError(f"no program {command[0]} for {name}{hint}", EXIT_USAGE)
        servers[name] = [os.path.abspath(path), *command[1:]]
    return servers


def version(bench, name):
    """What a server says that it is; for one built in a git tree the commit as well."""
    server = bench.start(name)
    info = server.info("server")
    bench.stop(server)
    text = next((info[k].strip() for k in ("goblin_version", "valkey_version", "redis_version") if k in info), "")
    folder = os.path.dirname(bench.args.servers[name][0])
    git = subprocess.run(["git", "-C", folder, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return text + (f" ({git.stdout.strip()})" if git.returncode == 0 else "")


def report(args, runs):
    result = peer_report.Result(runs)
    print(peer_report.all_tables(result), flush=True)
    if args.plot:
        print("\nplots in " + args.plot + ": " + ", ".join(peer_report.plots(args.plot, result)), flush=True)
    return result


def render(args):
    runs = []
    for path in args.render:
        with open(path) as f:
            runs.append(json.load(f))
    if not args.page:
        report(args, runs)
        return
    with open(args.page) as f:
        text, left = peer_report.fill_page(peer_report.Result(runs), f.read())
    with open(args.page, "w") as f:
        f.write(text)
    for name in left:
        say.line(f"table '{name}' is as it was: nothing of it was measured")


def write_json(path, result):
    """One line a row, so that files can be compared."""
    head = {k: v for k, v in result.items() if k != "rows"}
    rows = ",\n".join(f" {json.dumps(n)}: {json.dumps(r, separators=(',', ':'))}" for n, r in result["rows"].items())
    with open(path, "w") as f:
        f.write(json.dumps(head, indent=1)[:-2] + ',\n "rows": {\n' + rows + "\n }\n}\n")


def measure(args):
    args.servers = find_servers(args)
    loadgen = find_loadgen(args.servers[OURS][0] if OURS in args.servers else os.path.join(ROOT, "build-release", OURS),
                           args.loadgen)
    cpus = choose_cpus(args.server_cpu, args.client_cpu)
    base = tempfile.mkdtemp(prefix="peers-")
    bench = Bench(args, Loadgen(loadgen, cpus[1]), cpus, base)
    keep = ("entries", "scale", "trials", "rate", "open_seconds", "baseline", "only")
    result = {"machine": machine(), "options": {k: getattr(args, k) for k in keep}, "rows": bench.rows}
    try:
        result["servers"] = {n: {"version": version(bench, n), "argv": [os.path.basename(c[0]), *c[1:]]} for n, c in args.servers.items()}
        if bench.run() is None:
            return EXIT_OK
        report(args, [result])
        return EXIT_OK
    finally:
        stop_all(bench.servers)
        shutil.rmtree(base, ignore_errors=True)
        if args.json and bench.rows:  # what was measured before something failed as well
            write_json(args.json, result)


def main():
    args = parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if args.list:
            print("\n".join(all_rows(args.entries)))
            return EXIT_OK
        if args.json:
            must_be_writable("--json", args.json)
        if args.plot:
            plot.must_have_gnuplot(args.plot)
        if args.render:
            render(args)
            return EXIT_OK
        return measure(args)
    except BenchError as e:
        say.line(f"error: {e}")
        return e.code
    except (OSError, ConnectionError, ValueError) as e:
        say.line(f"error: {e}")
        return EXIT_FAILED
    except KeyboardInterrupt:
        say.line("interrupted; servers stopped")
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
