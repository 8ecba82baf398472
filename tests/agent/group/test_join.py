"""Joining a group: a new run after a finished one, settings that agree, an identifier that nobody uses."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

import pytest

from scrapy_ubi.agent.crawl.finished_run import CLOCKS, is_past
from scrapy_ubi.agent.group import other_layouts
from scrapy_ubi.agent.group.join import (
    AGREE,
    CLAIMS,
    MOST_PAST,
    begin_run,
    check_group,
    claim,
    discard,
    published,
    published_losses,
)
from scrapy_ubi.agent.profile import figures
from scrapy_ubi.agent.profile.origin import Origin
from scrapy_ubi.errors import UbiRefused
from scrapy_ubi.protocol.beat import LEFT, Beat
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Outgoing, TransportDown
from scrapy_ubi.transport.in_process import MemoryHub, MemoryTransport
from scrapy_ubi.transport.redis_keys import LAYOUT
from scrapy_ubi.transport.signer import Signer

CRAWL = "crawl"
LIMIT = 60.0  # s: what has not come by then never will
SETTINGS = UbiSettings(crawl=CRAWL, heartbeat_interval=0.01, lease_timeout=0.05, failure_timeout=0.2)
OWN = figures.fixed(SETTINGS, "a", "spider")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_layouts, "PUBLISH", 0.01)


def beat(incarnation: str = "0123abcd", counter: int = 1, **rest: Any) -> str:
    return replace(Beat(incarnation, 0, 200, "00000000000000ff"), **rest).line(counter)


class Town:
    """A hub, with what a test wants in it."""

    def __init__(self) -> None:
        self.hub = MemoryHub()
        self.transport = MemoryTransport(self.hub, "a", CRAWL)
        self.slept = 0
        self.last: list[Beat] = []

    def say(self, what: str, **fields: str) -> None:
        shelf = getattr(self.hub.shelf(CRAWL), what)
        shelf.update({name.encode(): value.encode() for name, value in fields.items()})

    def live(self, name: str, line: str | None = None, **changed: Any) -> None:
        """An agent with a beat and a profile."""
        self.say("beats", **{name: beat() if line is None else line})
        self.say("agents", **{name: json.dumps({**OWN, "agent": name, "updated": time.time(), **changed})})

    def beats(self) -> dict[str, str]:
        return {n.decode(): v.decode() for n, v in self.hub.shelf(CRAWL).beats.items()}

    async def check(self, settings: UbiSettings = SETTINGS) -> None:
        await check_group(self.transport, settings, "a", figures.fixed(settings, "a", "spider"))

    async def claim(self, predecessor: str | None = None, line: str | None = None) -> None:
        mine = Beat.parse(line if line is not None else beat("aaaaaaaa", 0))
        assert mine is not None
        await claim(self.transport, SETTINGS, "a", predecessor, mine, self.clock, self.last.append)

    def claimed(self) -> tuple[str, list[str]]:
        """Whose line stands there, and whose last words it repeats."""
        beat = Beat.parse(self.beats()["a"])
        assert beat is not None
        return beat.incarnation, [words.incarnation for words in beat.before]

    def clock(self) -> float:
        """Each look at it is a while: what is waited for is over after some looks."""
        self.slept += 1
        return self.slept * SETTINGS.failure_timeout / 5


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), LIMIT))


# -- a new run


def begin(
    transport: MemoryTransport, work: str = "", age: float = 0.0
) -> Coroutine[Any, Any, tuple[Mapping[str, str], bool]]:
    """An agent whose disk has work left of the run of that name, and whose process was started `age` seconds ago."""
    return begin_run(transport, lambda run: run == work, lambda: age)


def test_the_first_start_finds_nothing() -> None:
    async def test() -> None:
        town = Town()
        assert await begin(town.transport) == ({}, False)

    run(test)


def test_a_crawl_that_goes_on_is_joined() -> None:
    async def test() -> None:
        town = Town()
        town.live("b")
        town.say("control", run="r1", memory="m1")
        assert await begin(town.transport) == ({"run": "r1", "memory": "m1"}, False)
        assert town.beats()

    run(test)


def test_a_finished_crawl_is_cleared() -> None:
    async def test() -> None:
        town = Town()
        town.live("b")
        town.say("control", run="r1", memory="m1", finished="r1 b")
        town.hub.append(CRAWL, "b", {b"old": b"mail"})
        assert await begin(town.transport) == ({"past": "r1"}, True)
        assert town.beats() == {}
        assert not town.hub.shelf(CRAWL).inbox["b"]

    run(test)


def test_who_was_started_before_the_end_clears_nothing_and_who_was_started_after_it_does() -> None:
    async def test() -> None:
        for ended, age, cleared in ((10, 9, True), (10, 11, False), (-CLOCKS / 2, 0, False), (-60, 5, True)):
            town = Town()
            control = {"run": "r1", "finished": "r1 b", "finished_at": f"{town.transport.now() - ended:.3f}"}
            town.say("control", **control)
            assert await begin(town.transport, age=age) == ({"past": "r1"} if cleared else control, cleared)

    run(test)


def test_who_was_started_before_an_end_at_which_nobody_knew_a_url_begins_the_crawl() -> None:
    async def test() -> None:
        nothing, some = {"pages": 0, "known": 0}, {"pages": 0, "known": 3}
        for ending, profiles, cleared in (
            ("r1 b lossy", [nothing, nothing], True),
            ("r1 b lossy", [nothing, some], False),
            ("r1 b lossy", [nothing, {"pages": 3, "known": 0}], False),
            ("r1 b lossy", [nothing, "garbage"], False),
            ("r1 b lossy", [], False),
            ("r1 b", [nothing], False),
        ):
            town = Town()
            for number, counters in enumerate(profiles):
                town.live(f"b{number}", counters=counters)
            control = {"run": "r1", "finished": ending, "finished_at": f"{town.transport.now() - 1:.3f}"}
            town.say("control", **control)
            assert await begin(town.transport, age=5) == ({"past": "r1"} if cleared else control, cleared)

    run(test)


def test_word_of_an_earlier_run_clears_nothing() -> None:
    async def test() -> None:
        town = Town()
        town.live("b")
        for finished in ("r0 b", "", "r0"):
            town.say("control", run="r1", finished=finished)
            control, cleared = await begin(town.transport)
            assert (control["run"], cleared) == ("r1", False)
        assert town.beats()

    run(test)


def test_a_run_that_ended_after_losses_is_not_over_for_a_disk_that_has_more_of_it() -> None:
    async def test() -> None:
        town = Town()
        for finished, work, cleared in (("r1 b lossy", "r1", False), ("r1 b lossy", "r0", True), ("r1 b", "r1", True)):
            town.say("control", run="r1", finished=finished)
            assert (await begin(town.transport, work=work))[1] is cleared

    run(test)


def test_a_run_that_ended_while_requests_were_queued_again_in_a_directory_alone_is_not_over_for_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nor at its next start, should it be killed before they are fetched."""

    async def test() -> None:
        town = Town()
        for mine, cleared in (("r1", False), ("r0", True)):
            town.say("control", run="r1", finished="r1 b")
            own = {mine}.__contains__
            found = await begin_run(town.transport, lambda _: True, lambda: 0.0, is_requeued=own)
            assert found[1] is cleared and "finished" not in found[0]
        assert b"finished" not in town.hub.shelf(CRAWL).control

    with caplog.at_level(logging.INFO):
        run(test)
    assert caplog.text.count("it goes on with them") == 1


