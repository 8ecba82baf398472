"""Rows: what is written is read, what sorts sorts, and what does not hold is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.frontier import queue_rows, rows
from scrapy_ubi.frontier.store import StoreDamaged
from scrapy_ubi.protocol.host import Entry, Failure, Notes
from scrapy_ubi.protocol.notes import MOST_NOTES, NOTHING

HID = b"\x00\x00\x00\x07"
KEYS = st.integers(0, 2**64 - 1)
PRIORITIES = st.integers(-(10**12), 10**12)
DEPTHS = st.integers(0, 10**9)
TEXT = st.text(st.characters(), max_size=20)  # lone surrogates, too: JSON may hold them
HOSTS = st.sampled_from(["h.example", "www.h.example", "h.example:8080", "[::1]", "xn--bcher-kva.example"])
URLS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "http://", "https://", "http://www.", "https://www.", "ftp://", "https://u@"]),
    HOSTS | TEXT,
    TEXT,
)


@given(KEYS, URLS, HOSTS, DEPTHS, PRIORITIES, TEXT, st.integers(0, 2**40 - 1))
def test_an_entry_comes_back_as_it_was(
    key: int, url: str, host: str, depth: int, priority: int, request: str, arrival: int
) -> None:
    entry = Entry(key, url, depth, priority, request)
    row = queue_rows.place(HID, priority, depth, arrival)
    queued = queue_rows.queued(HID, host, entry, arrival)
    assert queued[: queue_rows.ROW] == row and queue_rows.joined([(row, queued[queue_rows.ROW :])]) == [queued]
    assert queue_rows.read_queue(host, queued) == entry
    assert queue_rows.queued_key(queued) == key
    assert queue_rows.is_queued(row) and len(row) == len(rows.QUEUE + HID) + rows.RANK


@given(
    st.lists(st.builds(Entry, KEYS, URLS, st.integers(0, 1), st.integers(0, 1), st.sampled_from(["", "{}"]))),
    HOSTS,
    st.integers(0, 2**40 - 100),
)
def test_several_entries_are_what_each_is_alone(entries: list[Entry], host: str, arrival: int) -> None:
    alone = [queue_rows.queued(HID, host, entry, number) for number, entry in enumerate(entries, arrival)]
    assert queue_rows.queued_all(HID, host, entries, arrival) == alone
    if entries:
        alike = len({(entry.depth, entry.priority) for entry in entries}) == 1
        assert queue_rows.are_alike(alone) == alike


@given(st.lists(st.tuples(PRIORITIES, DEPTHS, st.integers(0, 2**40 - 1)), max_size=10))
def test_rows_sort_as_entries_are_fetched(places: list[tuple[int, int, int]]) -> None:
    expected = sorted(places, key=lambda place: (-place[0], place[1], place[2]))
    assert sorted(places, key=lambda place: queue_rows.place(HID, *place)) == expected


def test_scheme_and_host_cost_no_bytes() -> None:
    for prefix in ("http://", "https://", "http://www.", "https://www."):
        queued = queue_rows.queued(HID, "h.example", Entry(1, f"{prefix}h.example/a", 0), 0)
        assert len(queued) == queue_rows.ROW + 8 + 1 + 2


@given(
    TEXT,
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    KEYS,
    KEYS,
    st.floats(0, 1e12),
    st.sampled_from([NOTHING, Notes(3, '{"a":1,"b":"\\u00e9"}')]),
)
def test_a_host_comes_back_as_it_was(
    host: str, known: int, done: int, known_xor: int, done_xor: int, next_at: float, notes: Notes
) -> None:
    record = rows.HostRecord(host, max(known, done), known_xor, min(known, done), done_xor, 3, 2**40, next_at, notes)
    assert rows.read_host(rows.HOST + HID, rows.host_value(record)) == record


@given(st.integers(0, 2**63), st.lists(KEYS, unique=True), st.lists(KEYS, unique=True))
def test_recent_keys_come_back(flush: int, known: list[int], done: list[int]) -> None:
    found, keys = rows.read_recent(b"mrecent.0", rows.recent_value(flush, known, done))
    assert found == flush
    assert keys == {**dict.fromkeys(known, 1), **dict.fromkeys(done, 2)}


@given(TEXT, KEYS, TEXT, DEPTHS, PRIORITIES, TEXT, st.floats(0, 1e12))
def test_a_failure_comes_back_as_it_was(
    host: str, key: int, url: str, depth: int, priority: int, reason: str, when: float
) -> None:
    failure = Failure(host, Entry(key, url, depth, priority, "{}"), reason, when)
    row = rows.failed_key(host, key)
    assert row.startswith(rows.failed_prefix(host))
    assert rows.read_failed(row, rows.failed_value(failure)) == failure


RECORD = rows.host_value(rows.HostRecord("h.example", 5, 1, 3, 2, 0, 9, 0.0))
VALUE = queue_rows.queued(HID, "h", Entry(1, "http://h/", 0), 0)[queue_rows.ROW :]
FAILURE = rows.failed_value(Failure("h", Entry(1, "http://h/", 0), "x", 0.0))


@pytest.mark.parametrize(
    ("key", "read"),
    [
        (rows.HOST + HID, lambda key: rows.read_host(key, b"")),
        (rows.HOST + HID, lambda key: rows.read_host(key, RECORD[:-1])),
        (rows.HOST + HID, lambda key: rows.read_host(key, b"\x63" + RECORD[1:])),
        (rows.HOST + HID, lambda key: rows.read_host(key, RECORD[:17] + b"\0\0\0\1\0\0\0\2" + RECORD[25:])),
        (rows.HOST + b"\1", lambda key: rows.read_host(key, RECORD)),
        (rows.HOST + HID, lambda key: rows.read_host(key, RECORD + b'{"a":1}')),
        (rows.HOST + HID, lambda key: rows.read_host(key, RECORD + b"[1,{}")),
        (rows.HOST + HID, lambda key: rows.read_host(key, RECORD + b"[0,{}]")),
        (rows.HOST + HID, lambda key: rows.read_host(key, RECORD + b'[1,{"a":1e999}]')),
        (rows.HOST + HID, lambda key: rows.read_host(key, RECORD + b'[1,{"a":"%b"}]' % (b"x" * MOST_NOTES))),
        (rows.QUEUE + HID + bytes(15), lambda key: queue_rows.read_queue("h", key + b"")),
        (rows.QUEUE + HID + bytes(15), lambda key: queue_rows.read_queue("h", key + bytes(8) + b"\x07/")),
        (rows.QUEUE + HID + bytes(15), lambda key: queue_rows.read_queue("h", key + bytes(8) + b"\x41/")),
        (rows.QUEUE + HID + bytes(15), lambda key: queue_rows.read_queue("h", key + bytes(8) + b"\x00\xff\xfe")),
        (rows.QUEUE + HID + bytes(15), lambda key: queue_rows.read_queue("h", key + bytes(8) + b"\x09\0\0\0\x63/")),
        (rows.QUEUE + HID + b"12", lambda key: queue_rows.joined([(key, VALUE)])),
        (rows.DONE + HID + b"1", rows.done_key),
        (rows.RECENT + b"1", lambda key: rows.read_recent(key, b"short")),
        (rows.RECENT + b"1", lambda key: rows.read_recent(key, rows.recent_value(1, [1, 2], [])[:-8])),
        (rows.RECENT + b"1", lambda key: rows.read_recent(key, rows.recent_value(1, [1, 2], [])[:-3])),
        (rows.FRONTIER, lambda key: rows.read_frontier(b"{}")),
        (rows.FRONTIER, lambda key: rows.read_frontier(b'{"version":1,"flush":"3"}')),
        (rows.FRONTIER, lambda key: rows.read_frontier(b"[]")),
        (rows.FRONTIER, lambda key: rows.read_frontier(b"{")),
        (rows.FAILED + bytes(16), lambda key: rows.read_failed(key, b"{}")),
        (rows.FAILED + b"1", lambda key: rows.read_failed(key, FAILURE)),
    ],
)
def test_what_does_not_hold_is_named(key: bytes, read: object) -> None:
    with pytest.raises(StoreDamaged) as caught:
        read(key)  # type: ignore[operator]
    assert key[1:].hex() in str(caught.value)
    assert f" {chr(key[0])}:" in str(caught.value)


def test_the_rows_of_a_host_are_its_own() -> None:
    for kind, rest in ((rows.QUEUE, rows.RANK), (rows.DONE, 8)):
        start, end = rows.of_host(kind, HID)
        assert start <= kind + HID + bytes(rest) <= kind + HID + b"\xff" * rest < end
        assert end < kind + b"\x00\x00\x00\x08" + bytes(rest)
