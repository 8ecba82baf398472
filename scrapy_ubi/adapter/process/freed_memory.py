"""Giving memory that was freed back to the system: glibc keeps most of what a large page had taken, in pieces.

Other C libraries than glibc have no such function (`malloc_trim`); nothing is done there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache


def give_back() -> None:
    """Some milliseconds for a hundred MB."""
    malloc_trim()(0)


@cache
def malloc_trim() -> Callable[[int], object]:
    """The function of the C library, or one that does nothing."""
    try:
        found: Callable[[int], object] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return lambda keep: None
    return found
