#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does it pay to keep the arena, and the index, on huge pages?

Starts the server once for each arm, side by side: plain, with --arena-hugetlb, and with the index on huge pages too
(--arms has more). All are loaded with the same data and asked the same random requests in turns: trial by trial, the
order turning, so that whatever disturbs the machine disturbs all. Then it says how much really was on huge pages, what
each server really occupies (VmRSS + HugetlbPages), by how much speed, CPU time per request and latency differ, and how
to read that.

    sysctl -w vm.nr_hugepages=512
    ./benchmarks/tlb_arena_benchmark.py ./build-release/goblin-core --fields 8000000

Pool: a field costs about 20 + VALUE_BYTES bytes of arena and 7 of index. The line above takes 138 pages of 2 MiB for
the arena of each arm and 34 for an index.

Requests come from loadgen (C, built beside the server), or from this script with --python-client, which can be slower
than the server and then hides part of a difference in ops/s; CPU time per request is measured at the server and does
not suffer.
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

from gcbench import arms, huge_markdown, huge_report, plot
from gcbench.huge_run import Bench, LoadgenClient
from gcbench.loadgen import Loadgen, find_loadgen
from gcbench.python_client import PythonClient
from gcbench.server import stop_all
from gcbench.stats import PROBE_BATCHES
from gcbench.system import (BenchError, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_NO_HUGE, EXIT_OK, EXIT_PARTIAL, EXIT_USAGE,
                            choose_cpus, machine, must_be_writable, say)
from gcbench.workloads import WORKLOADS

EXIT_CODES = f"""exit status:
  {EXIT_OK}    the comparison ran, with what was asked on huge pages
  {EXIT_FAILED}    something failed: a server died, a wrong reply, no loadgen
  {EXIT_USAGE}    bad options, no server at the given path, no gnuplot for --plot
  {EXIT_NO_HUGE}    no arm got huge pages; no trial was run
  {EXIT_PARTIAL}    the comparison ran, but with under {arms.HUGE_ENOUGH:.0%} on huge pages in some arm
  {EXIT_INTERRUPTED}  interrupted
With --allow-fallback, {EXIT_NO_HUGE} and {EXIT_PARTIAL} become {EXIT_OK}; the table still says what it shows.

workloads:
""" + "".join(f"  {w.name:<15} {w.what}\n" for w in WORKLOADS.values())


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def positive_list(text):
    return [positive(x) for x in text.split(",")]


def names_of(known, all_of=None):
    def parse(text):
        names = list(dict.fromkeys((all_of or known) if text == "all" else text.split(",")))
        if not set(names) <= set(known):
            raise argparse.ArgumentTypeError(f"some of {', '.join(known)}, separated by commas, or all")
        return names
    return parse


def at_least(least, kind):
    def parse(text):
        value = kind(text)
        if not value >= least:
            raise argparse.ArgumentTypeError(f"must be at least {least}")
        return value
    parse.__name__ = kind.__name__
    return parse


