"""The agents of a supervisor as processes of this machine: started, signalled, waited for, each with a log of its own.

Rules of this module:

* Each is a session of its own: Ctrl-C in the terminal reaches the supervisor only, which tells the agents.
* An agent leaves when the supervisor is gone (`agent_process`), and holds open the pipe of the embedded Valkey.
* What an agent prints and logs is appended to its log file. `last_error` reads what the present process has added.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from scrapy_ubi.cli.supervisor.agent_process import LIFE
from scrapy_ubi.ground.untrusted.terminal_text import cut, plain

HEAD = 1_048_576  # bytes of a log that are searched for warnings, from the start of its agent
TAIL = 65_536  # bytes of a log that are searched for its last error, and for warnings
LONGEST = 600  # characters of an error shown
OURS = "scrapy_ubi: "  # how the sentence of a refused start begins
COMMANDS = "scrapy ubi: "  # how a command's last words begin, which may go on over several lines
_ERROR = re.compile(r"(?:ERROR|CRITICAL): (.*)")
_WARNING = re.compile(r"\[scrapy_ubi(?:\.\w+)*\] WARNING: (.*)")
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b.*")  # last line of a traceback


@dataclass(frozen=True, slots=True)
class AgentPlace:
    """An agent to run: its identifier, its directory, its log file."""

    name: str
    directory: Path
    log: Path


@dataclass(slots=True)
class _Process:
    place: AgentPlace
    popen: subprocess.Popen[bytes]
    log_from: int  # bytes that earlier processes have logged
    first_log_from: int  # bytes that were there before the supervisor began
    reported: bool = False


class AgentProcesses:
    """All agents of one supervisor.

    `arguments`: Scrapy's command line for an agent, and whether it is started again; `held`: a file descriptor that the
    agents keep open.
    """

    def __init__(self, arguments: Callable[[AgentPlace, bool], list[str]], held: int | None = None) -> None:
        self._arguments = arguments
        self._life, self._our_end = os.pipe()
        self._held = self._life if held is None else held
        self._processes: dict[str, _Process] = {}

    def start_agent(self, place: AgentPlace) -> None:
        """Start an agent, or start it again."""
        command = [sys.executable, "-m", "scrapy_ubi.cli.supervisor.agent_process"]
        command += self._arguments(place, place.name in self._processes)
        with place.log.open("ab") as log:
            popen = subprocess.Popen(
                command,
                env=os.environ | {LIFE: f"{self._life},{self._held}"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds={self._life, self._held},
                start_new_session=True,
            )
            before = self._processes.get(place.name)
            begun = log.tell()
            self._processes[place.name] = _Process(place, popen, begun, before.first_log_from if before else begun)

    def poll_ended(self) -> Iterable[tuple[str, int]]:
        """The agents whose processes have ended since the last call, with exit status, or minus the signal."""
        for name, process in self._processes.items():
            code = process.popen.poll()
            if code is not None and not process.reported:
                process.reported = True
                yield name, code

    def pid(self, name: str) -> int:
        """The number of the last process of an agent."""
        return self._processes[name].popen.pid

    def send(self, number: signal.Signals) -> None:
        """Signal every agent that runs."""
        for process in list(self._processes.values()):
            process.popen.send_signal(number)  # does nothing when it has ended

    def last_error(self, name: str) -> str:
        """The last line of an error that the last process of an agent has logged or printed; '' for no line at all."""
        process = self._processes[name]
        try:
            with process.place.log.open("rb") as log:
                log.seek(max(process.log_from, log.seek(0, os.SEEK_END) - TAIL))
                text = log.read().decode("utf-8", "replace")
        except OSError:
            return ""
        return cut(plain(error_in(text)), LONGEST)

    def warnings(self, name: str) -> list[str]:
        """What this package has warned of in the log of an agent, at its beginning and at its end, each sentence once.
        Between them the log may be long."""
        process = self._processes.get(name)
        if process is None:  # it was never started
            return []
        try:
            with process.place.log.open("rb") as log:
                log.seek(process.first_log_from)
                read = log.read(HEAD)
                if (more := log.seek(0, os.SEEK_END) - process.first_log_from - len(read)) > TAIL:
                    log.seek(-TAIL, os.SEEK_END)
                    # Whole lines: neither the one that the head ends in, nor the one that the tail begins in.
                    read = read[: read.rfind(b"\n") + 1] + log.read(TAIL).partition(b"\n")[2]
                elif more:
                    log.seek(-more, os.SEEK_END)
                    read += log.read(more)
        except OSError:
            return []
        return list(dict.fromkeys(_WARNING.findall(read.decode("utf-8", "replace"))))

    def close(self) -> None:
        """Kill what still runs, and wait for it."""
        self.send(signal.SIGKILL)
        for process in self._processes.values():
            process.popen.wait()
        os.close(self._life)
        os.close(self._our_end)


def error_in(text: str) -> str:
    """The last error in a part of a log, else its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for number, line in reversed([*enumerate(lines)]):
        if line.startswith(COMMANDS):
            return " ".join(lines[number:]).removeprefix(COMMANDS)
        if line.startswith(OURS):
            return line.removeprefix(OURS)
        if found := _ERROR.search(line):
            return found[1]
        if _RAISED.fullmatch(line):
            return line
    return lines[-1] if lines else ""
