"""The nonces of requests whose outputs were lost: what they keep of the page's name, and of what it redirects to."""

from __future__ import annotations

import json

import pytest

from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.agent.keys import MOST_NONCE, before_loss, lost_nonce, name_of, taken_first
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.settings import UbiSettings

KEYS = RequestKeys(UbiSettings())


def page(nonce: str = "") -> Entry:
    request = json.dumps({"meta": {"ubi_nonce": nonce}}) if nonce else ""
    entry = KEYS.again(Entry(0, "http://a.example/", 0, 0, request), nonce)
    assert entry is not None
    return entry


@pytest.mark.parametrize("nonce", ["", "00000000000000aa.1", "ubi-requeued.00000000000000aa.1f"])
def test_a_page_keeps_its_name_however_often_its_outputs_are_lost(nonce: str) -> None:
    first = page(nonce)
    entries = [first]
    for _ in range(3):
        again = KEYS.again(entries[-1], lost_nonce(entries[-1]))
        assert again is not None and KEYS.again(entries[-1], lost_nonce(entries[-1])) == again
        entries.append(again)
    assert len({entry.key for entry in entries}) == 4
    assert {name_of(entry) for entry in entries} == {first.key}
    lost = [lost_nonce(entry) for entry in entries]
    assert {before_loss(one) for one in lost} == {nonce}
    assert taken_first(entries[1]) == ("lost", first.key)


def test_a_nonce_stays_short() -> None:
    assert len(lost_nonce(page("n" * MOST_NONCE))) == MOST_NONCE


@pytest.mark.parametrize("nonce", ["", "00000000000000aa.1", "ubi-requeued.00000000000000aa.1f"])
def test_what_was_not_lost_has_its_nonce(nonce: str) -> None:
    assert before_loss(nonce) == nonce
    assert name_of(page(nonce)) == page(nonce).key