def test_a_profile_that_is_kept_says_finished_but_of_who_had_gone_before() -> None:
    async def test() -> None:
        town = Town()
        town.say("beats", a=beat("aaaaaaaa"), b=beat("bbbbbbbb", dead=("dddddddd",)), c="garbage")
        for state, incarnation, kept in (
            ("crawling", "cccccccc", "finished"),
            ("finished", "cccccccc", "finished"),
            ("left", "cccccccc", "left"),
            ("leaving", "cccccccc", "leaving"),  # it had handed over, and could not publish that it has left
            ("crawling", "dddddddd", "crawling"),  # the others have taken over what it had
            ("crawling", ["odd"], "finished"),
        ):
            town.say("agents", a=json.dumps({**OWN, "state": state, "incarnation": incarnation}))
            assert json.loads(await published(town.transport, "a"))["state"] == kept
        for unreadable in ("", "[", "[]"):
            town.say("agents", a=unreadable)
            assert await published(town.transport, "a") == ""

    run(test)


def test_what_the_last_process_of_a_name_has_published_of_the_lost_is_read() -> None:
    async def test() -> None:
        town = Town()
        for text, counted in (('{"counted": ["0000000b"]}', ["0000000b"]), ('{"counted": 1}', []), ("[", []), ("", [])):
            town.say("agents", a=text, b='{"counted": ["0000000c"]}')
            assert (await published_losses(town.transport, "a")).counted == counted

    run(test)


