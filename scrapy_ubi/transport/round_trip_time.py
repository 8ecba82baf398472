"""How long a word to the server and back takes.

Rules of this module:

* It is the shortest of the last round trips: what is longer was a lost packet, a large letter or a busy processor, and
  says nothing of how far the server is.
* Times are measured by those who ask, and come in as values.
"""

from __future__ import annotations

from collections import deque

LATELY = 32  # round trips that count


class RoundTripTime:
    """The round trip of one line (s); 0.0 where none was made yet."""

    def __init__(self) -> None:
        self._lately: deque[float] = deque(maxlen=LATELY)
        self.seconds = 0.0

    def took(self, seconds: float) -> None:
        """A first answer came so long after it was asked for."""
        self._lately.append(max(0.0, seconds))
        self.seconds = min(self._lately)
