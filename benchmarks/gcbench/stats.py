# SPDX-License-Identifier: BSD-3-Clause
"""Pure arithmetic on figures: medians with their spread, paired differences, the search for the highest rate."""

import math
import os
import statistics

LUCK = 0.03  # two processes of the same program differed by up to so much, by where they lie in memory


def quantile(values, q):
    """The least value that at least a share q of all are not above; 0 without values."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(len(ranked) * q) - 1)] if ranked else 0


def spread(values):
    """{median, min, max} of a list."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def relative_spread(values):
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def paired(values, base):
    """How values differ from base, trial by trial: {median, min, max, low, high} of v / b - 1, the last two bounding
    the 99 % interval of the mean."""
    changes = [v / b - 1 for v, b in zip(values, base) if b] or [0.0]
    return spread(changes) | dict(zip(("low", "high"), interval(changes)))


# Student's t, 99.5 %, for 1, 2, 3, ... degrees of freedom; more than 15 are taken as 15. Not 97.5 %: one page holds
# dozens of differences, and one in twenty would be called by chance alone.
T = (63.66, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25, 3.17, 3.11, 3.05, 3.01, 2.98, 2.95)


def interval(values):
    """The 99 % confidence interval of the mean; without bounds for a single value."""
    if len(values) < 2:
        return -math.inf, math.inf
    middle = statistics.mean(values)
    reach = T[min(len(values) - 1, len(T)) - 1] * statistics.stdev(values) / math.sqrt(len(values))
    return middle - reach, middle + reach


def verdict(delta, trials, luck=LUCK):
    """What a paired difference may be called: "few" trials, "noise" when they disagree on the sign, "unsure" when the
    interval of the mean holds 0 all the same, "luck" when two equal servers could differ by as much, else "sure"."""
    if trials < 3:
        return "few"
    if delta["min"] <= 0 <= delta["max"]:
        return "noise"
    if delta["low"] <= 0 <= delta["high"]:
        return "unsure"
    return "luck" if abs(delta["median"]) < luck else "sure"


def paired_ratio(values, base):
    return spread([v / b for v, b in zip(values, base) if b] or [0.0])


def pooled_user_ns(reports):
    """(user ns per op over all trials, its relative error). The kernel samples user against system
    time at its ticks, so one short trial says little: k samples are uncertain by about 1/sqrt(k)."""
    tick = 1e9 / os.sysconf("SC_CLK_TCK")
    user = sum(r["server"]["user_accounted_ns"] for r in reports)
    both = user + sum(r["server"]["sys_accounted_ns"] for r in reports)
    cpu, ops = sum(r["server"]["cpu_ns"] for r in reports), sum(r["ops"] for r in reports)
    share = user / both if both else 0.0
    samples = both / tick
    error = ((1 - share) / (share * samples)) ** 0.5 if share and samples else 1.0
    return cpu * share / ops, max(error, 1 / max(samples, 1.0))


def recurring(rounds):
    """The least of each place over rounds of the same length: what recurs is the server's, the rest was luck."""
    return [min(at) for at in zip(*rounds)]


PROBE_BATCHES = 5000        # 50 beyond p99: what is called p99 lies between p98.7 and p99.3 (two sigma)
PROBE_SECONDS_MOST = 15.0   # a rate at which so many batches take longer is not searched
REACHED = 0.99              # of the requests offered must be answered by the end, or the server only fell behind


def probe_seconds(rate, pipeline, least):
    """How long a probe must be for its p99 to mean something; 10 % more, since arrivals are random."""
    return max(least, 1.1 * PROBE_BATCHES * pipeline / rate)


def slowest_rate(pipeline):
    return 1.1 * PROBE_BATCHES * pipeline / PROBE_SECONDS_MOST


def probe_failure(report, seconds, bound_us):
    """Why an open-loop run of `seconds` does not show that its rate is held within the bound; None when it does.

    loadgen sends all that falls due in `seconds` and then waits for the last reply: what that takes beyond one
    reply's bound is a queue, that is a rate that was not reached."""
    took = max(seconds, report["seconds"] - bound_us / 1e6)
    p99 = report["batch_latency_us"]["p99"]
    if report["overrun"]:
        return "given up, far behind"
    if seconds / took < REACHED:
        return f"only {seconds / took:.1%} of the rate reached"
    if report["batches"] < PROBE_BATCHES:
        return f"{report['batches']} batches are too few"
    return f"p99 {p99:,.0f} us" if p99 > bound_us else None


class RateSearch:
    """The highest offered rate at which a bound holds, by trial: next_rate, then report, until done.

    Up by half from the start, or down by half to no less than `floor`, then halving the gap until the lowest rate that
    failed is within `resolution` of the highest that held. A rate holds when one probe does; it is too high when two
    in a row fail, since other work on the machine can fail a good one."""

    def __init__(self, start, resolution=0.05, floor=1.0, most=24):
        self.floor, self.resolution, self.left = floor, resolution, most
        self.rate = max(start, floor)
        self.low, self.high, self.failed_once = 0.0, None, False

    @property
    def resolved(self):
        """The answer is known to the resolution: low, or nothing as low as the floor."""
        return self.high is not None and (self.high / self.low - 1 <= self.resolution if self.low
                                          else self.high <= self.floor)

    @property
    def done(self):
        return self.left <= 0 or self.resolved

    def next_rate(self):
        return self.rate

    def report(self, held):
        self.left -= 1
        if not held and not self.failed_once:
            self.failed_once = True
            return
        self.failed_once = False
        if held:
            self.low = self.rate
        else:
            self.high = self.rate
        if self.high is None:
            self.rate = self.low * 1.5
        elif not self.low:
            self.rate = max(self.floor, self.high / 2)
        else:
            self.rate = (self.low * self.high) ** 0.5
