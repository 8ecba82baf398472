"""Crawls that wait for URLs from outside: real spiders and nodes in this process, seeds through the hub they share."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.adapter.components import scheduler_builder
from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from scrapy_ubi.agent.steering.live_entries import FINISH, LiveEntry
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.frontier.disk_frontier import DiskFrontier
from scrapy_ubi.frontier.rows import RECENT
from scrapy_ubi.frontier.store import every
from scrapy_ubi.ground import clock
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport.in_process import MemoryHub
from tests.support.crawls import Outcome, agent_of, crawl, items_of, total
from tests.support.site import Site, links
from tests.transport.worlds import until

HOSTS = [f"http://h{number}.example" for number in range(8)]


class Served(Spider):
    """Waits for URLs; yields an item a page, and follows no link unless told."""

    name = "served"
    follows = False

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "by": "parse"}
        if self.follows:
            yield from response.follow_all(css="a::attr(href)")  # type: ignore[attr-defined]

    def other(self, response: Response, more: str = "") -> Iterator[Any]:
        yield {"url": response.url, "by": "other", "more": more, "sent": response.request.body.decode()}  # type: ignore[union-attr]


class Outside:
    """What a test does from outside, as soon as all agents are there."""

    def __init__(self, crawlers: list[Crawler], hub: MemoryHub) -> None:
        self.crawlers, self.hub = crawlers, hub

    @property
    def schedulers(self) -> list[UbiScheduler]:
        return [agent_of(crawler.spider) for crawler in self.crawlers if crawler.spider is not None]

    @property
    def seeds(self) -> Any:
        return self.hub.shelf(self.schedulers[0].settings.crawl).seeds

    def push(self, url: str = "", **fields: str) -> str:
        said = {"url": url, **fields} if url else fields
        return str(self.seeds.append({name.encode(): value.encode() for name, value in said.items()}))

    async def told(self, *numbers: str) -> list[str]:
        """What was said of these seeds: the word, and why."""

        def said() -> dict[str, str]:
            return {
                one[b"seed"].decode(): f"{one[b'said'].decode()} {one[b'why'].decode()}".strip()
                for one in self.seeds.answers
            }

        await until(lambda: all(number in said() for number in numbers), 60)
        return [said()[number] for number in numbers]

    async def quiet(self) -> None:
        """Nothing is left to fetch anywhere, though no agent says so."""
        await until(lambda: not self.seeds.waiting, 60)
        await until(lambda: all(_idle(one) for one in self.schedulers), 60)

    def finish(self) -> None:
        """As by `scrapy ubi finish`."""
        said = LiveEntry(FINISH, "", True, 1, "ann", 1.0)
        self.hub.shelf(self.schedulers[0].settings.crawl).control[said.field.encode()] = said.text.encode()


def _idle(scheduler: UbiScheduler) -> bool:
    agent = scheduler.node.agent
    return agent.self_status.passive(clock.now(), exhausted=True)


def serve(
    site: Site,
    scene: Callable[[Outside], Awaitable[None]],
    agents: int = 1,
    spider: type[Spider] = Served,
    **settings: Any,
) -> list[Outcome]:
    """A crawl that serves, while `scene` plays; then it is to finish."""
    hubs: list[MemoryHub] = []
    tasks: list[asyncio.Task[None]] = []
    opened: list[Spider] = []

    def watch(crawlers: list[Crawler]) -> None:
        hubs.append(crawlers[0].settings["TEST_HUB"])

        async def play() -> None:
            outside = Outside(crawlers, hubs[0])
            try:
                await until(lambda: len(opened) == agents, 60)
                await scene(outside)
            finally:
                outside.finish()

        def begun(spider: Spider) -> None:
            opened.append(spider)
            if len(opened) == 1:
                tasks.append(asyncio.get_running_loop().create_task(play()))

        for crawler in crawlers:
            crawler.signals.connect(begun, signals.spider_opened, weak=False)

    own = {"SCHEDULER": "tests.support.crawls.SharedScheduler", "TEST_AGENTS": agents}
    own |= {} if "UBI_PRESET" in settings else {"UBI_SERVE": True}
    outcomes = crawl(spider, site.proxy, agents, {**own, **settings}, watch)
    tasks[0].result()
    assert [outcome.reason for outcome in outcomes] == ["finished"] * agents
    return outcomes


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(UbiSettingError, match="UBI_SERVE is set and UBI_REDIS_URL is not"):
        scheduler_builder.make_transport(UbiSettings(serve=True), "a")
    with pytest.raises(UbiSettingError, match="UBI_SEED_LIST is set and UBI_SERVE is not"):
        scheduler_builder.make_transport(UbiSettings(redis_url="redis://127.0.0.1", seed_list="x"), "a")


@pytest.mark.parametrize(
    "value", ["", "ubi:{x}:seeds", "a b", "x" * 513, 5], ids=["none", "ours", "space", "long", "number"]
)
def test_the_key_of_a_list_has_to_be_one(value: object) -> None:
    if value == "":
        assert UbiSettings.from_scrapy({"UBI_SEED_LIST": value}).seed_list == ""
        return
    with pytest.raises(UbiSettingError, match="UBI_SEED_LIST"):
        UbiSettings.from_scrapy({"UBI_SEED_LIST": value})


@pytest.mark.parametrize("agents", [1, 3])
def test_urls_are_fetched_when_they_come_and_the_crawl_ends_when_it_is_to(site: Site, agents: int) -> None:
    urls = [f"{host}/{number}" for host in HOSTS for number in range(3)]
    for url in urls:
        site.page(url)

    async def scene(outside: Outside) -> None:
        for batch in (urls[:10], urls[10:]):
            said = await outside.told(*[outside.push(url) for url in batch])
            assert said == ["OK"] * len(batch)
            await outside.quiet()
        said = await outside.told(*[outside.push(url) for url in urls])
        assert said == ["KNOWN"] * len(urls), "the owner of each host says so"

    outcomes = serve(site, scene, agents)
    assert [item["url"] for item in items_of(outcomes)] == sorted(urls)
    assert site.urls() == dict.fromkeys(urls, 1)
    assert total(outcomes, "ubi/seeds/ok") == total(outcomes, "ubi/seeds/known") == len(urls)
    assert not total(outcomes, "ubi/seeds/refused")


def test_what_is_no_seed_is_refused_and_becomes_a_dead_letter(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "scrapy_ubi")
    wrong: list[tuple[dict[str, str], str]] = [
        ({}, "it needs one of"),
        ({"url": "not a url"}, "Missing scheme"),
        ({"url": "ftp://h0.example/"}, "no http or https URL"),
        ({"url": f"{HOSTS[0]}/{'x' * 5000}"}, "URLLENGTH_LIMIT"),
        ({"url": f"{HOSTS[0]}/", "request": "{}"}, "it needs one of"),
        ({"url": f"{HOSTS[0]}/", "colour": "red"}, "unknown field 'colour'"),
        ({"url": f"{HOSTS[0]}/", "priority": "high"}, "priority"),
        ({"url": f"{HOSTS[0]}/", "force": "perhaps"}, "force"),
        ({"request": "[]"}, "not a JSON object"),
        ({"request": "{}"}, "no 'url'"),
        ({"request": json.dumps({"url": f"{HOSTS[0]}/", "callback": "__init__"})}, "callback"),
        ({"request": json.dumps({"url": f"{HOSTS[0]}/", "meta": {"proxy": "http://evil.example"}})}, "proxy"),
        ({"request": json.dumps({"url": f"{HOSTS[0]}/", "priority": 0.5})}, "priority"),
        ({"listed": json.dumps({"method": "GET"})}, "no 'url'"),
        ({"listed": json.dumps({"url": f"{HOSTS[0]}/", "meta": {"proxy": "http://evil.example"}})}, "cannot travel"),
        ({"listed": json.dumps({"url": f"{HOSTS[0]}/", "method": "GET\r\nX: y"})}, ""),
        ({"listed": json.dumps({"url": f"{HOSTS[0]}/", "deep": {}})}, "form data"),
    ]  # fmt: skip

    async def scene(outside: Outside) -> None:
        numbers = [outside.seeds.append({b"url": b"\xff"}), *(outside.push(**fields) for fields, _ in wrong)]
        said = await outside.told(*numbers)
        for answer, reason in zip(said, ["not UTF-8", *(reason for _, reason in wrong)], strict=True):
            assert answer.startswith("REFUSED") and reason in answer, (answer, reason)
        shelf = outside.hub.shelf(outside.schedulers[0].settings.crawl)
        await until(lambda: len(shelf.dead["a0"]) == len(numbers))
        assert shelf.dead["a0"][1][b"from"] == b"seeds"

    (outcome,) = serve(site, scene, UBI_PROXIES=["good.example"])
    assert not site.urls()
    assert outcome.stats["ubi/seeds/refused"] == len(wrong) + 1
    assert "A seed was refused" in caplog.text


def test_a_request_and_what_scrapy_redis_pushes(site: Site) -> None:
    for url in (f"{HOSTS[0]}/a", f"{HOSTS[0]}/b", f"{HOSTS[0]}/c?q=1", f"{HOSTS[0]}/d"):
        site.page(url)

    async def scene(outside: Outside) -> None:
        request = {
            "url": f"{HOSTS[0]}/a",
            "method": "POST",
            "body": "x=1",
            "callback": "other",
            "cb_kwargs": {"more": "m"},
        }
        listed = {"url": f"{HOSTS[0]}/b", "method": "post", "meta": {"a": 1}, "user": "me", "page": 2}
        numbers = [
            outside.push(request=json.dumps(request), id="mine"),
            outside.push(listed=json.dumps(listed)),
            outside.push(listed=json.dumps({"url": f"{HOSTS[0]}/c", "q": "1"})),
            outside.push(listed=f"{HOSTS[0]}/d\n"),
            outside.push(listed=f"{HOSTS[0]}/d"),
        ]
        assert await outside.told(*numbers) == ["OK"] * 5
        assert next(iter(outside.seeds.answers))[b"id"] == b"mine"
        await outside.quiet()

    outcomes = serve(site, scene)
    assert site.urls() == {f"{HOSTS[0]}/a": 1, f"{HOSTS[0]}/b": 1, f"{HOSTS[0]}/c?q=1": 1, f"{HOSTS[0]}/d": 2}
    bodies = {visit.url: visit.body for visit in site.visits}
    assert bodies[f"{HOSTS[0]}/b"] == b"user=me&page=2"
    (item,) = (item for item in items_of(outcomes) if item["by"] == "other")
    assert (item["more"], item["sent"]) == ("m", "x=1")


def test_what_is_listed_with_parameters_of_requests_is_warned_of_once(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    pages = [f"{HOSTS[0]}/?errback=other", f"{HOSTS[1]}/?errback=other&priority=5", f"{HOSTS[2]}/?q=1"]
    for url in pages:
        site.page(url)

    async def scene(outside: Outside) -> None:
        listed = [
            {"url": f"{HOSTS[0]}/", "errback": "other"},
            {"url": f"{HOSTS[1]}/", "errback": "other", "priority": "5"},
            {"url": f"{HOSTS[2]}/", "q": "1"},
        ]
        numbers = [outside.push(listed=json.dumps(one)) for one in listed]
        assert await outside.told(*numbers) == ["OK"] * 3
        await outside.quiet()

    serve(site, scene)
    assert site.urls() == dict.fromkeys(pages, 1)
    said = [record.getMessage() for record in caplog.records if "goes to the site as form data" in record.getMessage()]
    assert len(said) == 2 and "'errback'" in said[0] and "'priority'" in said[1] and "'request'" in said[0]


class Parseless(Spider):
    name = "parseless"

    def other(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


def test_a_seed_for_a_spider_without_parse_names_a_callback_or_is_refused(site: Site) -> None:
    site.page(f"{HOSTS[0]}/a")

    async def scene(outside: Outside) -> None:
        named = outside.push(request=json.dumps({"url": f"{HOSTS[0]}/a", "callback": "other"}))
        bare, known = await outside.told(outside.push(f"{HOSTS[0]}/b"), named)
        assert bare.startswith("REFUSED the spider has no parse()") and known == "OK"
        await outside.quiet()

    outcomes = serve(site, scene, 1, Parseless)
    assert [item["url"] for item in items_of(outcomes)] == [f"{HOSTS[0]}/a"]


def test_a_forced_seed_is_fetched_again_once(site: Site) -> None:
    site.page(url := f"{HOSTS[0]}/a")

    async def scene(outside: Outside) -> None:
        for force in ("", "0", "1", "true"):
            number = outside.push(url, force=force)
            assert await outside.told(number) == ["KNOWN" if force == "0" else "OK"]
            await outside.quiet()
        # One that is read twice, as after a crash between disk and answer, is fetched once.
        node = outside.schedulers[0].node
        assert node.seeds is not None
        node.seeds.receive([(number, {b"url": url.encode(), b"force": b"1"})], 1)
        assert node.seeds.answers(None)[-1].said == "KNOWN"

    serve(site, scene)
    assert site.urls() == {url: 3}


class Started(Served):
    start_urls = (f"{HOSTS[0]}/",)
    follows = True


@pytest.mark.parametrize("agents", [1, 2])
def test_a_seed_is_the_same_request_as_a_link_or_a_start_url(site: Site, agents: int) -> None:
    pages = [f"{HOSTS[0]}/", f"{HOSTS[0]}/a", f"{HOSTS[1]}/b"]
    for page in pages:
        site.page(page, links(*pages))

    async def scene(outside: Outside) -> None:
        await until(lambda: len(site.urls()) == 3, 60)
        await outside.quiet()
        assert await outside.told(*map(outside.push, pages)) == ["KNOWN"] * 3

    serve(site, scene, agents, Started)
    assert site.urls() == dict.fromkeys(pages, 1)


class Many(Served):
    start_urls = (f"{HOSTS[0]}/",)
    follows = True


def test_seeds_go_before_the_links_of_their_host(site: Site) -> None:
    found = [f"{HOSTS[0]}/{number}" for number in range(30)]
    site.page(f"{HOSTS[0]}/", links(*found))
    for page in found:
        site.page(page)
    site.page(seed := f"{HOSTS[0]}/seed")
    site.page(last := f"{HOSTS[0]}/last")

    async def scene(outside: Outside) -> None:
        with site.hold(found[3]) as held:
            await until(held.arrived.is_set, 60)
            await outside.told(outside.push(last, priority="-1"), outside.push(seed))
        await outside.quiet()

    serve(site, scene, 1, Many, CONCURRENT_REQUESTS=1)
    urls = [visit.url for visit in site.visits]
    assert urls.index(seed) == urls.index(found[3]) + 1
    assert urls[-1] == last


def test_a_seed_beyond_a_limit_is_refused_with_the_reason(site: Site) -> None:
    site.page(f"{HOSTS[0]}/a")

    async def scene(outside: Outside) -> None:
        first = await outside.told(outside.push(f"{HOSTS[0]}/a"))
        await outside.quiet()
        second = await outside.told(outside.push(f"{HOSTS[0]}/b"))
        assert first == ["OK"]
        assert "limit" in second[0] and second[0].startswith("REFUSED")

    serve(site, scene, UBI_HOST_LIMITS="known=1")


def test_a_redis_that_is_emptied_loses_only_what_was_not_answered(site: Site) -> None:
    """And a writer that writes that again loses nothing, and has nothing fetched twice."""
    urls = [f"{host}/{number}" for host in HOSTS for number in range(20)]
    for url in urls:
        site.page(url)

    async def scene(outside: Outside) -> None:
        written = {outside.push(url): url for url in urls}
        lost = outside.seeds
        await until(lambda: len(lost.answers) > 10, 60)
        outside.hub.flush()
        told = {answer[b"seed"].decode() for answer in lost.answers}
        again = [url for number, url in written.items() if number not in told]
        assert told and again
        said = await outside.told(*map(outside.push, again))
        assert set(said) <= {"OK", "KNOWN"}
        await outside.quiet()

    serve(site, scene, 2)
    assert site.urls() == dict.fromkeys(urls, 1)


def test_idle_agents_keep_nothing(site: Site) -> None:
    """A month's flushes are thirteen million: what grew with each of some hundred would fill a disk."""
    site.page(f"{HOSTS[0]}/")
    rounds = 100

    async def scene(outside: Outside) -> None:
        await outside.told(outside.push(f"{HOSTS[0]}/"))
        await outside.quiet()
        kept: list[Any] = []
        for _ in range(3):  # what is published now and then has been, after the first
            for scheduler in outside.schedulers:
                journal = scheduler.node.agent.journal
                begun = journal.flush
                await until(lambda journal=journal, begun=begun: journal.flush > begun + rounds, 60)
            kept.append([*map(_kept, outside.schedulers), _on_shelf(outside)])
        assert kept[1] == kept[2]
        assert not any(one.node.over for one in outside.schedulers)

    serve(site, scene, 2)


