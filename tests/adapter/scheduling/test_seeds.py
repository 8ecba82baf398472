"""Start requests with dont_filter=True: each once in the whole cluster, beside a link to the same page, unless the link
would give the same."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import ACCEPTED_ENCODINGS

from scrapy_ubi.adapter.requests.check import NONCE
from scrapy_ubi.adapter.requests.codec import Codec
from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.adapter.scheduling import seeds as seeds_module
from scrapy_ubi.adapter.scheduling.seeds import Seeds
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.key import SEED, seed_key

URL = "http://h1.example/"
REFERER = {"Referer": "http://h2.example/"}


class Walk(Spider):
    name = "walk"

    def parse(self, response: Any) -> None:
        """Nothing."""

    def other(self, response: Any) -> None:
        """Another callback."""

    def lost(self, failure: Any, more: Any = None) -> None:
        """An errback."""


class World:
    """The seeds of one agent."""

    def __init__(self, **settings: Any) -> None:
        self.spider = Walk()
        self.keys = RequestKeys(UbiSettings())
        self.codec = Codec(self.spider, Crawler(Walk, settings).settings)
        self.seeds = Seeds(self.keys, self.codec)

    def seed(self, **arguments: Any) -> int:
        """The key of a seed that start() yields."""
        request = Request(URL, dont_filter=True, **arguments)
        place = self.keys.place(request)
        assert place is not None
        self.seeds.mark(request, place)
        return self.keys.key(request, place)

    def link(self, **arguments: Any) -> tuple[Request, int]:
        request = Request(URL, **arguments)
        place = self.keys.place(request)
        assert place is not None
        return request, self.keys.key(request, place)


def _more(of: World) -> list[dict[str, Any]]:
    """What seeds and links of one page may be told apart by."""
    return [
        {},
        {"callback": of.spider.other},
        {"errback": of.spider.lost},
        {"cb_kwargs": {"word": 1}},
        {"cb_kwargs": {"word": 2}},
        {"meta": {"cookiejar": 1}},
        {"meta": {"cookiejar": "1"}},
        {"headers": {"X": "y"}},
        {"cookies": {"a": "b"}},
    ]


def test_seeds_of_one_page_that_differ_are_each_a_request_and_the_same_at_every_agent() -> None:
    keys = [[of.seed(**more) for more in _more(of)] for of in (World(), World())]
    assert keys[0] == keys[1] and len(set(keys[0])) == len(keys[0])
    of = World()
    assert of.link()[1] not in keys[0] and of.seed() == seed_key(of.link()[1])


def test_seeds_that_are_alike_in_everything_are_one() -> None:
    of = World()
    assert [of.seed(**more) for more in _more(of)] == [of.seed(**more) for more in _more(of)]
    assert of.seed() == of.seed(callback=of.spider.parse) == of.seed(meta={"is_start_request": True})


def test_what_every_agent_has_a_value_of_its_own_for_makes_no_seed_of_its_own() -> None:
    """Such as the time in its meta: the first of each agent is the same seed."""
    assert World().seed(meta={"began": 1.0}) == World().seed(meta={"began": 2.0})


def test_seeds_with_callbacks_that_have_no_name_are_told_apart_by_where_they_are_written() -> None:
    functions: list[Callable[..., None]] = [lambda response: None, lambda response: print()]
    keys = [[of.seed(callback=function) for function in functions] for of in (World(), World())]
    assert keys[0] == keys[1]


def test_seeds_that_hold_what_cannot_travel_are_each_a_request_as_nobody_can_tell_whether_they_are_alike() -> None:
    """As `for city in cities: yield Request(URL, dont_filter=True, callback=lambda response, city=city: ...)`."""
    keys = [
        [of.seed(callback=lambda response, city=city: None) for city in "abc"]
        + [of.seed(cb_kwargs={"city": lambda city=city: city}) for city in "abc"]
        for of in (World(), World())
    ]
    assert keys[0] == keys[1] and len(set(keys[0])) == 6


def test_seeds_that_hold_what_cannot_travel_and_others_are_numbered_together_and_told_apart() -> None:
    more: list[dict[str, Any]] = [{"cb_kwargs": {"at": value}} for value in (1, lambda: 1, 2, lambda: 2, 1, 2)]
    keys = [[of.seed(**each) for each in more] for of in (World(), World())]
    assert keys[0] == keys[1] and len(set(keys[0])) == 4
    assert keys[0][0] == keys[0][4] and keys[0][2] == keys[0][5]


def test_of_a_seed_that_holds_what_cannot_travel_nothing_is_kept_but_a_number() -> None:
    of = World()
    for number in range(1000):
        of.seed(cb_kwargs={"at": (number, lambda: None)})
    assert len(of.seeds._carried) == 1 and not of.seeds._alike


def test_where_too_many_seeds_of_a_page_are_remembered_further_ones_are_each_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seeds_module, "MOST_CARRIED", 3)
    keys = [[of.seed(cb_kwargs={"at": at}) for at in (1, 2, 3, 4, 4, 1)] for of in (World(), World())]
    assert keys[0] == keys[1] and len(set(keys[0])) == 5 and keys[0][0] == keys[0][5]


def test_where_seeds_of_too_many_pages_are_remembered_those_of_further_ones_are_told_apart_by_their_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seeds_module, "MOST_CARRIED", 1)
    keys = []
    for of in (World(), World()):
        of.seed(meta={"cookiejar": 9})
        alike = [of.seed(cb_kwargs={"at": at}) for at in (1, 2, 1)]
        assert alike[0] == alike[2] != alike[1]
        keys.append([*alike, *(of.seed(cb_kwargs={"at": lambda: 1}) for _ in range(3))])
        assert len(of.seeds._carried) == 1
    assert keys[0] == keys[1] and len(set(keys[0])) == 5


def test_a_seed_that_has_a_nonce_keeps_it() -> None:
    assert World().seed(meta={NONCE: "of a trial"}) != World().seed()


def test_a_bare_link_has_the_nonce_of_the_bare_seed_with_its_callback() -> None:
    of = World()
    assert of.seed() and of.seed(callback=of.spider.other)
    for alike in ({}, {"headers": REFERER}, {"meta": {"depth": 3}}, {"callback": of.spider.parse}, {"priority": 5}):
        request, key = of.link(**alike)
        assert key in of.seeds.pages and seed_key(key, of.seeds.nonce(request)) == of.seed()
    request, key = of.link(callback=of.spider.other, meta={"redirect_urls": [URL]})
    assert seed_key(key, of.seeds.nonce(request)) == of.seed(callback=of.spider.other)
    for more in [*_more(of)[3:], {"meta": {"page": 2}}, {"callback": print}, {"encoding": "latin-1"}]:
        assert not of.seeds.nonce(of.link(**more)[0]), more
    assert not of.seeds.nonce(FormRequest(URL))


def test_only_bare_seeds_are_like_links() -> None:
    of = World()
    of.seed(cb_kwargs={"word": 1})
    assert not of.seeds.pages


@pytest.mark.parametrize("more", [{}, {"headers": REFERER, "meta": {"depth": 2}}])
def test_a_link_that_has_its_turn_is_told_by_the_key_of_the_seed(more: dict[str, Any]) -> None:
    of = World()
    request, key = of.link(**more)
    encoded = of.codec.encode(request)
    visit: Any = type("Visit", (), {"entry": Entry(key, URL, 1, 0, encoded.text)})
    assert of.seeds.key_beside(visit, request) == of.seed()
    for other in (Request(URL, dont_filter=True), Request(URL, meta={NONCE: "ubi-requeued.0"})):
        visit.entry = Entry(key, URL, 1, 0, of.codec.encode(other).text)
        assert of.seeds.key_beside(visit, other) is None


def test_the_usual_nonce_is_short() -> None:
    of = World()
    request = Request(URL, dont_filter=True)
    place = of.keys.place(request)
    assert place is not None
    of.seeds.mark(request, place)
    assert request.meta[NONCE] == SEED


def name(of: World, request: Request, seed: bool = False) -> str:
    """What the outputs of a page are called that is fetched for this request."""
    place = of.keys.place(request)
    assert place is not None
    if seed:
        of.seeds.mark(request, place)
    entry = Entry(of.keys.key(request, place), request.url, 0, 0, of.codec.encode(request).text)
    return of.seeds.name(SimpleNamespace(entry=entry), request)


def names(of: World, url: str = URL, seed: bool = False) -> list[str]:
    return [name(of, Request(url, dont_filter=seed, **more), seed) for more in _more(of)]


def test_a_seed_and_a_link_that_ask_for_the_same_have_one_name_and_no_others_have() -> None:
    of = World()
    seeds, links = names(of, seed=True), names(of)
    bare = len([1 for more in _more(of) if more.keys() <= {"callback", "errback"}])
    assert seeds[:bare] == links[:bare] and len(set(seeds)) == len(seeds)
    assert not set(seeds[bare:]) & set(links) and not set(seeds[:bare]) & set(links[bare:])
    assert links[0] == f"{of.link()[1]:016x}", "the page's key alone"
    assert not {*seeds, *links} & {*names(of, "http://h1.example/b", True), *names(of, "http://h1.example/b")}


def test_the_name_is_the_same_on_the_way_by_a_referer_a_redirect_or_a_retry() -> None:
    of = World()
    plain = name(of, Request(URL))
    assert plain == name(of, Request(URL, headers=REFERER, meta={"depth": 3, "redirect_times": 1}, priority=5))
    assert plain == name(of, Request(URL, meta={"retry_times": 2}))
    other = Request(URL, meta={"word": 1})
    assert plain != name(of, other) == name(of, other.replace(meta={"word": 1, "retry_times": 1}))


class Looks:
    """A downloader middleware of a project."""

    def process_request(self, request: Request) -> None:
        """Nothing."""


SCRAPYS = "scrapy.downloadermiddlewares"
AGENT = "scrapy_ubi"
ON_THE_WAY: dict[str, Any] = {
    "headers": {
        "Accept": "text/html",
        "Accept-Language": "en",
        "User-Agent": AGENT,
        "Accept-Encoding": b", ".join(ACCEPTED_ENCODINGS),
        **REFERER,
    },
    "meta": {"download_timeout": 180.0, "redirect_times": 1, "redirect_urls": ["http://h1.example/m"]},
}
SETTINGS = {"USER_AGENT": AGENT, "DEFAULT_REQUEST_HEADERS": {"Accept": "text/html", "Accept-Language": "en"}}


@pytest.mark.parametrize("place", [None, 1, 350, 543, 999])
def test_a_redirect_that_has_the_usual_headers_is_bare_whatever_middlewares_a_project_has(place: int | None) -> None:
    """As what it is redirected from was given them on the way."""
    of = World(DOWNLOADER_MIDDLEWARES={Looks: place} if place else {}, **SETTINGS)
    seed = of.seed()
    request, key = of.link(**ON_THE_WAY)
    visit: Any = SimpleNamespace(entry=Entry(key, URL, 1, 0, of.codec.encode(request).text))
    for met in (request, of.codec.decode(visit.entry)):
        assert seed_key(key, of.seeds.nonce(met)) == seed
        assert of.seeds.key_beside(visit, met) in (seed, seed_key(key))
        assert of.seeds.name(visit, met) == name(of, Request(URL))


@pytest.mark.parametrize(
    "more",
    [
        {"headers": {"User-Agent": "another"}},
        {"headers": {"Accept": None}},
        {"headers": {"Cookie": "a=b"}},
        {"meta": {"download_timeout": 7}},
        {"meta": {"download_timeout": None}},
    ],
)
def test_what_differs_from_the_usual_is_not_bare(more: dict[str, Any]) -> None:
    of = World(DOWNLOADER_MIDDLEWARES={Looks: 543}, **SETTINGS)
    assert not of.seeds.nonce(of.link(**more)[0])


@pytest.mark.parametrize("switched_off", ["defaultheaders.DefaultHeadersMiddleware", "useragent.UserAgentMiddleware"])
def test_a_header_is_usual_only_where_a_middleware_sets_it(switched_off: str) -> None:
    of = World(DOWNLOADER_MIDDLEWARES={f"{SCRAPYS}.{switched_off}": None}, **SETTINGS)
    assert not of.seeds.nonce(of.link(**ON_THE_WAY)[0])


def test_a_seed_that_is_given_the_usual_headers_by_the_spider_is_another_one_than_the_bare_one() -> None:
    """Plain Scrapy fetches both."""
    of = World(**SETTINGS)
    assert of.seed(headers=ON_THE_WAY["headers"]) != of.seed()


def test_a_request_that_is_to_be_fetched_anyway_has_a_name_of_its_own() -> None:
    of = World()
    again = Request(URL, dont_filter=True, meta={NONCE: "0123456789abcdef"})
    assert name(of, again) not in {*names(of), *names(of, seed=True)}
    turned = {NONCE: SEED, "redirect_urls": [URL], "redirect_times": 1}  # to where it has been
    assert name(of, Request(URL, dont_filter=True, meta=turned)) not in {*names(of), *names(of, seed=True)}
