# SPDX-License-Identifier: BSD-3-Clause
"""What the machine itself gains by huge pages: random reads on each kind of page, before any server runs.

The bound of everything else: a server spends a part of its time on such reads, and prefetching does more of them at once.
Virtual machines differ: where the host backs their memory with small pages, a huge one in the guest saves little."""

import os
import subprocess

from .stats import LUCK
from .system import MIB, BenchError, mib

PROGRAM = "micro_mem_walk"
MOST_MIB, LEAST_MIB, ROUNDS = 512, 2, 5


def region_mib(data_bytes):
    """The power of two that holds the data, within limits."""
    size = LEAST_MIB
    while size < MOST_MIB and size * MIB < data_bytes:
        size *= 2
    return size


def measure(server, data_bytes, cpu):
    """{"mib", "kinds": {kind: [ns one after the other, ns 16 at once]}}, or {"reason"} when it was not measured."""
    program = os.path.join(os.path.dirname(server), "benchmarks", PROGRAM)
    if not os.access(program, os.X_OK):
        return {"reason": f"benchmarks/{PROGRAM} is not built beside the server"}
    size = region_mib(data_bytes)
    run = subprocess.run([program, str(size), str(ROUNDS)], capture_output=True, text=True,
                         preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    if run.returncode != 0:
        raise BenchError(f"{PROGRAM} failed: {run.stderr.strip()}")
    kinds = {}
    for name, page_kib, one, many in (line.split() for line in run.stdout.splitlines()):
        kinds[name + f", {mib(int(page_kib) * 1024)}" * (name == "hugetlb")] = [float(one), float(many)]
    return {"mib": size, "kinds": kinds}


def title(walk):
    if "reason" in walk:
        return f"Random reads on each kind of page were not measured: {walk['reason']}."
    return f"Random reads over {walk['mib']} MiB on this machine, without a server, ns each"


def rows(walk):
    """(head, rows), the difference to plain pages behind each."""
    plain = walk["kinds"]["plain"]
    cell = lambda now, base: f"{now:,.1f}" + (f" ({now / base - 1:+.0%})" if now is not base else "")
    return (["", "one after the other", "16 at once"],
            [[name, *(cell(now, base) for now, base in zip(found, plain))] for name, found in walk["kinds"].items()])


def reading(walk):
    """What these reads bound."""
    plain, huge = walk["kinds"]["plain"], [v for k, v in walk["kinds"].items() if k != "plain"]
    if not huge:
        return "No huge pages were to be had for this."
    one, many = (1 - min(v[i] for v in huge) / plain[i] for i in (0, 1))
    if one <= LUCK:
        return ("Here huge pages do not make a read cheaper even when each waits for the one before it: whatever "
                "differs below has other causes, such as page faults while loading.")
    return (f"Here huge pages make a read up to {one:.0%} cheaper when each waits for the one before it, "
            + (f"and up to {many:.0%} " if many > LUCK else "and not ")
            + "when 16 are under way at once, as with prefetching: no server can gain more of the time it waits for memory.")