def test_the_last_runs_that_finished_are_known_by_name() -> None:
    async def test() -> None:
        town = Town()
        for number in range(MOST_PAST + 2):
            town.say("control", run=f"r{number}", finished=f"r{number} b")
            control, _ = await begin(town.transport)
        assert control["past"].split() == [f"r{number}" for number in range(2, MOST_PAST + 2)]
        assert is_past(control, "r5")
        assert not is_past(control, "r99")
        assert not is_past(control, "")
        assert is_past({"run": "r7", "finished": "r7 b"}, "r7")

    run(test)


def test_of_several_that_start_at_once_one_clears() -> None:
    async def test() -> None:
        town = Town()
        town.say("control", run="r1", finished="r1 b")
        others = [MemoryTransport(town.hub, f"a{number}", CRAWL) for number in range(4)]
        begun = await asyncio.gather(*(begin(transport) for transport in others))
        assert sorted(cleared for _, cleared in begun) == [False, False, False, True]
        assert all(control == {"past": "r1"} for control, _ in begun)

    run(test)


# -- settings that agree


@pytest.mark.parametrize("field", AGREE)
def test_an_agent_that_differs_is_refused_and_told_in_what(field: str) -> None:
    async def test() -> None:
        town = Town()
        town.live("b", **{field: "theirs"})
        with pytest.raises(UbiRefused) as refusal:
            await town.check()
        for told in ("Agent b", CRAWL, AGREE[field], "'theirs'", repr(OWN[field])):
            assert told in str(refusal.value)

    run(test)


@pytest.mark.parametrize("change", [{"layout": None}, {"layout": LAYOUT + 1}, {}])
def test_an_agent_that_beats_in_another_way_is_refused(change: dict[str, Any]) -> None:
    """One of an earlier version, whose profile says nothing of it, or of a later one."""

    async def test() -> None:
        town = Town()
        town.live("b", **change)
        if not change:
            profile = {name: value for name, value in OWN.items() if name != "layout"}
            town.say("agents", b=json.dumps({**profile, "updated": time.time()}))
        with pytest.raises(
            UbiRefused, match="beats in another way: stop the agents of that crawl, update all machines"
        ):
            await town.check()

    run(test)


def test_what_agents_must_agree_in_is_in_every_profile() -> None:
    assert AGREE.keys() <= OWN.keys()


def test_agents_may_differ_in_the_rest() -> None:
    async def test() -> None:
        town = Town()
        town.live("b", capacity=7.0, spider="another", version="0", host_name="elsewhere")
        await town.check()

    run(test)


def test_who_runs_another_spider_is_warned_once(caplog: pytest.LogCaptureFixture) -> None:
    """With one UBI_CRAWL for all spiders of a project each parsed the others' pages, and nobody said so."""

    async def test() -> None:
        town = Town()
        town.live("b")
        await town.check()
        assert not caplog.records
        town.live("b", spider="another")
        town.live("c", spider="a third")
        await town.check()

    run(test)
    (record,) = caplog.records
    for told in (f"of crawl {CRAWL}", "'another'", "'spider'", "UBI_CRAWL"):
        assert told in record.getMessage()


