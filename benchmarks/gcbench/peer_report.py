# SPDX-License-Identifier: BSD-3-Clause
"""What peers.py shows: Markdown tables, which rows miss their budget, pages with tables between markers, plots."""

import re
import statistics

from . import plot
from .peer_rows import GROWTH_ROUNDS
from .stats import paired_ratio
from .system import BenchError, EXIT_USAGE

MARKER = re.compile(r"(<!-- peers: ([\w. ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
SIZE = re.compile(r"\d+[km]?")
MAIN = {"cpu": "cpu_ns", "p1": "cpu_ns", "open": "p999_us", "grow": "recurring_us", "persist": "save_s",
        "bgsave": "p999_us"}


class Result:
    """Rows of one or several runs; of two with the same row the later one counts."""

    def __init__(self, runs):
        self.runs, self.rows = runs, {}
        for i, run in enumerate(runs):
            for name, row in run["rows"].items():
                self.rows[name] = {**row, "run": i}

    def about(self, row):
        return self.runs[row["run"]]

    def names(self, row):
        """(ours, the baseline): the first server that is not it."""
        base = self.about(row)["options"]["baseline"]
        return next(n for n in self.about(row)["servers"] if n != base), base

    def of(self, *prefixes):
        return {n: r for n, r in self.rows.items() if any(n.startswith(p) for p in prefixes)}

    def main_metric(self, row):
        if row["kind"] != "mem":
            return MAIN[row["kind"]]
        trials = next(iter(row["trials"].values()))
        return next(m for m in ("worst", "bytes", "ratio") if m in trials)

    def compared(self, row, metric=None):
        """(ours, theirs, {median, min, max} of the paired ratios), medians; None for a server that is not there."""
        metric = metric or self.main_metric(row)
        ours, base = (row["trials"].get(n, {}).get(metric) for n in self.names(row))
        ratio = paired_ratio(ours, base) if ours and base else None
        middle = lambda v: statistics.median(v) if v else None
        return middle(ours), middle(base), ratio

    def misses(self, row):
        """Why a row misses what is asked of it, or nothing."""
        ours, theirs, ratio = self.compared(row)
        if row["kind"] in ("cpu", "p1", "open"):
            if ratio and ratio["median"] > row["budget"]:
                return f"{ratio['median']:.2f} of {self.names(row)[1]}'s, budget {row['budget']:.2f}"
        elif row["kind"] == "persist":
            for metric, most in row["budget"].items():
                value = self.compared(row, metric)[0]
                if value is not None and value > most:
                    return f"{metric[:-2]} {value:.3g} s, budget {most:g} s"
        elif ours is not None and ours > row["budget"]:
            return f"{number(ours)}, budget {row['budget']:g}"
        if theirs is not None and ratio["median"] > 1 and row["kind"] not in ("bgsave",):
            return f"behind: {ratio['median']:.2f}"
        return ""


def number(x):
    if x is None:
        return "-"
    if x >= 1e6:
        return f"{x / 1e6:,.1f} M"
    return f"{x:,.0f}" if x >= 1000 else f"{x:.3g}" if x < 100 else f"{x:.0f}"


def nanoseconds(x):
    return f"{x / 1e6:,.1f} ms" if x is not None and x >= 1e6 else number(x)


def ratio_cell(ratio, bold=False):
    if ratio is None:
        return "-"
    text = f"{ratio['median']:.2f}"
    text = f"**{text}**" if bold else text
    if ratio["max"] - ratio["min"] > 0.005:
        text += f" ({ratio['min']:.2f} to {ratio['max']:.2f})"
    return text


def grid(head, rows):
    return [f"| {' | '.join(head)} |", "|---|" + "--:|" * (len(head) - 1)] + [f"| {' | '.join(r)} |" for r in rows]


def caption(result, rows, what):
    """The line under a table: how and where it was measured."""
    words = []
    for i in dict.fromkeys(r["run"] for r in rows.values()):
        run = result.runs[i]
        m, servers = run["machine"], run["servers"]
        versions = ", ".join(f"{n} {s['version']}" for n, s in servers.items())
        scale = "" if run["options"]["scale"] == 1 else f" **at scale {run['options']['scale']}**"
        trials = max(len(v) for r in rows.values() if r["run"] == i for t in r["trials"].values() for v in t.values())
        words.append(f"{trials} trial{'s' * (trials > 1)}, {m['cpu']}, {m['cpus']} CPUs, Linux {m['kernel'].partition('-')[0]}, "
                     f"{versions}, {m['date'][:10]}{scale}")
    foreign = max((max(v) for r in rows.values() for t in r["trials"].values() for k, v in t.items() if k == "foreign"),
                  default=0)
    if foreign >= 0.2:
        words.append(f"other work took up to {foreign:.1f} CPUs")
    return ["", f"*{what}{'; '.join(words)}.*"]


# ---- tables -------------------------------------------------------------------------------------


def ratio_table(result, rows, unit, metric=None):
    """A line each: theirs, ours, ratio with spread, what was asked."""
    show = nanoseconds if unit.startswith("ns") else number
    lines = []
    for name, row in rows.items():
        ours, theirs, ratio = result.compared(row, metric)
        missed = ratio is not None and ratio["median"] > row["budget"]
        lines.append([row["title"], show(theirs), f"**{show(ours)}**", ratio_cell(ratio, missed),
                      f"{row['budget']:.2f}" + (", missed" if missed else "")])
    head = [unit, *reversed(result.names(next(iter(rows.values())))), "ratio", "at most"]
    return grid(head, lines)


def memory_table(result, rows):
    lines = []
    for name, row in rows.items():
        ours, theirs, ratio = result.compared(row)
        missed = ours is not None and ours > row["budget"]
        size, both = "", lambda metric: " / ".join(number(v) for v in reversed(result.compared(row, metric)[:2]))
        if "curve" in row:
            begin = next(iter(row["curve"].values()))[0][0]
            size = f", worst size from {number_of(begin)} to {number_of(row['entries'])}"
        lines.append([row["title"] + size, number(theirs), f"**{number(ours)}**", both("best") if size else "",
                      ratio_cell(ratio), f"{row['budget']:g}" + (", missed" if missed else ""),
                      both("peak_ratio") if "/" not in row["title"] and "idle" not in row["title"] else ""])
    base, ours = reversed(result.names(next(iter(rows.values()))))
    return grid(["bytes each", base, ours, "best size", "ratio", "at most", "peak / end"], lines)


def scores_table(result, rows):
    """The same command on distinct and on equal scores, a line a command."""
    lines = []
    kinds = ("double", "integer", "equal")
    by_command = {}
    for name, row in rows.items():
        command, _, kind = name.rpartition(".")[2].rpartition("_")
        by_command.setdefault(command, {})[kind] = row
    for command, of in by_command.items():
        if not all(k in of for k in kinds):
            continue
        cells = [result.compared(of[k]) for k in kinds]
        lines.append([of["double"]["title"].replace(", double scores", "")]
                     + [f"{number(theirs)} / **{number(ours)}** ({r['median']:.2f})" if r else number(ours)
                        for ours, theirs, r in cells]
                     + [f"{cells[2][0] / cells[0][0]:.2f}"])
    base, ours = reversed(result.names(next(iter(rows.values()))))
    return grid([f"ns, {base} / {ours}", "double scores", "integer scores", "all equal", f"{ours}: equal / double"], lines)


def growth_table(result, rows):
    lines = []
    for row in rows.values():
        for name in reversed(result.names(row)):
            found = row["recurring"].get(name)
            if found:
                rounds = f" ({row['rounds']} rounds)" if row["rounds"] != GROWTH_ROUNDS else ""
                q = dict(map(tuple, found["quantiles_us"]))
                worst = ", ".join(f"{us / 1000:.2f} at {number_of(at)}" for at, us in found["worst"][:3])
                lines.append([f"{row['title']}, to {number_of(row['entries'])}{rounds}", name]
                             + [number(q[x]) for x in (0.5, 0.999, 0.9999, 1.0)]
                             + [worst, number(statistics.median(row["trials"][name]["max_us"]))])
    out = grid(["growing", "server", "p50", "p99.9", "p99.99", "worst", "the worst, ms", "worst of one round"], lines)
    return [out[0], "|---|---|--:|--:|--:|--:|---|--:|", *out[2:]]


def persist_table(result, rows):
    lines = []
    for row in rows.values():
        for metric, title in (("save_s", "SAVE"), ("save_cpu_s", "its CPU time"), ("start_s", "start with that file"),
                              ("start_cpu_s", "its CPU time")):
            ours, theirs, ratio = result.compared(row, metric)
            most = row["budget"].get(metric)
            what = f"{number_of(row['entries'])} {row['title']}: {title}"
            lines.append([what, number(theirs), f"**{number(ours)}**", ratio_cell(ratio),
                          "" if most is None else f"{most:g}" + (", missed" if ours > most else "")])
    base, ours = reversed(result.names(next(iter(rows.values()))))
    return grid(["seconds", base, ours, "ratio", "at most"], lines)


def bgsave_table(result, rows):
    lines = []
    for metric, title in (("p50_us", "median, us"), ("p999_us", "99.9 %, us"), ("max_us", "worst, us"),
                          ("answered_ms", "BGSAVE answered, ms"), ("fork_ms", "of it the fork, ms"), ("save_s", "the save, s"),
                          ("copied_mb", "copied, MB"), ("peak_mb", "peak: resident and copied, MB"),
                          ("huge_before_mb", "on transparent huge pages before, MB"), ("huge_after_mb", "and after, MB")):
        if "huge" in metric and not any(sum(t["huge_before_mb"]) for r in rows.values() for t in r["trials"].values()):
            continue
        cells = []
        for row in rows.values():
            for name in reversed(result.names(row)):
                v = row["trials"][name][metric]
                cells.append(f"{number(statistics.median(v))} ({number(min(v))} to {number(max(v))})")
        lines.append([title, *cells])
    head = [f"{name}, {row['title']}" for row in rows.values() for name in reversed(result.names(row))]
    return grid(["while it saves", *head], lines)


def number_of(n):
    return f"{n / 1e6:g} M" if n >= 1_000_000 else f"{n:,}"


def ratios_of(kind):
    return lambda result, rows: ratio_table(result, rows, "99.9 %, us" if kind == "open" else "ns of server CPU")


HOW = {"cpu": "16 connections, pipeline 50; ", "p1": "50 connections, pipeline 1; ",
       "open": "50 connections, single requests at random times, at the same rate to both; "}
TABLES = {  # name: (what its rows begin with, what makes it, what is said below it)
    "memory": ("mem.", memory_table, ""),
    "scores": ("cpu.scores.", scores_table, HOW["cpu"]),
    "p1": ("p1.", ratios_of("p1"), HOW["p1"]),
    "open": ("open.", ratios_of("open"), HOW["open"]),
    "growth": ("grow.", growth_table, "microseconds of a batch of 32 inserts, or of one; what recurs in every round, of three "
               "where nothing else is said; "),
    "persist": ("persist.", persist_table, "wall time; "),
    "bgsave": ("bgsave.", bgsave_table, "median (least to most); "),
}


def selected(result, name):
    """(rows, what makes the table, what is said below it) of one in TABLES, or of KIND FAMILY... [SIZE]: cpu hash string 8m."""
    if name in TABLES:
        prefix, make, what = TABLES[name]
        return result.of(prefix), make, what
    kind, *words = name.split()
    families, sizes = [w for w in words if not SIZE.fullmatch(w)], [w for w in words if SIZE.fullmatch(w)]
    if kind not in HOW or not families:
        raise BenchError(f"no table is called '{name}'", EXIT_USAGE)
    rows = result.of(*(f"{kind}.{f}." for f in families))
    return {n: r for n, r in rows.items() if not sizes or n.rpartition(".")[2] in sizes}, ratios_of(kind), HOW[kind]


def table(result, name):
    """The lines of one table; None when nothing of it was measured."""
    rows, make, what = selected(result, name)
    if not rows:
        return None
    rates = sorted({f"{r['rate']:,} a second; " for r in rows.values() if "rate" in r})
    titled = {n: {**r, "title": r["title"] + sized(n, r)} for n, r in rows.items()}
    return make(result, titled) + caption(result, rows, what + "".join(rates))


def sized(name, row):
    """How many entries, for rows that --entries decides about."""
    return f", {number_of(row['entries'])} entries" if row["kind"] in HOW and SIZE.fullmatch(name.rpartition(".")[2]) else ""


def fill_page(result, text):
    """The page with its tables anew; (text, names of tables that nothing was measured for)."""
    left = []

    def replace(m):
        lines = table(result, m[2])
        if lines is None:
            left.append(m[2])
            return m[0]
        return m[1] + "\n".join(lines) + "\n" + m[3]

    return MARKER.sub(replace, text), left


def all_tables(result):
    out = []
    families = dict.fromkeys((r["family"], n.rpartition(".")[2] if SIZE.fullmatch(n.rpartition(".")[2]) else "")
                             for n, r in result.rows.items() if r["kind"] == "cpu")
    names = ["memory"] + [f"cpu {f} {size}".strip() for f, size in families if f != "scores"]
    for name in names + ["scores", "p1", "open", "growth", "persist", "bgsave"]:
        lines = table(result, name)
        if lines:
            out += [f"## {name}", "", *lines, ""]
    missed = [f"- {n}: {why}" for n, r in result.rows.items() if (why := result.misses(r))]
    return "\n".join(out + ["## Missed", "", *(missed or ["nothing"])])


# ---- plots --------------------------------------------------------------------------------------


def plots(folder, result):
    """Draws what was measured; the names of the files."""
    made = []

    def draw(name, call, *args, **more):
        call(f"{folder}/{name}.svg", *args, **more)
        made.append(name + ".svg")

    for kind in ("cpu", "p1"):
        rows = result.of(kind + ".")
        for family in dict.fromkeys(r["family"] for r in rows.values()):
            of = {n: r for n, r in rows.items() if r["family"] == family}
            draw(f"{kind}-{family}", plot.bars, f"server CPU, {HOW[kind][:-2]}", "ns an operation",
                 [n.split(".", 2)[2] for n in of], figures(result, of, "cpu_ns"), log=True)
        if rows:
            ours, base = result.names(next(iter(rows.values())))
            ratios = [result.compared(r)[2] for r in rows.values()]
            draw(kind, plot.bars, f"server CPU, {HOW[kind][:-2]}: share of {base}'s", "ratio",
                 [n.partition(".")[2] for n in rows],
                 {ours: [(q["median"], q["min"], q["max"]) if q else None for q in ratios]}, line=1)
    sizes = {n: r for n, r in result.of("mem.").items() if "peak" in next(iter(r["trials"].values()))}
    if sizes:
        draw("memory", plot.bars, "memory, worst size", "bytes each", [n[4:] for n in sizes], figures(result, sizes, "worst"),
             log=True)
    for name, row in result.of("open.").items():
        series = {n: middle_quantiles(row["quantiles"][n]) for n in reversed(result.names(row)) if n in row["quantiles"]}
        draw("latency-" + name, plot.tail_curve, f"{row['title']}: latency at {row['rate']:,} a second", series)
    for name, row in result.of("grow.").items():
        series = {n: row["recurring"][n] for n in reversed(result.names(row)) if n in row["recurring"]}
        if not series:
            continue
        draw("tail-" + name, plot.tail_curve, f"growing: {row['title']}, recurring latency of a batch of {row['batch']}",
             {n: f["quantiles_us"] for n, f in series.items()})
        draw("stalls-" + name, plot.curves, f"growing: {row['title']}, worst recurring batch of {row['batch']}", "entries",
             "microseconds", {n: f["curve"] for n, f in series.items()}, logy=True)
    for name, row in result.of("mem.").items():
        if "curve" in row:
            draw("curve-" + name, plot.curves, f"{row['title']}: bytes each", "entries", "bytes", row["curve"])
    return made


def figures(result, rows, metric):
    """What plot.bars wants: for each server (median, least, greatest) of each row."""
    names = dict.fromkeys(n for r in rows.values() for n in reversed(result.names(r)))
    spread_of = lambda v: (statistics.median(v), min(v), max(v)) if v else None
    return {n: [spread_of(r["trials"].get(n, {}).get(metric)) for r in rows.values()] for n in names}


def middle_quantiles(trials):
    """The median over trials of each place of a distribution."""
    return [(at[0][0], statistics.median(v for _, v in at)) for at in zip(*trials)]
