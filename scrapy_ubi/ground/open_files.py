"""How many files this process may open, connections among them.

A process may have 1,024 open by default, and as a rule may raise that by itself. Linux and macOS; Windows has no such
bound. Only what was asked for by a setting that the user has set raises it (UBI_FAST, UBI_CONCURRENCY), never lowers
it, and programs that it starts inherit it.
"""

from __future__ import annotations

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]


UNBOUNDED = 1 << 20  # what "as many as you like" is taken for


def may_open() -> int:
    """How many."""
    if not hasattr(resource, "getrlimit"):
        return UNBOUNDED
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNBOUNDED if files == resource.RLIM_INFINITY else files


def ask_for(files: int) -> int:
    """Have this process allowed so many, as far as the system lets it; how many it may open from now on."""
    if not hasattr(resource, "getrlimit"):
        return UNBOUNDED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= files:
        return may_open()
    wanted = files if hard == resource.RLIM_INFINITY else min(files, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError):  # macOS has a bound of its own
        pass
    return may_open()
