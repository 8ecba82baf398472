"""The door of plain links: all of a page are taken in one loop, without a request for each.

Rules of this module:

* What becomes of a link is what becomes of its request in `Enqueue.take_request`, with the same stats, after what
  Scrapy's own middlewares would have done (`scrapy_rules`). tests/adapter/scheduling/test_bulk_enqueue.py compares
  the two.
* Most links are written as usual, and known: for these nothing is made but a match, a hash and a candidate of
  `link_decision` (where a link has several arguments, or one that is not in normal form, its normal form as well).
  They are decided on together; so are those between two that are odd, as a host's links are queued in their order.
* What is no link of a host (`data:`, `ftp:`), and what cannot be said once for all links, goes the ordinary way.
* Nothing that a page contains raises anything. `page_links` says how many links are taken without a break.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from mmh3 import hash128
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.adapter.extraction.plainlinks import PlainLinks, spider_of
from scrapy_ubi.adapter.requests.identity import Place, site_of
from scrapy_ubi.adapter.requests.made_again import host_name
from scrapy_ubi.adapter.scheduling.link_decision import Candidate, CandidateBatch, LinkDecision, Spelling
from scrapy_ubi.adapter.scheduling.scrapy_rules import ScrapyRules
from scrapy_ubi.agent import Visit
from scrapy_ubi.agent.work.link_verdict import Verdict
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.urls import normal_form, url_key
from scrapy_ubi.urls.canonical import odd_parts, usual_parts
from scrapy_ubi.urls.filters import Link
from scrapy_ubi.urls.host_shards import MARK
from scrapy_ubi.urls.key import URL_SEED

_LOW = (1 << 64) - 1
_SHRINKS = 100  # characters, besides white space, that a URL may lose when it is made safe: in its host, or `?` and `#`

_OFF_SITE = "no site of the spider's"  # in place of a partition key

_new = tuple.__new__  # half the time of calling the class

Ordinary = Callable[[Request], None]  # take this request as if the page had yielded it


class Shared(NamedTuple):
    """What the links of one object have in common. `template` is given where every link has a text of its own."""

    text: str
    depth: int
    priority: int
    anywhere: bool  # no site is off limits
    template: Request | None


class BulkEnqueue(CandidateBatch):
    """The links of one object while they are taken."""

    def __init__(
        self,
        crawler: Crawler,
        decision: LinkDecision,
        passing: ScrapyRules,
        plain: PlainLinks,
        response: Response,
        page: Visit | None,
        shared: Shared,
        ordinary: Ordinary,
    ) -> None:
        self.page = page
        self.depth = shared.depth
        self.suspicious = False
        self._crawler = crawler
        self._decision = decision
        self._passing = passing
        self._plain = plain
        self._response = response
        self._ordinary = ordinary
        self._shared = shared
        self._page_url = page.entry.url if page is not None else ""
        self._usual: list[Candidate] = []  # to be decided on
        self._names: dict[str, str] = {}  # names of hosts met -> partition keys, or `_OFF_SITE`
        flight = decision.flights.get(response.request)
        self._links = flight.links if flight is not None else None
        self._filters = not decision.link_filter.idle
        self._offsite = not shared.anywhere and passing.sites.has_offsite
        self._quick = decision.keys.plain
        self._form_of = decision.keys.normal_form if self._quick else normal_form
        self._longest = min(decision.settings.max_url_length, passing.longest)
        self._taken = self._known = self._apart = 0  # links of this slice
        self._first = 0
        self._priorities: Sequence[int] | None = None

    def run(self, start: int, stop: int) -> int:
        """Take the links from one number to another, without a break; how many were no ordinary requests."""
        self.hosts = self._decision.known_hosts()  # the view may have changed meanwhile
        links = self._plain.urls[start:stop]
        scores = self._score(start, stop) if self._decision.scores is not None else None
        priority = self._shared.priority
        names = self._names
        forms = self._links.forms if self._links is not None else None
        longest = self._longest
        quick = self._quick
        filters = self._filters
        form_of = self._form_of
        fits = _fit(links, longest)
        add = self._usual.append
        for number, url in enumerate(links, start):
            match = usual_parts(url) if type(url) is str and (fits or len(url) <= longest) else None
            if match is not None:
                normal, name, rest = match.groups()
                site = name
                if rest is not None or "/." in url:  # most often arguments, which have to be put in order
                    rest = normal = form_of(url) or normal
            elif (odd := self._of_odd_site(url)) is not None:
                url, normal, name, site = odd
                rest = normal
            else:
                self._decide()
                self._take_odd(number, url)
                continue
            if not quick:
                self._note(url)
                self._take_slowly(number, url, normal, name)
                continue
            if forms is not None:
                forms.append(normal)
            host = names[site] if site in names else self._host(site, name, normal)
            if host is _OFF_SITE:
                self._passing.sites.refuse_off_site(name, url)
                continue
            if filters and self._is_filtered(number, url, normal if rest is None else normal_form(url) or ""):
                continue
            if scores is not None:
                priority = scores[number - start]
            add((number, url, normal, host, hash128(normal, URL_SEED) & _LOW, priority))
        self._decide()
        return self._count(len(links))

    def _decide(self) -> None:
        """Decide on the links met so far that are written as usual, in their order."""
        usual = self._usual
        if not usual:
            return
        rest = self._decision.unknown(self, usual)
        self._known += len(usual) - len(rest)
        if rest:
            self._tally(self._decision.decide(self, rest))
        usual.clear()

    def _tally(self, verdicts: Sequence[Verdict]) -> None:
        self._taken += verdicts.count(Verdict.FOUND)
        self._known += verdicts.count(Verdict.KNOWN)

    # -- what the decision asks for

    def request(self, candidate: Candidate) -> Request:
        """Return the request of a link, as far as the links of the object have it in common."""
        shared = self._shared
        if shared.template is not None:
            request = shared.template.replace(url=candidate[1])
            if self._plain.link_texts:
                request.meta["link_text"] = ""
            return request
        _, url, _, _, key, _ = candidate
        return self._decision.codec.decode(Entry(key, url, shared.depth, shared.priority, shared.text))

    def entry(self, candidate: Candidate) -> Entry:
        """Make the entry of a link."""
        number, url, _, _, key, priority = candidate
        self.hosts.clear()  # of a host that was not known something is known now
        return Entry(key, url, self.depth, priority, self._text(number, url))

    def entries(self, candidates: Iterable[Candidate]) -> dict[str, list[Entry]]:
        """Make the entries of links, by host, in their order."""
        if self._shared.template is not None:
            return super().entries(candidates)
        depth = self.depth
        text = self._shared.text
        found: dict[str, list[Entry]] = {}
        for _, url, _, host, key, priority in candidates:
            found.setdefault(host, []).append(_new(Entry, (key, url, depth, priority, text)))
        self.hosts.clear()
        return found

    def _text(self, number: int, url: str) -> str:
        """What a link says beside its URL; some say more than the others."""
        request = self._shared.template
        if request is None:
            return self._shared.text
        template = request  # its URL is no part of the text
        if self._plain.referer:
            request = template.replace(url=url)
            self._passing.referer(request, self._response)
        if self._plain.link_texts:
            request.meta["link_text"] = self._plain.link_texts[number]
        text = self._decision.codec.encode(request).text
        self._decision.drops.look_at_size(request, text)
        return text

    # -- what one look tells of a link

    def _of_odd_site(self, url: Any) -> tuple[str, str, str, str] | None:
        """The URL as a request has it, its normal form, the name of its host, and what stands before the path, of a
        link of which only that is not written as usual; None for others."""
        if type(url) is not str or not self._quick or (parts := odd_parts(url)) is None:
            return None
        before, usual, rest = parts.groups()
        site = site_of(before, self._form_of)
        if site is None:
            return None
        url = site.url + url[len(before) :]
        if len(url) > self._longest:
            return None
        normal = site.normal + usual if rest is None and "/." not in usual else self._form_of(url)
        return None if normal is None else (url, normal, site.name, site.normal)

    def _host(self, site: str, name: str, normal: str) -> str:
        """The partition key of a link, for all of that site, but where they may be of several shards; `_OFF_SITE` where
        no link may lead there. `site`: the name of its host, where that is written as usual."""
        if self._offsite and self._passing.sites.off_site(name):
            host = _OFF_SITE
        else:
            usual, keys = site is name, self._decision.keys
            host = name if usual and keys.by_name else keys.host_of(normal)
            if not usual or name.endswith("localhost"):  # it may be an address
                self.suspicious = True
        if MARK not in host:
            self._names[site] = host
        return host

    def _score(self, start: int, stop: int) -> Sequence[int]:
        """The priorities of the links from one number to another, which have scores."""
        scorer = self._decision.scores
        base = self._shared.priority
        assert scorer is not None
        scores = scorer.of_links(self._plain, start, stop, self.depth, self._page_url)
        self._first = start
        self._priorities = [base + score for score in scores]
        return self._priorities

    def _note(self, url: str) -> None:
        """A link whose normal form is not known here, for the stores that keep links."""
        if self._links is not None:
            self._links.urls.append(url)

    def _is_filtered(self, number: int, url: str, safe: str) -> bool:
        link = Link(url, safe, self.depth, self._page_url)
        return self._decision.link_filter.refuses_link(link, partial(self._is_visited, number, url))

    def _is_visited(self, number: int, url: str) -> bool:
        """As `Enqueue.is_visited`. What came before it is known by then."""
        self._decide()
        keys = self._decision.keys
        place = None if keys.lossy else keys.place_of(url)
        if place is None:
            return False
        candidate = self._candidate(number, url, place)
        _, _, _, host, key, priority = candidate
        return self._decision.is_known(host, key, self.depth, priority, self.request, candidate)

    # -- links that need more than a look

    def _take_odd(self, number: int, found: Any) -> None:
        """Take a link that is not written as usual, or too long."""
        if self._is_far_too_long(found):
            return
        try:
            url = Request(found).url
        except (ValueError, TypeError):
            self._apart += 1
            self._decision.refuse(Verdict.MALFORMED, f"{found!r:.200} is no URL")
            return
        self._note(url)
        if (safe := normal_form(url)) is None:
            self._apart += 1
            self._take_ordinary(number, found)
            return
        if not self._passing.too_long(url):
            self._take_slowly(number, url, safe, host_name(url))

    def _is_far_too_long(self, found: Any) -> bool:
        """Whether a link is too long whatever it is when made safe; dropped if so. To look at one of 50,000 characters,
        which all of a page's links are if its base is, takes 50 ms."""
        passing = self._passing
        most = self._longest + _SHRINKS
        if type(found) is not str or len(found) <= most or len(url := "".join(found.split())) <= most:
            return False
        name = host_name(url)
        if not name or not url[:8].lower().startswith(("http://", "https://")):
            return False
        try:
            if passing.too_long(url):
                return True
        except ValueError:  # a port that is none, for example
            return False
        if self._offsite and passing.sites.off_site(name):
            passing.sites.refuse_off_site(name, url)
        else:
            self._decision.refuse_too_long(url)
        return True

    def _take_slowly(self, number: int, url: str, safe: str, name: str) -> None:
        """Take a link whose place takes more than one look. `safe`: its normal form by the safe steps; `name`: its
        host."""
        decision = self._decision
        if self._offsite and self._passing.sites.off_site(name):
            self._passing.sites.refuse_off_site(name, url)
            return
        if self._filters and self._is_filtered(number, url, safe):
            return
        place = decision.keys.place_of(url)
        if place is None:
            self._apart += 1
            self._take_ordinary(number, url)
        elif len(url) > decision.settings.max_url_length:
            decision.refuse_too_long(url)
        else:
            self._take_placed(number, url, place)

    def _take_placed(self, number: int, url: str, place: Place) -> None:
        """Take a link of a host, alone: its host is written as any may be."""
        self.suspicious = True
        spelling = None
        if self._decision.keys.lossy:
            spelling = Spelling(url_key("GET", place.safe), place.normal, place.steps)
        verdict = self._decision.decide_one(self, self._candidate(number, url, place), spelling)
        self._tally((verdict,))

    def _candidate(self, number: int, url: str, place: Place) -> Candidate:
        priority = self._shared.priority if self._priorities is None else self._priorities[number - self._first]
        return number, url, place.safe, place.host, url_key("GET", place.normal), priority

    def _take_ordinary(self, number: int, url: str) -> None:
        """Take a link that belongs to no host: this agent handles it itself."""
        text = self._plain.link_texts[number] if self._plain.link_texts else None
        request = self._plain.request(spider_of(self._crawler), url, text)
        if request is not None and (passed := self._passing.one(request, self._response)) is not None:
            self._ordinary(passed)

    def _count(self, links: int) -> int:
        """Add to the stats what this slice has come to."""
        stats = self._crawler.stats
        plain = links - self._apart
        self._passing.depth.count(self._shared.depth, plain)
        if self._taken:
            stats.inc_value("ubi/scheduler/enqueued", self._taken)
        if self._known:
            stats.inc_value("ubi/scheduler/duplicates", self._known)
        self._taken = self._known = self._apart = 0
        return plain


def _fit(links: Sequence[Any], longest: int) -> bool:
    """Whether none of these links is longer than that; False where one has no length."""
    try:
        return max(map(len, links), default=0) <= longest
    except TypeError:
        return False
