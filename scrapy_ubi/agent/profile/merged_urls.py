"""What the lossy steps of the normal form have joined: how many URLs were not fetched for each, with examples.

Rules of this module:

* A URL is *joined* when it was found in a spelling of its own (its normal form by `safe` is another), and is not
  fetched as its normal form is known: if a step has erred, this page is missing. It counts once for each step that
  changed it.
* The spelling that was found first is fetched and not joined; where that one was changed by a step, and the spelling
  that is the normal form is found later, it is the latter that was joined.
* Each spelling counts once, however often it is found: a filter of fixed size remembers them. It errs towards counting
  too few: by 2 % at a million spellings, more beyond.
* Each agent counts what it finds itself. So nothing is missing with one agent; a spelling of a page that only another
  agent has met is not counted here, and one that several agents find counts for each. After a restart a spelling may
  count again.
"""

from __future__ import annotations

from collections import Counter, OrderedDict

EXAMPLES = 2  # kept of each step
LONGEST = 200  # characters of an example's URLs
FILTER_BITS = 23  # a megabyte; only where a composition is lossy
PROBES = 4
MOST_LED = 10_000  # normal forms whose first spelling was another: the oldest is forgotten

Example = tuple[str, str]


class MergedUrls:
    """The joins of one agent. `counts`: by step; `examples`: by step, pairs of a URL as found and its normal form."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, list[Example]] = {}
        self._filter: bytearray | None = None
        # Key -> the first spelling, and what has changed it.
        self._led: OrderedDict[int, tuple[str, tuple[str, ...]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """How many first spellings wait for another one of their normal form."""
        return len(self._led)

    def first(self, spelling: int, key: int, url: str, steps: tuple[str, ...]) -> None:
        """A URL that such steps have changed is the first of its normal form. `spelling` is its key by `safe`."""
        if steps and self._is_new(spelling):
            self._led[key] = (url, steps)
            if len(self._led) > MOST_LED:
                self._led.popitem(last=False)

    def known(self, spelling: int, key: int, url: str, normal: str, steps: tuple[str, ...]) -> None:
        """A URL was found whose normal form is known."""
        if steps:
            if self._is_new(spelling):
                self.join(url, normal, steps)
        elif self._led and (led := self._led.pop(key, None)) is not None:
            self.join(led[0], normal, led[1])

    def join(self, url: str, normal: str, steps: tuple[str, ...]) -> None:
        """This URL is not fetched, for another with that normal form by those steps."""
        for step in steps:
            self.counts[step] += 1
            kept = self.examples.setdefault(step, [])
            if len(kept) < EXAMPLES and max(len(url), len(normal)) <= LONGEST:
                kept.append((url, normal))

    def _is_new(self, key: int) -> bool:
        if self._filter is None:
            self._filter = bytearray(1 << FILTER_BITS - 3)
        new = False
        step = (key >> 41) | 1
        for _ in range(PROBES):
            at, bit = key >> 3 & len(self._filter) - 1, 1 << (key & 7)
            new = new or not self._filter[at] & bit
            self._filter[at] |= bit
            key += step
        return new
