"""Sealed files are sent to where UBI_SHIP says, by a thread of the agent, while the crawl runs.

Rules of this module:

* What was sent is not remembered: a start looks at every sealed file again, and the target says what it has. So a
  process may be killed at any moment.
* A file that could not be sent is tried again, after pauses that grow, without end while the crawl runs: the log says
  so, and the stats count it. At the end the agent waits for the last files, with a bound, and names how many are left;
  they are where they were. A start that goes on with the run sends them.
* A target that has another file of that name keeps it: this is an error in the log, and the file is not tried again.
* The index of a WARC (`.cdxj`) is sorted some time after it is sealed: it is sent at the end.
* `out/crawl.json`, without which `collect` takes nothing, goes as `crawl.json` of a directory for each agent and run.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from scrapy_ubi.outputs.part_files import OPEN, OUT, RECORD, SHORT, read_record
from scrapy_ubi.outputs.ship_targets import DifferentFile, Target

logger = logging.getLogger("scrapy_ubi")

EVERY = 5.0  # s between two looks for sealed files
PAUSE, LONGEST = 2.0, 300.0  # s after a failure
TOLD_EVERY = 10.0  # s between two lines while the end waits


class Shipper:
    """The shipper of one agent, of its `directory`. `wait(seconds)` waits, or returns sooner when it is woken."""

    def __init__(
        self, directory: Path, agent: str, target: Target, wait: Callable[[float], object] | None = None
    ) -> None:
        self._out = directory / OUT
        self._agent = agent
        self._target = target
        self._woken = threading.Event()
        self._wait = wait or self._woken.wait
        self._done: set[str] = set()  # names, of this run of the crawl
        self._run = ""
        self._pause = 0.0
        self._ending = self._given_up = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.sent = self.failed = self.refused = 0  # files sent by this process; failures; files of another content
        self.left = 0

    def start(self) -> None:
        """Begin to send."""
        self._thread = threading.Thread(target=self._work, name="ubi-ship", daemon=True)
        self._thread.start()

    def finish(self, timeout: float) -> int:
        """All is sealed: wait until all is sent, at most so long (s); how many files are left. Blocks."""
        if self._thread is None:
            return 0
        self._ending = True
        self._woken.set()
        end = time.monotonic() + timeout
        while not self._ended.wait(min(TOLD_EVERY, max(0.0, end - time.monotonic()))):
            if time.monotonic() >= end:
                self._given_up = True
                self._woken.set()
                return max(1, self.left)
            logger.info("Waiting for %d files to be sent (UBI_SHIP).", self.left)
        return self.left

    def _work(self) -> None:
        while not self._given_up:
            ending = self._ending  # what was sealed before is among what is looked at now
            if self.round() and ending:
                break
            self._wait(max(self._pause, 0.0 if self._ending and not self._pause else EVERY))
            self._woken.clear()
        self._ended.set()

    def round(self) -> bool:
        """Send what is sealed and not sent. Return whether all is."""
        record = read_record(self._out)
        run = str(record.get("run") or "")
        if not run:
            return True  # no page is done
        if run != self._run:
            self._run, self._done = run, set()
        waiting = [path for path in self._sealed() if self._name(path) not in self._done]
        if waiting and self._name(self._out / RECORD) not in self._done:
            waiting.insert(0, self._out / RECORD)
        self.left = len(waiting)
        for path in waiting:
            if not self._send(path):
                return False
            self.left -= 1
        self._pause = 0.0
        return True

    def _sealed(self) -> list[Path]:
        found = [path for path in self._out.glob("*/**/*") if path.is_file()]
        unsealed = (OPEN, SHORT) if self._ending else (OPEN, SHORT, ".cdxj")
        return sorted(path for path in found if path.suffix not in unsealed)

    def _name(self, path: Path) -> str:
        return f"{self._agent}/{OUT}-{self._run}/{path.relative_to(self._out).as_posix()}"

    def _send(self, path: Path) -> bool:
        name = self._name(path)
        try:
            self.sent += self._target.send(path, name)
        except DifferentFile as error:
            self.refused += 1
            logger.error("%s is not sent: there is another file under that name, %s. (UBI_SHIP)", path, error)
        except Exception as error:  # noqa: BLE001 - of the target: its library has errors of its own
            if not path.exists():
                return True  # what a receiver of items has is deleted
            self.failed += 1
            self._pause = min(max(PAUSE, 2 * self._pause), LONGEST)
            logger.warning("%s could not be sent (%s): tried again in %g s. (UBI_SHIP)", path, error, self._pause)
            return False
        self._done.add(name)
        return True
