"""REQUEST_FINGERPRINTER_CLASS decides which requests are the same one: keys, whole crawls, commands, refusals."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.settings import BaseSettings, Settings
from scrapy.utils.request import fingerprint

from scrapy_ubi import LinkExtractor, PlainLinks
from scrapy_ubi.adapter.requests.check import NONCE
from scrapy_ubi.adapter.requests.identity import FINGERPRINT_ERRORS, FingerprintKeys, RequestKeys
from scrapy_ubi.agent.crawl.pinned_settings import check_settings
from scrapy_ubi.agent.keys import REQUEUED, again_nonce
from scrapy_ubi.agent.profile.figures import fixed
from scrapy_ubi.errors import UbiRefused
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.settings import FINGERPRINTER, UbiSettings
from tests.support.crawls import FAST, crawl, items_of, total
from tests.support.site import Page, Site, Visit, links

HOSTS = [f"http://h{number}.example" for number in range(4)]
PLAIN: dict[str, Any] = {"ADDONS": {}}
AGENTS = pytest.mark.parametrize("agents", [1, 2, 4])


class ByVariant:
    """As Scrapy's, but meta `variant` makes another request, and the argument `session` none."""

    def fingerprint(self, request: Request) -> bytes:
        url = request.url.partition("?session=")[0]
        variant = str(request.meta.get("variant", ""))
        return hashlib.sha1(fingerprint(request.replace(url=url)) + variant.encode()).digest()


class Raises:
    def fingerprint(self, request: Request) -> Any:
        if "bad" in request.url:
            raise RuntimeError("no")
        return "text" if "text" in request.url else fingerprint(request)


def keys_by(fingerprinter: Any, counted: list[str] | None = None) -> FingerprintKeys:
    settings = UbiSettings(fingerprinter="own.Class")
    return FingerprintKeys(settings, fingerprinter, (counted if counted is not None else []).append)


def key(keys: RequestKeys, url: str, **arguments: Any) -> int:
    request = Request(url, **arguments)
    place = keys.place(request)
    assert place is not None
    return keys.key(request, place)


URL = f"{HOSTS[0]}/a"


def test_the_fingerprint_makes_the_key_and_the_url_the_host() -> None:
    keys = keys_by(ByVariant())
    assert key(keys, URL) == key(keys, f"{URL}?session=1") == key(keys_by(ByVariant()), f"{URL}?session=2")
    assert key(keys, URL) != key(keys, URL, meta={"variant": 1}) != key(keys, URL, meta={"variant": 2})
    assert key(keys, URL, method="POST") != key(keys, URL) != key(RequestKeys(UbiSettings()), URL)
    assert 0 <= key(keys, URL) < 1 << 64
    place = keys.place(Request(URL))
    assert place is not None and place.host == "h0.example"


def test_the_key_is_the_same_in_every_process() -> None:
    class Fixed:
        def fingerprint(self, request: Request) -> bytes:
            return b"\x01\x02"

    assert f"{key(keys_by(Fixed()), URL):016x}" == f"{key(keys_by(Fixed()), HOSTS[1]):016x}" == "af05ec31821a2da8"


def test_nonces_count_and_one_taken_in_again_has_the_key_that_anybody_gives_it() -> None:
    keys = keys_by(ByVariant())
    assert len({key(keys, URL), key(keys, URL, meta={NONCE: "1"}), key(keys, URL, meta={NONCE: "2"})}) == 3
    nonce = again_nonce(REQUEUED, Entry(7, URL, 0), "1")
    again = RequestKeys(UbiSettings()).again(Entry(7, URL, 0, 0, '{"meta":{"variant":1}}'), nonce)
    assert again is not None
    assert again.key == key(keys, URL, meta={"variant": 1, NONCE: nonce})
    assert key(keys, f"{URL}/moved", meta={NONCE: nonce}) != again.key, "its redirect is another one"


def test_a_redirect_back_to_its_own_chain_is_a_step_on() -> None:
    keys = keys_by(ByVariant())
    chain = {"redirect_urls": [f"{URL}?session=1", "http://[odd"], "redirect_times": 1}
    back = key(keys, f"{URL}?session=2", meta=chain, dont_filter=True)
    assert back not in (key(keys, URL), key(keys, URL, meta={**chain, "redirect_times": 2}, dont_filter=True))
    assert key(keys, f"{HOSTS[1]}/", meta=chain, dont_filter=True) == key(keys, f"{HOSTS[1]}/")


def test_one_that_raises_or_gives_no_bytes_loses_no_request(caplog: pytest.LogCaptureFixture) -> None:
    counted: list[str] = []
    keys, default = keys_by(Raises(), counted), RequestKeys(UbiSettings())
    for url in (f"{URL}/bad", f"{URL}/text"):
        assert key(keys, url) == key(default, url)
    assert counted == [FINGERPRINT_ERRORS] * 2
    assert caplog.text.count("REQUEST_FINGERPRINTER_CLASS gives no fingerprint of") == 1
    assert key(keys, URL) != key(default, URL)


def test_which_class_it_is() -> None:
    read = UbiSettings.from_scrapy
    assert read({}).fingerprinter == FINGERPRINTER and not read({}).fingerprints
    assert not read({"REQUEST_FINGERPRINTER_CLASS": FINGERPRINTER}).fingerprints
    by_class, by_name = (read({"REQUEST_FINGERPRINTER_CLASS": it}) for it in (ByVariant, f"{__name__}.ByVariant"))
    assert by_class.fingerprinter == by_name.fingerprinter == f"{__name__}.ByVariant"
    assert by_class.fingerprints


