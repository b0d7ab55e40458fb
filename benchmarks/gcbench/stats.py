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
    """How values differ from base, trial by trial: {median, min, max} of v / b - 1."""
    return spread([v / b - 1 for v, b in zip(values, base) if b] or [0.0])


def paired_ratio(values, base):
    return spread([v / b for v, b in zip(values, base) if b] or [0.0])


def agrees(delta, trials):
    """Every one of at least three trials says the same sign, by more than luck."""
    return trials >= 3 and not delta["min"] <= 0 <= delta["max"] and abs(delta["median"]) >= LUCK


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
    return cpu * share / ops, error


def recurring(rounds):
    """The least of each place over rounds of the same length: what recurs is the server's, the rest was luck."""
    return [min(at) for at in zip(*rounds)]


class RateSearch:
    """The highest offered rate at which a bound holds, by trial: next_rate, then report, until done.

    Doubling away from the start and halving the gap then, to within `precision`. A rate counts as too high when it
    fails twice in a row, since other work on the machine can fail a good one; as good when it holds once."""

    def __init__(self, start, precision=0.04, most=14):
        self.rate, self.precision, self.left = start, precision, most
        self.low, self.high, self.failed_once = 0.0, None, False

    @property
    def done(self):
        return self.left <= 0 or (self.high is not None and self.low and self.high / self.low - 1 <= self.precision)

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
            self.rate = self.high / 2
        else:
            self.rate = (self.low * self.high) ** 0.5
