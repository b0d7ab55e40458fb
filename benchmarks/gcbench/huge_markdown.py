# SPDX-License-Identifier: BSD-3-Clause
"""The huge-page benchmark's result as a page of documentation: tables, readings, plots."""

import os

from . import walk
from .huge_report import (OVERVIEW, cache_line, dtlb_rows, headline, memory_rows, memory_title, overview_rows,
                          pressure_rows, trial_rows, trial_title, what_ran)
from .system import machine_line

ABOUT = """True resident is VmRSS + HugetlbPages, since the kernel leaves pages of the pool out of VmRSS. Differences are
to the first row, trial by trial: the median with the least and the greatest. User time is sampled; behind it stand
three standard errors. Latency is that of a batch of `pipeline` requests."""


def cells(head, rows):
    """A Markdown table; an unnamed column is joined to the one on its left."""
    joined = [i for i, name in enumerate(head) if i == 0 or name]
    line = lambda r: "| " + " | ".join(str(c).strip().replace("|", "\\|") for c in r) + " |"

    def join(row):
        return [" ".join(str(c) for c in row[i:joined[n + 1] if n + 1 < len(joined) else len(row)] if c)
                for n, i in enumerate(joined)]

    return [line([head[i] for i in joined]), "|---|" + "--:|" * (len(joined) - 1)] + [line(join(r)) for r in rows]


def picture(path, folder, name):
    """A link that holds from where the page lies."""
    return f"![{name.rpartition('.')[0]}]({os.path.relpath(os.path.join(folder, name), os.path.dirname(path))})"


def page(path, result, command, json_path=None, folder=None, plots=()):
    m = result["machine"]
    lines = ["# Huge pages, measured", "", f"Written by `{command}`, {m['date'][:10]}.", "",
             machine_line(m) + ".", what_ran(result) + ".", "", *headline(result), "", ABOUT, ""]
    if json_path:
        link = os.path.relpath(os.path.abspath(json_path), os.path.dirname(path))
        lines += [f"Everything that was measured: [{os.path.basename(link)}]({link}).", ""]
    if "kinds" in result["walk"]:
        lines += ["## The machine", "", walk.title(result["walk"]) + ":", "", *cells(*walk.rows(result["walk"])), "",
                  walk.reading(result["walk"]), ""]
    if len(result["arms"]) > 1:
        lines += ["## Overview", "", OVERVIEW, "", *cells(*overview_rows(result)), ""]
    for name in plots:
        lines += [picture(path, folder, name), ""]
    lines += ["## Memory", ""]
    for dataset in dict.fromkeys(r["dataset"] for r in result["rounds"]):
        lines += [memory_title(result, dataset) + "; " + cache_line(result, dataset) + ".", "",
                  *cells(*memory_rows(result, dataset)), ""]
    lines += ["## Workloads", ""]
    for c in result["summary"]:
        lines += [f"### {trial_title(c)}", "", *cells(*trial_rows(c, result["options"]["p99_us"])), "",
                  *("- " + line for line in c["reading"]), ""]
    lines += ["## The kernel", ""]
    if result["dtlb"] == "counted":
        lines += ["dTLB load misses an operation:", "", *cells(*dtlb_rows(result)), ""]
    else:
        lines += [f"dTLB load misses: not counted ({result['dtlb']}).", ""]
    head, rows = pressure_rows(result)
    if rows:
        lines += ["Stalls of the whole machine during the trials, ms (PSI):", "", *cells(head, rows)]
    else:
        lines.append("This kernel has no PSI (/proc/pressure).")
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")
