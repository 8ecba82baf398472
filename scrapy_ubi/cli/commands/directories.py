"""The directories of agents that have stopped: where they are, and what can be asked of what lies in them.

Rules of this module:

* A directory is an agent's when `agent.json` is in it. Looked for are UBI_DIR or JOBDIR where these are set, else
  `.ubi/<crawl>` and the directories in it (`identity` makes no others), in the project's root and, where an older
  version has put them, in the working directory.
* A directory is opened under its lock: never beside a running agent, and no agent can start while it is open. Two
  commands take turns.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.process.agent_directory import BESIDE, COMMAND, holder, take_lock
from scrapy_ubi.agent.crawl.store_files import GONE, SEEN, STORE
from scrapy_ubi.agent.report.timeline import Timeline
from scrapy_ubi.agent.report.timeline_file import NEW, TIMELINE, read_timeline
from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.settings import home

RECORD = "agent.json"
# What an agent puts into its directory: whose it is, its frontier, what was set aside of it, its timeline; the lock
# goes last.
OURS = (RECORD, "agent.new", STORE, GONE, f"{SEEN}*", "damaged-*", TIMELINE, NEW, BESIDE, "lock")


@dataclass(frozen=True, slots=True)
class FoundDirectory:
    """The directory of an agent, and whose it says it is."""

    path: Path
    agent: str
    crawl: str

    def timeline(self, now: float) -> Timeline:
        """What is kept of it, at this time (unix s). Raises UbiDirectoryError."""
        try:
            return read_timeline(self.path, now)[0]
        except OSError as error:
            what = f"The timeline in {self.path} cannot be read"
            raise UbiDirectoryError(f"{what} ({error.strerror or error}).") from error


def find_directories(settings: BaseSettings, crawl: str | None) -> tuple[list[FoundDirectory], str]:
    """The directories here of the agents of a crawl (of any, where None), and where they were looked for."""
    given = settings.get("UBI_DIR") or settings.get("JOBDIR")
    if given:
        roots = [Path(str(given))]
    elif crawl is not None:
        roots = [place / crawl for place in home.homes()]
    else:
        roots = [path for place in home.homes() for path in _in(place) if path.is_dir()]
    looked_into = [path for root in roots for path in [root, *_in(root)]]
    # A directory in one that is given may be anybody's: the lost+found of a disk.
    paths = [path for path in looked_into if _is_agents(path, sure=path in roots or not given)]
    places = [read(path) for path in paths]
    looked = ", ".join(map(str, roots or home.homes()))
    return [place for place in places if crawl is None or place.crawl == crawl], looked


def named(paths: Sequence[str]) -> list[FoundDirectory]:
    """The directories at these paths, each once, however often it is named. Raises UbiDirectoryError."""
    once = {os.path.realpath(path): Path(path) for path in reversed(paths)}
    return [read(path) for path in reversed(once.values())]


def _in(path: Path) -> list[Path]:
    """What is in a directory; nothing where there is none. Raises UbiDirectoryError where it may not be read."""
    try:
        return sorted(path.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise UbiDirectoryError(f"The directory {path} cannot be read ({error.strerror or error}).") from error


def _is_agents(path: Path, sure: bool) -> bool:
    """Whether a directory is an agent's. Raises UbiDirectoryError where it may not be read and we are `sure` that it
    is one; else it is none.
    """
    try:
        return (path / RECORD).is_file()
    except OSError as error:
        if not sure:
            return False
        raise UbiDirectoryError(f"{path / RECORD} cannot be read ({error.strerror or error}).") from error


def read(path: Path) -> FoundDirectory:
    """Whose directory this is. Raises UbiDirectoryError when it is no agent's."""
    file = path / RECORD
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        agent, crawl = record["agent"], record["crawl"]
    except FileNotFoundError:
        raise UbiDirectoryError(f"{path} is no agent's directory: there is no {RECORD} in it.") from None
    except OSError as error:
        raise UbiDirectoryError(f"{file} cannot be read ({error.strerror or error}).") from error
    except (ValueError, TypeError, KeyError):
        raise UbiDirectoryError(f"{file} is damaged: it does not name an agent and a crawl.") from None
    if not isinstance(agent, str) or not isinstance(crawl, str):
        raise UbiDirectoryError(f"{file} is damaged: it does not name an agent and a crawl.")
    return FoundDirectory(path, agent, crawl)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a directory. Raises UbiDirectoryError when an agent runs in it, or it cannot be used."""
    try:
        lock = take_lock(path, COMMAND)
    except BlockingIOError:
        raise UbiDirectoryError(_in_use(path, holder(path))) from None
    except OSError as error:
        raise UbiDirectoryError(f"The directory {path} cannot be used ({error.strerror or error}).") from error
    try:
        yield
    finally:
        lock.release()


def _in_use(path: Path, by: str) -> str:
    if by.endswith(COMMAND):
        number = by.removesuffix(COMMAND).strip()
        return f"The directory {path} is being read by another command (process {number}): try again when it has ended."
    return (
        f"The directory {path} is in use by a running agent (process {by}): ask it through its Redis, or stop it first."
    )


def empty(path: Path) -> None:
    """Delete what an agent has put into its directory, and the directory when nothing else is in it. It is locked by
    the caller. Raises UbiDirectoryError.
    """
    try:
        for pattern in OURS:
            for one in sorted(path.glob(pattern)):
                if one.is_dir() and not one.is_symlink():
                    shutil.rmtree(one)
                else:
                    one.unlink(missing_ok=True)
        # .ubi/<crawl>/<agent>, .ubi/<crawl>
        for one in (path, path.parent if path.parent.parent in home.homes() else path):
            if one.exists() and not any(one.iterdir()):
                with suppress(OSError):  # a mount point, a link, in a directory of others: empty, it may stay
                    one.rmdir()
    except OSError as error:
        raise UbiDirectoryError(
            f"The directory {path} cannot be emptied ({error.strerror or error}): delete what is left of it by hand."
        ) from error
