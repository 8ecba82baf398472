"""The files of a keeper in an agent's directory: how they are called, deleted, and set aside when they are damaged."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from scrapy_ubi.frontier.store import StoreDamaged

STORE, SEEN = "store", "seen"


def delete(path: Path) -> None:
    """Delete what a keeper has written in that directory."""
    shutil.rmtree(path / STORE, ignore_errors=True)
    for file in path.glob(f"{SEEN}*"):
        file.unlink(missing_ok=True)


def set_aside(path: Path, error: StoreDamaged) -> str:
    """Move a damaged store out of the way; the sentence about it."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = _free_name(path, stamp)
    aside.mkdir()
    for name in _present(path, (STORE, SEEN)):
        (path / name).rename(aside / name)
    return (
        f"{error.file} is damaged ({error.reason}): the agent's store was moved to {aside}. Started again, the agent "
        "goes on without it: what other agents hold copies of is not lost, and a crawl of one agent begins anew."
    )


def _present(path: Path, names: Iterable[str]) -> list[str]:
    return [name for name in names if (path / name).exists()]


def _free_name(path: Path, stamp: str) -> Path:
    aside, number = path / f"damaged-{stamp}", 1
    while aside.exists():
        number += 1
        aside = path / f"damaged-{stamp}-{number}"
    return aside
