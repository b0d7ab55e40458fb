# SPDX-License-Identifier: BSD-3-Clause
"""Plots as SVG, drawn by gnuplot."""

import os
import shutil
import subprocess

from .system import BenchError, EXIT_USAGE

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")


def must_have_gnuplot(folder):
    if not shutil.which("gnuplot"):
        raise BenchError("--plot needs gnuplot: install Debian's package gnuplot-nox", EXIT_USAGE)
    os.makedirs(folder, exist_ok=True)


def quote(text):
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def draw(path, lines, width=900, height=420):
    script = [f"set terminal svg size {width},{height} noenhanced font 'sans,11' background 'white'",
              f"set output {quote(path)}", "set grid ytics lc rgb '#dddddd'", "set key outside right top",
              *(f"set linetype {i + 1} lc rgb '{c}' lw 1.6" for i, c in enumerate(COLOURS)), *lines]
    run = subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, capture_output=True)
    if run.returncode != 0:
        raise BenchError(f"gnuplot failed on {path}: {run.stderr.strip()}")


def bars(path, title, label, groups, series, log=False, line=None, near=False):
    """Clustered bars. series: {name: [(value, low, high) or None, one for each group]}; line: a height to mark;
    near: let whiskers that reach far beyond all the values be cut off."""
    lines = [f"set title {quote(title)}", f"set ylabel {quote(label)}", "set style data histogram",
             "set style histogram errorbars gap 1 lw 1", "set style fill solid 0.85 border -1", "set boxwidth 0.9",
             "set xtics rotate by -35 font ',10' nomirror", "set bars 0.4",
             "set logscale y" if log else "set yrange [*<0:*]"]
    values = [c[0] for cells in series.values() for c in cells if c is not None]
    if near and values:
        lines.append("set yrange [%g:%g]" % (2 * min(0, *values) - 2, 2 * max(0, *values) + 2))
    lines.append("$data << EOD")
    for i, group in enumerate(groups):
        cells = [series[name][i] for name in series]
        lines.append(" ".join([quote(group)] + ["? ? ?" if c is None else "%g %g %g" % tuple(c) for c in cells]))
    lines += ["EOD", "set datafile missing '?'"]
    plots = [f"$data using {2 + 3 * i}:{3 + 3 * i}:{4 + 3 * i}:xtic(1) title {quote(name)} lt {i + 1}"
             for i, name in enumerate(series)]
    if line is not None:
        plots.append(f"{line} with lines dt 2 lc rgb '#333333' title {quote(f'{line:g}')}")
    draw(path, lines + ["plot " + ", ".join(plots)], width=max(700, 120 + 26 * len(groups) * (len(series) + 1)))


def curves(path, title, xlabel, ylabel, series, logx=False, logy=False, xtics=None):
    """Lines. series: {name: [(x, y), ...]}; xtics: [(text, x), ...] instead of gnuplot's own."""
    lines = [f"set title {quote(title)}", f"set xlabel {quote(xlabel)}", f"set ylabel {quote(ylabel)}"]
    lines += ["set logscale x"] * logx + ["set logscale y"] * logy
    if xtics:
        lines.append("set xtics (" + ", ".join(f"{quote(t)} {x:g}" for t, x in xtics) + ")")
    for i, points in enumerate(series.values()):
        lines += [f"$d{i} << EOD", *("%g %g" % (x, y) for x, y in points), "EOD"]
    draw(path, lines + ["plot " + ", ".join(f"$d{i} with lines lt {i + 1} title {quote(name)}"
                                            for i, name in enumerate(series))])


def tail_curve(path, title, series):
    """Latency against percentile, the axis stretched towards 100 %. series: {name: [(fraction, us), ...]}."""
    stretch = {name: [(1 / (1 - q), v) for q, v in points if 0.0 < q < 1] for name, points in series.items()}
    tics = [("50", 2), ("90", 10), ("99", 100), ("99.9", 1e3), ("99.99", 1e4), ("99.999", 1e5)]
    curves(path, title, "percentile", "microseconds", stretch, logx=True, logy=True, xtics=tics)
