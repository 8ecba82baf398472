"""The contract of contract.py, promise by promise: items of start(), for everything that carries mail."""

from __future__ import annotations

import asyncio

import pytest

from scrapy_ubi.transport import Transport, TransportDown, TransportFull, exchange_commands, shelf
from tests.transport.exchanges import play
from tests.transport.worlds import World


def test_of_several_that_claim_an_item_one_has_it(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        said = await asyncio.gather(a.claim_items({"1": (None, "a é")}), b.claim_items({"1": (None, "b")}))
        assert said in ([{"1": "a é"}] * 2, [{"1": "b"}] * 2)

    play(world, scene)


def test_what_is_said_changes_where_it_is_as_expected_and_is_told_in_any_case(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        assert await a.claim_items({"1": (None, "held a"), "2": (None, "held a")}) == {"1": "held a", "2": "held a"}
        assert await b.claim_items({"1": (None, "held b"), "3": (None, "held b")}) == {"1": "held a", "3": "held b"}
        assert await b.claim_items({"1": ("held a", "held b"), "2": ("held c", "held b")}) == {
            "1": "held b",
            "2": "held a",
        }
        assert await a.claim_items({"4": ("held a", "kept a")}) == {"4": ""}, "nothing is said of it"
        assert await a.claim_items({"1": ("held b", "held b")}) == {"1": "held b"}, "a look"
        assert await a.claim_items({}) == {}

    play(world, scene)


def test_more_than_may_be_known_are_not_known(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_commands, "MOST_START_ITEMS", 2)
    monkeypatch.setattr(shelf, "MOST_START_ITEMS", 2)

    async def scene(a: Transport, b: Transport) -> None:
        assert await a.claim_items({str(n): (None, "a") for n in range(3)}) == {"0": "a", "1": "a", "2": ""}
        assert await b.claim_items({"1": ("a", "b"), "3": (None, "b")}) == {"1": "b", "3": ""}

    play(world, scene)


def test_what_is_no_text_counts_as_nothing(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        world.set_field("start", b"1", b"\xff")
        assert await a.claim_items({"1": (None, "a"), "2": (None, "a")}) == {"1": "", "2": "a"}

    play(world, scene)


def test_a_clearing_forgets_them(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        await a.claim_items({"1": (None, "a")})
        assert await b.clear()
        assert await b.claim_items({"1": (None, "b")}) == {"1": "b"}

    play(world, scene)


def test_a_server_that_is_full_or_away_is_told(world: World) -> None:
    async def scene(a: Transport, b: Transport) -> None:
        world.fill(True)
        with pytest.raises(TransportFull):
            await a.claim_items({"1": (None, "a")})
        world.fill(False)
        world.cut(True)
        with pytest.raises(TransportDown):
            await a.claim_items({"1": (None, "a")})
        world.cut(False)

    play(world, scene)
