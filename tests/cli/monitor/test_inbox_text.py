"""Letters made readable, whatever lies in the stream."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.cli.monitor.inbox_text import Box, read_dead, read_inbox, read_letter
from scrapy_ubi.cli.monitor.status import server_time
from scrapy_ubi.transport.redis_keys import RedisKeys
from tests.cli.monitor.by_hand import CRAWL, CrawlByHand, letter
from tests.support.server import Server

BODY = [
    {
        "host": "h1.example",
        "discovered": [["00000000000000aa", "http://h1.example/a", 3], ["00000000000000ab", "http://h1.example/b", 4]],
        "done": ["00000000000000ac"],
    },
    {"host": "h2.example", "notes": [3, {"a": 1}], "offer": [5, "00000000000000ad", 2, "00000000000000ae"]},
]


@pytest.fixture
def crawl(server: Server) -> Iterator[CrawlByHand]:
    with server.client() as client:
        yield CrawlByHand(client)


def test_inbox_shows_the_oldest_letters_and_counts_all(crawl: CrawlByHand) -> None:
    for seq in range(5):
        crawl.post("a1", letter(BODY, seq=str(20 + seq)))
    box = read_inbox(crawl.client, RedisKeys(CRAWL), "a1", limit=2)
    assert (box.total, [one.seq for one in box.letters]) == (5, ["20", "21"])
    first = box.letters[0]
    assert (first.sender, first.lane, first.records, first.trouble) == ("a2", "discovery", 5, "")
    assert first.hosts == {"h1.example": 3, "h2.example": 2}
    assert [entry.url for entry in first.deltas[0].discovered] == ["http://h1.example/a", "http://h1.example/b"]
    assert abs(first.time - server_time(crawl.client)) < 60


def test_inbox_shows_every_letter_of_an_entry(crawl: CrawlByHand) -> None:
    crawl.post("a1", letter(BODY, seq="20") | {"lane.2": "state", "seq.2": "7", "body.2": "[]"})
    crawl.post("a1", letter(BODY, seq="21"))
    box = read_inbox(crawl.client, RedisKeys(CRAWL), "a1", limit=10)
    assert (box.total, [(one.lane, one.seq, one.records) for one in box.letters]) == (
        3,
        [("discovery", "20", 5), ("state", "7", 0), ("discovery", "21", 5)],
    )
    one = read_inbox(crawl.client, RedisKeys(CRAWL), "a1", limit=1)
    assert (one.total, len(one.letters)) == (3, 1), "an entry that was not read counts as one letter"


@pytest.mark.parametrize(
    ("fields", "trouble"),
    [
        ({"body": pickle.dumps([1])}, "not UTF-8"),
        ({"x": "y"}, "a field is missing"),
        (letter("{"), "body is not JSON"),
        (letter("[" * 20_000), "body is not JSON"),
        (letter({"host": "h"}), "body is not a list"),
        (letter([{"host": "h1.example", "discovered": [["00000000000000aa", "file:///etc/passwd", 0]]}]), "neither"),
        (letter(BODY, enc="zip"), "enc is not json"),
        (letter(BODY, lane="fast"), "lane is neither"),
        (letter("x" * 17_000_000), "a body of 17000000 bytes"),
    ],
)
def test_inbox_garbage_is_unreadable_with_the_reason(crawl: CrawlByHand, fields: dict[str, str], trouble: str) -> None:
    crawl.post("a1", fields)
    (one,) = read_inbox(crawl.client, RedisKeys(CRAWL), "a1", 10).letters
    assert trouble in one.trouble
    assert one.deltas == ()
    assert 0 < len(one.head) <= 256 and one.head.isprintable()


FIELD_NAMES = st.sampled_from([name.encode() for name in letter("")]) | st.binary(max_size=4)


@given(st.dictionaries(FIELD_NAMES, st.binary(max_size=40)))
def test_letter_never_raises(fields: dict[bytes, bytes]) -> None:
    one = read_letter("a1", b"1-1", fields)
    assert one.trouble
    assert one.head.isprintable()


def test_dead_letters_newest_first(crawl: CrawlByHand) -> None:
    crawl.refuse("a1", reason="not JSON", **{"from": "a2"}, size="12", head="\x1b[2J")
    crawl.refuse("a1", reason="too large")
    box = read_dead(crawl.client, RedisKeys(CRAWL), "a1", 10)
    assert (box.total, [one.reason for one in box.dead]) == (2, ["too large", "not JSON"])
    assert (box.dead[1].sender, box.dead[1].size, box.dead[1].head) == ("a2", 12, "\\x1b[2J")


@pytest.mark.parametrize("read", [read_inbox, read_dead])
def test_a_key_of_another_type_is_named_and_is_no_empty_list(crawl: CrawlByHand, read: Callable[..., Box]) -> None:
    key = crawl.keys.inbox("a1") if read is read_inbox else crawl.keys.dead("a1")
    crawl.client.set(key, "no stream")
    with pytest.raises(redis.ResponseError, match=f"WRONGTYPE {re.escape(key)}"):
        read(crawl.client, RedisKeys(CRAWL), "a1", 10)
