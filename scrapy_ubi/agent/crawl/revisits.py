"""When the pages of this agent are visited again: the rule of UBI_RECRAWL, asked at the end of each visit.

Rules of this module:

* A visit ends with a row: what the rule keeps of the page, its validators, and when it is due. A page that failed on
  its first visit has one only where it may come back: not where the server says that there is none, or where nothing
  was loaded.
* A visit that fails keeps what is known of the page, and counts. A page that is gone (404, 410) so many times in a row
  (`GONE`) is never visited again; one that fails otherwise is, as the rule says.
* After `rounds` visits (UBI_RECRAWL) behind the first one a page is never visited again.
* A page whose callback has failed is taken for changed at its next visit.
* The request of a row is that of the page as it was found, whatever retries have made of it.
* Due times are those of the clock on the wall, which is given in; nothing else is.
* A row of a clock that was ahead, from the disk or from another agent, counts as one of a visit that was made just now.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

from scrapy_ubi.frontier.visit_pace import NoPace, VisitPace
from scrapy_ubi.ground.clock import is_ahead, no_later
from scrapy_ubi.policy.recrawl import NOTHING, Past, Plan, Rule, VisitSeen, read_recrawl
from scrapy_ubi.policy.recrawl.sitemap_rule import Sitemap
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.host import Entry, HostState, VisitRow, retries_of
from scrapy_ubi.protocol.visit_row import MOST_COUNT, MOST_GENERATION, MOST_TIME
from scrapy_ubi.settings import UbiSettings

GONE_REASONS = frozenset(("http/404", "http/410"))
GONE = 3  # visits in a row
SETTLE = 60.0  # s between two looks of the rule at how many pages there are


class PageSeen(NamedTuple):
    """What a visit has seen of a page: its validators, the digest of its body, when it says it was changed (unix s, 0
    where it does not), and whether it is as it was at the visit before."""

    etag: str = ""
    modified: str = ""
    digest: int = 0
    lastmod: float = 0.0
    unchanged: bool = False


UNKNOWN = PageSeen()


class EndedVisit(Protocol):
    """What is asked of a visit that has ended (`work.visits.Visit`)."""

    @property
    def state(self) -> HostState:
        """Its host."""

    @property
    def entry(self) -> Entry:
        """What was fetched."""

    @property
    def before(self) -> VisitRow | None:
        """The row of the visit before, where there was one."""

    @property
    def seen(self) -> PageSeen | None:
        """What of the page is compared."""

    @property
    def gave_items(self) -> bool:
        """Whether its page has given items."""


class Listing(Protocol):
    """What sitemaps say of pages (`hosts.listed_pages.ListedPages`)."""

    def judged(self, state: HostState, key: int, past: Past, seen: VisitSeen, /) -> VisitSeen:
        """Return what a visit has seen, with whether the page's sitemap is believed."""


class NoRecrawl:
    """Pages are visited once."""

    visits_again = False
    heeds_sitemaps = False  # whether the rule wants to know what sitemaps say
    ahead = 0  # rows of a clock that was ahead

    @property
    def pace(self) -> NoPace:
        """How many pages are visited again a second."""
        return NoPace()

    def row(self, visit: EndedVisit, failed: str | None, fetched: bool) -> VisitRow | None:
        """The row of a visit that has ended; None where its page is not to be visited again."""
        return None

    def passed(self, before: VisitRow) -> VisitRow | None:
        """The row of a page that is not visited, as its host is given up."""
        return None

    def redone(self, state: HostState, entry: Entry) -> VisitRow | None:
        """The row of a page that its host's owner, which is dead, had fetched: nothing else is known of that visit."""
        return None

    def believed_row(self, row: VisitRow) -> VisitRow:
        """What is believed of a row that comes from the disk, or from another agent."""
        return row

    def tick(self, agent: Agent, now: float) -> None:
        """It is that time (s, the agent's clock)."""


