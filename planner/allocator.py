"""Memory that arrays gave back is kept for the next ones: a search makes and drops thousands of arrays of one size.

By default the C library hands large blocks back to the system at once, and every new array then pays for fresh pages: a
third of a search. Only glibc knows these settings; elsewhere nothing happens.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Final

TRIM_THRESHOLD: Final = -1
TOP_PAD: Final = -2
MMAP_THRESHOLD: Final = -3
"""Numbers of `mallopt`'s parameters (malloc.h)."""

KEPT_BYTES: Final = 256 << 20
"""Most free memory that is kept."""

LARGE_BYTES: Final = 32 << 20
"""Blocks from here on come from the system directly and go back to it (the most that glibc takes)."""


@cache
def keep_freed_memory() -> bool:
    """Ask the C library to keep freed memory, once a process; returns whether it does."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    asked = ((MMAP_THRESHOLD, LARGE_BYTES), (TRIM_THRESHOLD, KEPT_BYTES), (TOP_PAD, 16 << 20))
    return all(mallopt(*pair) == 1 for pair in asked)
