"""Seeds that bring limits, a scope and a label, by the log of the site and by the items."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from scrapy import Request, Spider
from scrapy.http import Response, TextResponse

from scrapy_ubi import PlainLinks
from tests.crawls.test_serve import Outside, serve
from tests.support.crawls import crawl, items_of, total
from tests.support.site import Page, Site, links

A, B, C = "http://www.a.example", "http://b.example", "http://c.example"
KNOWN = {"UBI_HOST_LIMITS": {}}


class Walk(Spider):
    """Follows every link; its items say which label their page has."""

    name = "walk"
    plain = False

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        yield {"url": response.url, "label": response.meta.get("ubi_label")}
        found = [response.urljoin(link) for link in response.css("a::attr(href)").getall()]
        if self.plain:
            yield PlainLinks(found)
        else:
            yield from map(Request, found)


class Plainly(Walk):
    plain = True


class Started(Walk):
    """Its own seeds have marks."""

    async def start(self) -> Any:
        marks = {"ubi_label": "a", "ubi_scope": "host", "ubi_limits": "pages=4"}
        yield Request(f"{A}/0", meta=marks)
        yield Request(f"{B}/0", meta={"ubi_label": {"from": "b"}, "ubi_scope": "host"})


@pytest.fixture
def web(site: Site) -> Site:
    """Three hosts of ten pages, each of which links to two of its own and one of the next host."""
    for place, other in ((A, B), (B, C), (C, A)):
        for number in range(10):
            own = [f"{place}/{(2 * number + more) % 10}" for more in (1, 2)]
            site.page(f"{place}/{number}", links(*own, f"{other}/{number}"))
    return site


def by_host(site: Site) -> Counter[str]:
    return Counter(urlsplit(visit.url).netloc for visit in site.visits)


@pytest.mark.parametrize("agents", [1, 3])
@pytest.mark.parametrize("spider", [Walk, Plainly])
def test_links_keep_to_the_scope_and_carry_the_label(web: Site, agents: int, spider: type[Spider]) -> None:
    async def scene(outside: Outside) -> None:
        first = outside.push(f"{A}/0", scope="host", label="library", limits="pages=6")
        second = outside.push(request=json.dumps({"url": f"{B}/0", "scope": "host", "label": {"from": "b"}}))
        assert await outside.told(first, second) == ["OK", "OK"]
        await outside.quiet()

    outcomes = serve(web, scene, agents, spider, **KNOWN)
    assert by_host(web) == {"www.a.example": 6, "b.example": 10}
    items = items_of(outcomes)
    assert {item["label"] for item in items if "a.example" in item["url"]} == {"library"}
    assert {item["from"] for item in items if "b.example" in item["url"]} == {"b"}
    assert total(outcomes, "ubi/seeds/links_out_of_scope") == 16


@pytest.mark.parametrize("agents", [1, 3])
def test_seeds_of_start_bring_them_as_well(web: Site, agents: int) -> None:
    outcomes = crawl(Started, web.proxy, agents, settings=KNOWN)
    assert by_host(web) == {"www.a.example": 4, "b.example": 10}
    assert {str(item["label"]) for item in items_of(outcomes)} == {"a", "{'from': 'b'}"}


class Wrongly(Walk):
    """Its seed has marks with mistakes."""

    async def start(self) -> Any:
        yield Request(f"{A}/0", meta={"ubi_scope": "hots", "ubi_limits": "pagse=4"})
        yield Request(f"{B}/0", meta={"ubi_label": 7})


class Copying(Walk):
    """Its links have all that their pages have."""

    async def start(self) -> Any:
        yield Request(f"{A}/0", meta={"ubi_limits": "pages=4"})

    def parse(self, response: Response) -> Iterator[Any]:
        for one in super().parse(response):
            yield one.replace(meta=response.meta.copy()) if isinstance(one, Request) else one


@pytest.mark.parametrize(
    ("spider", "settings", "said"),
    [
        (Started, {}, ["they have no effect without UBI_HOST_LIMITS"]),
        (Started, KNOWN, []),
        (Wrongly, KNOWN, ["ubi_limits: 'pagse' is no limit", "ubi_label: it is neither a short text"]),
    ],
)
def test_marks_of_start_that_have_no_effect_are_said_once(
    web: Site, caplog: pytest.LogCaptureFixture, spider: type[Spider], settings: dict[str, Any], said: list[str]
) -> None:
    crawl(spider, web.proxy, settings=settings)
    told = [record.getMessage() for record in caplog.records if "no effect" in record.getMessage()]
    assert len(told) == len(said) and all(part in one for part, one in zip(said, told, strict=True))


def test_limits_of_a_seed_are_those_of_its_host_though_links_copy_its_meta(web: Site) -> None:
    crawl(Copying, web.proxy, settings=KNOWN)
    assert by_host(web) == {"www.a.example": 4, "b.example": 10, "c.example": 10}


def test_a_known_seed_brings_its_limits_and_a_later_one_wins(web: Site) -> None:
    async def scene(outside: Outside) -> None:
        said = await outside.told(outside.push(f"{A}/0", scope="host", limits="pages=2"))
        await outside.quiet()
        said += await outside.told(outside.push(f"{A}/0", limits="pages=5, depth=9"))
        assert said == ["OK", "KNOWN"]
        (limits,) = [
            node.limits.of(state)
            for node in (one.node for one in outside.schedulers)
            if (state := node.frontier.find("www.a.example")) is not None
        ]
        assert (limits.pages, limits.depth) == (5, 9)

    serve(web, scene, spider=Walk, **KNOWN)
    assert by_host(web) == {"www.a.example": 2}


def test_a_seed_with_a_higher_limit_opens_a_host_again(web: Site) -> None:
    for number in range(10, 20):
        web.page(f"{A}/{number}", links(f"{A}/{number + 1}"))

    async def scene(outside: Outside) -> None:
        said = await outside.told(outside.push(f"{A}/0", scope="host", limits="pages=2"))
        await outside.quiet()
        said += await outside.told(outside.push(f"{A}/10"))
        said += await outside.told(outside.push(f"{A}/10", scope="host", limits="pages=6"))
        assert [one.split()[0] for one in said] == ["OK", "REFUSED", "OK"]
        await outside.quiet()

    serve(web, scene, spider=Walk, **KNOWN)
    assert by_host(web) == {"www.a.example": 6}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"scope": "planet"}, "scope: 'planet' is none of host, domain, prefix"),
        ({"limits": "pages=x"}, "limits: pages='x' is no number"),
        ({"limits": "{"}, "is no JSON"),
        ({"label": ""}, "label: it is neither"),
        ({"label": '{"a": 5}'}, "label: it is neither"),
        ({"label": "x" * 300}, "label: it is neither"),
    ],
)
def test_what_does_not_hold_is_refused_with_the_reason(web: Site, fields: dict[str, str], why: str) -> None:
    async def scene(outside: Outside) -> None:
        (said,) = await outside.told(outside.push(f"{A}/0", **fields))
        assert said.startswith("REFUSED") and why in said

    serve(web, scene, **KNOWN)
    assert not web.visits


def test_a_crawl_without_limits_of_hosts_takes_none_and_says_so(web: Site) -> None:
    async def scene(outside: Outside) -> None:
        (said,) = await outside.told(outside.push(f"{A}/0", label="x"))
        assert said.startswith("REFUSED") and "UBI_HOST_LIMITS" in said

    serve(web, scene)
    assert not web.visits


def test_the_scope_knows_where_its_seed_was_redirected_to(web: Site) -> None:
    web.page(f"{A}/start", lambda visit: Page("", 301, {"Location": f"{B}/0"}))

    async def scene(outside: Outside) -> None:
        await outside.told(outside.push(f"{A}/start", scope="host"))
        await outside.quiet()

    serve(web, scene, spider=Walk, **KNOWN)
    assert by_host(web) == {"www.a.example": 1, "b.example": 10}
