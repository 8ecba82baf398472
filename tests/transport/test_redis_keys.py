"""The keys of mail in slots: who has which, and that no two crawls share one."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot
from scrapy.settings import Settings

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.ground.untrusted.checks import NAME
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport.redis_keys import CLUSTER_SLOTS, RedisKeys, crawl_of, hash_slot, mail_place, mail_tags

names = st.from_regex(re.compile(NAME.pattern), fullmatch=True)
numbers = st.integers(1, 64)


@given(names, names)
def test_with_one_slot_mail_is_where_it_always_was(crawl: str, agent: str) -> None:
    keys = RedisKeys(crawl, 1)
    assert keys.inbox(agent) == f"ubi:{{{crawl}}}:{agent}:inbox"
    assert keys.acks(agent) == f"ubi:{{{crawl}}}:{agent}:acks"
    assert keys.mail_slot(keys.inbox(agent)) is None


@given(names, names, st.integers(2, 64))
def test_mail_of_an_agent_is_in_one_slot_beside_that_of_the_crawl(crawl: str, agent: str, slots: int) -> None:
    keys = RedisKeys(crawl, slots)
    mail = (keys.inbox(agent), keys.acks(agent), keys.memory(agent))
    tags = {re.findall(r"\{(.*?)\}", key)[0] for key in mail}
    assert len(tags) == 1
    assert re.fullmatch(re.escape(crawl) + r"/\d{1,9}", tags.pop())
    assert {keys.mail_slot(key) for key in mail} == {key_slot(mail[0].encode())}
    assert keys.dead(agent) == f"ubi:{{{crawl}}}:{agent}:dead"
    for key, kind in ((keys.inbox(agent), "inbox"), (keys.acks(agent) + ":aside", "acks")):
        assert keys.owner(key.encode()) == RedisKeys(crawl).owner(key.encode()) == (agent, kind)
        assert keys.is_mail(key.encode())
    assert not keys.is_mail(keys.dead(agent).encode())


@given(names, names, names, numbers, numbers)
def test_no_key_of_one_crawl_is_one_of_another(one: str, other: str, agent: str, few: int, many: int) -> None:
    if one == other:
        return
    keys = RedisKeys(one, few)
    mail = (keys.inbox(agent), keys.acks(agent), keys.memory(agent))
    others = RedisKeys(other, many)
    for key in mail:
        assert key not in others.shared
        assert others.owner(key.encode()) is None
        assert not others.is_mail(key.encode())
        assert crawl_of(key) is None


def test_a_crawl_whose_name_looks_like_a_mail_slot_is_refused() -> None:
    with pytest.raises(UbiSettingError, match="UBI_CRAWL"):
        UbiSettings.from_scrapy(Settings({"UBI_CRAWL": "a/3"}), "spider")


@given(names, st.integers(2, 256))
def test_mail_slots_are_spread_evenly_over_a_cluster(crawl: str, slots: int) -> None:
    tags = mail_tags(crawl, slots)
    assert sorted(hash_slot(tag) * slots // CLUSTER_SLOTS for tag in tags) == list(range(slots))


@given(names, st.integers(0, 1000), st.sampled_from([(12, 6), (12, 3), (12, 2), (6, 6), (24, 12)]))
def test_a_few_agents_are_spread_evenly_over_masters_with_many_slots(
    crawl: str, first: int, group: tuple[int, int]
) -> None:
    agents, masters = group
    keys = RedisKeys(crawl, 48)
    found = [key_slot(keys.inbox(f"a{first + number}").encode()) * masters // CLUSTER_SLOTS for number in range(agents)]
    assert {*Counter(found).values()} == {agents // masters}


@given(st.from_regex(r"[a-z.:-]{0,20}", fullmatch=True), st.integers(0, 1000), st.integers(1, 12), st.integers(1, 9))
def test_numbered_agents_take_turns(begin: str, first: int, slots: int, each: int) -> None:
    agents = [f"{begin}{first + number}" for number in range(slots * each)]
    assert {*Counter(mail_place(agent, slots) for agent in agents).values()} == {each}


def test_where_mail_is_does_not_change() -> None:
    """Agents of two versions must agree on it; see LAYOUT."""
    assert [mail_place(agent, 6) for agent in ("a0", "a1", "host-7", "3f9c")] == [5, 0, 1, 4]
    assert mail_tags("bot:spider", 6) == tuple(f"bot:spider/{number}" for number in (10, 42, 0, 2, 12, 40))
