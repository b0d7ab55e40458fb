# SPDX-License-Identifier: BSD-3-Clause
"""What tlb_arena_benchmark.py and peers.py share. Standard library only; plots need gnuplot."""
