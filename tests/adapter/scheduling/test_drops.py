"""What is lost is counted always, said once, and kept where it can be."""

from __future__ import annotations

from collections import Counter

import pytest
from scrapy import Request

from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.adapter.requests.codec import Encoded
from scrapy_ubi.adapter.requests.untravelled import Loss
from scrapy_ubi.adapter.scheduling.drops import MOST_SAID, Drops
from scrapy_ubi.adapter.scheduling.kept_requests import KeptRequests

CALLBACK = Encoded("", 0, 0, (Loss("callback", "its callback f at a.py:1"),))


class World:
    def __init__(self, alone: bool = False, most: int = 1, all_kept: bool = False) -> None:
        self.counts, self.kept = Counter[str](), KeptRequests(most)
        self.losses = Drops(self._count, Notices(), self.kept, 6000, alone, all_kept)

    def _count(self, stat: str) -> None:
        self.counts[stat] += 1


def test_what_is_dropped_is_counted_and_said_once_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    assert not any(world.losses.drop(kind, f"a {kind} link") for kind in ("long", "long", "odd"))
    assert world.counts == {"ubi/scheduler/dropped/long": 2, "ubi/scheduler/dropped/odd": 1}
    assert [record.getMessage() for record in caplog.records] == [
        "a long link: it is dropped. (Shown once.)",
        "a odd link: it is dropped. (Shown once.)",
    ]


def test_a_text_too_large_for_a_letter_is_said_where_letters_are_sent(caplog: pytest.LogCaptureFixture) -> None:
    World(alone=True).losses.look_at_size("r", "x" * 1001)
    losses = World().losses
    losses.look_at_size("r", "x" * 1000)
    assert not caplog.records
    for _ in range(2):
        losses.look_at_size("r", "x" * 1001)
    assert [record.getMessage().count("UBI_MAX_LETTER_BYTES") for record in caplog.records] == [1]


@pytest.mark.parametrize("alone", [True, False])
def test_what_cannot_travel_whole_is_kept(alone: bool, caplog: pytest.LogCaptureFixture) -> None:
    world = World(alone)
    first, second = Request("http://h1.example/1"), Request("http://h1.example/2")
    world.losses.keep(Request("http://h1.example/"), 0, Encoded("", 0, 0, ()))
    world.losses.keep(first, 1, CALLBACK)
    world.losses.keep(second, 2, CALLBACK)
    assert (world.kept.take_request(0), world.kept.take_request(1), world.kept.take_request(2)) == (None, None, second)
    assert world.counts == {"ubi/codec/untravelled/callback": 2, "ubi/codec/originals_dropped": 1}
    said = [record.getMessage() for record in caplog.records]
    assert sum("its callback f at a.py:1 cannot travel" in sentence for sentence in said) == (not alone)
    assert sum("the oldest are fetched without" in sentence for sentence in said) == 1


def test_each_callback_and_key_of_meta_is_said_once_and_of_very_many_the_first(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(most=1000)
    for number in (1, 2, 1, *range(3, 100)):
        loss = Loss("callback", f"its callback f at a.py:{number}.")
        world.losses.keep(Request("http://h1.example/"), 1, Encoded("", 0, 0, (loss,)))
    world.losses.keep(Request("http://h1.example/"), 1, Encoded("", 0, 0, (Loss("meta/Selector", "meta['x']"),)))
    said = [record.getMessage() for record in caplog.records]
    assert ["a.py:1." in said[0], "a.py:2." in said[1], len(said)] == [True, True, MOST_SAID + 1]
    assert "reason codec/callback. Make it a method of the spider" in said[0]
    assert "ubi/codec/untravelled/" in said[-1]
    assert world.counts["ubi/codec/untravelled/callback"] == 100


def test_in_a_trial_each_request_is_kept() -> None:
    world = World(alone=True, most=9, all_kept=True)
    request = Request("http://h1.example/")
    world.losses.keep(request, 1, Encoded("", 0, 0, ()))
    assert world.kept.take_request(1) is request and not world.counts


@pytest.mark.parametrize("alone", [True, False])
def test_a_seed_without_host_is_said_to_be_fetched_by_every_agent(
    alone: bool, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(alone=alone)
    for number in range(2):
        world.losses.local_seed(Request(f"file:///{number}"))
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == (not alone) and all("file:///0>, which belongs to no host" in sentence for sentence in said)
