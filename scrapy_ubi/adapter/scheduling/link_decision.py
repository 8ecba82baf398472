"""What becomes of requests and links that were found: the one decision, whichever door they come in by.

    request, from start() or a page             `enqueue`: a batch of one
    plain links of a page                       `bulk_enqueue`: a batch of many
    request by the short path (`fast/path.py`)  by the engine to `enqueue`
    seed from outside                           `outside_seeds` to `enqueue`
    link of an iteration (UBI_HOST_ITERATE)     as any other; the node holds it back (`agent/work/barrier.py`)

A door makes candidates of what it has: URL, normal form, host, key. What cannot be one has its answer there: a filter
refuses it, it is too long, it belongs to no host. Rules of this module:

* In this order: what is known; where a page may not lead; what comes too late; then the node is told, which knows it,
  or takes it, or says that a limit refuses it. Each answer is a `Verdict`, which says what counts it.
* Whether a link is known is asked here only: of one (`is_known`), or of many at once (`unknown`), which are the same
  questions. A link is known when its request is under way, when its host's owner knows it as far as is known here, or
  when it is the same request as a seed of its page that is known (`seeds`).
* Most links are known, so for these nothing is made. The request, or the entry with its text, is asked for when its
  turn comes.
* What comes from no page is told the node in any case, as that keeps account of such; seeds are asked for before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from scrapy import Request

from scrapy_ubi.adapter.downloads.reach import Reach
from scrapy_ubi.adapter.requests.codec import Codec
from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.adapter.requests.inflight import Flights
from scrapy_ubi.adapter.scheduling.drops import Drops
from scrapy_ubi.adapter.scheduling.link_filter import LinkFilter
from scrapy_ubi.adapter.scheduling.link_scores import LinkScores
from scrapy_ubi.adapter.scheduling.seeds import LEAST, Seeds
from scrapy_ubi.agent import Node, Visit
from scrapy_ubi.agent.work.discover import Holds, holders
from scrapy_ubi.agent.work.link_verdict import Verdict
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.key import seed_key

T = TypeVar("T")

# What is decided of: its number among the links of its object, its URL, the normal form of that before lossy steps, its
# partition key, its key, its priority. A bare tuple, as one is made for every plain link.
Candidate = tuple[int, str, str, str, int, int]


class Spelling(NamedTuple):
    """How a candidate is written where steps of the normal form are lossy: the key that it would have without these,
    its normal form, and the steps that have changed it. `again`: it is to be fetched for its own sake, so nothing is
    counted as joined by it."""

    key: int
    normal: str
    steps: tuple[str, ...]
    again: bool = False


class KnownHosts(dict[str, Holds]):
    """What is known of hosts, by partition key, for one turn of the loop; to be cleared when the node was told of
    something."""

    def __init__(self, holder: Callable[[str], Holds]) -> None:
        super().__init__()
        self._holder = holder

    def __missing__(self, host: str) -> Holds:
        holds = self[host] = self._holder(host)
        return holds


class CandidateBatch:
    """What candidates have in common; each door has its own class. `page`: on which page they were found, None where
    that is not known; `came_by`: the URL of a page that led there nevertheless, as a redirect says; `suspicious`:
    whether a host of theirs may be private, as it is written."""

    page: Visit | None
    depth: int
    seed = False
    came_by = ""
    suspicious = True
    hosts: KnownHosts  # of batches of many

    def request(self, candidate: Candidate) -> Request:
        """Return the request of a candidate."""
        raise NotImplementedError

    def entry(self, candidate: Candidate) -> Entry:
        """Make the entry of a candidate."""
        raise NotImplementedError

    def entries(self, candidates: Iterable[Candidate]) -> dict[str, list[Entry]]:
        """Make the entries of candidates, by host, in their order."""
        found: dict[str, list[Entry]] = {}
        for candidate in candidates:
            found.setdefault(candidate[3], []).append(self.entry(candidate))
        return found


class LinkDecision:
    """Decides for one agent. Its parts are public, as the doors use the same ones. `scores`: None where neither
    UBI_SCORE is set."""

    def __init__(
        self,
        settings: UbiSettings,
        codec: Codec,
        keys: RequestKeys,
        node: Node,
        flights: Flights,
        link_filter: LinkFilter,
        drops: Drops,
        reach: Reach,
        seeds: Seeds,
        scores: LinkScores | None = None,
    ) -> None:
        self.settings = settings
        self.codec = codec
        self.keys = keys
        self.node = node
        self.flights = flights
        self.link_filter = link_filter
        self.drops = drops
        self.reach = reach
        self.seeds = seeds
        self.scores = scores

    # -- is it known?

    def is_known(
        self, host: str, key: int, depth: int, priority: int, make: Callable[[T], Request] | None, of: T
    ) -> bool:
        """Whether a link is a duplicate of what the node knows, or of a seed of its page; counted by the node if so.
        `make(of)` gives its request, where that is needed; None: of a seed, which no other stands for. Of what is under
        way its door knows, as it may be a retry."""
        if self.node.met(host, key, depth, priority):
            return True
        return make is not None and key in self.seeds.pages and self.is_seed(host, key, depth, make(of))

    def is_seed(self, host: str, key: int, depth: int, request: Request) -> bool:
        """Whether a link with this key, one of `seeds.pages`, is the same request as a seed that is known."""
        nonce = self.seeds.nonce(request)
        return bool(nonce) and self.node.met(host, seed_key(key, nonce), depth, LEAST)

    def known_hosts(self) -> KnownHosts:
        """Return what `unknown` asks in this turn of the loop."""
        return KnownHosts(holders(self.node.agent))

    def unknown(self, batch: CandidateBatch, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return those that are not known, as far as was looked: all that is asked by `is_known`, and whether they are
        under way, of all at once."""
        out = self.flights.keys
        if batch.page is None:
            return [candidate for candidate in candidates if candidate[4] not in out]
        agent = self.node.agent
        strays = agent.closing.strays
        seeds = self.seeds.pages
        hosts = batch.hosts
        depth = batch.depth
        rest: list[Candidate] = []
        met = 0
        for candidate in candidates:
            _, _, _, host, key, priority = candidate
            if key in out:
                continue
            if key not in strays and hosts[host](key, depth, priority):
                met += 1
            elif not (key in seeds and self.is_seed(host, key, depth, batch.request(candidate))):
                rest.append(candidate)
        agent.counters.links += met
        return rest

    # -- what becomes of it?

    def decide_one(
        self, batch: CandidateBatch, candidate: Candidate, spelling: Spelling | None = None, asked: bool = False
    ) -> Verdict:
        """Decide on a candidate, from the first question on. `asked`: it is no duplicate, as far as that can be asked.
        `spelling`: given where steps of the normal form are lossy."""
        _, url, _, host, key, priority = candidate
        verdict = Verdict.KNOWN
        if key not in self.flights.keys:
            asks = not asked and (batch.page is not None or batch.seed)
            make = None if batch.seed else batch.request
            if not (asks and self.is_known(host, key, batch.depth, priority, make, candidate)):
                verdict = self._decide_new(batch, candidate)
        if spelling is not None:
            self.count_joined(verdict, url, key, spelling)
        return verdict

    def _decide_new(self, batch: CandidateBatch, candidate: Candidate) -> Verdict:
        """Decide on a candidate that is not known, as far as was asked."""
        _, url, safe, host, _, _ = candidate
        node = self.node
        page = batch.page
        if (page is None or self.reach.suspects(safe)) and self.is_unreachable(
            url, page.entry.url if page is not None else batch.came_by, batch.depth
        ):
            return Verdict.UNREACHABLE
        if page is None and not batch.seed and node.over:
            self.drops.late(batch.request(candidate))
            return Verdict.LATE
        verdict = node.discover(host, batch.entry(candidate), seed=batch.seed, page=page)
        if verdict is Verdict.TOO_LARGE:
            self.drops.too_large(url)
        return verdict

    def decide(self, batch: CandidateBatch, candidates: Sequence[Candidate]) -> list[Verdict]:
        """Decide on candidates that are not known, as far as was asked: a verdict for each, host by host. The same as
        one by one, but the node is told once of all links of a page to one host, which costs half as much."""
        page = batch.page
        if page is None:
            return [self._decide_new(batch, candidate) for candidate in candidates]
        verdicts: list[Verdict] = []
        if batch.suspicious:
            reachable = self._reachable(candidates, page.entry.url, batch.depth)
            verdicts += [Verdict.UNREACHABLE] * (len(candidates) - len(reachable))
            candidates = reachable
        for host, entries in batch.entries(candidates).items():
            no_news = self.node.discover_all(host, entries, page)
            verdicts += [Verdict.FOUND] * (len(entries) - len(no_news))
            for entry, verdict in no_news:
                verdicts.append(verdict)
                if verdict is Verdict.TOO_LARGE:
                    self.drops.too_large(entry.url)
        return verdicts

    def _reachable(self, candidates: Sequence[Candidate], page: str, depth: int) -> Sequence[Candidate]:
        """Return those that may be followed from a page."""
        suspects = self.reach.suspects
        return [each for each in candidates if not (suspects(each[2]) and self.is_unreachable(each[1], page, depth))]

    def count_joined(self, verdict: Verdict, url: str, key: int, spelling: Spelling) -> None:
        """Count what lossy steps have joined."""
        joins = self.node.joins
        if verdict is Verdict.FOUND:
            joins.first(spelling.key, key, url, spelling.steps)
        elif verdict is Verdict.KNOWN and not spelling.again:
            joins.known(spelling.key, key, url, spelling.normal, spelling.steps)

    def is_unreachable(self, url: str, page: str, depth: int) -> bool:
        """Whether a link to `url`, found on the page of that URL, may not be followed; counted and noted if so. What
        comes from no page ("") is the user's own."""
        if not page:
            self.reach.seed(url)
            return False
        refusal = self.reach.refusal(url, page)
        if refusal is None:
            return False
        kind, sentence = refusal
        self.drops.drop(kind, sentence)
        self.link_filter.note(kind, sentence, url, depth, page)
        return True

    # -- what is no candidate

    def refuse(self, verdict: Verdict, sentence: str) -> Verdict:
        """Drop something for a reason that a door sees: counted as the table of verdicts has it."""
        (stat,) = verdict.stats
        self.drops.drop(stat.rpartition("/")[2], sentence)
        return verdict

    def refuse_too_long(self, url: str) -> Verdict:
        """Drop a URL that is longer than any request's may be."""
        return self.refuse(Verdict.TOO_LONG, f"{url[:200]}... is longer than URLLENGTH_LIMIT, and than 4,096")
