# SPDX-License-Identifier: BSD-3-Clause
"""What the machine and its processes say of themselves: /proc, pools of huge pages, CPU time; words
on the terminal; and the one error that ends a run."""

import datetime
import errno
import glob
import os
import platform
import sys

MIB = 1 << 20

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
EXIT_NO_HUGE, EXIT_PARTIAL, EXIT_INTERRUPTED = 4, 5, 130


class BenchError(Exception):
    """Ends the run; the text is for the user."""

    def __init__(self, text, code=EXIT_FAILED):
        super().__init__(text)
        self.code = code


class Progress:
    """One line that changes on a terminal, plain lines elsewhere."""

    def __init__(self):
        self.live = sys.stderr.isatty()
        self.shown = False

    def step(self, text):
        if self.live:
            sys.stderr.write("\r\033[K" + text)
            self.shown = True
            sys.stderr.flush()

    def line(self, text=""):
        if self.shown:
            sys.stderr.write("\r\033[K")
            self.shown = False
        print(text, file=sys.stderr, flush=True)


say = Progress()


def mib(count):
    return f"{count / MIB:,.1f} MiB"


def read_kb_fields(path, names):
    """{name: bytes} of the lines "Name:   123 kB" in a /proc file; a missing line is 0."""
    found = dict.fromkeys(names, 0)
    with open(path) as f:
        for line in f:
            name, _, rest = line.partition(":")
            if name in found:
                words = rest.split()
                found[name] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return found


def read_number(path):
    try:
        with open(path) as f:
            return int(f.read())
    except (OSError, ValueError):
        return 0


def pools():
    """{bytes of a page: {total, available}} of every hugetlb size the kernel has."""
    found = {}
    for path in glob.glob("/sys/kernel/mm/hugepages/hugepages-*kB"):
        page = int(path.rpartition("-")[2][:-2]) * 1024
        read = lambda name: read_number(os.path.join(path, name))
        free = read("free_hugepages") - read("resv_hugepages")
        found[page] = {"total": read("nr_hugepages"), "available": max(0, free), "free": read("free_hugepages")}
    return found


def pool_command(page, count):
    """What to type to have count pages of this size."""
    if page == default_huge_page():
        return f"sysctl -w vm.nr_hugepages={count}"
    return f"echo {count} > /sys/kernel/mm/hugepages/hugepages-{page // 1024}kB/nr_hugepages"


def default_huge_page():
    return read_kb_fields("/proc/meminfo", ("Hugepagesize",))["Hugepagesize"] or 2 * MIB


def thp_mode():
    """always, madvise or never; None without transparent huge pages."""
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as f:
            return f.read().partition("[")[2].partition("]")[0]
    except OSError:
        return None


def memory_state():
    m = read_kb_fields("/proc/meminfo", ("MemTotal", "MemAvailable", "Cached"))
    return {"total": m["MemTotal"], "available": m["MemAvailable"], "cached": m["Cached"]}


def resident(pid):
    """What the process occupies. VmRSS leaves out hugetlb pages, so both are added up."""
    m = read_kb_fields(f"/proc/{pid}/status", ("VmRSS", "HugetlbPages", "VmPTE"))
    try:
        thp = read_kb_fields(f"/proc/{pid}/smaps_rollup", ("AnonHugePages",))["AnonHugePages"]
    except OSError:
        thp = 0
    return {"vmrss_bytes": m["VmRSS"], "hugetlb_bytes": m["HugetlbPages"], "pte_bytes": m["VmPTE"],
            "thp_bytes": thp, "true_resident_bytes": m["VmRSS"] + m["HugetlbPages"]}


def process_cpu(pid):
    """(ns on a CPU of all threads, user ns, system ns); the last two are sampled by the kernel."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    user, system = int(fields[11]) * tick, int(fields[12]) * tick
    total = 0
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/schedstat") as f:
                total += int(f.read().split()[0])
    except OSError:
        total = user + system
    return total, user, system


def busy_seconds():
    """CPU seconds of the whole machine that were not idle, steal left out."""
    with open("/proc/stat") as f:
        t = [int(x) for x in f.readline().split()[1:8]]
    return (t[0] + t[1] + t[2] + t[5] + t[6]) / os.sysconf("SC_CLK_TCK")


def cpu_model():
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def page_faults(pid):
    """(minor, major) page faults of the process so far."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return int(fields[7]), int(fields[9])


def pressure():
    """{"cpu_some_us": N, "memory_some_us": N, ...} of /proc/pressure; empty when the kernel has none."""
    found = {}
    for what in ("cpu", "memory"):
        try:
            with open(f"/proc/pressure/{what}") as f:
                for line in f:
                    kind, *fields = line.split()
                    found[f"{what}_{kind}_us"] = int(fields[-1].partition("=")[2])
        except OSError as e:
            if e.errno not in (errno.ENOENT, errno.EOPNOTSUPP):
                raise
    return found


def machine():
    """What a reader needs beside every figure."""
    return {"cpu": cpu_model(), "cpus": os.cpu_count(), "kernel": platform.release(), "arch": platform.machine(),
            "thp": thp_mode(), "memory": memory_state(), "pools": {str(k): v for k, v in pools().items()},
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


def machine_line(m):
    return (f"{m['cpu']}, {m['cpus']} CPUs, {m['memory']['total'] / (1 << 30):.0f} GiB, Linux "
            f"{m['kernel'].partition('-')[0]}, transparent huge pages: {m['thp'] or 'none'}")


def choose_cpus(server_cpu=None, client_cpu=None):
    """(server's CPU, client's CPU); (None, None) when there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    for name, cpu in (("--server-cpu", server_cpu), ("--client-cpu", client_cpu)):
        if cpu is not None and cpu not in allowed:
            raise BenchError(f"{name} {cpu}: this process may run on {allowed}", EXIT_USAGE)
    if len(allowed) < 2:
        say.line("WARNING: one CPU only, client and servers share it: ops/s says little, CPU per op still counts")
        return None, None
    server = server_cpu if server_cpu is not None else next(c for c in allowed if c != client_cpu)
    return server, client_cpu if client_cpu is not None else next(c for c in allowed if c != server)


def must_be_writable(option, path):
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise BenchError(f"{option} {path}: cannot write there", EXIT_USAGE)
