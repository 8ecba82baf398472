"""The timeline on disk: `timeline.jsonl` in the agent's directory, one line for each moment.

Rules of this module:

* Everything here may wait for the disk: the loop calls it in another thread, one call at a time.
* Lines are appended, and synced once a minute: what a crash takes is a minute of a picture, and no page hangs on it.
* A process that is killed leaves its last line torn: it is passed over when it is read, and ended before the next one.
* Where the file has many more lines than there are moments (as these are thinned), it is written again, beside, and
  moved over.
* A file that is much larger than an agent leaves it is read from its end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from scrapy_ubi.agent.report.timeline import Timeline

TIMELINE = "timeline.jsonl"
NEW = "timeline.new"
MOST_BYTES = 16 << 20  # read of a file: an agent leaves a tenth of it
SPARE = 1000  # lines more than moments, and as many more as these are, before it is written again
SYNC_EVERY = 60.0  # s


def read_timeline(directory: Path, now: float) -> tuple[Timeline, int]:
    """The timeline in this directory at this time (unix s), and how many lines of it do not hold; an empty one where
    there is no file. Raises OSError."""
    try:
        with open(directory / TIMELINE, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - MOST_BYTES))
            lines = file.read(MOST_BYTES).split(b"\n")
    except FileNotFoundError:
        return Timeline(), 0
    whole, torn = lines[1 if size > MOST_BYTES else 0 : -1], lines[-1]
    timeline, bad = Timeline.read(whole, now)
    return timeline, bad + bool(torn)


class TimelineFile:
    """The file of the agent in this directory, as it is written. All methods may raise OSError."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / TIMELINE
        self._lines = 0
        self._synced = 0.0

    def open_timeline(self, now: float, new: bool) -> Timeline:
        """What was there, without what does not hold; nothing where the crawl is `new`."""
        timeline = Timeline()
        if not new:
            timeline, _ = read_timeline(self._directory, now)
            timeline.thin(now)
        self.rewrite([*timeline.lines()])
        return timeline

    def append(self, lines: Sequence[str]) -> None:
        """More lines."""
        with open(self._path, "ab") as file:
            if file.tell() and not self._ends_well():
                file.write(b"\n")
            file.write("".join(f"{line}\n" for line in lines).encode())
            if time.monotonic() - self._synced > SYNC_EVERY:
                file.flush()
                os.fsync(file.fileno())
                self._synced = time.monotonic()
        self._lines += len(lines)

    def _ends_well(self) -> bool:
        with open(self._path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def is_long(self, moments: int) -> bool:
        """Whether it should be written again, for so many moments."""
        return self._lines > 2 * moments + SPARE

    def rewrite(self, lines: Sequence[str]) -> None:
        """These lines, in place of all."""
        with open(self._directory / NEW, "wb") as file:
            file.write("".join(f"{line}\n" for line in lines).encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(self._directory / NEW, self._path)
        self._lines, self._synced = len(lines), time.monotonic()
