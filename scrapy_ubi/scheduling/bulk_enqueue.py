"""How plain links are taken: all of a page in one loop, without a request for each.

Rules of this module:

* What becomes of a link is what becomes of its request in `Enqueue.take`, with the same stats, after what Scrapy's own
  middlewares would have done (`scrapy_rules`). tests/scheduling/test_bulk_enqueue.py compares the two.
* Most links are known: for these nothing is made but a match, a hash and a look (where it has several arguments, or one
  that is not in normal form, its normal form as well). Those that are news are told the node
  at once, host by host.
* What is no link of a host (`data:`, `ftp:`), and what cannot be said once for all links, goes the ordinary way.
* Nothing that a page contains raises anything. `page_links` says how many links are taken without a break.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from mmh3 import hash128
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.node import Visit
from scrapy_ubi.node.work.discover import Holds, holders
from scrapy_ubi.node.work.link_verdict import Verdict
from scrapy_ubi.plainlinks import PlainLinks, spider_of
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.requests.identity import Place
from scrapy_ubi.scheduling.decide import Found, Tools
from scrapy_ubi.scheduling.scrapy_rules import ScrapyRules, host_name
from scrapy_ubi.urls import normal_form, url_key
from scrapy_ubi.urls.canonical import usual_parts
from scrapy_ubi.urls.filters import Link
from scrapy_ubi.urls.host_shards import MARK
from scrapy_ubi.urls.key import URL_SEED

_LOW = (1 << 64) - 1
_SHRINKS = 100  # characters, besides white space, that a URL may lose when it is made safe: in its host, or `?` and `#`

_new = tuple.__new__  # half the time of calling the class

Ordinary = Callable[[Request], None]  # take this request as if the page had yielded it


class Shared(NamedTuple):
    """What the links of one object have in common. `template` is given where every link has a text of its own."""

    text: str
    depth: int
    priority: int
    anywhere: bool  # no site is off limits
    template: Request | None


def _from_nowhere(key: int, depth: int, priority: int) -> bool:
    """Stands for what is known of a host where links come from no page."""
    return False


def _off_site(key: int, depth: int, priority: int) -> bool:
    """Stands for a host whose links are dropped."""
    return False


class BulkEnqueue:
    """The links of one object while they are taken."""

    def __init__(
        self,
        crawler: Crawler,
        tools: Tools,
        passing: ScrapyRules,
        plain: PlainLinks,
        response: Response,
        page: Visit | None,
        shared: Shared,
        ordinary: Ordinary,
    ) -> None:
        self._crawler, self._tools, self._passing = crawler, tools, passing
        self._plain, self._response, self._page, self._ordinary = plain, response, page, ordinary
        self._shared = shared
        self._hosts: dict[str, Holds] = {}  # name -> what is known of the host, or why nothing is
        self._suspects: set[str] = set()  # names that this page's links may not lead to
        flight = tools.flights.get(response.request)
        self._links = flight.links if flight is not None else None
        self._filters = not self._tools.link_filter.idle
        self._offsite = not shared.anywhere and self._passing.has_offsite
        self._quick = self._tools.keys.plain
        self._host_of = None if self._tools.keys.by_name else self._tools.keys.host_of  # None: its name is its host
        self._longest = min(self._tools.settings.max_url_length, self._passing.longest)
        self._holder: Callable[[str], Holds] = lambda host: _from_nowhere
        self._taken = self._known = self._apart = self._first = 0
        self._priorities: Sequence[int] | None = None

    def run(self, start: int, stop: int) -> int:
        """Take the links from one number to another, without a break; how many were no ordinary requests."""
        agent = self._tools.node.agent
        hosts, self._holder = self._hosts, holders(agent)
        hosts.clear()  # the view may have changed meanwhile
        out, strays, longest, quick = self._tools.flights.keys, agent.closing.strays, self._longest, self._quick
        filters, depth, priority, met = self._filters, self._shared.depth, self._shared.priority, 0
        scores = self._score(start, stop) if self._tools.scores is not None else None
        suspects, seeds = self._suspects, self._tools.seeds.pages
        forms = self._links.forms if self._links is not None else None
        host_of, alike, text = self._host_of, self._shared.template is None, self._shared.text
        links = self._plain.urls[start:stop]
        form_of = self._tools.keys.normal_form if quick else normal_form
        found: dict[str, list[Entry]] = {}  # by host: links that are news, as far as was looked
        for number, url in enumerate(links, start):
            if scores is not None:
                priority = scores[number - start]
            match = usual_parts(url) if type(url) is str and len(url) <= longest else None
            if match is None or "/." in url:
                self._discover_all(found)  # a host's links are queued in the order of the page
                self._take_odd(number, url)
                continue
            normal, name, rest = match.groups()
            if rest is not None:  # most often arguments, which have to be put in order
                normal = form_of(url) or normal
            if not quick:
                self._note(url)
                self._take_slowly(number, url, normal, name)
                continue
            if forms is not None:
                forms.append(normal)
            holds = hosts.get(name) or self._look(name, normal)
            if holds is _off_site:
                self._passing.refuse_off_site(name, url)
                continue
            if filters:
                self._discover_all(found)  # a filter may ask whether it is known
                if self._is_filtered(number, url, normal if rest is None else normal_form(url) or ""):
                    continue
            key = hash128(normal, URL_SEED) & _LOW
            if key in out:
                self._known += 1
            elif key not in strays and holds(key, depth, priority):
                met += 1
            elif key in seeds and self._is_seed(url, key, self._host(name, normal)):
                self._known += 1
            elif holds is _from_nowhere:
                self._decide(number, url, Place(self._host(name, normal), normal, normal), key, asked=True)
            elif suspects and name in suspects and self._is_unreachable(url):
                continue
            else:
                entry = _new(Entry, (key, url, depth, priority, text if alike else self._text(number, url)))
                found.setdefault(name if host_of is None else host_of(normal), []).append(entry)
        agent.counters.links += met
        self._discover_all(found)
        return self._count(met, len(links))

    def _score(self, start: int, stop: int) -> Sequence[int]:
        """The priorities of the links from one number to another, which have scores."""
        assert self._tools.scores is not None
        shared, page = self._shared, self._page.entry.url if self._page is not None else ""
        scores = self._tools.scores.of_links(self._plain, start, stop, shared.depth, page)
        self._first, self._priorities = start, [shared.priority + score for score in scores]
        return self._priorities

    def _note(self, url: str) -> None:
        """A link whose normal form is not known here, for the stores that keep links."""
        if self._links is not None:
            self._links.urls.append(url)

    def _decide(self, number: int, url: str, place: Place, key: int, asked: bool) -> None:
        """What becomes of a link: counted by what the decision says. `asked`: it is no duplicate."""
        tools, shared = self._tools, self._shared
        spelling = url_key("GET", place.safe) if tools.keys.lossy else None
        priority = shared.priority if self._priorities is None else self._priorities[number - self._first]
        found = Found(url, place, key, shared.depth, priority, self._page, False, "", spelling, False)
        if key in tools.flights.keys:
            verdict = tools.known(found)
        else:
            verdict = tools.decide(
                found,
                asked,
                lambda: self._request(url, key),
                lambda: Entry(key, url, shared.depth, priority, self._text(number, url)),
            )
        self._taken += verdict is Verdict.FOUND
        self._known += verdict is Verdict.KNOWN

    def _is_unreachable(self, url: str) -> bool:
        """Whether this link may not be followed; counted and noted if so."""
        page = self._page.entry.url if self._page is not None else ""
        return self._tools.is_unreachable(url, page, self._shared.depth)

    def _is_seed(self, url: str, key: int, host: str) -> bool:
        """Whether a link of a page to a page of `seeds.pages` is the same request as its seed."""
        if self._page is None:
            return False
        return self._tools.is_seed(host, key, self._shared.depth, self._request(url, key))

    def _request(self, url: str, key: int) -> Request:
        """The request of a link, as far as the links of the object have it in common."""
        shared = self._shared
        if shared.template is not None:
            request = shared.template.replace(url=url)
            if self._plain.link_texts:
                request.meta["link_text"] = ""
            return request
        return self._tools.codec.decode(Entry(key, url, shared.depth, shared.priority, shared.text))

    def _host(self, name: str, normal: str) -> str:
        return name if self._host_of is None else self._host_of(normal)

    def _look(self, name: str, normal: str) -> Holds:
        """What is known of the host of this normal form, for the links that follow: of all of that name, but where
        they may be of several shards."""
        place = name
        holds: Holds = _from_nowhere  # what comes from no page is told the node in any case
        if self._offsite and self._passing.off_site(name):
            holds = _off_site
        elif self._page is not None:
            if name.endswith("localhost") and self._tools.reach.suspects(normal):
                self._suspects.add(name)  # an address is never written as usual: it does not come here
            host = self._host(name, normal)
            if MARK in host:
                place = host
            holds = self._hosts.get(place) or self._holder(host)
        self._hosts[place] = holds
        return holds

    def _discover_all(self, found: dict[str, list[Entry]]) -> None:
        """Links that are news, as far as was looked; afterwards there are none left."""
        node, page = self._tools.node, self._page
        if found:
            self._hosts.clear()  # of a host that was not known something is known now
        for host, entries in found.items():
            assert page is not None, "what comes from no page is told one by one"
            no_news = node.discover_all(host, entries, page)
            self._taken += len(entries) - len(no_news)
            for entry, verdict in no_news:
                self._known += verdict is Verdict.KNOWN
                if verdict is Verdict.TOO_LARGE:
                    self._tools.drops.too_large(entry.url)
        found.clear()

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
        text = self._tools.codec.encode(request).text
        self._tools.drops.look_at_size(request, text)
        return text

    def _is_filtered(self, number: int, url: str, safe: str) -> bool:
        page = self._page.entry.url if self._page is not None else ""
        link = Link(url, safe, self._shared.depth, page)
        return self._tools.link_filter.refuses_link(link, partial(self._is_visited, number, url))

    def _is_visited(self, number: int, url: str) -> bool:
        """As `Enqueue.is_visited`."""
        keys, shared = self._tools.keys, self._shared
        place = None if keys.lossy else keys.place_of(url)
        if place is None:
            return False
        key = url_key("GET", place.normal)
        priority = shared.priority if self._priorities is None else self._priorities[number - self._first]
        if self._tools.node.met(place.host, key, shared.depth, priority):
            return True
        return key in self._tools.seeds.pages and self._is_seed(url, key, place.host)

    # Links that need more than a look

    def _take_odd(self, number: int, found: Any) -> None:
        """Take a link that is not written as usual, or too long."""
        tools = self._tools
        if self._is_far_too_long(found):
            return
        try:
            url = Request(found).url
        except (ValueError, TypeError):
            self._apart += 1
            tools.drops.drop("malformed", f"{found!r:.200} is no URL")
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
        most, passing = self._longest + _SHRINKS, self._passing
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
        if self._offsite and passing.off_site(name):
            passing.refuse_off_site(name, url)
        else:
            self._tools.too_long(url)
        return True

    def _take_slowly(self, number: int, url: str, safe: str, name: str) -> None:
        """Take a link whose place takes more than one look. `safe`: its normal form by the safe steps; `name`: its
        host."""
        tools = self._tools
        if self._offsite and self._passing.off_site(name):
            self._passing.refuse_off_site(name, url)
            return
        if self._filters and self._is_filtered(number, url, safe):
            return
        place = tools.keys.place_of(url)
        if place is None:
            self._apart += 1
            self._take_ordinary(number, url)
        elif len(url) > tools.settings.max_url_length:
            tools.too_long(url)
        else:
            self._decide(number, url, place, url_key("GET", place.normal), asked=False)

    def _take_ordinary(self, number: int, url: str) -> None:
        """Take a link that belongs to no host: this agent handles it itself."""
        text = self._plain.link_texts[number] if self._plain.link_texts else None
        request = self._plain.request(spider_of(self._crawler), url, text)
        if request is not None and (passed := self._passing.one(request, self._response)) is not None:
            self._ordinary(passed)

    def _count(self, met: int, links: int) -> int:
        """Add to the stats what this slice has come to."""
        stats = self._crawler.stats
        plain = links - self._apart
        self._passing.count(self._shared.depth, plain)
        if self._taken:
            stats.inc_value("ubi/scheduler/enqueued", self._taken)
        if known := self._known + met:
            stats.inc_value("ubi/scheduler/duplicates", known)
        self._taken = self._known = self._apart = 0
        return plain
