"""Who this agent is: its directory, its identifier, and the incarnation that ran there before.

Rules of this module:

* An agent is its directory: the identifier is made once and kept in `agent.json` there, so that a restart is the same
  agent, with the same hosts on the ring.
* One process a directory: an exclusive lock (`flock`) on the file `lock` is held as long as the process lives; the
  kernel drops it when the process dies, however it dies. A second process on the machine that was not told a directory
  takes the next free one (`.ubi/<crawl>`, `.ubi/<crawl>/1`, `.ubi/<crawl>/2`, ...); one that was told is refused.
* Where there is no `flock` (Windows) SQLite locks a file beside it, `lock.sqlite`, which the kernel lets go likewise.
* The lock proves nothing of a copy: the process that ran in the original may live. So `agent.json` names the file that
  was locked, and the incarnation that it also names is the predecessor only where the lock is on that very file.
* A command that reads a directory holds the lock for a moment, and says so in the file (`COMMAND`): an agent or another
  command waits for it, `COMMAND_WAIT` at most. It is never taken for an agent that runs.
* A process forked by this one (a worker of multiprocessing) has no part in the lock: it may outlive the agent.
* The path is absolute from the start: a spider may change the working directory.
* `.ubi` is that of the project's root (`home`), and ignored by Git.
* With UBI_AGENT_ID but no directory the agent lives in `.ubi/<crawl>/<agent id>`, so that several named agents of one
  machine need no UBI_DIR each.
* `agent.json` is written beside and moved over: a crash leaves the old one or the new one.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import sqlite3
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakSet

from scrapy_ubi.errors import UbiDirectoryError
from scrapy_ubi.settings import UbiSettings, home

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# More processes of one crawl on one machine, with directories not chosen by the user, are surely a runaway loop.
MAX_DIRECTORIES = 1000

BESIDE = "lock.sqlite"
COMMAND = "scrapy ubi"  # in the lock file, after the process: a command, which is soon done
COMMAND_WAIT = 5.0  # s

_ARGUMENTS = re.compile(r":[0-9a-f]{8}$")  # at the end of a default name of a crawl
_HOST_NAME_LENGTH = 48  # leaves room for "-" and 8 hex digits within a name's 64 characters


class AgentLock:
    """An exclusive hold on one directory, by this process, until `release` or the process's end."""

    def __init__(self, directory: Path, by: str = "") -> None:
        """Take the lock, `by` a command, or an agent (""). Raises `BlockingIOError` when another holds it, `OSError`
        when the directory is unusable."""
        directory.mkdir(parents=True, exist_ok=True)
        self._file = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        self._beside: sqlite3.Connection | None = None
        try:
            if hasattr(fcntl, "flock"):
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            else:
                self._beside = _locked_beside(directory / BESIDE)
            os.ftruncate(self._file, 0)
            os.write(self._file, f"{os.getpid()} {by}".rstrip().encode() + b"\n")  # for people: who holds it
        except OSError:
            os.close(self._file)
            raise
        _HELD.add(self)

    @property
    def file(self) -> str:
        """Which file is locked: no copy of it has the same device and number."""
        facts = os.fstat(self._file)
        return f"{facts.st_dev}:{facts.st_ino}"

    def release(self) -> None:
        """Let go; a second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        if self._beside is not None:
            self._beside.close()
            self._beside = None


def _locked_beside(file: Path) -> sqlite3.Connection:
    """A connection that holds this file until it is closed. Raises `BlockingIOError` when another does, OSError."""
    made = sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        made.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        made.close()
        held = error.sqlite_errorname.startswith("SQLITE_BUSY")
        raise (BlockingIOError if held else OSError)(str(error)) from error
    return made


def take_lock(directory: Path, by: str = "") -> AgentLock:
    """The lock, after a command that holds it has ended. Raises as `AgentLock` does."""
    end = time.monotonic() + COMMAND_WAIT
    while True:
        try:
            return AgentLock(directory, by)
        except BlockingIOError:
            if not holder(directory).endswith(COMMAND) or time.monotonic() > end:
                raise
            time.sleep(0.02)


_HELD: WeakSet[AgentLock] = WeakSet()


def _release_copies() -> None:
    """In a process just forked: its copies of the locks' files would hold the locks as well. The parent's hold on."""
    for lock in list(_HELD):
        lock.release()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing is forked
    os.register_at_fork(after_in_child=_release_copies)


@dataclass(slots=True)
class AgentDirectory:
    """The directory of the agent that runs in this process, locked.

    `predecessor` is the incarnation that last ran here (8 hex digits), None in a new directory, or in a copy.
    """

    path: Path
    agent_id: str
    lock: AgentLock
    predecessor: str | None
    _record: dict[str, Any]

    @classmethod
    def open(cls, settings: UbiSettings) -> AgentDirectory:
        """Find, lock and read the agent's directory, making it and the identifier where there is none.

        Raises `UbiDirectoryError` when the directory cannot be used or is another agent's.
        """
        path, lock = _take(settings)
        if not settings.dir_given:
            home.keep_out_of_git(settings.dir)
        try:
            record = _read(path)
            agent_id = _agree(record, settings, path)
            predecessor = record.get("incarnation") if record.get("lock") == lock.file else None
            known = predecessor if isinstance(predecessor, str) and predecessor else None
            directory = cls(path, agent_id, lock, known, {"agent": agent_id, "crawl": settings.crawl})
            if record.get("agent") != agent_id:
                directory.record_incarnation(known)
        except BaseException:
            lock.release()
            raise
        return directory

    def record_incarnation(self, incarnation: str | None) -> None:
        """Note durably which incarnation runs here, before it is seen by others. Raises `UbiDirectoryError`."""
        self._record = {**self._record, "incarnation": incarnation, "lock": self.lock.file}
        try:
            _replace(self.path / "agent.json", json.dumps(self._record) + "\n")
        except OSError as error:
            raise _unusable(self.path, error) from error

    def close(self) -> None:
        """Let go of the directory; another process may take it."""
        self.lock.release()


def _candidates(settings: UbiSettings) -> list[Path]:
    """Directories to try in turn; one only where the user has named it or its agent."""
    if settings.dir_given:
        return [settings.dir]
    if settings.agent_id is not None:
        return [settings.dir / settings.agent_id]
    return [settings.dir, *(settings.dir / str(number) for number in range(1, MAX_DIRECTORIES))]


def _take(settings: UbiSettings) -> tuple[Path, AgentLock]:
    """The first candidate that no process holds, locked."""
    candidates = _candidates(settings)
    for path in candidates:
        try:
            return path.absolute(), take_lock(path)
        except BlockingIOError:
            continue
        except OSError as error:
            raise _unusable(path, error) from error
    if len(candidates) == 1:
        by, remedy = "", "its own UBI_AGENT_ID and UBI_DIR, or none of the two"
        if settings.dir_is_jobdir:
            by, remedy = " (JOBDIR)", "a JOBDIR of its own, or none: then each finds a directory by itself"
        raise UbiDirectoryError(
            f"The directory {candidates[0]}{by} is in use by another running agent (process {holder(candidates[0])}): "
            f"give each process {remedy}."
        )
    raise UbiDirectoryError(f"{len(candidates)} agents run in {settings.dir} already: set UBI_DIR to start more.")


def holder(path: Path) -> str:
    """The process that holds a directory, as it wrote itself down."""
    try:
        return (path / "lock").read_text().strip() or "unknown"
    except OSError:
        return "unknown"


def held_since(path: Path, time: float) -> bool:
    """Whether an agent has taken this directory after that time (unix s), and its process lives. The lock itself is not
    touched: an agent that starts at this moment would take that for another one."""
    try:
        taken = (path / "lock").stat().st_mtime
        with suppress(PermissionError):  # it lives, as somebody else's
            os.kill(int(holder(path)), 0)
    except (OSError, ValueError):  # of a command, or of a process that has ended
        return False
    return taken > time


def _read(path: Path) -> dict[str, Any]:
    """What `agent.json` says; empty where there is none."""
    file = path / "agent.json"
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unusable(path, error) from error
    except ValueError:
        record = None
    if not isinstance(record, dict) or not isinstance(record.get("agent"), str):
        raise UbiDirectoryError(f"{file} is damaged: remove it to let the agent start under a new identifier.")
    return record


def _agree(record: dict[str, Any], settings: UbiSettings, path: Path) -> str:
    """The agent's identifier. A directory of another agent or of another crawl is not ours to use."""
    agent, crawl = record.get("agent"), record.get("crawl")
    if crawl is not None and crawl != settings.crawl:
        raise UbiDirectoryError(
            f"The directory {path} belongs to the crawl {crawl!r}, not to {settings.crawl!r}"
            f"{_by_arguments(str(crawl), settings.crawl)}: set UBI_DIR to another directory, or UBI_CRAWL to that "
            "crawl."
        )
    if agent is not None and settings.agent_id is not None and agent != settings.agent_id:
        raise UbiDirectoryError(
            f"The directory {path} belongs to the agent {agent!r}, not to {settings.agent_id!r}: set UBI_DIR to "
            "another directory, or leave UBI_AGENT_ID out."
        )
    return str(agent) if agent is not None else settings.agent_id or new_agent_id()


def _by_arguments(one: str, other: str) -> str:
    """That two crawls have two names since their spiders' arguments differ; empty where they differ in more."""
    same = _ARGUMENTS.sub("", one) == _ARGUMENTS.sub("", other)
    return " (the name ends with a mark of the spider's arguments)" if same else ""


def new_agent_id() -> str:
    """`<host name>-<8 hex digits>`: readable, and unlike any other."""
    return f"{host_name()}-{secrets.token_hex(4)}"


def host_name() -> str:
    """This machine's, as a part of an identifier."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname())[:_HOST_NAME_LENGTH] or "agent"


def _replace(file: Path, text: str) -> None:
    """Write a whole file so that a crash leaves the old one or the new one."""
    beside = file.with_suffix(".new")
    with open(beside, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(beside, file)
    if hasattr(os, "O_DIRECTORY"):  # not on Windows, where a directory cannot be opened
        directory = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _unusable(path: Path, error: OSError) -> UbiDirectoryError:
    return UbiDirectoryError(
        f"The agent's directory {path} cannot be used ({error.strerror or error}): set UBI_DIR to a directory that "
        "this user may write."
    )