def parse_args():
    p = argparse.ArgumentParser(description=__doc__, epilog=EXIT_CODES,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("server", metavar="SERVER", help="the server binary, e.g. ./build-release/goblin-core")
    p.add_argument("--arms", type=names_of(arms.NAMES, arms.ALL), default=arms.DEFAULT.split(","),
                   metavar="A[,A...]",
                   help=f"{', '.join(arms.ALL)}, or all of these; control is a second plain server, to see what equal "
                        f"ones differ by. Differences are to the first (default {arms.DEFAULT}). One that this machine "
                        "cannot do is left out, with the reason")
    p.add_argument("--workloads", type=names_of(list(WORKLOADS)), default=["hget"], metavar="W[,W...]",
                   help="see below, or all; one block of the table for each (default hget)")
    p.add_argument("--fields", type=positive, default=8_000_000,
                   help="elements of the hash, sorted set or list (default %(default)s)")
    p.add_argument("--value-bytes", type=at_least(0, int), default=16, help="bytes of each value (default %(default)s)")
    p.add_argument("--large-fields", type=positive, help="fields of hget1k's hash (default a quarter of --fields)")
    p.add_argument("--large-bytes", type=positive, default=1024, help="bytes of its values (default %(default)s)")
    p.add_argument("--trials", type=positive, default=6,
                   help="trials; a multiple of the arms has every order equally often (default %(default)s)")
    p.add_argument("--rounds", type=positive, default=2,
                   help="sets of fresh servers that share the trials, since where a process happens to lie in "
                        "memory moves its speed by a few percent (default %(default)s)")
    p.add_argument("--seconds", type=at_least(0.05, float), default=3.0, help="length of one run (default %(default)s)")
    p.add_argument("--pipeline", type=positive_list, default=[50, 1], metavar="P[,P...]",
                   help="requests sent at once, one block of the table for each (default 50,1)")
    p.add_argument("--connections", type=positive, help="(default 16, with pipeline 1 50)")
    p.add_argument("--p99-us", type=positive, metavar="N",
                   help="also find the highest rate, in an open loop with latency counted from the time meant, at "
                        "which p99 is at most N microseconds; once a round")
    p.add_argument("--p99-seconds", type=at_least(0.1, float), default=2.0,
                   help=f"least length of one probe of that search, which is longer where {PROBE_BATCHES} batches take "
                        "longer (default %(default)s)")
    p.add_argument("--seed", type=at_least(0, int), default=1, help="of the random requests (default %(default)s)")
    p.add_argument("--server-args", type=shlex.split, default=[], metavar="WORDS",
                   help="more options for all servers; '--prefetch no' shows what prefetching hides")
    p.add_argument("--python-client", action="store_true", help="requests from this script instead of loadgen")
    p.add_argument("--loadgen", metavar="PATH", help="(default: benchmarks/loadgen beside the server)")
    p.add_argument("--server-cpu", type=at_least(0, int), metavar="N", help="CPU of all servers (default: the first)")
    p.add_argument("--client-cpu", type=at_least(0, int), metavar="N", help="CPU of the client (default: the second)")
    p.add_argument("--allow-fallback", action="store_true", help="go on, and exit with 0, without huge pages")
    p.add_argument("--json", metavar="FILE", help="write everything measured to this file")
    p.add_argument("--plot", metavar="DIR", help="draw SVG plots into this folder (needs gnuplot)")
    p.add_argument("--md", metavar="FILE", help="write tables, readings and links to the plots as a Markdown page")
    args = p.parse_args()
    args.large_fields = args.large_fields or max(1, args.fields // 4)
    args.rounds = min(args.rounds, args.trials)
    if args.python_client and args.loadgen:
        p.error("--loadgen has no meaning with --python-client")
    if args.python_client and (not set(args.workloads) <= {"hget", "hset"} or args.p99_us):
        p.error("--python-client does hget and hset only, and no --p99-us")
    return args


def check_paths(args):
    if not os.path.isfile(args.server):
        raise BenchError(f"no server at {args.server}; build it with\n    cmake --preset release && "
                         "cmake --build build-release", EXIT_USAGE)
    if not os.access(args.server, os.X_OK):
        raise BenchError(f"{args.server} is not an executable file", EXIT_USAGE)
    if args.json:
        must_be_writable("--json", args.json)
    if args.md:
        must_be_writable("--md", args.md)
    if args.plot:
        plot.must_have_gnuplot(args.plot)
    args.server = os.path.abspath(args.server)


def exit_code(args, result):
    if args.allow_fallback or huge_report.worst_share(result)[0] >= arms.HUGE_ENOUGH:
        return EXIT_OK
    return EXIT_PARTIAL


def report(args, result):
    """Everything that is kept, whole: what was measured is written before plots are tried."""
    huge_report.summarize(result)
    say.line()
    print(huge_report.table(result).lstrip("\n"), flush=True)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(result, f, separators=(",", ":"))
            f.write("\n")
    plots = huge_report.plots(args.plot, result) if args.plot else []
    if plots:
        print("plots in " + args.plot + ": " + ", ".join(plots), flush=True)
    if args.md:
        huge_markdown.page(os.path.abspath(args.md), result, shlex.join(sys.argv), args.json,
                           args.plot and os.path.abspath(args.plot), plots)


def version(server):
    """What the binary calls itself."""
    try:
        run = subprocess.run([server, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return os.path.basename(server)
    return run.stdout.strip() or os.path.basename(server)


NOT_MEASURED = ("server", "loadgen", "json", "plot", "md")  # paths


def main():
    args = parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits it ignored
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    bench, base = None, None
    try:
        check_paths(args)
        cpus = choose_cpus(args.server_cpu, args.client_cpu)
        if args.python_client:
            client = PythonClient(args, cpus[1])
        else:
            client = LoadgenClient(Loadgen(find_loadgen(args.server, args.loadgen), cpus[1]), args)
        base = tempfile.mkdtemp(prefix="tlb-arena-")
        bench = Bench(args, client, cpus, base)
        bench.result |= {"machine": machine(), "server": version(args.server),
                         "client": "python" if args.python_client else "loadgen",
                         "options": {k: v for k, v in vars(args).items() if k not in NOT_MEASURED},
                         "server_cpu": cpus[0], "client_cpu": cpus[1]}
        result = bench.measure()
        report(args, result)
        return exit_code(args, result)
    except BenchError as e:
        say.line(f"error: {e}")
        return e.code
    except OSError as e:
        say.line(f"error: {e}")
        for server in bench.servers if bench else []:
            if server.process is not None and server.process.poll() is not None:
                say.line(f"the {server.name} server is gone\n{server.log_tail()}")
        return EXIT_FAILED
    except KeyboardInterrupt:
        say.line("interrupted; servers stopped, nothing kept")
        return EXIT_INTERRUPTED
    finally:
        if bench:
            stop_all(bench.servers)
        if base:
            shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
