"""Is there address space for a store? Asked before it is opened: RocksDB ends the process (SIGABRT) where it gets none.

`ulimit -v`, and some batch systems, bound the addresses that a process may use, whether there is memory behind them or
not. Threads take most of them: a stack each, and the 64 MB that the C library sets aside for what a thread allocates.

Rules of this module:

* What is asked for is an estimate from above: what the process has now, all caches filled, the index of known URLs
  twice (it is made again beside the old one), and every thread of an agent.
* Where the system tells no limit, or not what is used, nothing is refused.
"""

from __future__ import annotations

from pathlib import Path

from scrapy_ubi.frontier.store import StoreError

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

MIB = 1 << 20
THREADS = 8  # RocksDB's two, two for the disk, mail, beats, the timeline, and one that comes and goes
ARENA = 64 * MIB  # glibc's HEAP_MAX_SIZE on 64 bits
STACK = 8 * MIB  # of a thread where the limit of stacks says nothing
STATUS = Path("/proc/self/status")


def check(memory: int, index: Path) -> None:
    """Raise `StoreError` when the limit of this process leaves no room for a store with caches of `memory` bytes and
    the index of known URLs in the file `index`."""
    if not hasattr(resource, "getrlimit"):
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = _used()
    if limit == resource.RLIM_INFINITY or used is None:
        return
    needed = used + memory + 2 * _size(index) + THREADS * (ARENA + _stack())
    if needed > limit:
        raise StoreError(
            f"This process may use {limit // MIB} MB of address space (ulimit -v), and {needed // MIB + 1} MB are "
            f"needed, {memory // MIB} of them for UBI_MEMORY_MB: start it with 'ulimit -v unlimited' or "
            f"'ulimit -v {(needed // MIB + 1) * 1024}'; a smaller UBI_MEMORY_MB needs so much less."
        )


def _used() -> int | None:
    """The bytes of addresses that this process has now, None where the system does not tell."""
    try:
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmSize:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _stack() -> int:
    size, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return STACK if size == resource.RLIM_INFINITY else size


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
