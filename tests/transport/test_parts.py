"""The small parts: which entries are in hand, names of keys, text and bytes."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from redis.crc import key_slot

from scrapy_ubi.transport.contract import HEAD, Outgoing
from scrapy_ubi.transport.delivered import InHand
from scrapy_ubi.transport.redis_keys import AGENT_KEYS, ASIDE, RedisKeys, crawl_of
from scrapy_ubi.transport.wire_text import encode, marker, size_of, texts

NAMES = st.text("abcXYZ019_.:-", min_size=1, max_size=8)


class HandMachine(RuleBasedStateMachine):
    """An inbox and a caller: nothing is handed out twice, lost deletions are repeated, the bound holds."""

    def __init__(self) -> None:
        super().__init__()
        self.hand = InHand(most=8)
        self.inbox: list[str] = []
        self.caller: list[str] = []
        self.number = 0

    @rule(count=st.integers(0, 5))
    def arrive(self, count: int) -> None:
        for _ in range(count):
            self.number += 1
            self.inbox.append(f"{self.number}-0")

    @rule(wanted=st.integers(0, 5))
    def read(self, wanted: int) -> None:
        new = [one for one in self.inbox if one not in self.hand.held][: self.hand.room(wanted)]
        assert not set(new) & set(self.caller)
        self.hand.hand_out(new)
        self.caller += new

    @rule(count=st.integers(0, 5), arrives=st.booleans())
    def consume(self, count: int, arrives: bool) -> None:
        given_back, self.caller = self.caller[:count], self.caller[count:]
        self.hand.consume(given_back)
        if arrives:
            leaving = self.hand.leaving
            self.inbox = [one for one in self.inbox if one not in leaving]
            self.hand.deleted(leaving)

    @rule()
    def flush(self) -> None:
        self.inbox.clear()

    @invariant()
    def held_are_those_with_the_caller_and_those_leaving(self) -> None:
        assert set(self.hand.held) == set(self.caller) | set(self.hand.leaving)
        assert not set(self.caller) & set(self.hand.leaving)
        assert len(self.caller) <= 8


TestInHand = HandMachine.TestCase


def test_an_exchange_of_nothing_is_told_by_every_field() -> None:
    nothing = Outgoing(read_inbox=False, read_acks=False, read_control=False)
    assert nothing.is_nothing
    assert replace(nothing, letters=[], acks={}).is_nothing
    for each in fields(Outgoing):
        assert not replace(nothing, **{each.name: "something"}).is_nothing, each.name


@pytest.mark.parametrize("one", ["", "*", "1", "1-", "1-1 ", "1-1\n", "-", "1" * 21 + "-0"])
def test_what_is_no_id_is_refused(one: str) -> None:
    with pytest.raises(ValueError, match="no id"):
        InHand().consume([one])


def test_keys_are_named_as_the_manual_says() -> None:
    keys = RedisKeys("bot:spider")
    assert (keys.beats, keys.agents, keys.control) == tuple(
        f"ubi:{{bot:spider}}:{name}" for name in ("beats", "agents", "control")
    )
    assert keys.inbox("a1") == "ubi:{bot:spider}:a1:inbox"
    assert keys.acks("a1") == "ubi:{bot:spider}:a1:acks"
    assert keys.dead("a1") == "ubi:{bot:spider}:a1:dead"
    assert keys.answers("0" * 16) == "ubi:{bot:spider}:0000000000000000:answers"


def test_every_key_is_in_the_manual() -> None:
    manual = (Path(__file__).parents[2] / "docs/reference/redis-keys.md").read_text()
    keys = RedisKeys("<crawl>")
    for name in (keys.beats, keys.agents, keys.control, *(getattr(keys, kind)("<agent>") for kind in AGENT_KEYS)):
        assert f"`{name}`" in manual
    assert f"{ASIDE}`" in manual


@given(NAMES, NAMES, NAMES, NAMES)
def test_keys_of_two_crawls_or_agents_never_meet(crawl: str, agent: str, other: str, another: str) -> None:
    def names(crawl: str, agent: str) -> set[str]:
        keys = RedisKeys(crawl)
        own = {keys.inbox(agent), keys.acks(agent), keys.dead(agent)}
        return own | {name + ASIDE for name in own}

    if (crawl, agent) != (other, another):
        assert not names(crawl, agent) & names(other, another)
    assert {RedisKeys(crawl).owner(encode(name)) for name in names(crawl, agent)} == {
        (agent, kind) for kind in AGENT_KEYS
    }
    whole = (*RedisKeys(other).shared, *RedisKeys(other).outside)
    assert not names(crawl, agent) & set(whole)
    assert {RedisKeys(other).owner(encode(name)) for name in whole} == {None}


@given(NAMES, NAMES)
def test_all_keys_of_a_crawl_are_in_one_slot_of_a_cluster(crawl: str, agent: str) -> None:
    keys = RedisKeys(crawl)
    own = (keys.inbox(agent), keys.acks(agent), keys.dead(agent), keys.answers("0" * 16))
    names = (*keys.shared, *keys.outside, *own)
    assert {key_slot(encode(name + end)) for name in names for end in ("", ASIDE)} == {key_slot(encode(crawl))}


def test_a_foreign_key_has_no_owner() -> None:
    for key in (
        b"ubi:{c}:beats",
        b"ubi:{d}:a:inbox",
        b"ubi:{c}:inbox",
        b"ubi:{c}:a:letters",
        b"ubi:c:{a}:inbox",
        b"\xff",
    ):
        assert RedisKeys("c").owner(key) is None


def test_the_crawl_of_a_key_is_found_by_its_braces() -> None:
    assert [crawl_of(key) for key in RedisKeys("bot:spider").shared] == ["bot:spider"] * 13
    for key in ("ubi:{c}:a:inbox", "ubi:{c}:seeds", "ubi:c:beats", "ubi:{}:beats", "ubi:{c:beats", "other:{c}:beats"):
        assert crawl_of(key) is None


@given(st.text())
def test_any_text_can_be_sent_and_proper_text_comes_back(text: str) -> None:
    raw = encode(text)
    good, bad = texts([(b"name", raw)], 10**6)
    assert bad == []
    assert good["name"] == text or any("\ud800" <= one <= "\udfff" for one in text)


@given(st.dictionaries(st.binary(max_size=12), st.binary(max_size=12)), st.integers(0, 12))
def test_fields_are_text_or_named_as_bad(raw: dict[bytes, bytes], longest: int) -> None:
    good, bad = texts(raw.items(), longest)
    assert len(good) + len(bad) == len(raw)
    for name, value in good.items():
        assert raw[name.encode()] == value.encode()
        assert len(value.encode()) <= longest


@given(st.dictionaries(st.binary(max_size=400), st.binary(max_size=400), max_size=8))
def test_marker_is_small_whatever_it_stands_for(fields: dict[bytes, bytes]) -> None:
    cut = marker(fields, size_of(fields))
    assert int(cut[b"oversized"]) == sum(len(name) + len(value) for name, value in fields.items())
    assert len(cut[b"head"]) <= HEAD
    assert size_of(cut) < 400