def test_that_constant_names_scrapys_default() -> None:
    assert Settings()["REQUEST_FINGERPRINTER_CLASS"] == FINGERPRINTER


class Variants(Spider):
    """Asks for each page in two variants, by several spellings, and for some again."""

    name = "variants"

    async def start(self) -> AsyncIterator[Any]:
        for host in HOSTS:
            yield Request(f"{host}/?session={host}", meta={"variant": "seed"})
            yield Request(f"{host}/?session=2", meta={"variant": "seed"})

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url.partition("?")[0], "variant": response.meta.get("variant")}
        for number, url in enumerate(LinkExtractor().extract_links(response)):
            for variant in ("one", "two"):
                for session in (1, 2):
                    yield Request(f"{url.url}?session={number}{session}", meta={"variant": variant})
        if response.meta["variant"] == "seed":
            yield Request(f"{response.url}&again", dont_filter=True, meta={"variant": "again"})
            for number in (1, 2):
                yield Request(f"{response.urljoin('/moved')}?session={number}", meta={"variant": number})


@pytest.fixture
def web() -> Iterator[Site]:
    """Sites that answer by the path, whatever the query is."""
    with Site() as running:
        for number, host in enumerate(HOSTS):
            following = HOSTS[(number + 1) % len(HOSTS)]
            body = links(f"{host}/", f"{host}/a", f"{following}/b")

            def answer(visit: Visit, host: str = host, body: str = body) -> Page:
                path = visit.url.removeprefix(host).partition("?")[0]
                if path == "/moved":
                    return Page("", 302, {"Location": f"{host}/there?session={visit.number}"})
                return Page(body) if path in ("/", "/a", "/b", "/there") else Page("", 404)

            running.host(host.removeprefix("http://"), answer)
        yield running


class AddOn:
    """As those of scrapy-poet and scrapy-zyte-api."""

    def update_settings(self, settings: BaseSettings) -> None:
        settings.set("REQUEST_FINGERPRINTER_CLASS", ByVariant, "addon")


def paths(site: Site) -> Counter[str]:
    return Counter(visit.url.partition("?")[0] for visit in site.visits)


@AGENTS
def test_a_projects_fingerprinter_gives_the_items_of_plain_scrapy(web: Site, agents: int) -> None:
    own = {"REQUEST_FINGERPRINTER_CLASS": ByVariant}
    plain = items_of(crawl(Variants, web.proxy, settings=PLAIN | own))
    asked, web.visits = paths(web), []
    assert len(plain) == 40
    assert items_of(crawl(Variants, web.proxy, agents, settings=own)) == plain
    assert paths(web) == asked


def test_so_does_that_of_an_add_on_whichever_comes_first(web: Site, caplog: pytest.LogCaptureFixture) -> None:
    plain = items_of(crawl(Variants, web.proxy, settings={"ADDONS": {AddOn: 1}}))
    for order in (499, 501):
        found = crawl(Variants, web.proxy, settings={"ADDONS": {**FAST["ADDONS"], AddOn: order}})
        assert items_of(found) == plain
    assert "not used" not in caplog.text


class PlainOnes(Spider):
    name = "plain_ones"
    start_urls = (f"{HOSTS[0]}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url.partition("?")[0]}
        yield PlainLinks([f"{HOSTS[1]}/a?session={number}" for number in range(3)] + [f"{HOSTS[1]}/b"])


@pytest.mark.parametrize("agents", [1, 3])
def test_plain_links_become_requests(web: Site, agents: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    own = {"REQUEST_FINGERPRINTER_CLASS": ByVariant, "UBI_FILTERS": ["visited"]}
    outcomes = crawl(PlainOnes, web.proxy, agents, settings=own)
    assert [item["url"] for item in items_of(outcomes)] == [f"{HOSTS[0]}/", f"{HOSTS[1]}/a", f"{HOSTS[1]}/b"]
    assert total(outcomes, "ubi/plain_links/expanded") == 12
    assert "ByVariant, is asked for each request" in caplog.text


def test_one_that_raises_is_named_and_the_pages_are_fetched(web: Site, caplog: pytest.LogCaptureFixture) -> None:
    class Bad(Spider):
        name = "bad"
        start_urls = (f"{HOSTS[0]}/a?bad", f"{HOSTS[0]}/b", f"{HOSTS[0]}/a?text")

        def parse(self, response: Response) -> Iterator[Any]:
            yield {"url": response.url}

    (outcome,) = crawl(Bad, web.proxy, settings={"REQUEST_FINGERPRINTER_CLASS": Raises})
    assert len(outcome.items) == 3 and outcome.stats[FINGERPRINT_ERRORS] >= 2
    assert caplog.text.count("REQUEST_FINGERPRINTER_CLASS gives no fingerprint of") == 1


def test_an_agent_with_another_one_is_refused(web: Site) -> None:
    settings = UbiSettings(fingerprinter="a.B")
    own = fixed(settings, "a", "spider")
    assert own["fingerprinter"] == "a.B"
    with pytest.raises(UbiRefused, match=f"REQUEST_FINGERPRINTER_CLASS = '{FINGERPRINTER}', now it is 'a.B'"):
        check_settings(Path("x"), {"settings": fixed(UbiSettings(), "a", "spider")}, own)
    before = {name: value for name, value in fixed(UbiSettings(), "a", "spider").items() if name != "fingerprinter"}
    check_settings(Path("x"), {"settings": before}, fixed(UbiSettings(), "a", "spider"))
    with pytest.raises(UbiRefused, match="REQUEST_FINGERPRINTER_CLASS"):
        check_settings(Path("x"), {"settings": before}, own)
