"""What anybody who can write to the Redis may put into an inbox: set aside with a reason, and the crawl goes on."""

from __future__ import annotations

import json
import pickle

import pytest

from tests.faults.conftest import FOUR, MakeGroup

pytestmark = [pytest.mark.processes, pytest.mark.faults]

HOST = "alder.example"


def letter(seq: int, body: object) -> dict[str, str]:
    """A letter as an agent sends it, but for its body."""
    header = {"from": "mallory", "store": "0" * 8, "lane": "discovery", "seq": str(seq), "floor": "1"}
    return {**header, "n": "1", "view": "0" * 16, "enc": "json", "body": json.dumps(body)}


def found(url: str, *more: object) -> list[object]:
    """A body that tells of one URL."""
    return [{"host": HOST, "discovered": [["f" * 16, url, 1, *more]]}]


GARBAGE: list[tuple[dict[str, object], str]] = [
    ({"body": pickle.dumps({"url": f"http://{HOST}/"})}, "not UTF-8 text"),
    ({"from": "mallory", "body": b"x" * 50_000_000}, "too large"),
    ({"hello": "world"}, "a field is missing"),
    (letter(1, {"host": HOST}), "body is not a list"),
    (letter(2, found("file:///etc/passwd")), "neither http nor https"),
    (letter(3, found("http://elsewhere.example/")), "does not belong to host"),
    (letter(4, found(f"http://{HOST}/x", 0, {"callback": "no_such_method"})), "is no callback of the spider"),
    (letter(5, found(f"http://{HOST}/x", 0, {"callback": "__init__"})), "is no callback of the spider"),
]


def test_garbage_in_an_inbox_is_set_aside(make_group: MakeGroup) -> None:
    group = make_group(latency=0.05)
    group.start(*FOUR)
    group.until_served(0.1)
    with group.server.client() as client:
        for fields, _ in GARBAGE:
            client.xadd(group.keys.inbox("a1"), fields)
    group.until(lambda: len(group.dead_letters("a1")) >= len(GARBAGE), "all of it set aside")
    group.end().judge()
    dead = group.dead_letters("a1")
    assert len(dead) == len(GARBAGE)
    for one, (_, reason) in zip(dead, GARBAGE, strict=True):
        assert reason in one["reason"], one
    assert [one["size"] for one in dead if one["reason"] == "too large"] == ["50000015"]
    assert {name: c["dead_letters"] for name, c in group.counters().items()} == dict.fromkeys(FOUR, 0) | {"a1": 8}
