# SPDX-License-Identifier: BSD-3-Clause
"""What the huge-page benchmark shows: figures for each workload, a table, a paragraph that reads it, plots."""

import os
import statistics

from . import plot, walk
from .arms import HUGE_ENOUGH, Arm, least_share
from .stats import LUCK, paired, pooled_user_ns, relative_spread, spread, verdict
from .system import machine_line, mib
from .workloads import WORKLOADS

RATE_RESOLUTION = 0.05  # stats.RateSearch's
SIGMAS = 3  # of sampled user time: a page has many cells, so that two would be passed by chance in some
BUSY = 0.9  # of a CPU: below it nobody was the limit

METRICS = (
    ("ops", "ops/s", lambda r: r["ops_per_sec"]),
    ("cpu", "server CPU ns/op", lambda r: r["server"]["cpu_ns_per_op"]),
    ("p50", "p50 us", lambda r: r["batch_latency_us"]["p50"]),
    ("p99", "p99 us", lambda r: r["batch_latency_us"]["p99"]),
    ("p999", "p99.9 us", lambda r: r["batch_latency_us"]["p999"]),
)


# ---- figures ------------------------------------------------------------------------------------


def cell(rows, arms):
    """One workload at one pipeline: medians of every arm, paired differences to the first, user time, shares."""
    rows = [r for r in rows if all(a in r["arms"] for a in arms)]
    first = rows[0]
    out = {"workload": first["workload"], "pipeline": first["pipeline"], "connections": first["connections"],
           "trials": len(rows), "arms": {}, "base": arms[0]}
    for arm in arms:
        reports = [r["arms"][arm] for r in rows]
        base = [r["arms"][arms[0]] for r in rows]
        figures = {}
        for name, _, get in METRICS:
            values = [get(r) for r in reports]
            figures[name] = {**spread(values), "spread": relative_spread(values),
                             "delta": paired(values, [get(b) for b in base])}
        figures["user_ns"], figures["user_error"] = pooled_user_ns(reports)
        figures["kernel_share"] = 1 - figures["user_ns"] / statistics.mean(METRICS[1][2](r) for r in reports)
        for side in ("server", "client"):
            figures[side + "_share"] = statistics.median(r[side]["cpu_share"] for r in reports)
        figures["client_ns"] = statistics.median(r["client"]["cpu_ns_per_op"] for r in reports)
        figures["faults_per_op"] = sum(r["cost"]["minor_faults"] for r in reports) / sum(r["ops"] for r in reports)
        figures["foreign_cores"] = max(r["foreign_cores"] for r in reports)
        pressed = {}
        for r in reports:
            for k, v in r["cost"]["pressure"].items():
                pressed[k] = pressed.get(k, 0) + v
        figures["pressure_us"] = pressed
        misses = [r["cost"]["dtlb_load_misses"] / r["ops"] for r in reports if "dtlb_load_misses" in r["cost"]]
        figures["dtlb_misses_per_op"] = statistics.median(misses) if misses else None
        out["arms"][arm] = figures
    return out


def add_p99(out, rates):
    for arm, figures in out["arms"].items():
        mine = [r for r in rates if (r["workload"], r["pipeline"], r["arm"]) ==
                (out["workload"], out["pipeline"], arm)]
        base = [r["rate"] for r in rates if (r["workload"], r["pipeline"], r["arm"]) ==
                (out["workload"], out["pipeline"], out["base"])]
        if mine:
            figures["p99_rate"] = {**spread([r["rate"] for r in mine]), "floor": mine[0]["floor"],
                                   "searches": len(mine), "delta": paired([r["rate"] for r in mine], base),
                                   "resolved": all(r["resolved"] for r in mine),
                                   "client_was_limit": any(r["client_was_limit"] for r in mine)}


