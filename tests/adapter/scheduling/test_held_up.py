"""What Scrapy has under way, as a reason why nothing more is fetched."""

from __future__ import annotations

import time
from typing import Any

import pytest
from scrapy import Request

from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.transfer_states import Transfer
from scrapy_ubi.adapter.robots.fetch import LOAD
from scrapy_ubi.adapter.scheduling.held_up import in_callbacks, under_way
from scrapy_ubi.agent.profile import idle_reason as kinds
from scrapy_ubi.agent.profile.idle_reason import sentence
from scrapy_ubi.ground.clock import unix


def parse_item(response: Any) -> None: ...


def flight(host: str, transfer: Transfer, ago: float = 0.0, **request: Any) -> Flight:
    began = time.monotonic() - ago if ago else 0.0
    return Flight(Request(f"http://{host}/", **request), host, transfer=transfer, began=began)


def test_nothing_is_under_way() -> None:
    assert under_way([]) is None


def test_loads_that_are_not_answered_name_their_hosts_the_oldest_first_and_since_when() -> None:
    found = under_way(
        [flight("young.example", Transfer.TRANSFERRING, 5.0), flight("old.example", Transfer.TRANSFERRING, 60.0)]
    )
    assert found is not None
    assert (found.kind, found.names, found.number) == (kinds.LOADS, ("old.example", "young.example"), 2)
    assert found.since == pytest.approx(unix() - 60, abs=30)
    assert "2 loads are under way and not answered yet: old.example, young.example, since" in sentence(found, unix())


def test_a_robots_txt_that_is_loaded_is_called_so() -> None:
    found = under_way(
        [flight("a.example", Transfer.TRANSFERRING, 3.0, meta={LOAD: object()}), flight("a.example", Transfer.UNASKED)]
    )
    assert found is not None
    assert (found.kind, found.names) == (kinds.ROBOTS, ("a.example",))


def test_requests_that_wait_for_their_host_are_called_so() -> None:
    found = under_way([flight("a.example", Transfer.WAITING)])
    assert found is not None
    assert (found.kind, found.names) == (kinds.PERMITS, ("a.example",))


def test_callbacks_and_pipelines_name_the_callback_and_how_many_pages_it_has() -> None:
    pages = [flight(f"h{n}.example", Transfer.ENDED, 9.0, callback=parse_item) for n in range(3)]
    found = under_way([*pages, flight("x.example", Transfer.ENDED, 9.0)])
    assert found is not None
    assert (found.kind, found.names, found.more) == (kinds.CALLBACKS, ("parse_item (3)", "parse (1)"), "4 pages")
    said = sentence(found, unix())
    assert "callbacks and item pipelines have 4 pages and have not ended: parse_item (3), parse (1), since" in said


def test_pages_that_wait_for_room_are_called_so() -> None:
    found = in_callbacks([flight("a.example", Transfer.ENDED, callback=parse_item)], kinds.MEMORY)
    assert found is not None
    assert "pages wait for room (UBI_MEMORY_MB), as callbacks have others: parse_item (1)" in sentence(found, unix())
