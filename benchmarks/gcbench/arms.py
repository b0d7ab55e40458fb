# SPDX-License-Identifier: BSD-3-Clause
"""The arms of the huge-page benchmark: what each asks of the server, whether this machine can give it, and what it got."""

from .system import MIB, default_huge_page, mib, pool_command, pools, resident, thp_mode

GIB = 1 << 30
HUGE_ENOUGH = 0.90  # of the arena: below it the run is called partial
HUGE_NONE = 0.10    # of the arena: below it there is nothing to compare

BASES = {"plain": [], "control": [], "thp": ["--arena-thp"],
         "huge2m": ["--arena-hugetlb", "--arena-hugetlb-size", "2m"],
         "huge1g": ["--arena-hugetlb", "--arena-hugetlb-size", "1g"]}
DEFAULT = "plain,huge2m,huge2m+index"
NAMES = [base + more for base in BASES for more in ("", "+index") if base + more != "control+index"]
ALL = [name for name in NAMES if name != "control"]  # control: a second plain server, what equal ones differ by


class Arm:
    def __init__(self, name):
        self.name = name
        self.base, _, index = name.partition("+")
        self.index = bool(index)
        self.options = list(BASES[self.base])
        if self.index:
            self.options += ["--index-hugepages", "thp" if self.base == "thp" else "hugetlb"]

    @property
    def page(self):
        """Bytes of the reserved pages that the arena takes; 0 for none."""
        return {"huge2m": 2 * MIB, "huge1g": GIB}.get(self.base, 0)

    @property
    def arena_huge(self):
        return bool(BASES[self.base])

    @property
    def huge(self):
        return self.arena_huge or self.index

    def pages_needed(self, arena_bytes, index_bytes):
        """{page size: count} taken from the pools, with room for the chunk being filled and for headers."""
        need = {}
        if self.page:
            count = -(-arena_bytes // self.page)
            need[self.page] = count + (4 + count // 50 if self.page < GIB else 0)
        if self.index and self.base != "thp":
            page = default_huge_page()
            count = -(-index_bytes // page)
            need[page] = need.get(page, 0) + count + 4 + count // 10
        return need

    def impossible(self):
        """Why this machine cannot run the arm at all, or None."""
        have = pools()
        for page in self.pages_needed(1, 1):
            if page not in have:
                return f"this kernel has no huge pages of {mib(page)} (it has {', '.join(map(mib, have)) or 'none'})"
            if have[page]["available"] == 0:
                return f"the pool of {mib(page)} pages is empty; fill it with {pool_command(page, 'N')}"
        if "thp" in self.base and thp_mode() in (None, "never"):
            return "transparent huge pages are off: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
        return None


def number_in(info, name):
    text = info.get(name, "").strip()
    return int(text) if text.isdigit() else 0


def obtained(arm, server):
    """After loading: how much of arena and index is on huge pages and why the rest is not."""
    info, held = server.info(), resident(server.pid)
    arena, index = number_in(info, "arena_bytes"), number_in(info, "index_bytes")
    share = lambda part, whole: min(1.0, part / whole) if whole else None
    out = {"arena_bytes": arena, "arena_huge_bytes": number_in(info, "arena_huge_bytes"),
           "index_bytes": index, "index_huge_bytes": number_in(info, "index_huge_bytes"),
           "fallback_bytes": number_in(info, "arena_fallback_bytes") + number_in(info, "index_fallback_bytes"),
           "reason": info.get("arena_fallback_reason", "").strip() or info.get("index_fallback_reason", "").strip(),
           "kernel_huge_bytes": held["hugetlb_bytes"] + held["thp_bytes"]}
    # The server says what it was given; for transparent pages only the kernel knows what it did.
    if arm.base == "thp":
        out["arena_share"] = share(min(out["arena_huge_bytes"], held["thp_bytes"]), arena)
    else:
        out["arena_share"] = share(out["arena_huge_bytes"], arena) if arm.page else 0.0
    out["index_share"] = share(out["index_huge_bytes"], index) if arm.index else 0.0
    return out


def least_share(arm, got):
    """The smaller of the shares that the arm asked for; None when the data has neither."""
    asked = [got["arena_share"]] if arm.arena_huge else []
    asked += [got["index_share"]] if arm.index else []
    known = [s for s in asked if s is not None]
    return min(known) if known else None