def summarize(result):
    """Adds result["summary"], one entry for each workload and pipeline."""
    arms = result["arms"]
    cells = dict.fromkeys((r["workload"], r["pipeline"]) for r in result["trials"])
    result["summary"] = []
    for c in cells:
        out = cell([r for r in result["trials"] if (r["workload"], r["pipeline"]) == c], arms)
        add_p99(out, result["p99"])
        out["reading"] = reading(out, result)
        result["summary"].append(out)


def worst_share(result):
    """(share, arm, reason) of the least that an arm got of what it asked for, over all rounds."""
    worst = (1.0, None, "")
    for r in result["rounds"]:
        for name, got in r["obtained"].items():
            share = least_share(Arm(name), got)
            if share is not None and share < worst[0]:
                worst = (share, name, got["reason"])
    return worst


# ---- words --------------------------------------------------------------------------------------


def luck(c):
    """By how much two equal servers differ: what is known, or more when a second plain server shows it."""
    control = c["arms"].get("control")
    return max(LUCK, abs(control["cpu"]["delta"]["median"]) if control and c["base"] == "plain" else 0.0)


def others(c):
    return [n for n in c["arms"] if n != c["base"]]


def tested(c):
    """The arms of which something may be claimed."""
    return [n for n in others(c) if n != "control"]


def verdicts(c, metric):
    """{arm: what its difference in a metric may be called}."""
    return {n: verdict(c["arms"][n][metric]["delta"], c["trials"], luck(c)) for n in others(c)}


def range_of(delta):
    return f"{delta['min']:+.1%} to {delta['max']:+.1%}"


def counted(number, word):
    return f"{number} {word}{'s' * (number != 1)}"


def differences(c, metric, what):
    """One sentence: which arms differ in a metric, by how much, and which cannot be told apart."""
    said, found = {}, verdicts(c, metric)
    for name in tested(c):
        said.setdefault(found[name], []).append((name, c["arms"][name][metric]["delta"]))
    if "few" in said:
        return (f"{what}: " + ", ".join(f"{d['median']:+.1%} with {n}" for n, d in said["few"])
                + f"; {counted(c['trials'], 'trial')} cannot tell that from noise.")
    parts = []
    if "sure" in said:
        word = lambda d: f"{abs(d['median']):.1%} {'more' if d['median'] > 0 else 'less'}"
        parts.append(", ".join(f"{word(d)} with {n} ({range_of(d)})"
                               for n, d in sorted(said["sure"], key=lambda x: x[1]["median"])))
    if "unsure" in said:
        parts.append("the same sign in every trial, but too scattered to be sure of it without more trials, with "
                     + ", ".join(f"{n} ({range_of(d)})" for n, d in said["unsure"]))
    if "luck" in said:
        parts.append("no more than two equal servers can differ by with "
                     + ", ".join(f"{n} ({d['median']:+.1%})" for n, d in said["luck"]))
    if "noise" in said:
        parts.append("no difference beyond the noise with "
                     + ", ".join(f"{n} ({range_of(d)})" for n, d in said["noise"]))
    return f"{what}: " + "; ".join(parts) + "."


def control_clause(c):
    d, found = c["arms"]["control"]["cpu"]["delta"], verdicts(c, "cpu")["control"]
    return (f"The second plain server took {d['median']:+.1%} of server CPU an operation ({range_of(d)}) with nothing "
            "different but its place in memory" + (", within the noise." if found in ("noise", "unsure") else "."))


def user_delta(base, other):
    """(difference of user time between two arms, its standard error)."""
    if not base["user_ns"]:
        return 0.0, 1.0
    ratio = other["user_ns"] / base["user_ns"]
    scale = ratio if ratio > 0.2 else 1.0  # nearly no samples are no measurement of nearly no time
    return ratio - 1, scale * (base["user_error"] ** 2 + other["user_error"] ** 2) ** 0.5


