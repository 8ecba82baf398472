"""Who is lost at the end of a crawl, by what the agents publish, and by their beats."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_ubi.agent.group.lost_agents import LostAgents, lost
from scrapy_ubi.protocol.beat import LEFT, LOSSY, OVER, Beat, words_after
from scrapy_ubi.protocol.losses import GroupLoss, LossBook
from scrapy_ubi.transport import TransportDown

B, C = "0000000b", "0000000c"
BOTH = GroupLoss((("b", B), ("c", C)), 1)
MISSED = GroupLoss((("b", ""),), 0)


def profile(agent: str, *former: str, losses: Any = None) -> str:
    told = {"former": list(former)} | ({"losses": losses} if losses is not None else {})
    return json.dumps({"agent": agent, **told})


def book(losses: Any = (), missed: Any = (), counted: Any = (), safe: Any = ()) -> LossBook:
    known = LossBook(losses)
    known.missed, known.counted, known.safe = list(missed), list(counted), list(safe)
    return known


def line(flags: str) -> str:
    return Beat("00000001", 0, 200, "0" * 16, flags=flags).line(1)


@pytest.mark.parametrize(
    ("losses", "members", "profiles", "beats", "names"),
    [
        ([], "a", {}, {}, ()),
        ([BOTH], "a", {}, {}, ("b", "c")),
        ([BOTH], "ab", {"b": profile("b", B)}, {}, ()),
        ([BOTH], "ab", {"b": profile("b")}, {}, ("b", "c")),
        ([BOTH], "ax", {"x": profile("x", C)}, {}, ()),
        ([BOTH], "a", {"b": profile("b", B)}, {}, ("b", "c")),
        ([BOTH], "a", {"b": profile("b", B)}, {"b": line(LEFT + OVER + LOSSY)}, ()),
        ([BOTH], "a", {"b": profile("b", B)}, {"b": line(LEFT)}, ()),
        ([BOTH], "a", {"b": profile("b", B)}, {"b": line(LEFT + LOSSY)}, ("b", "c")),
        ([MISSED], "a", {}, {}, ("b",)),
        ([MISSED], "ab", {"b": profile("b", B)}, {}, ()),
        ([MISSED], "ab", {"b": profile("b")}, {}, ("b",)),
        ([MISSED], "a", {}, {"b": line(LEFT)}, ()),
        ([MISSED], "a", {}, {"b": line(LEFT + LOSSY)}, ("b",)),
        ([MISSED], "a", {"b": json.dumps({"agent": "b", "handed_over": True})}, {}, ()),
        ([], "ax", {"x": profile("x", losses=[[1, ["b", B], ["c", C]]])}, {}, ("b", "c")),
        ([], "ax", {"x": profile("x", losses="garbage"), "y": "{", "z": "[]"}, {"y": "garbage"}, ()),
    ],
    ids=[
        "no loss", "both stay away", "one is back", "one is back without its disk", "a disk under another name",
        "it went again", "it was there at the end", "it came, and left", "it left with work", "missed",
        "missed, and back", "missed, and back without its disk", "missed, and had left", "missed, and left with work",
        "missed, and had left long ago",
        "another has seen it", "garbage",
    ],
)  # fmt: skip
def test_who_is_lost(
    losses: list[GroupLoss], members: str, profiles: dict[str, str], beats: dict[str, str], names: tuple[str, ...]
) -> None:
    assert lost("a", book(losses), set(members), profiles, beats) == names


@pytest.mark.parametrize(
    ("counted", "told", "names"),
    [
        ([], {}, ("b",)),
        ([B], {}, ()),
        ([C], {}, ("b",)),
        ([], {"counted": [B]}, ()),
        ([], {"counted": [7, "x"]}, ("b",)),
    ],
)
def test_who_is_missed_is_not_lost_where_somebody_has_counted_its_death(
    counted: list[str], told: dict[str, Any], names: tuple[str, ...]
) -> None:
    known = book(missed=[GroupLoss((("b", B),), 0)], counted=counted)
    assert lost("a", known, {"a", "x"}, {"x": json.dumps({"agent": "x", **told})}, {}) == names
    known = book([GroupLoss((("b", B),), 0)], counted=counted)
    assert lost("a", known, {"a", "x"}, {"x": json.dumps({"agent": "x", **told})}, {}) == ("b",), "this was seen"


def test_who_left_is_back_in_its_last_life() -> None:
    known = book(missed=[GroupLoss((("b", B),), 0)])
    left = json.dumps({"agent": "b", "incarnation": B, "handed_over": True})
    assert lost("a", known, {"a"}, {"b": left}, {}) == ()


@pytest.mark.parametrize(("flags", "names"), [(LEFT, ()), (LEFT + LOSSY, ("b",)), ("", ("b",))])
def test_who_left_is_back_though_another_has_taken_its_name(flags: str, names: tuple[str, ...]) -> None:
    known = book(missed=[GroupLoss((("b", B),), 0)])
    before = words_after(Beat(B, 0, 200, "0" * 16, flags=flags))
    assert lost("a", known, {"a", "b"}, {}, {"b": Beat("00000001", 0, 200, "0" * 16, before=before).line(1)}) == names


def test_whom_others_miss_is_missed() -> None:
    known = book()
    assert lost("a", known, {"a", "x"}, {"x": json.dumps({"agent": "x", "missed": [[0, ["b", B]]]})}, {}) == ("b",)


class Redis:
    """What is asked of Redis; `down`: it does not answer."""

    def __init__(self, down: bool) -> None:
        self.down, self.asked = down, 0

    async def profiles(self) -> dict[str, str]:
        self.asked += 1
        if self.down:
            raise TransportDown("away")
        return {"b": profile("b", B)}

    async def beats(self) -> dict[str, str]:
        return {"b": line(LEFT)}

    async def call(self, coroutine: Any) -> Any:
        return await coroutine


def look(lossy: bool, control: dict[str, str], down: bool = False) -> tuple[Any, Any, Redis]:
    group = SimpleNamespace(losses=SimpleNamespace(book=book([BOTH])))
    agent = SimpleNamespace(me="a", lossy=lossy, group=group, view=SimpleNamespace(members={}))
    tally, written = SimpleNamespace(lost_agents=0), list[str]()
    crawl: Any = SimpleNamespace(agent=agent, tally=tally, was_over=False, write_facts=lambda: written.append("facts"))
    redis: Any = Redis(down)
    agents = LostAgents(crawl, redis, redis, lambda: control)
    asyncio.run(agents.find_lost())
    return agents, crawl, redis


def test_nothing_is_asked_where_nobody_speaks_of_a_loss() -> None:
    agents, crawl, redis = look(False, {"run": "r", "finished": "r a"})
    assert not agents.names and not redis.asked and not crawl.tally.lost_agents


def test_who_came_to_the_end_hears_of_it_by_the_control_hash() -> None:
    agents, _, redis = look(False, {"run": "r", "finished": "r a lossy"})
    assert redis.asked and not agents.names, "one is back: the other's copies are there"


def test_where_redis_is_away_what_was_seen_here_counts() -> None:
    agents, crawl, _ = look(True, {}, down=True)
    assert agents.names == ("b", "c") and crawl.tally.lost_agents == 2
