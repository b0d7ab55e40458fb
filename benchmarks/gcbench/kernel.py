# SPDX-License-Identifier: BSD-3-Clause
"""What the kernel pays: page tables through the run, pressure, page faults, and TLB misses where they can be counted."""

import ctypes
import errno
import os
import platform
import struct
import threading
import time

from .stats import quantile
from .system import page_faults, pressure, read_kb_fields


class Sampler:
    """VmPTE of processes, ten times a second, from start to stop."""

    def __init__(self, servers, interval=0.1):
        self.servers, self.interval = servers, interval
        self.samples = {s.name: [] for s in servers}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.began = time.monotonic()
        self.thread.start()

    def run(self):
        while not self.over.wait(self.interval):
            for s in self.servers:
                try:
                    pte = read_kb_fields(f"/proc/{s.pid}/status", ("VmPTE",))["VmPTE"]
                except OSError:
                    continue
                self.samples[s.name].append((round(time.monotonic() - self.began, 2), pte))

    def stop(self):
        """{name: {"p95_bytes", "max_bytes", "samples", "series": [[s, bytes], ...]}}, series where it changes."""
        self.over.set()
        self.thread.join()
        out = {}
        for name, samples in self.samples.items():
            values = [v for _, v in samples]
            changes = [list(s) for i, s in enumerate(samples)
                       if i in (0, len(samples) - 1) or s[1] != samples[i - 1][1]]
            out[name] = {"p95_bytes": quantile(values, 0.95), "max_bytes": max(values, default=0),
                         "samples": len(values), "series": changes[:400]}
        return out


class Cost:
    """Differences over one piece of work on one server: faults, pressure, dTLB misses."""

    def __init__(self, pid, misses):
        self.pid, self.misses = pid, misses
        self.faults, self.pressure = page_faults(pid), pressure()
        self.counted = misses.read(pid) if misses else None

    def since(self):
        minor, major = (now - then for now, then in zip(page_faults(self.pid), self.faults))
        out = {"minor_faults": minor, "major_faults": major,
               "pressure": {k: v - self.pressure[k] for k, v in pressure().items() if k in self.pressure}}
        if self.misses and self.counted is not None:
            out["dtlb_load_misses"] = self.misses.read(self.pid) - self.counted
        return out


PERF_SYSCALL = {"x86_64": 298, "aarch64": 241}
PERF_TYPE_HW_CACHE = 3
DTLB_READ_MISS = 3 | (0 << 8) | (1 << 16)
WHY = {errno.ENOENT: "this machine, as a virtual one often, has no such counter",
       errno.EACCES: "not allowed: sysctl kernel.perf_event_paranoid", errno.EPERM: "not allowed",
       errno.ENOSYS: "the kernel was built without perf events"}


class DtlbMisses:
    """dTLB-load-misses of servers' main threads, by perf_event_open. `reason` says why there are none."""

    def __init__(self):
        self.fds, self.reason = {}, None
        fd = self.open(os.getpid())
        if fd is not None:
            os.close(fd)

    def open(self, pid):
        number = PERF_SYSCALL.get(platform.machine())
        if number is None:
            self.reason = f"not known how on {platform.machine()}"
            return None
        attr = bytearray(128)
        struct.pack_into("IIQ", attr, 0, PERF_TYPE_HW_CACHE, len(attr), DTLB_READ_MISS)
        libc = ctypes.CDLL(None, use_errno=True)
        buffer = (ctypes.c_char * len(attr)).from_buffer(attr)
        fd = libc.syscall(number, buffer, pid, -1, -1, 0)
        if fd < 0:
            code = ctypes.get_errno()
            self.reason = WHY.get(code, os.strerror(code))
            return None
        return fd

    def read(self, pid):
        if self.reason:
            return None
        if pid not in self.fds:
            self.fds[pid] = self.open(pid)
        fd = self.fds[pid]
        return struct.unpack("Q", os.read(fd, 8))[0] if fd is not None else None