def user_clause(c):
    """How much of the user time the arena's page walks were, and how much the index's."""
    base, sure, unsure = c["arms"][c["base"]], [], []
    for name in tested(c):
        arm = Arm(name)
        d, error = user_delta(base, c["arms"][name])
        if abs(d) <= max(SIGMAS * error, luck(c)):
            unsure.append(f"{name} ({d:+.0%} +- {SIGMAS * error:.0%})")
            continue
        text = f"{d:+.1%} (+- {SIGMAS * error:.1%}) with {name}"
        alone = c["arms"].get(arm.base)
        if arm.index and alone and arm.arena_huge:
            a, arena_error = user_delta(base, alone)
            if abs(d - a) > SIGMAS * (error ** 2 + arena_error ** 2) ** 0.5 and d < 0:
                text += f", the arena's part of it {a:+.1%} and the index's {d - a:+.1%}"
        sure.append(text)
    parts = ["; ".join(sure)] * bool(sure)
    if unsure:
        parts.append("no difference beyond the error of sampling it, or beyond luck, with " + ", ".join(unsure))
    return "User time an operation, which holds the page walks for the data: " + "; ".join(parts) + "."


def p99_clause(c, bound):
    rate = lambda a: f"{a['median']:,.0f}" if a["median"] else f"not even {a['floor']:,.0f}"
    words = []
    for name, a in c["arms"].items():
        found = a.get("p99_rate")
        if found:
            d = found["delta"]
            apart = name != c["base"] and (d["min"] > RATE_RESOLUTION or d["max"] < -RATE_RESOLUTION)
            words.append(f"{name} {rate(found)}" + (f" ({d['median']:+.0%})" if apart else "")
                         + ("" if found["resolved"] else " (search not finished)"))
    searches = max(a["p99_rate"]["searches"] for a in c["arms"].values() if "p99_rate" in a)
    return (f"Highest rate a second with p99 <= {bound} us: " + ", ".join(words) + f"; {searches} "
            f"search{'es' * (searches > 1)} to {RATE_RESOLUTION:.0%}, smaller differences are none.")


def coverage_clause(c, result):
    """What share of arena and index each arm had on huge pages in the last round."""
    dataset = WORKLOADS[c["workload"]].dataset
    obtained = [r for r in result["rounds"] if r["dataset"] == dataset][-1]["obtained"]
    words = []
    for arm in (Arm(n) for n in c["arms"]):
        if arm.huge and arm.name in obtained:
            got = obtained[arm.name]
            shares = [f"{k} {got[k + '_share']:.0%}" for k, asked in (("arena", arm.arena_huge), ("index", arm.index))
                      if asked and got[k + "_share"] is not None]
            words.append(f"{arm.name} {', '.join(shares) or 'nothing to cover'}")
    return "On huge pages were: " + "; ".join(words) + "."


def reading(c, result):
    """What may honestly be read from one block of the table, as sentences."""
    base, lines = c["arms"][c["base"]], []
    if tested(c):
        lines.append(differences(c, "cpu", "Server CPU an operation"))
        if all(busy(a) for a in c["arms"].values()):
            lines.append(differences(c, "ops", "Operations a second"))
    if "control" in others(c):
        lines.append(control_clause(c))
    lines.append(f"Of {base['cpu']['median']:,.0f} ns of server CPU an operation with {c['base']}, about "
                 f"{base['kernel_share']:.0%} were the kernel's (network, mostly), where huge pages of the data do "
                 f"little; they act on the other {1 - base['kernel_share']:.0%}.")
    if tested(c):
        lines.append(user_clause(c))
        lines.append(coverage_clause(c, result))
    if "p99_rate" in base:
        lines.append(p99_clause(c, result["options"]["p99_us"]))
    lines.append(f"Spread between trials: {max(a['ops']['spread'] for a in c['arms'].values()):.0%} of ops/s, "
                 f"{max(a['cpu']['spread'] for a in c['arms'].values()):.0%} of CPU an operation.")
    return lines + limits(c)


def busy(a):
    """One of the two sides was the limit, so that ops/s says something."""
    return max(a["server_share"], a["client_share"]) > BUSY