@pytest.mark.parametrize(
    ("theirs", "told"),
    [
        ({"arguments_mark": "01", "arguments": {"site": "a"}}, ("arguments site=a", "no arguments", "UBI_CRAWL")),
        ({"spider_class": "q.Walk"}, ("class q.Walk", "class p.Walk", "two projects", "a UBI_CRAWL of its own")),
    ],
)
def test_who_was_started_from_something_else_is_refused_or_let_in_by_a_setting(
    theirs: dict[str, Any], told: tuple[str, ...]
) -> None:
    async def test() -> None:
        town = Town()
        own = figures.fixed(SETTINGS, "a", "spider", Origin("p.Walk"))
        town.live("b", **{**own, "agent": "b"})
        await check_group(town.transport, SETTINGS, "a", own)
        town.live("b", **{**own, "agent": "b", **theirs})
        with pytest.raises(UbiRefused) as refusal:
            await check_group(town.transport, SETTINGS, "a", own)
        said = str(refusal.value)
        for word in ("Agent b", CRAWL, *told, "UBI_MIXED_AGENTS = True"):
            assert word in said
        await check_group(town.transport, replace(SETTINGS, mixed_agents=True), "a", own)

    run(test)


@pytest.mark.parametrize(
    "settings",
    [
        {"partition": "domain"},
        {"replicas": 100},
        {"replication": 2},
    ],
)
def test_own_settings_are_what_is_compared(settings: dict[str, Any]) -> None:
    async def test() -> None:
        town = Town()
        town.live("b")
        with pytest.raises(UbiRefused):
            await town.check(replace(SETTINGS, **settings))

    run(test)


def test_who_has_left_or_is_long_gone_need_not_agree() -> None:
    async def test() -> None:
        town = Town()
        town.live("b", beat(flags=LEFT), partition="domain")
        town.live("c", partition="domain", updated=time.time() - 4.5 * SETTINGS.failure_timeout)
        town.live("a", partition="domain")  # this agent's own former life
        await town.check()

    run(test)


@pytest.mark.parametrize("ahead", [-3600.0, 3600.0])
def test_who_beats_on_must_agree_whatever_time_it_is_there(ahead: float) -> None:
    """The machines' clocks need not agree."""

    async def test() -> None:
        town = Town()
        town.live("b", partition="domain", updated=time.time() + ahead)
        await town.check()  # no beat has come: it is gone
        seen, counters = town.transport.beats, itertools.count(100)

        async def beats() -> dict[str, str]:
            town.live("b", beat(counter=next(counters)), partition="domain", updated=time.time() + ahead)
            return await seen()

        town.transport.beats = beats  # type: ignore[method-assign]
        with pytest.raises(UbiRefused, match="UBI_PARTITION"):
            await town.check()

    run(test)


@pytest.mark.parametrize("text", ["", "garbage", "[]", "null", "5", '{"updated": "now"}', "[" * 5000, "{}"])
def test_garbage_for_a_profile_refuses_nobody(text: str) -> None:
    async def test() -> None:
        town = Town()
        town.live("b")
        town.say("agents", b=text)
        await town.check()
        town.say("beats", b="garbage")
        await town.check()

    run(test)


def test_an_identifier_whose_points_are_anothers_is_refused() -> None:
    async def test() -> None:
        town = Town()
        town.live("\0a")
        with pytest.raises(UbiRefused, match="UBI_AGENT_ID"):
            await town.check()

    run(test)


# -- an identifier that nobody uses


def test_a_free_identifier_is_claimed() -> None:
    async def test() -> None:
        town = Town()
        await town.claim()
        assert town.beats() == {"a": beat("aaaaaaaa", 0)}

    run(test)


def test_ones_own_predecessor_is_dead_for_sure() -> None:
    """It ran in this directory, whose lock this process now holds."""

    async def test() -> None:
        town = Town()
        town.say("beats", a=beat("0123abcd", 77))
        await town.claim(predecessor="0123abcd")
        assert town.claimed() == ("aaaaaaaa", ["0123abcd"])
        assert (town.slept, [last.counter for last in town.last]) == (0, [77])

    run(test)


def test_one_that_has_left_is_replaced_at_once() -> None:
    async def test() -> None:
        town = Town()
        town.say("beats", a=beat(flags=LEFT))
        await town.claim()
        assert town.claimed() == ("aaaaaaaa", ["0123abcd"])
        assert (town.slept, [last.flags for last in town.last]) == (0, [LEFT])

    run(test)


