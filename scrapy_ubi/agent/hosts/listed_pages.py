"""What sitemaps say of the pages that they list, with UBI_RECRAWL = "sitemap": when each was changed last.

Rules of this module:

* What a sitemap has said is remembered until the next one says it, of the last `MOST_LISTED` pages; a restart forgets
  it, and the next sitemap that is read says it again.
* At the end of each visit of a listed page the sitemap is judged: the *belief* in it is noted with its host (section
  `sitemap`), and goes with it.
* A page that a believed sitemap says was changed is due earlier. That is a generation of its row, so that it holds
  wherever rows are merged: the visits of such a page are numbered with gaps. Copies of the row hear of it with the next
  visit, or when the host changes hands: until then an heir would visit the page when it was planned before.
"""

from __future__ import annotations

from collections.abc import Callable

from scrapy_ubi.agent.crawl.revisits import past_of
from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.policy.recrawl import Past, Rule, VisitSeen
from scrapy_ubi.policy.recrawl.sitemap_rule import Belief, read_belief
from scrapy_ubi.protocol.frontier_contract import Frontier
from scrapy_ubi.protocol.host import HostState
from scrapy_ubi.protocol.visit_row import MOST_GENERATION

SECTION = "sitemap"  # of a host's notes
MOST_LISTED = 200_000  # pages


class ListedPages:
    """The listed pages of one agent's hosts. `wall` gives unix seconds."""

    def __init__(self, rule: Rule, notes: HostNotes, wall: Callable[[], float]) -> None:
        self._rule = rule
        self._notes = notes
        self._wall = wall
        self._listed: dict[int, float] = {}  # key -> when the page was changed, by its sitemap

    @property
    def remembered(self) -> int:
        """Of how many pages it is known what their sitemaps have said."""
        return len(self._listed)

    def listed(self, frontier: Frontier, state: HostState, key: int, lastmod: float) -> bool:
        """A sitemap says that the page of this key was changed then. Return whether the page is due earlier for it."""
        self._listed.pop(key, None)
        self._listed[key] = lastmod = min(lastmod, self._wall())
        if len(self._listed) > MOST_LISTED:
            del self._listed[next(iter(self._listed))]
        visits = state.visits
        if key in visits.out or key in visits.closing or not self._belief(state).holds:
            return False
        row = visits.row(key) if visits.count else None
        if row is None or not row.due or row.generation >= MOST_GENERATION:
            return False
        due = self._rule.announced(past_of(row), lastmod, self._wall(), believed=True)
        if not 0 < due < row.due:
            return False
        return frontier.keep_row(state, row._replace(generation=row.generation + 1, due=due))

    def judged(self, state: HostState, key: int, past: Past, seen: VisitSeen) -> VisitSeen:
        """A visit has ended: what it has seen, with whether the page's sitemap is believed."""
        lastmod = self._listed.get(key)
        if lastmod is None:
            return seen
        before = self._belief(state)
        belief = before.judged(past, seen, lastmod)
        if belief != before:
            self._notes.put(state, SECTION, list(belief))
        return seen._replace(believed=belief.holds)

    def _belief(self, state: HostState) -> Belief:
        return read_belief(self._notes.get(state, SECTION))