def limits(c):
    """What held the figures back besides the pages."""
    base, lines = c["arms"][c["base"]], []
    limited = [n for n, a in c["arms"].items() if a["client_share"] > BUSY and a["server_share"] < 0.95]
    share = f"server {base['server_share']:.0%} of a CPU, client {base['client_share']:.0%}"
    foreign = max(a["foreign_cores"] for a in c["arms"].values())
    if limited:
        lines.append(f"The client was the limit with {', '.join(limited)}: ops/s understates the difference, CPU an "
                     "operation does not.")
    elif not all(busy(a) for a in c["arms"].values()):
        lines.append(f"Neither side was busy all the time ({share}): nothing is read from ops/s, CPU an operation "
                     "still counts.")
    else:
        lines.append(f"The client was not the limit ({share}).")
    if any(a.get("p99_rate", {}).get("client_was_limit") for a in c["arms"].values()):
        lines.append("At the highest rates the client was late itself: the server could have held more.")
    if foreign > 0.2:
        lines.append(f"Other work took up to {foreign:.1f} CPUs meanwhile: on a quieter machine the spread would be "
                     "smaller.")
    return lines


# ---- the table ----------------------------------------------------------------------------------


def grid(head, rows):
    """Rows of cells, the first column to the left and the others to the right, as wide as they must be."""
    widths = [max(len(str(r[i])) for r in [head, *rows]) for i in range(len(head))]
    line = lambda r: "  " + "  ".join(str(v).ljust(w) if i == 0 else str(v).rjust(w)
                                      for i, (v, w) in enumerate(zip(r, widths)))
    return [line(head).rstrip()] + [line(r).rstrip() for r in rows]


def change(delta):
    return f"{delta['median']:+.1%} [{delta['min']:+.1%} .. {delta['max']:+.1%}]"


def memory_rows(result, dataset):
    """(head, rows) of what each arm's server occupies."""
    rounds = [r for r in result["rounds"] if r["dataset"] == dataset]
    last, arms = rounds[-1], [a for a in result["arms"] if a in rounds[-1]["memory"]]
    base = last["memory"][arms[0]]["true_resident_bytes"]
    rows = []
    for name in arms:
        m, pte = last["memory"][name], last["pte"][name]
        load = statistics.median(r["load"][name]["seconds"] for r in rounds)
        taken = ", ".join(f"{n} x {mib(int(p))}" for p, n in last["pool_pages_taken"][name].items() if n > 0)
        rows.append([name, mib(m["vmrss_bytes"]), mib(m["hugetlb_bytes"]), mib(m["thp_bytes"]),
                     mib(m["true_resident_bytes"]), f"{m['true_resident_bytes'] / base - 1:+.1%}",
                     f"{m['true_resident_bytes'] / last['count']:.1f}", f"{pte['p95_bytes'] / 1024:,.0f}",
                     f"{load:.1f}", f"{last['load'][name]['cost']['minor_faults']:,}", taken or "-"])
    return ["", "VmRSS", "HugetlbPages", "AnonHuge", "true resident", "delta", "B each", "VmPTE p95 KiB", "load s",
            "load faults", "pool pages taken"], rows


def memory_title(result, dataset):
    last = [r for r in result["rounds"] if r["dataset"] == dataset][-1]
    return f"{dataset}: {last['count']:,} elements, values of {last['value_bytes']} bytes"


def cache_line(result, dataset):
    last = [r for r in result["rounds"] if r["dataset"] == dataset][-1]
    return f"file cache (Cached): {mib(last['cached_before'])} before, {mib(last['cached'])} with all loaded"