def test_a_silent_one_is_watched_for_the_failure_timeout_and_replaced() -> None:
    async def test() -> None:
        town = Town()
        town.say("beats", a=beat())
        await town.claim(predecessor="ffffffff")
        assert town.claimed() == ("aaaaaaaa", ["0123abcd"])
        assert town.slept >= 5

    run(test)


@pytest.mark.parametrize("change", [{"counter": 2}, {"incarnation": "ffffffff"}])
def test_one_that_beats_is_alive_and_this_process_refused(change: dict[str, Any]) -> None:
    async def test() -> None:
        town = Town()
        town.say("beats", a=beat())
        looks = 0
        read = town.transport.beats

        async def beats() -> dict[str, str]:
            nonlocal looks
            looks += 1
            if looks == 3:
                town.say("beats", a=beat(**change))
            return await read()

        town.transport.beats = beats  # type: ignore[method-assign]
        with pytest.raises(UbiRefused, match="UBI_AGENT_ID") as refusal:
            await town.claim()
        assert "agent a" in str(refusal.value)
        assert CRAWL in str(refusal.value)
        assert town.beats() == {"a": beat(**change)}

    run(test)


def test_garbage_in_place_of_a_beat_is_replaced() -> None:
    async def test() -> None:
        town = Town()
        town.say("beats", a="garbage")
        await town.claim()
        assert town.beats() == {"a": beat("aaaaaaaa", 0)}

    run(test)


def test_of_two_that_claim_at_once_one_wins() -> None:
    async def test() -> None:
        town = Town()

        async def beating(line: str) -> bool:
            try:
                await town.claim(line=line)
            except UbiRefused:
                return False
            incarnation = line.split(".")[0]
            for counter in range(1, 60):
                town.say("beats", a=beat(incarnation, counter))
                await asyncio.sleep(0.001)
            return True

        won = await asyncio.gather(beating(beat("aaaaaaaa", 0)), beating(beat("bbbbbbbb", 0)))
        assert sorted(won) == [False, True]

    run(test)


def test_one_that_is_overtaken_again_and_again_gives_up() -> None:
    async def test() -> None:
        town = Town()
        tries = 0

        async def overtaken(agent: str, expected: str | None, line: str) -> bool:
            nonlocal tries
            tries += 1
            town.say("beats", a=beat(f"{tries:08x}", flags=LEFT))
            return False

        town.transport.claim = overtaken  # type: ignore[method-assign]
        with pytest.raises(UbiRefused, match="UBI_AGENT_ID"):
            await town.claim()
        assert tries == CLAIMS

    run(test)


def test_a_redis_that_goes_away_is_not_a_refusal() -> None:
    async def test() -> None:
        town = Town()
        town.hub.down = True
        for step in (begin(town.transport), town.check(), town.claim()):
            with pytest.raises(TransportDown):
                await step

    run(test)


# -- a predecessor's mail


def test_letters_for_a_predecessor_are_thrown_away_once_the_identifier_is_claimed() -> None:
    async def test() -> None:
        town = Town()
        sender = MemoryTransport(town.hub, "b", CRAWL)
        await sender.exchange(Outgoing(letters=[("a", {"from": "b", "body": str(n)}) for n in range(150)]))
        await begin(town.transport)
        assert len(town.hub.shelf(CRAWL).inbox["a"]) == 150  # until then it may be a living agent's
        await discard(town.transport)
        assert not town.hub.shelf(CRAWL).inbox["a"]
        await sender.exchange(Outgoing(letters=[("a", {"from": "b", "body": "new"})]))
        (letter,) = (await town.transport.exchange(Outgoing())).letters
        assert letter[1][b"body"] == b"new"

    run(test)


def test_who_does_not_sign_is_refused_where_the_others_do() -> None:
    hub = MemoryHub()
    hub.shelf(CRAWL).control[b"run"] = (
        Signer("a secret of some length", CRAWL).text("control", "", "run", "r1").encode()
    )
    transport = MemoryTransport(hub, "a", CRAWL)
    with pytest.raises(UbiRefused, match=r"sign what they write \(UBI_SECRET\), and this one does not"):
        asyncio.run(begin_run(transport, lambda run: False, lambda: 0.0))
