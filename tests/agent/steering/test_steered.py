"""Nodes whose crawl people change: a pause, delays, limits; what travels, what is kept, and what is written again."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

import pytest

from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.agent import Start, build_node
from scrapy_ubi.agent.crawl.disk import AgentDisk
from scrapy_ubi.agent.steering.live_entries import FINISH, PAUSE, LiveEntry, field_of
from scrapy_ubi.ground import clock
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.visit_row import VisitRow
from scrapy_ubi.settings.host_limits import Limits
from scrapy_ubi.transport import Incoming, Outgoing
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from scrapy_ubi.urls.host_shards import HostShards
from tests.agent.crawler import SETTINGS, Crawler, Log, crawl, entry, links
from tests.agent.groups import SEEDS, Alone, ends, group, profile
from tests.transport.worlds import until


def said(hub: MemoryHub, name: str, value: object, host: str = "", n: int = 1) -> LiveEntry:
    """A person says this."""
    one = LiveEntry(name, host, value, n, "ann", 1.0)
    hub.shelf(SETTINGS.crawl).control[one.field.encode()] = one.text.encode()
    return one


def control(hub: MemoryHub, name: str, host: str = "") -> dict[str, Any] | None:
    raw = hub.shelf(SETTINGS.crawl).control.get(field_of(name, host).encode())
    return None if raw is None else json.loads(raw)


def limits_of(crawler: Any) -> Limits | None:
    table = crawler.node.live.now.host_limits
    return None if table is None else table.others


def counters(hub: MemoryHub) -> dict[str, int]:
    """The numbers of the beats of all agents."""
    beats = {name.decode(): Beat.parse(line.decode()) for name, line in hub.shelf(SETTINGS.crawl).beats.items()}
    return {name: beat.counter for name, beat in beats.items() if beat is not None}


async def held(log: Log) -> None:
    """Loads are under way, and wait for their answers."""
    await log.held.wait()


# -- pause


@pytest.mark.parametrize("agents", [1, 3])
def test_a_paused_crawl_starts_no_load_and_does_not_end_until_it_is_resumed(agents: int) -> None:
    async def test() -> None:
        hub, log = MemoryHub(), Log(hold_after=10)
        crawlers = group(hub, log, agents)
        await held(log)
        said(hub, PAUSE, True)
        await until(lambda: all(crawler.node.live.paused for crawler in crawlers))
        log.hold_after = None
        log.go.set()
        await until(lambda: not log.busy and not any(crawler.node.agent.work.out for crawler in crawlers))
        await until(lambda: all(profile(hub, crawler.name)["state"] == "paused" for crawler in crawlers))
        fetched = log.fetched.total()
        begun = counters(hub)  # what would start a load, or end the crawl, has its time while all beat on
        await until(lambda: all(number >= begun[name] + 8 for name, number in counters(hub).items()))
        assert log.fetched.total() == fetched
        assert all(crawler.node.status.pending() or agents > 1 for crawler in crawlers)
        assert not any(crawler.node.over for crawler in crawlers)
        assert all(crawler.node.status.crowded for crawler in crawlers), "start() waits, too"
        said(hub, PAUSE, None, n=2)
        await ends(*crawlers)
        log.judge(SEEDS)

    crawl(test)


def test_a_paused_host_is_let_alone_and_others_go_on() -> None:
    async def test() -> None:
        hub, log = MemoryHub(), Log()
        said(hub, PAUSE, True, "h5.example")
        crawlers = group(hub, log, 2)
        await until(lambda: log.fetched.keys() >= besides("//h5."))
        assert not any("//h5." in url for url in log.fetched)
        assert not any(crawler.node.over for crawler in crawlers)
        said(hub, PAUSE, None, "h5.example", n=2)
        await ends(*crawlers)
        log.judge(SEEDS)

    crawl(test)


def besides(host: str) -> set[str]:
    """Every page that can be reached without those of a host."""
    todo = [url for url in SEEDS if host not in url]
    want = set(todo)
    for url in todo:
        new = {link for link in links(url) if host not in link} - want
        want |= new
        todo += new
    return want


@pytest.mark.parametrize("host", ["", "h0.example"])
def test_what_waits_for_its_permit_goes_back_to_its_queue(host: str) -> None:
    async def test() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1")
        visit = alone.node.next_visit()
        assert visit is not None
        assert alone.node.access.permit_now(visit.host, None), "its robots.txt is loaded"
        waits = asyncio.ensure_future(alone.node.access.permit(visit.host, visit))
        said(alone.hub, PAUSE, True, host)
        assert await waits is False
        assert alone.node.access.permit_now("h9.example", None), "what pages under way load is let through"
        alone.node.put_back(visit)
        assert alone.node.status.waiting == 1
        await alone.node.leave("test")

    crawl(test)


def test_the_wish_that_it_finishes_is_heard() -> None:
    async def test() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1")
        assert not alone.node.live.finish_asked
        said(alone.hub, FINISH, True)
        await until(lambda: alone.node.live.finish_asked)
        await alone.node.leave("test")

    crawl(test)


# -- what travels


def test_redis_that_has_forgotten_is_told_again_and_newcomers_know_before_their_first_request() -> None:
    async def test() -> None:
        hub, log = MemoryHub(), Log(hold_after=5)
        crawlers = group(hub, log, 2)
        await held(log)
        one = said(hub, "UBI_HOST_LIMITS", "depth=3")
        said(hub, PAUSE, True, "h3.example", n=2)
        await until(lambda: all(limits_of(crawler) == Limits(depth=3) for crawler in crawlers))
        marks = {crawler.node.live.table.mark for crawler in crawlers}
        assert len(marks) == 1
        await until(lambda: {profile(hub, crawler.name).get("live") for crawler in crawlers} == marks)
        hub.flush()
        await until(lambda: control(hub, "UBI_HOST_LIMITS") == json.loads(one.text))
        await until(lambda: control(hub, PAUSE, "h3.example") is not None)
        names = {crawler.name.encode() for crawler in crawlers}
        await until(lambda: names <= hub.shelf(SETTINGS.crawl).beats.keys())  # without Redis a newcomer waits for none
        late = Crawler(hub, "late", log)
        late.start(SEEDS)
        await until(lambda: late.node.live.begun)
        assert limits_of(late) == Limits(depth=3) and late.node.live.paused_hosts == {"h3.example"}
        said(hub, PAUSE, None, "h3.example", n=3)
        log.go.set()
        await ends(*crawlers, late)

    crawl(test)


@pytest.mark.parametrize("there", [None, 1])
def test_what_is_put_back_does_not_take_the_place_of_what_was_said_meanwhile(
    monkeypatch: pytest.MonkeyPatch, there: int | None
) -> None:
    exchange, meanwhile = MemoryTransport.exchange, list[LiveEntry]()

    async def overtaken(self: MemoryTransport, out: Outgoing) -> Incoming:
        if out.control_changes and not meanwhile:
            meanwhile.append(said(self._hub, "UBI_HOST_DELAY", 5, n=3))
        return await exchange(self, out)

    async def test() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1")
        said(alone.hub, "UBI_HOST_DELAY", 7, n=2)
        await until(lambda: alone.node.live.now.host_delay == 7)
        monkeypatch.setattr(MemoryTransport, "exchange", overtaken)
        alone.hub.flush()
        if there is not None:
            said(alone.hub, "UBI_HOST_DELAY", 1, n=there)
        await until(lambda: alone.node.live.now.host_delay == 5)
        assert control(alone.hub, "UBI_HOST_DELAY") == json.loads(meanwhile[0].text)
        await alone.node.leave("test")

    crawl(test)


def test_an_older_word_does_not_come_back_and_a_higher_one_holds() -> None:
    async def test() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1")
        newest = said(alone.hub, "UBI_HOST_DELAY", 7, n=9)
        await until(lambda: alone.node.live.now.host_delay == 7)
        said(alone.hub, "UBI_HOST_DELAY", 1, n=8)
        await until(lambda: control(alone.hub, "UBI_HOST_DELAY") == json.loads(newest.text))
        assert alone.node.live.now.host_delay == 7
        said(alone.hub, "UBI_HOST_DELAY", None, n=10)
        await until(lambda: alone.node.live.now.host_delay == 0)
        await alone.node.leave("test")

    crawl(test)


def test_what_does_not_hold_is_counted_said_and_published_and_changes_nothing() -> None:
    async def test() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1")
        said(alone.hub, "UBI_HOST_DELAY", "soon")
        await until(lambda: b"live_refused" in alone.hub.shelf(SETTINGS.crawl).agents.get(b"a", b""))
        assert "give a number of seconds" in profile(alone.hub, "a")["live_refused"][field_of("UBI_HOST_DELAY")]
        assert alone.node.crawl.tally.noted["live/refused"] == 1
        assert alone.node.live.now == alone.node.crawl.settings
        await alone.node.leave("test")

    crawl(test)


def test_it_is_kept_on_the_disk_and_known_at_the_start(tmp_path: Any) -> None:
    settings = dataclasses.replace(SETTINGS, memory_mb=32, dir=tmp_path)

    async def lives(hub: MemoryHub, redis: dict[str, object], wanted: float) -> None:
        disk = await AgentDisk.open(tmp_path, settings, asyncio.get_running_loop().time)
        transport = MemoryTransport(hub, "a", settings.crawl)
        node = build_node(settings, transport, Start("a", "test"), lambda text: None, RequestKeys(settings), disk=disk)
        await node.open()
        for name, value in redis.items():
            said(hub, name, value)
        assert redis or node.live.now.host_delay == wanted, "before the first exchange"
        node.discover(*entry("http://h0.example/1"))
        await until(lambda: node.live.now.host_delay == wanted == node.frontier.delay)
        await node.leave("test")

    crawl(lambda: lives(MemoryHub(), {"UBI_HOST_DELAY": 7}, 7.0))
    hub = MemoryHub()
    crawl(lambda: lives(hub, {}, 7.0))
    assert control(hub, "UBI_HOST_DELAY") is not None, "written again, into another Redis"


# -- delays and limits


def test_a_longer_delay_holds_from_the_next_load_on_and_a_shorter_one_at_once() -> None:
    async def test() -> None:
        alone = Alone(host_delay=0.0)
        await alone.ready(*(f"http://h0.example/{page}" for page in range(4)))
        said(alone.hub, "UBI_HOST_DELAY", 3600)
        await until(lambda: alone.node.frontier.delay == 3600)
        visit = alone.node.next_visit()
        assert visit is not None
        alone.node.end_visit(visit)
        state = alone.node.frontier.find("h0.example")
        assert state is not None
        assert state.next_at > clock.now() + 3000
        assert alone.node.next_visit() is None
        said(alone.hub, "UBI_HOST_DELAY", 0.01, n=2)
        await until(lambda: alone.node.frontier.delay == 0.01)
        await until(lambda: alone.node.next_visit() is not None)
        await alone.node.leave("test")

    crawl(test)


def test_a_shorter_delay_holds_at_once_where_only_visits_are_due() -> None:
    async def test() -> None:
        alone = Alone(host_delay=3600.0)
        await alone.ready("http://h0.example/0")
        visit = alone.node.next_visit()
        assert visit is not None
        alone.node.end_visit(visit)
        state = alone.node.frontier.find("h0.example")
        assert state is not None and not state.waiting
        due = int(clock.unix()) + 5
        alone.node.frontier.keep_row(state, VisitRow(1, due, 0, 1, 0, due - 5, 5, 0, 3, "", "", visit.entry))
        assert state.next_at > clock.now() + 3000
        said(alone.hub, "UBI_HOST_DELAY", 0.01)
        await until(lambda: alone.node.frontier.delay == 0.01)
        assert state.next_at < clock.now() + 1
        await alone.node.leave("test")

    crawl(test)


def test_a_shorter_delay_lets_nobody_come_who_is_left_alone() -> None:
    async def test() -> None:
        alone = Alone(host_delay=50.0)
        await alone.ready(*(f"http://h0.example/{page}" for page in range(4)))
        state = alone.node.frontier.find("h0.example")
        assert state is not None
        alone.node.hosts.postpone(state, 1000.0, "retry-after")
        said(alone.hub, "UBI_HOST_DELAY", 0.0)
        await until(lambda: alone.node.frontier.delay == 0.0)
        assert state.next_at > clock.now() + 900
        await alone.node.leave("test")

    crawl(test)


def test_a_host_has_a_delay_of_its_own_whether_it_was_met_before_or_after() -> None:
    async def test() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1", "http://h0.example/2")
        said(alone.hub, "UBI_HOST_DELAY", 3600, "h0.example")
        said(alone.hub, "UBI_HOST_DELAY", 3600, "h1.example", n=2)
        await until(lambda: len(alone.node.live.of_host) == 2)
        known = alone.node.frontier.find("h0.example")
        assert known is not None and known.pause == 3600
        assert alone.node.discover(*entry("http://h1.example/1"))
        assert alone.node.discover(*entry("http://h2.example/1"))
        for _ in range(3):
            visit = alone.node.next_visit()
            assert visit is not None
            alone.node.end_visit(visit)
        pauses = {state.host: state.pause for state in alone.node.frontier.states()}
        assert pauses == {"h0.example": 3600, "h1.example": 3600, "h2.example": 0}
        said(alone.hub, "UBI_HOST_DELAY", None, "h0.example", n=3)
        await until(lambda: known.pause == 0)
        await alone.node.leave("test")

    crawl(test)


@pytest.mark.parametrize("host", ["", "h0.example"])
def test_pages_of_a_host_are_limited_while_it_runs(host: str) -> None:
    async def test() -> None:
        alone = Alone()
        await alone.ready(*(f"http://h0.example/{page}" for page in range(5)))
        visit = alone.node.next_visit()
        assert visit is not None
        alone.node.end_visit(visit)
        said(alone.hub, "UBI_HOST_LIMITS", "pages=1, known=6", host)
        await until(lambda: not alone.node.limits.idle and len(alone.node.live.table.entries) == 1)
        assert alone.node.next_visit() is None
        assert set(alone.given_up) == {"limit/host_pages"}
        assert not alone.node.discover(*entry("http://h0.example/77")).is_taken, "it is ended"
        await alone.node.leave("test")

    crawl(test)


def test_known_urls_of_a_host_and_depths_are_limited_while_it_runs() -> None:
    async def test() -> None:
        alone = Alone()
        await alone.ready("http://h0.example/1")
        assert alone.node.discover(*entry("http://h0.example/2")).is_taken
        said(alone.hub, "UBI_HOST_LIMITS", "known=2")
        said(alone.hub, "UBI_CRAWL_LIMITS", "depth=3", n=2)
        await until(lambda: alone.node.live.now.crawl_limits.depth == 3)
        assert not alone.node.discover(*entry("http://h0.example/3")).is_taken
        assert not alone.node.discover(*entry("http://h1.example/3", depth=4)).is_taken
        assert alone.node.discover(*entry("http://h1.example/3", depth=3)).is_taken
        said(alone.hub, "UBI_HOST_LIMITS", None, n=3)
        await until(lambda: alone.node.limits.idle)
        assert alone.node.discover(*entry("http://h0.example/3")).is_taken
        await alone.node.leave("test")

    crawl(test)


def test_the_crawl_ends_at_a_number_of_pages_that_is_set_while_it_runs() -> None:
    async def test() -> None:
        alone = Alone()
        await alone.ready(*(f"http://h{host}.example/1" for host in range(5)))
        visit = alone.node.next_visit()
        assert visit is not None
        alone.node.end_visit(visit)
        said(alone.hub, "UBI_CRAWL_LIMITS", "pages=1")
        await until(lambda: not alone.node.status.crawl_limits.idle)
        assert alone.node.next_visit() is None
        assert [name for name, _ in alone.limited] == ["limit/crawl_pages"]
        await alone.node.leave("test")

    crawl(test)


# -- hosts in shards


def test_what_is_said_of_a_host_is_said_of_its_shards_and_their_delays_are_as_many_times_as_long() -> None:
    async def test() -> None:
        alone = Alone(host_shards=HostShards({"h0.example": 4}))
        place = RequestKeys(alone.node.crawl.settings).place_of
        await alone.node.open()
        for page in range(40):
            found = place(f"http://h0.example/{page}")
            assert found is not None
            assert alone.node.discover(found.host, entry(found.normal)[1])
        shards = list(alone.node.frontier.states())
        assert len(shards) == 4
        said(alone.hub, "UBI_HOST_DELAY", 10.0)
        await until(lambda: all(state.pause == 40.0 for state in shards))
        said(alone.hub, "UBI_HOST_DELAY", 100.0, "h0.example", n=2)
        said(alone.hub, PAUSE, True, "h0.example", n=3)
        await until(lambda: len(alone.node.live.paused_hosts) == 4)
        said(alone.hub, "UBI_HOST_DELAY", 0.0, n=4)
        said(alone.hub, "UBI_HOST_DELAY", None, "h0.example", n=5)
        await until(lambda: all(state.pause == 0.0 for state in shards))
        assert alone.node.next_visit() is None
        said(alone.hub, PAUSE, None, "h0.example", n=6)
        await until(lambda: alone.node.next_visit() is not None)
        await alone.node.leave("test")

    crawl(test)