def trial_rows(c, p99_us):
    """(head, rows) of one workload at one pipeline."""
    rows = []
    for name, a in c["arms"].items():
        first = name == c["base"]
        d, error = user_delta(c["arms"][c["base"]], a)
        row = [name, f"{a['ops']['median']:,.0f}", "" if first else change(a["ops"]["delta"]),
               f"{a['cpu']['median']:,.0f}", "" if first else change(a["cpu"]["delta"]),
               f"{a['user_ns']:,.0f}", "" if first else f"{d:+.1%} +-{SIGMAS * error:.1%}",
               *(f"{a[k]['median']:,.0f}" for k in ("p50", "p99", "p999")),
               f"{a['server_share']:.0%}/{a['client_share']:.0%}"]
        if p99_us:
            rate = a.get("p99_rate")
            row += [f"{rate['median']:,.0f}" if rate else "-", change(rate["delta"]) if rate and not first else ""]
        rows.append(row)
    head = ["", "ops/s", "", "CPU ns/op", "", "user ns", "", "p50 us", "p99", "p99.9", "srv/cli CPU"]
    return head + [f"rate p99<={p99_us}us", ""] * bool(p99_us), rows


def trial_title(c):
    return f"{c['workload']}, pipeline {c['pipeline']}, {c['connections']} connections"


def overview_rows(result):
    """(head, rows): server CPU an operation against the first arm, all cells; a star where it is more than noise."""
    rows = []
    for c in result["summary"]:
        found = verdicts(c, "cpu")
        rows.append([f"{c['workload']} P{c['pipeline']}", f"{c['arms'][c['base']]['cpu']['median']:,.0f} ns"]
                    + [f"{c['arms'][n]['cpu']['delta']['median']:+.1%}{'*' if found[n] == 'sure' else ' '}"
                       for n in others(c)])
    return ["", result["arms"][0], *result["arms"][1:]], rows


OVERVIEW = ("Server CPU an operation (P50: pipeline 50), and how it differs (median over trials; * where trials agree, "
            "the 99 % interval leaves out 0 and it is more than equal servers differ by):")


def headline(result):
    share, name, reason = worst_share(result)
    huge = [a for a in result["arms"] if Arm(a).huge]
    if not huge or share < 0.1:
        lines = ["THIS IS NOT A HUGE-PAGE COMPARISON: "
                 + (f"{name} holds its data on ordinary pages ({reason or 'no reason given'})." if huge
                    else "no arm has huge pages.")]
    elif share < HUGE_ENOUGH:
        lines = [f"PARTIAL: {name} has only {share:.0%} of what it asked for on huge pages; the rest fell back "
                 f"({reason or 'no reason given'})."]
    else:
        much = "All" if share > 0.999 else f"At least {share:.0%}"
        lines = [f"{much} of what each arm asked for is on huge pages."]
    for r in result["rounds"][-1:]:
        plain = r["memory"].get("plain")
        if plain and plain["thp_bytes"] > plain["true_resident_bytes"] / 10:
            lines.append("The plain server is not on 4 KB pages: the kernel gave it transparent huge pages.")
    lines += [f"Left out: {name}: {reason}." for name, reason in result["skipped"].items()]
    return lines


def kernel_block(result):
    lines = [""]
    if result["dtlb"] == "counted":
        lines += ["dTLB load misses an operation"] + grid(*dtlb_rows(result))
    else:
        lines.append(f"dTLB load misses: not counted ({result['dtlb']})")
    head, rows = pressure_rows(result)
    if rows:
        lines += ["pressure stalls of the whole machine during trials, ms (PSI)"] + grid(head, rows)
    else:
        lines.append("pressure stalls: this kernel has no PSI (/proc/pressure)")
    return lines


def dtlb_rows(result):
    return ["", *result["arms"]], [
        [f"{c['workload']} P{c['pipeline']}"] + [f"{a['dtlb_misses_per_op']:.2f}" for a in c["arms"].values()]
        for c in result["summary"]]


