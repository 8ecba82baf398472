"""Is there room on a disk? Asked before a store writes: both engines need room of their own to sort what they have."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from scrapy_ubi.frontier.store import StoreFull

MIB = 1 << 20


def check_room(path: Path, reserve: int, coming: int) -> None:
    """Raises `StoreFull` when `coming` bytes more on the disk of `path` would leave less than `reserve`; OSError."""
    free = _free(path)
    if free < reserve + coming:
        raise StoreFull(
            f"The disk of {path} is full ({free // MIB} MB free, {(reserve + coming) // MIB + 1} needed): make room, "
            "and the crawl goes on."
        )


def _free(path: Path) -> int:
    """Bytes that this user may still write."""
    if hasattr(os, "statvfs"):  # not on Windows
        disk = os.statvfs(path)
        return disk.f_bavail * disk.f_frsize
    return shutil.disk_usage(path).free
