"""What a profile tells Prometheus: bounded, whatever stands in it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.agent.metrics.exposition import Exposition
from scrapy_ubi.agent.metrics.profile_samples import ALL_STATES, MOST_WORDS, by_word, labels_of, put_profile, put_state
from scrapy_ubi.agent.profile.profile import Profile, read_profile
from tests.cli.monitor.by_hand import profile
from tests.support.prometheus import Recorded


def told(**counters: Any) -> Recorded:
    read = read_profile("a1", json.dumps(profile("a1", counters=counters)).encode())
    assert isinstance(read, Profile), read
    page = Exposition()
    put_profile(page, labels_of("demo:web", "a1"), read)
    return Recorded(page.text())


def test_counters_and_gauges_are_told_under_their_names() -> None:
    found = told(pages=7, queued=3, received_bytes=900, bytes_sent=11)
    assert found.value("ubi_pages_total", crawl="demo:web", agent="a1") == 7
    assert found.value("ubi_queue_urls") == 3
    assert found.value("ubi_received_bytes_total") == 900
    assert found.value("ubi_sent_letters_bytes_total") == 11
    assert found.value("ubi_agent_info", version="0.1.0", spider="web") == 1


def test_responses_are_told_by_the_five_classes_alone() -> None:
    found = told(responses={"2xx": 5, "4xx": 1, "9xx": 3, "evil": 4})
    assert {labels["class"]: value for _, labels, value in found.find("ubi_responses_total", {})} == {
        "2xx": 5,
        "4xx": 1,
    }


def test_failures_are_told_by_the_first_word_of_their_reason() -> None:
    found = told(failed={"http/404": 3, "http/500": 2, "robots": 1, "robots/unreachable": 4, "http 404": 1})
    by_reason = {labels["reason"]: value for _, labels, value in found.find("ubi_failures_total", {})}
    assert by_reason == {"http": 6, "robots": 5}


def test_a_host_that_is_held_is_counted_once() -> None:
    found = told(hosts=10, hosts_busy=2, hosts_waiting=5, hosts_held=3)
    assert {labels["state"]: value for _, labels, value in found.find("ubi_hosts", {})} == {
        "busy": 2,
        "waiting": 2,
        "held": 3,
        "idle": 3,
    }


@given(st.dictionaries(st.text(max_size=60), st.integers(0, 10**9), max_size=300))
def test_reasons_are_bounded_and_all_are_counted(counts: dict[str, int]) -> None:
    found = by_word(counts)
    assert len(found) <= MOST_WORDS + 1
    assert sum(found.values()) == sum(counts.values())
    assert all(len(word) <= 40 and word.isascii() for word in found)


def test_words_beyond_the_bound_are_others_and_the_first_ones_stay() -> None:
    counts = {f"word{number}/x": 1 for number in range(50)}
    first = by_word(counts)
    assert by_word({**counts, "one-more": 5}) == first | {"other": first["other"] + 5}


def test_exactly_one_state_is_told() -> None:
    page = Exposition()
    put_state(page, labels_of("c", "a"), "fenced")
    states = {labels["state"]: value for _, labels, value in Recorded(page.text()).find("ubi_agent_state", {})}
    assert states == dict.fromkeys(ALL_STATES, 0.0) | {"fenced": 1.0}
