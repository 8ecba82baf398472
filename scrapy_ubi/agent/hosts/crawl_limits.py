"""Limits of the whole crawl, kept by every agent for itself: there is no master to keep them.

Rules of this module:

* Each agent reads what all of them publish for people (their profiles), as often as they do, and adds up: pages
  loaded by all that ever took part in this run, URLs known to those that live, and the longest time of one of them. Of
  itself it counts what it has now, and what is under way. So a crawl of one agent ends at the very page, and a limit is
  overshot by what the others have loaded, and have under way, since they published last.
* Bytes are those of bodies as they came (`Tally.body_bytes`), counted where a limit of bytes is set.
* `free` stops nobody for good: an agent whose disk has less free takes no request until it has more (`low_disk`).
* An agent that sees that `crawl_pages`, `crawl_bytes` or `crawl_seconds` is reached leaves for that reason, as after
  one Ctrl-C. The others see the same, and leave too; the last ones keep their disks. A start goes on with the crawl,
  and ends at once unless the limit is higher.
* When `crawl_known` is reached no new URL is taken anywhere; the crawl ends by itself when those known are fetched.
* What all agents read together grows with the square of their number: of more than `AT_ONCE` profiles, which include
  those of agents that are gone, each reads all the more seldom (80 profiles: every 3.2 s, 1,000: every 40 s).
* What is read, and when, is the matter of `group.limit_watch`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from scrapy_ubi.agent.profile import figures
from scrapy_ubi.agent.profile.profile import Profile, read_profile
from scrapy_ubi.settings import UbiSettings

PAGES, SECONDS, BYTES = "limit/crawl_pages", "limit/crawl_seconds", "limit/crawl_bytes"
KNOWN, DEPTH = "limit/crawl_known", "limit/crawl_depth"


AT_ONCE = 50  # profiles up to which all are read as often as they are published


class CrawlLimits:
    """The limits of the crawl as one agent, `me`, sees them. `stop(name, sentence)` is called once, when one is reached
    that ends the crawl; then it is `over`. `begun`: the agent may be stopped.
    """

    def __init__(self, settings: UbiSettings, me: str, stop: Callable[[str, str], object]) -> None:
        self._me = me
        self._stop = stop
        self._others = self._others_bytes = 0  # pages and bytes loaded by the others
        self._longest = 0.0
        self._known = 0
        self._last_read = float("-inf")
        self._profiles = 0  # there were at the last read
        self.begun = self.over = self.low_disk = False
        self.follow(settings)

    def follow(self, settings: UbiSettings) -> None:
        """The limits are those of these settings from now on."""
        self._caps = caps = settings.crawl_limits
        self.idle = not (caps.pages or caps.known or caps.seconds or caps.bytes or caps.free)

    @property
    def most_pages(self) -> int:
        """How many pages of the crawl may be loaded; 0 for any number."""
        return self._caps.pages

    @property
    def most_bytes(self) -> int:
        """How many bytes may be received; 0 for any number."""
        return self._caps.bytes

    @property
    def least_free(self) -> int:
        """Bytes of the disk below which the agent pauses; 0: none."""
        return self._caps.free

    @property
    def most_seconds(self) -> float:
        """How long the crawl may go on (s); 0 for any time."""
        return self._caps.seconds

    def is_due(self, now: float) -> bool:
        """Whether everybody's profiles are to be read now (s); if so, not again for `figures.PUBLISH` seconds, longer
        where there are many."""
        if now - self._last_read < figures.PUBLISH * max(1.0, self._profiles / AT_ONCE):
            return False
        self._last_read = now
        return True

    def read_profiles(self, profiles: Mapping[str, str], alive: Container[str]) -> None:
        """Take in everybody's profiles; `alive` are the others that take part now. What is unreadable counts for
        nothing.
        """
        self._profiles = len(profiles)
        found = [read_profile(name, text.encode(errors="replace")) for name, text in profiles.items()]
        known = [one for one in found if isinstance(one, Profile)]
        others = [one for one in known if one.agent != self._me]
        self._others = sum(one.count("pages") for one in others)
        self._others_bytes = sum(one.count("body_bytes") for one in others)
        self._longest = max((one.seconds for one in others), default=0.0)
        self._known = sum(one.count("known") for one in known if one.agent == self._me or one.agent in alive)

    def refuses_depth(self, depth: int) -> str:
        """Why no new URL found so deep is taken anywhere; empty when it is."""
        if 0 < self._caps.depth < depth:
            return DEPTH
        return KNOWN if 0 < self._caps.known <= self._known else ""

    def full(self, pages: int) -> bool:
        """Whether nothing more is to be loaded, given the agent's own pages, those under way included."""
        return self.over or 0 < self._caps.pages <= self._others + pages

    def check(self, pages: int, seconds: float, received: int = 0) -> None:
        """Stop where a limit is reached that ends the crawl, given the agent's own numbers; `received`: bytes."""
        if self.over:
            return
        found = self._reached(self._others + pages, max(self._longest, seconds), self._others_bytes + received)
        if found is not None:
            self.over = True
            self._stop(*found)

    def _reached(self, pages: int, seconds: float, received: int) -> tuple[str, str] | None:
        caps = self._caps
        if 0 < caps.pages <= pages:
            return PAGES, f"The agents have loaded {pages} pages, and the crawl ends (UBI_CRAWL_LIMITS)."
        if 0 < caps.seconds <= seconds:
            return SECONDS, f"The crawl has run for {seconds:.0f} s, and ends (UBI_CRAWL_LIMITS)."
        if 0 < caps.bytes <= received:
            return BYTES, f"The agents have received {received:,} bytes, and the crawl ends (UBI_CRAWL_LIMITS)."
        return None
