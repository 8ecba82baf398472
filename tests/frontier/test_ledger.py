"""The ledger: what is known of the group, written and read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.frontier import ledger
from scrapy_ubi.frontier.store import StoreDamaged
from scrapy_ubi.protocol.snapshot import Changes, GroupState
from tests.support.memory_store import MemoryStore

names = st.from_regex(r"[A-Za-z0-9_.:-]{1,64}", fullmatch=True)
groups = st.builds(
    GroupState,
    st.text(max_size=8),
    st.integers(0, 1 << 53),
    st.booleans(),
    st.dictionaries(names, st.text(max_size=8), max_size=4),
    st.text(max_size=16),
    st.integers(0, 10**9 - 1),
    st.dictionaries(st.text(max_size=8), names, max_size=4),
    st.lists(st.text(max_size=16), max_size=4).map(tuple),
)


def read(value: bytes) -> GroupState:
    store = MemoryStore()
    batch = store.batch()
    batch.put(ledger.GROUP, value)
    store.write(batch)
    saved = ledger.load(store)
    assert saved is not None
    return saved.group


@given(groups)
def test_what_is_known_of_the_group_is_read_as_it_was_written(group: GroupState) -> None:
    ((key, value),) = ledger.rows(Changes(group, {}, {}, (), ()))
    assert key == ledger.GROUP and value is not None
    assert read(value) == group


def test_a_disk_of_before_layout_3_names_the_others_alone() -> None:
    value = json.dumps({"store": "0badcafe", "flush": 3, "lossy": True, "peers": ["a", "b"]}).encode()
    assert read(value) == GroupState("0badcafe", 3, True, {"a": "", "b": ""})


@pytest.mark.parametrize(
    "odd", [{"peers": 7}, {"peers": [7]}, {"peers": {"a": 7}}, {"era": "2"}, {"lost": ["a"]}, {"views": [1]}]
)
def test_what_does_not_hold_is_damage(odd: dict[str, Any]) -> None:
    value = json.dumps({"store": "0badcafe", "flush": 3, "lossy": True, "peers": {}, **odd}).encode()
    with pytest.raises(StoreDamaged, match="m:67726f7570"):
        read(value)
