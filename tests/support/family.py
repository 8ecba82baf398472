"""The processes that descend from one, on Linux."""

from __future__ import annotations

from pathlib import Path


def processes() -> list[tuple[int, int, str]]:
    """Of each living process: pid, parent, and start time, which tells it from a later one with the same pid."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # proc(5): the name, in parentheses, may hold anything; state is the first field behind it.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            if fields[0] != "Z":
                found.append((int(entry.name), int(fields[1]), fields[19]))
    return found


def descendants(ancestor: int) -> set[tuple[int, str]]:
    """Pid and start time of all processes below this one."""
    everybody, family, found = processes(), {ancestor}, set()
    grown = True
    while grown:
        born = {(pid, started) for pid, parent, started in everybody if parent in family and pid not in family}
        found |= born
        family |= {pid for pid, _ in born}
        grown = bool(born)
    return found
