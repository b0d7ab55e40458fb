# SPDX-License-Identifier: BSD-3-Clause
"""What the huge-page benchmark shows: figures for each workload, a table, a paragraph that reads it, plots."""

import os
import statistics

from . import plot
from .arms import HUGE_ENOUGH, Arm, least_share
from .stats import LUCK, agrees, paired, pooled_user_ns, relative_spread, spread
from .system import machine_line, mib

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
            figures["p99_rate"] = {**spread([r["rate"] for r in mine]),
                                   "delta": paired([r["rate"] for r in mine], base),
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


def judge(what, delta, better, trials, arm):
    """One clause: which way a figure went and whether the trials agree on it."""
    word = "more" if delta["median"] > 0 else "less"
    text = f"{abs(delta['median']):.1%} {word} {what} with {arm}"
    if trials < 3:
        return f"{text}, but {trials} trial(s) cannot tell that from noise"
    if delta["min"] <= 0 <= delta["max"]:
        return f"no difference in {what} with {arm} beyond the noise ({delta['min']:+.1%} to {delta['max']:+.1%})"
    if abs(delta["median"]) < LUCK:
        return f"{text}, but two equal servers can differ by as much"
    return f"{text}, in every one of {trials} trials ({'better' if delta['median'] * better > 0 else 'worse'})"


def user_delta(base, other):
    """(difference of user time, its error) between two arms."""
    if not base["user_ns"]:
        return 0.0, 1.0
    return other["user_ns"] / base["user_ns"] - 1, (base["user_error"] ** 2 + other["user_error"] ** 2) ** 0.5


def user_clause(c, result):
    """How much of the user time the arena's page walks were, and how much the index's."""
    base, names = c["arms"][c["base"]], list(c["arms"])
    parts = []
    for name in names[1:]:
        arm = Arm(name)
        d, error = user_delta(base, c["arms"][name])
        if abs(d) <= 2 * error:
            parts.append(f"{name}: no difference in user time beyond its sampling error (2 x {error:.1%})")
            continue
        text = f"{name}: {d:+.1%} user time (+- {error:.1%})"
        alone = c["arms"].get(arm.base)
        if arm.index and alone and arm.base != c["base"]:
            a, arena_error = user_delta(base, alone)
            both = (error ** 2 + arena_error ** 2) ** 0.5
            if abs(d - a) > 2 * both and d < 0:
                text += f", of which the arena {a:+.1%} and the index {d - a:+.1%}"
        parts.append(text)
    return "; ".join(parts)


def coverage_clause(c, result, dataset):
    words = []
    for r in (r for r in result["rounds"] if r["dataset"] == dataset):
        words = []
        for name, got in r["obtained"].items():
            arm = Arm(name)
            if arm.huge and name in c["arms"]:
                asked = [("arena", arm.base != "plain"), ("index", arm.index)]
                shares = [f"{k} {got[k + '_share']:.0%}" for k, yes in asked
                          if yes and got[k + "_share"] is not None]
                words.append(f"{name} {', '.join(shares) or 'nothing to cover'}")
    return "; ".join(words)


def reading(c, result):
    """What may honestly be read from one block of the table, as sentences."""
    from .workloads import WORKLOADS
    base, trials, others = c["arms"][c["base"]], c["trials"], list(c["arms"])[1:]
    lines = []
    if others:
        best = max(others, key=lambda n: -c["arms"][n]["cpu"]["delta"]["median"])
        lines.append(judge("ops/s", c["arms"][best]["ops"]["delta"], +1, trials, best).capitalize() + "; "
                     + judge("server CPU an operation", c["arms"][best]["cpu"]["delta"], -1, trials, best) + ".")
    lines.append(f"Of {base['cpu']['median']:,.0f} ns of server CPU an operation with {c['base']}, "
                 f"{base['kernel_share']:.0%} were the kernel's, which huge pages do not touch: no arm can save more "
                 f"than the other {1 - base['kernel_share']:.0%}.")
    if others:
        lines.append("Bound to memory by: " + user_clause(c, result) + ".")
        lines.append("On huge pages were: " + coverage_clause(c, result, WORKLOADS[c["workload"]].dataset) + ".")
    lines.append(f"Spread of ops/s between trials: {max(a['ops']['spread'] for a in c['arms'].values()):.0%}.")
    limited = [n for n, a in c["arms"].items() if a["client_share"] > 0.9 and a["server_share"] < 0.95]
    if limited:
        lines.append(f"The client was the limit with {', '.join(limited)}: ops/s understates the difference, CPU an "
                     "operation does not.")
    else:
        lines.append(f"The client was not the limit (server {base['server_share']:.0%} of a CPU, client "
                     f"{base['client_share']:.0%}).")
    if any(a.get("p99_rate", {}).get("client_was_limit") for a in c["arms"].values()):
        lines.append("At the highest rates the client was late itself: the server could have held more.")
    foreign = max(a["foreign_cores"] for a in c["arms"].values())
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


def memory_block(result, dataset):
    rounds = [r for r in result["rounds"] if r["dataset"] == dataset]
    last, arms = rounds[-1], [a for a in result["arms"] if a in rounds[-1]["memory"]]
    base = last["memory"][arms[0]]["true_resident_bytes"]
    rows = []
    for name in arms:
        m, pte = last["memory"][name], last["pte"][name]
        load = statistics.median(r["load"][name]["seconds"] for r in rounds)
        taken = ", ".join(f"{n} x {mib(int(p))}" for p, n in last["pool_pages_taken"][name].items() if n)
        rows.append([name, mib(m["vmrss_bytes"]), mib(m["hugetlb_bytes"]), mib(m["thp_bytes"]),
                     mib(m["true_resident_bytes"]), f"{m['true_resident_bytes'] / base - 1:+.1%}",
                     f"{m['true_resident_bytes'] / last['count']:.1f}", f"{pte['p95_bytes'] / 1024:,.0f}",
                     f"{load:.1f}", f"{last['load'][name]['cost']['minor_faults']:,}", taken or "-"])
    head = ["", "VmRSS", "HugetlbPages", "AnonHuge", "true resident", "delta", "B each", "VmPTE p95 KiB", "load s",
            "load faults", "pool pages taken"]
    lines = ["", f"{dataset}: {last['count']:,} elements, values of {last['value_bytes']} bytes "
                 f"(true resident = VmRSS + HugetlbPages)"] + grid(head, rows)
    return lines + [f"  file cache (Cached): {mib(last['cached_before'])} before, {mib(last['cached'])} with all loaded"]


def trial_block(c, p99_us):
    rows = []
    for name, a in c["arms"].items():
        first = name == c["base"]
        d, error = user_delta(c["arms"][c["base"]], a)
        row = [name, f"{a['ops']['median']:,.0f}", "" if first else change(a["ops"]["delta"]),
               f"{a['cpu']['median']:,.0f}", "" if first else change(a["cpu"]["delta"]),
               f"{a['user_ns']:,.0f}", "" if first else f"{d:+.1%} +-{error:.1%}",
               *(f"{a[k]['median']:,.0f}" for k in ("p50", "p99", "p999")),
               f"{a['server_share']:.0%}/{a['client_share']:.0%}"]
        if p99_us:
            rate = a.get("p99_rate")
            row += [f"{rate['median']:,.0f}" if rate else "-", change(rate["delta"]) if rate and not first else ""]
        rows.append(row)
    head = ["", "ops/s", "", "CPU ns/op", "", "user ns", "", "p50 us", "p99", "p99.9", "srv/cli CPU"]
    if p99_us:
        head += [f"rate p99<={p99_us}us", ""]
    lines = ["", f"{c['workload']}, pipeline {c['pipeline']}, {c['connections']} connections   (medians of "
                 f"{c['trials']} trials; difference to {c['base']} by trial: median [min .. max]; latency of a batch)"]
    return lines + grid(head, rows) + ["  => " + line for line in c["reading"]]


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
        lines = [f"At least {share:.0%} of what each arm asked for is on huge pages."]
    for r in result["rounds"][-1:]:
        plain = r["memory"].get("plain")
        if plain and plain["thp_bytes"] > plain["true_resident_bytes"] / 10:
            lines.append("The plain server is not on 4 KB pages: the kernel gave it transparent huge pages.")
    lines += [f"Left out: {name}: {reason}." for name, reason in result["skipped"].items()]
    return lines


def kernel_block(result):
    lines = [""]
    if result["dtlb"] == "counted":
        rows = [[f"{c['workload']} P{c['pipeline']}"] + [f"{a['dtlb_misses_per_op']:.2f}" for a in c["arms"].values()]
                for c in result["summary"]]
        lines += ["dTLB load misses an operation"] + grid(["", *result["arms"]], rows)
    else:
        lines.append(f"dTLB load misses: not counted ({result['dtlb']})")
    pressed = {arm: {} for arm in result["arms"]}
    for c in result["summary"]:
        for arm, a in c["arms"].items():
            for k, v in a["pressure_us"].items():
                pressed[arm][k] = pressed[arm].get(k, 0) + v
    keys = sorted({k for p in pressed.values() for k in p})
    if keys:
        rows = [[arm] + [f"{p.get(k, 0) / 1000:,.0f}" for k in keys] for arm, p in pressed.items()]
        lines += ["pressure stalls of the whole machine during trials, ms (PSI)"] + grid(["", *keys], rows)
    else:
        lines.append("pressure stalls: this kernel has no PSI (/proc/pressure)")
    return lines


def table(args, result):
    lines = ["", machine_line(result["machine"]),
             f"{args.trials} trials of {args.seconds:g} s on {args.rounds} set{'s' * (args.rounds > 1)} of servers; "
             f"client: {result['client']}"] + headline(result)
    for dataset in dict.fromkeys(r["dataset"] for r in result["rounds"]):
        lines += memory_block(result, dataset)
    for c in result["summary"]:
        lines += trial_block(c, args.p99_us)
    return "\n".join(lines + kernel_block(result))


# ---- plots --------------------------------------------------------------------------------------


def plots(folder, result):
    """Files written, by name."""
    groups = [f"{c['workload']} P{c['pipeline']}" for c in result["summary"]]
    arms, made = result["arms"], []

    def bars(name, title, label, get):
        series = {arm: [get(c["arms"][arm]) for c in result["summary"]] for arm in arms[1:]}
        plot.bars(os.path.join(folder, name), title, label, groups, series)
        made.append(name)

    percent = lambda d: [100 * d[k] for k in ("median", "min", "max")]
    if len(arms) > 1:
        bars("ops.svg", f"operations a second against {arms[0]}", "% more", lambda a: percent(a["ops"]["delta"]))
        bars("cpu.svg", f"server CPU an operation against {arms[0]}", "% more",
             lambda a: percent(a["cpu"]["delta"]))
        user = {arm: [] for arm in arms[1:]}
        for c in result["summary"]:
            for arm in arms[1:]:
                d, error = user_delta(c["arms"][c["base"]], c["arms"][arm])
                user[arm].append([100 * d, 100 * (d - error), 100 * (d + error)])
        plot.bars(os.path.join(folder, "user.svg"), f"of it in user space, against {arms[0]}", "% more", groups, user)
        made.append("user.svg")
        if any("p99_rate" in c["arms"][arms[1]] for c in result["summary"]):
            bars("p99_rate.svg", f"highest rate with p99 in bounds, against {arms[0]}", "% more",
                 lambda a: percent(a["p99_rate"]["delta"]) if "p99_rate" in a else None)
    last = {r["dataset"]: r for r in result["rounds"]}
    memory = {arm: [[r["pte"][arm]["p95_bytes"] / 1024] * 3 if arm in r["pte"] else None for r in last.values()]
              for arm in arms}
    plot.bars(os.path.join(folder, "vmpte.svg"), "page tables (VmPTE), 95th percentile through the run", "KiB",
              list(last), memory)
    return made + ["vmpte.svg"]