def pressure_rows(result):
    pressed = {arm: {} for arm in result["arms"]}
    for c in result["summary"]:
        for arm, a in c["arms"].items():
            for k, v in a["pressure_us"].items():
                pressed[arm][k] = pressed[arm].get(k, 0) + v
    keys = sorted({k for p in pressed.values() for k in p})
    rows = [[arm] + [f"{p.get(k, 0) / 1000:,.0f}" for k in keys] for arm, p in pressed.items()]
    return ["", *(k.removesuffix("_us").replace("_", " ") for k in keys)], rows if keys else []


def what_ran(result):
    o = result["options"]
    return (f"{counted(o['trials'], 'trial')} of {o['seconds']:g} s on {counted(o['rounds'], 'set')} of servers"
            + (f", all with {' '.join(o['server_args'])}" if o["server_args"] else "")
            + f"; client: {result['client']}; {result['server']}")


def table(result):
    lines = ["", machine_line(result["machine"]), what_ran(result)] + headline(result)
    lines += ["", walk.title(result["walk"])]
    if "kinds" in result["walk"]:
        lines += grid(*walk.rows(result["walk"])) + ["  => " + walk.reading(result["walk"])]
    for dataset in dict.fromkeys(r["dataset"] for r in result["rounds"]):
        lines += ["", memory_title(result, dataset) + " (true resident = VmRSS + HugetlbPages)"]
        lines += grid(*memory_rows(result, dataset)) + ["  " + cache_line(result, dataset)]
    for c in result["summary"]:
        lines += ["", f"{trial_title(c)}   (medians of {counted(c['trials'], 'trial')}; difference to {c['base']} by trial: "
                      "median [min .. max]; latency of a batch)"]
        lines += grid(*trial_rows(c, result["options"]["p99_us"])) + ["  => " + line for line in c["reading"]]
    lines += kernel_block(result)
    if len(result["summary"]) > 1 and len(result["arms"]) > 1:
        lines += ["", OVERVIEW] + grid(*overview_rows(result))
    return "\n".join(lines)


# ---- plots --------------------------------------------------------------------------------------


def against(summary, arms, get):
    """What plot.bars wants of differences in percent: {arm: [(median, least, greatest), ...]}."""
    return {arm: [get(c, c["arms"][arm]) for c in summary] for arm in arms}


def paired_percent(metric):
    def get(_, arm):
        found = arm.get(metric)
        return [100 * found["delta"][k] for k in ("median", "min", "max")] if found else None
    return get


def user_percent(c, arm):
    d, error = user_delta(c["arms"][c["base"]], arm)
    return [100 * d, 100 * (d - SIGMAS * error), 100 * (d + SIGMAS * error)]


def plots(folder, result):
    """Files written, by name; one of each kind for a pipeline."""
    base, arms, made = result["arms"][0], result["arms"][1:], []

    def bars(name, *what, **how):
        plot.bars(os.path.join(folder, name + ".svg"), *what, **how)
        made.append(name + ".svg")

    for pipeline in dict.fromkeys(c["pipeline"] for c in result["summary"]):
        cells = [c for c in result["summary"] if c["pipeline"] == pipeline]
        kinds = [("cpu", "server CPU an operation", paired_percent("cpu")),
                 ("user", "user time an operation", user_percent),
                 ("ops", "operations a second", paired_percent("ops"))]
        if any("p99_rate" in a for c in cells for a in c["arms"].values()):
            kinds.append(("rate", f"highest rate with p99 <= {result['options']['p99_us']} us",
                          paired_percent("p99_rate")))
        for name, title, get in kinds if arms else []:
            bars(f"hugepages-{name}-p{pipeline}", f"{title}, pipeline {pipeline}: difference to {base}", "%",
                 [c["workload"] for c in cells], against(cells, arms, get), near=True)
    last = {r["dataset"]: r for r in result["rounds"]}
    memory = {arm: [[r["pte"][arm]["p95_bytes"] / 1024] * 3 if arm in r["pte"] else None for r in last.values()]
              for arm in result["arms"]}
    bars("hugepages-vmpte", "page tables (VmPTE), 95th percentile through the run", "KiB", list(last), memory)
    return made