class Recrawl(NoRecrawl):
    """The rule of one agent. `rounds`: how often each page is visited again at most, None for no end; `wall` gives unix
    seconds."""

    visits_again = True

    def __init__(self, rule: Rule, rounds: int | None, wall: Callable[[], float]) -> None:
        self.rule = rule
        self._rounds = MOST_GENERATION if rounds is None else rounds
        self._wall = wall
        self._settled = 0.0
        self.listed: Listing | None = None  # with a rule that heeds sitemaps
        self._pace = VisitPace()
        self.unchanged = self.failed = 0
        self.ahead = 0
        self.heeds_sitemaps = isinstance(rule, Sitemap)

    @property
    def pace(self) -> NoPace:
        """How many pages are visited again a second."""
        return self._pace if self.rule.rate(1.0) is not None else NoPace()

    def row(self, visit: EndedVisit, failed: str | None, fetched: bool) -> VisitRow | None:
        """The row of a visit that has ended; None where its page is not to be visited again."""
        before = visit.before
        if before is None and failed is None and not fetched and visit.seen is None:
            return None  # it is the page of a seed, which has a row of its own
        if failed is not None and not failed.startswith("callback/"):
            self.failed += before is not None
            return self._failed(visit.entry, before, failed, fetched)
        seen = visit.seen or UNKNOWN
        if failed is not None:
            seen = UNKNOWN
        changed = before is None or (visit.seen is not None and not seen.unchanged)
        self.unchanged += before is not None and seen.unchanged
        told = VisitSeen(self._wall(), changed=changed, lastmod=seen.lastmod, items=visit.gave_items)
        if self.listed is not None:
            past = past_of(before) if before is not None else NOTHING
            told = self.listed.judged(visit.state, visit.entry.key, past, told)
        return self._row(visit.entry, before, told, seen, 0)

    def _failed(self, entry: Entry, before: VisitRow | None, reason: str, fetched: bool) -> VisitRow | None:
        if before is None:
            if reason in GONE_REASONS or not (fetched or reason.startswith("exception/")):
                return None
            return self._row(entry, None, VisitSeen(self._wall(), failed=True), UNKNOWN, 1)
        failures = min(before.failures + 1, MOST_COUNT)
        kept = PageSeen(before.etag, before.modified, before.digest)
        row = self._row(entry, before, VisitSeen(self._wall(), failed=True), kept, failures)
        return row._replace(due=0) if reason in GONE_REASONS and failures >= GONE else row

    def redone(self, state: HostState, entry: Entry) -> VisitRow | None:
        """The row of a page that its host's owner, which is dead, had fetched: nothing else is known of that visit."""
        return self._row(entry, None, VisitSeen(self._wall()), UNKNOWN, 0)

    def believed_row(self, row: VisitRow) -> VisitRow:
        """What is believed of a row that comes from the disk, or from another agent."""
        wall, most = self._wall(), self.rule.longest(past_of(row))
        if not (is_ahead(row.last, wall, 0.0) or is_ahead(row.due, wall, most)):
            return row
        self.ahead += 1
        last, due = int(no_later(row.last, wall, 0.0)), math.ceil(no_later(row.due, wall, most))
        return row._replace(last=last, due=due)

    def passed(self, before: VisitRow) -> VisitRow:
        """The row of a page that is not visited, as its host is given up."""
        return before._replace(generation=before.generation + 1, due=0)

    def _row(self, entry: Entry, before: VisitRow | None, told: VisitSeen, seen: PageSeen, failures: int) -> VisitRow:
        past = past_of(before) if before is not None else NOTHING
        plan: Plan = self.rule.plan_next(past, told, entry.key)
        self.rule.told(past, told)
        generation = before.generation + 1 if before is not None else 1
        over = generation >= MOST_GENERATION or generation > self._rounds
        due = 0 if over else min(plan.due, MOST_TIME)
        compared, changes, *times = plan.past
        compared, changes = min(compared, MOST_COUNT), min(changes, MOST_COUNT)
        last, interval, watched = (min(time, MOST_TIME) for time in times)
        found = before.entry if before is not None else found_first(entry)
        record = generation, due, failures, compared, changes, last, interval, watched
        return VisitRow(*record, seen.digest, seen.etag, seen.modified, found)

    def tick(self, agent: Agent, now: float) -> None:
        """It is that time (s, the agent's clock)."""
        share = 1 / max(len(agent.view.members), 1)
        if (rate := self.rule.rate(share)) is not None:
            for host in self._pace.follow(rate, now):
                if (state := agent.frontier.find(host)) is not None:
                    agent.frontier.hasten(state, state.next_at)  # no sooner than it may, but it is asked anew
        agent.work.wake(int(self._wall()))
        if now - self._settled > SETTLE:
            self._settled = now
            own = agent.keeping.keepers
            pages = sum(s.visits.count for s in agent.frontier.states() if s.visits.count and own(s)[:1] == (agent.me,))
            self.rule.settle(pages, share)


def recrawl_of(settings: UbiSettings, wall: Callable[[], float]) -> NoRecrawl:
    """What these settings want; `wall` gives unix seconds."""
    rule = read_recrawl(settings.recrawl.rule)
    return Recrawl(rule, settings.recrawl.rounds, wall) if rule is not None else NoRecrawl()


def found_first(entry: Entry) -> Entry:
    """A request as it was before its retries."""
    if not retries_of(entry.request):
        return entry
    said = json.loads(entry.request)
    del said["retries"]
    if isinstance(meta := said.get("meta"), dict):
        meta.pop("retry_times", None)
        if not meta:
            del said["meta"]
    return entry._replace(request=json.dumps(said, separators=(",", ":")) if said else "")


def past_of(row: VisitRow) -> Past:
    """Return the record of visits that a row has."""
    return Past(row.compared, row.changes, row.last, row.interval, row.watched)
