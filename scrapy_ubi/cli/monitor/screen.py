"""Pictures of a crawl that runs: redrawn in place on a terminal, printed at times into a file or a pipe.

Rules of this module: it knows lines of text only. On a terminal the last picture is overwritten by the next one; else a
picture is printed when `EVERY` seconds have passed since the last, and the last one always.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from math import inf
from typing import TextIO

EVERY = 3.0  # seconds between two pictures where they cannot be redrawn
UP_AND_CLEAR = "\x1b[{}F\x1b[J"  # ECMA-48: cursor to the start of the line so many up, then erase to the end


class Screen:
    """`terminal` None asks the stream."""

    def __init__(self, stream: TextIO, terminal: bool | None = None) -> None:
        self._stream = stream
        self.terminal = stream.isatty() if terminal is None else terminal
        self._drawn = 0  # lines of the picture on the terminal
        self._last = -inf

    def show(self, lines: Sequence[str], now: float, last: bool = False) -> None:
        """A new picture. `now` is seconds of one clock; after the `last` picture text goes on below it."""
        if self.terminal:
            size = shutil.get_terminal_size()
            # A line that wraps, or a picture taller than the terminal, could not be overwritten.
            shown = [line[: size.columns - 1] for line in lines][: size.lines - 1]
            up = UP_AND_CLEAR.format(self._drawn) if self._drawn else ""
            self._stream.write(up + "".join(f"{line}\n" for line in shown) + ("\n" if last else ""))
            self._drawn = 0 if last else len(shown)
        elif last or now - self._last >= EVERY:
            self._stream.write("".join(f"{line}\n" for line in lines) + "\n")
            self._last = now
        self._stream.flush()

    def tell(self, line: str) -> None:
        """An event: a line that stays, above the picture; the next picture is drawn below it."""
        if self.terminal and self._drawn:
            self._stream.write(UP_AND_CLEAR.format(self._drawn))
        self.say(line)

    def say(self, *lines: str) -> None:
        """Text that stays, below the last picture."""
        self._drawn = 0
        self._stream.write("".join(f"{line}\n" for line in lines))
        self._stream.flush()
