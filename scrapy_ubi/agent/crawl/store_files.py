"""The files of the frontier in an agent's directory: how they are called, deleted, and set aside when they are
damaged."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from scrapy_ubi.frontier.store import StoreDamaged

STORE, SEEN = "store", "seen"
GONE = f"{STORE}.gone"  # a store that is being deleted
_WITHOUT = (
    "Started again, the agent goes on without it: what other agents hold copies of is not lost, and a crawl of one "
    "agent begins again."
)


def delete(path: Path) -> None:
    """Delete what a frontier has written in that directory. A process that is killed at it leaves all of the store, or
    nothing: with a part of its files it would be damaged. Raises `OSError`.
    """
    clean(path)
    for file in path.glob(f"{SEEN}*"):
        file.unlink(missing_ok=True)
    if (path / STORE).exists():
        (path / STORE).rename(path / GONE)
    clean(path)


def clean(path: Path) -> None:
    """Delete what is left of a store by who was killed while it was deleted."""
    shutil.rmtree(path / GONE, ignore_errors=True)


def set_aside(path: Path, error: StoreDamaged) -> str:
    """Move a damaged store out of the way, as far as it is there; the sentence about it."""
    what = f"{error.file} is damaged ({error.reason})"
    names = _present(path, (STORE, SEEN))
    if not names:
        return f"{what}, nothing is left of the agent's store: put it back. {_WITHOUT}"
    aside = _free_name(path, time.strftime("%Y%m%d-%H%M%S"))
    try:
        aside.mkdir()
        for name in names:
            (path / name).rename(aside / name)
    except OSError as refused:
        return (
            f"{what}, and the agent's store cannot be moved to {aside} ({refused.strerror or refused}): see that this "
            "user may write there, or set UBI_DIR to another directory."
        )
    return f"{what}: the agent's store was moved to {aside}. {_WITHOUT}"


def _present(path: Path, names: Iterable[str]) -> list[str]:
    return [name for name in names if (path / name).exists()]


def _free_name(path: Path, stamp: str) -> Path:
    aside, number = path / f"damaged-{stamp}", 1
    while aside.exists():
        number += 1
        aside = path / f"damaged-{stamp}-{number}"
    return aside