def _kept(scheduler: UbiScheduler) -> dict[str, int]:
    """How much an agent keeps, in memory and on its disk; but for the up to eight rows that flushes write in turn."""
    agent = scheduler.node.agent
    assert isinstance(agent.frontier, DiskFrontier)
    return {
        "outbox": len(agent.outbox),
        "strays": len(agent.closing.strays),
        "lanes": len(agent.outbox.lanes),
        "forwarded": len(agent.discovery.forwarded),
        "hosts": len(agent.frontier.states()),
        "flights": len(list(scheduler.flights)),
        "rows": sum(not key.startswith(RECENT) for key, _ in every(agent.frontier.store, b"", b"\xff" * 9)),
    }


def _on_shelf(outside: Outside) -> dict[str, int]:
    """How much the hub holds, as a Redis would."""
    shelf = outside.hub.shelf(outside.schedulers[0].settings.crawl)
    found = {name: len(getattr(shelf, name)) for name in ("beats", "agents", "control", "answers")}
    for name in ("inbox", "acks", "dead"):
        found[name] = sum(map(len, getattr(shelf, name).values()))
    return {**found, "seeds": len(shelf.seeds.waiting), "readers": len(shelf.seeds.readers)}


def test_each_answer_names_the_url_that_was_asked_for(site: Site) -> None:
    listed = '{"url": "http://h1.example/listed"}'

    async def scene(outside: Outside) -> None:
        numbers = [
            outside.push("http://h1.example/" + "x" * 600),
            outside.push(request='{"url": "http://h1.example/asked"}'),
            outside.push(listed=listed),
            outside.push("no url"),
        ]
        await outside.told(*numbers)
        urls = {one[b"seed"].decode(): one[b"url"].decode() for one in outside.seeds.answers}
        assert [urls[number] for number in numbers] == [
            ("http://h1.example/" + "x" * 600)[:500],
            "http://h1.example/asked",
            "http://h1.example/listed",
            "no url",
        ]

    serve(site, scene)
