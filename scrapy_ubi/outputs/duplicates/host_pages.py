"""The pages of one host that others are compared with: by digest, and by sketch.

Rules of this module:

* Only a page that is no duplicate is kept, and compared with. So groups do not drift: what is near a page's near
  duplicate only is none of the page.
* Bounded: of more than `MOST_EXACT` digests and `MOST_NEAR` sketches the oldest is forgotten; a copy of it that is
  found later is taken for a page of its own, and counts as such from then on.
* A *shell* is a page that more than half of what was compared are near to, once `FEW` were: what a site answers where
  it has nothing (a soft 404 without the words, a login wall, an empty application). No page is near a shell.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scrapy_ubi.outputs.duplicates.sketch import BANDS, BINS, Bands, Bins, resemblance

MOST_EXACT, MOST_NEAR = 65_536, 16_384  # pages of a host
FIRST = 64  # sketches there is room for at first
CANDIDATES = 64  # that are compared: those with most bands in common
FEW = 50
SHELL = "shell"  # in place of a URL


class HostPages:
    """The pages of one host. `exact`: digest (64 bits) -> URL."""

    def __init__(self) -> None:
        self.exact: dict[int, str] = {}
        self._bins: NDArray[np.uint8] = np.zeros((FIRST, BINS), np.uint8)
        self._bands: NDArray[np.uint32] = np.zeros((BANDS, FIRST), np.uint32)
        self._members: NDArray[np.int64] = np.zeros(FIRST, np.int64)
        self._urls: list[str] = []
        self._next = 0  # the row that is written next
        self._compared = 0

    def __len__(self) -> int:
        return len(self.exact)

    @property
    def sketches(self) -> int:
        """How many pages are known by their sketch."""
        return len(self._urls)

    def add_exact(self, digest: int, url: str) -> int:
        """Keep a page by its digest; how many are forgotten for it."""
        self.exact[digest] = url
        if len(self.exact) <= MOST_EXACT:
            return 0
        del self.exact[next(iter(self.exact))]
        return 1

    def near(self, bins: Bins, bands: Bands, least: float) -> str:
        """The URL of the page that resembles this one most, by `least` at least; `SHELL` where that is one; '': none.
        The page counts as compared."""
        self._compared += 1
        row = self._nearest(bins, bands, least)
        if row < 0:
            return ""
        self._members[row] += 1
        is_shell = self._compared >= FEW and self._members[row] * 2 > self._compared
        return SHELL if is_shell else self._urls[row]

    def add_near(self, bins: Bins, bands: Bands, url: str) -> int:
        """Keep a page by its sketch, and the bands of that; how many are forgotten for it."""
        row, count = self._next, len(self._urls)
        if row >= len(self._bins):
            self._grow()
        self._bins[row], self._bands[:, row], self._members[row] = bins, bands, 1
        if row < count:
            self._urls[row] = url
        else:
            self._urls.append(url)
        self._next = (row + 1) % MOST_NEAR
        return int(row < count)

    def _nearest(self, bins: Bins, bands: Bands, least: float) -> int:
        count = len(self._urls)
        if not count:
            return -1
        equal = self._bands[:, :count] == bands[:, None]
        rows = np.flatnonzero(equal.any(axis=0))
        if not len(rows):
            return -1
        if len(rows) > CANDIDATES:
            common = equal[:, rows].sum(axis=0)
            rows = np.sort(rows[np.argsort(-common, kind="stable")[:CANDIDATES]])
        found = resemblance(bins, self._bins[rows])
        best = int(found.argmax())
        return int(rows[best]) if found[best] >= least else -1

    def _grow(self) -> None:
        room = len(self._bins)
        self._bins = np.concatenate([self._bins, np.zeros((room, BINS), np.uint8)])
        self._bands = np.concatenate([self._bands, np.zeros((BANDS, room), np.uint32)], axis=1)
        self._members = np.concatenate([self._members, np.zeros(room, np.int64)])
