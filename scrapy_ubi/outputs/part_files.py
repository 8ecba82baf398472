"""The files of a crawl's outputs in an agent's directory: how they are called, cut to what counts, and kept aside.

Rules of this module:

* A *part* is what a store writes from one rotation to the next: its data files and an index, in `out/<store>/`. Names
  never meet: crawl, agent, time of the start to the millisecond, serial number.
* A file is `.open` while it is written, and loses that ending when it is *sealed*: from then on it is never touched.
* `out/crawl.json` says which crawl, agent and run the files belong to: two runs of one crawl are never mixed.
* What counts of a file is what the agent's store says (`Positions`): the length that it had in the last flush. At a
  start every file is cut to that and sealed. One that the store does not know has nothing that counts: it is deleted.
* A file that is shorter than its position has lost what pages are done with: the start is refused once, with a sentence
  that names it; it is kept as `.short`, and the next start goes on.
* Where the agent's store begins again, `out` is moved aside under the name `out-<time>`, whole.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from scrapy_ubi.errors import UbiDirectoryError

OUT, OPEN, SHORT, INDEX = "out", ".open", ".short", "idx"
RECORD = "crawl.json"
ASIDE = f"{OUT}-*"
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True, slots=True)
class Positions:
    """How long each file was (bytes) in a flush, by its path in `out` without `.open`. `final`: those that are not
    written any more, and are sealed, or will be."""

    files: Mapping[str, int] = field(default_factory=dict)
    final: frozenset[str] = frozenset()

    def text(self) -> bytes:
        """As the agent's store has it."""
        row = {"files": dict(self.files), "final": sorted(self.final)}
        return json.dumps(row, separators=(",", ":")).encode()

    @classmethod
    def read(cls, text: bytes) -> Positions:
        """Raises ValueError where that is no such row."""
        row = json.loads(text)
        if not isinstance(row, dict):
            raise ValueError("the positions of outputs are no object")
        if not isinstance(row.get("files"), dict) or not isinstance(row.get("final"), list):
            raise ValueError("the positions of outputs are no such row")
        files = row["files"]
        if not all(_is_inside(name) and type(size) is int and size >= 0 for name, size in files.items()):
            raise ValueError("the positions of outputs name no files")
        return cls(files, frozenset(str(name) for name in row["final"]))


def _is_inside(name: str) -> bool:
    return bool(name) and not name.startswith("/") and ".." not in name.split("/")


@dataclass(slots=True)
class Repair:
    """What a start has done to the files: how many bytes were cut off, of how many files; how many were deleted."""

    cut: int = 0
    files: int = 0
    deleted: int = 0


def stem(crawl: str, agent: str, started: float, serial: int) -> str:
    """The beginning of the names of a part; `started` is unix time."""
    whole = time.strftime("%Y%m%d%H%M%S", time.gmtime(started))
    name = f"{crawl}-{agent}-{whole}{int(started % 1 * 1000):03d}-{serial}"
    return _NOT_IN_NAME.sub("_", name)


def repair(out: Path, positions: Positions) -> Repair:
    """Cut every file to what counts, and seal it. Raises UbiDirectoryError where one has lost what counts, and OSError.

    It may be done again: what was done already stays as it is.
    """
    done = Repair()
    short = [name for name, size in positions.files.items() if _is_short(out, name, size, name in positions.final)]
    for name, size in positions.files.items():
        if name not in short:
            _cut(out, name, size, done)
    for path in sorted(out.rglob(f"*{OPEN}")):
        if path.relative_to(out).as_posix().removesuffix(OPEN) not in positions.files:
            path.unlink()
            done.deleted += 1
    for place in {(out / name).parent for name in positions.files}:
        if place.is_dir():
            sync_directory(place)  # the next flush does not name these files
    if short:
        raise UbiDirectoryError(_set_aside(out, short, positions))
    return done


def _is_short(out: Path, name: str, size: int, final: bool) -> bool:
    for path in (out / (name + OPEN), out / name):
        if path.exists():
            return path.stat().st_size < size
    if (out / (name + SHORT)).exists():
        return False  # the start was refused for it before
    return size > 0 and not final


def _cut(out: Path, name: str, size: int, done: Repair) -> None:
    opened, sealed = out / (name + OPEN), out / name
    path = opened if opened.exists() else sealed
    if not path.exists():
        return
    if (extra := path.stat().st_size - size) > 0:
        os.truncate(path, size)
        done.cut += extra
        done.files += 1
    if path is opened:
        opened.rename(sealed) if size else opened.unlink()


def _set_aside(out: Path, short: list[str], positions: Positions) -> str:
    names = []
    for name in short:
        for path in (out / (name + OPEN), out / name):
            if path.exists():
                names.append(f"{path} ({path.stat().st_size} bytes in place of {positions.files[name]})")
                path.rename(out / (name + SHORT))
                break
        else:
            names.append(f"{out / name} (missing)")
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / (name + SHORT)).touch()
    return (
        f"The outputs of pages that are done have lost their end: {', '.join(names)}. What is left is kept beside it "
        f"with the ending {SHORT}, and is collected. Started again, the agent goes on; the pages that are missing are "
        "fetched again only by a new crawl."
    )


def put_aside(agent_directory: Path) -> Path | None:
    """Move all outputs out of the way, for another crawl begins; where they are now, None where there were none.
    Raises OSError."""
    out = agent_directory / OUT
    if not any(path.is_file() for path in out.glob("*/**/*")):
        (out / RECORD).unlink(missing_ok=True)
        return None
    stamp, number = time.strftime("%Y%m%d-%H%M%S"), 1
    aside = agent_directory / f"{OUT}-{stamp}"
    while aside.exists():
        number += 1
        aside = agent_directory / f"{OUT}-{stamp}-{number}"
    out.rename(aside)
    return aside


def write_record(out: Path, record: Mapping[str, Any]) -> None:
    """Say whose files these are. Raises OSError."""
    beside = out / f"{RECORD}.new"
    with beside.open("w", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, out / RECORD)
    sync_directory(out)


def sync_directory(place: Path) -> None:
    """The names in a directory outlast a loss of power. Raises OSError."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows, where a directory cannot be opened
        return
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_record(out: Path) -> dict[str, Any]:
    """Whose files these are; empty where that cannot be read."""
    try:
        record = json.loads((out / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def outs(agent_directory: Path) -> Iterator[Path]:
    """The directories of outputs of an agent: those of its crawl, and those put aside."""
    for path in (agent_directory / OUT, *sorted(agent_directory.glob(ASIDE))):
        if path.is_dir():
            yield path


def open_part(path: Path) -> IO[bytes]:
    """Open a file of a part, which may be sealed meanwhile. Raises OSError."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        return path.with_name(path.name.removesuffix(OPEN)).open("rb")


def newest_first(files: Iterable[Path]) -> list[Path]:
    """These files by their last change; one that is sealed meanwhile is left out, and seen the next time. Raises
    OSError."""
    times: dict[Path, float] = {}
    for file in files:
        with suppress(FileNotFoundError):
            times[file] = file.stat().st_mtime
    return sorted(times, key=lambda file: (-times[file], str(file)))
