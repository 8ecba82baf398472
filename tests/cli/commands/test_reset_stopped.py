"""`scrapy ubi reset` of agents that are stopped: their directories, and what Redis says of them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from scrapy_ubi.transport.redis_keys import RedisKeys
from tests.cli.commands.stopped_directories import directory
from tests.cli.commands.test_ubi import Shell
from tests.cli.monitor.by_hand import CRAWL, CrawlByHand
from tests.support.server import Server

# -- reset -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "gone"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_reset_shows_and_asks_first(
    shell: Shell, tmp_path: Path, one_server: Server, monkeypatch: pytest.MonkeyPatch, answer: str, gone: bool
) -> None:
    place = directory(tmp_path / "d")
    (place / "spider.state").write_text("the user's")
    (place / "damaged-20260101-000000").mkdir()
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    with one_server.client() as client:
        keys = RedisKeys(CRAWL)
        by_hand = CrawlByHand(client)
        by_hand.agent("a1", {"state": "left"}, flags="L")
        by_hand.refuse("a1", reason="x")
        client.hset(keys.answers("0" * 16), "a1", "{}")
        CrawlByHand(client, CRAWL + ":more").agent("b1")
        before = set(client.scan_iter())
        assert shell("reset", "--dir", "d", "--redis-url", one_server.url) == (0 if gone else 1)
        after = set(client.scan_iter())
    assert shell.err.startswith(
        f"Of crawl {CRAWL} this will be deleted permanently:\n  in {one_server.url}: 4 keys\n"
        "  d of agent a1: 3 URLs done, 4 waiting\nForget it? [y/N] "
    )
    assert (shell.out + shell.err).count("Nothing was deleted.") == (0 if gone else 1)
    assert after == (before - {k for k in before if k.startswith(RedisKeys(CRAWL).prefix.encode())} if gone else before)
    assert {path.name for path in place.iterdir()} == (
        {"spider.state"} if gone else {"spider.state", "damaged-20260101-000000", "agent.json", "lock", "store", "seen"}
    )


def test_reset_leaves_a_directory_that_is_a_link_empty(shell: Shell, tmp_path: Path) -> None:
    place = directory(tmp_path / "disk")
    (tmp_path / "d").symlink_to(place)  # as a mount point, it cannot be deleted, and need not be
    assert shell("reset", "--yes", "--dir", "d", "--dir", "./d", "--dir", "disk") == 0, shell.err
    assert list(place.iterdir()) == []


def test_reset_names_one_crawl_at_a_time(shell: Shell, tmp_path: Path) -> None:
    directory(tmp_path / "d", name="one")
    directory(tmp_path / "e", name="two")
    assert shell("reset", "--yes", "--dir", "d", "--dir", "e") == 1
    assert "These are directories of 2 crawls: one, two" in shell.err
    assert shell("reset", "--yes", "--dir", "d", "--crawl", "two") == 1
    assert shell.err == "scrapy ubi: d belongs to crawl one, not to two: name one crawl at a time.\n"
    assert shell.json("reset", "--yes", "--dir", "d") == {
        "crawl": "one",
        "redis": None,
        "keys": 0,
        "directories": [{"dir": "d", "agent": "a1", "done": 3, "waiting": 4, "unreadable": None}],
        "deleted": True,
    }
    assert not (tmp_path / "d").exists() and (tmp_path / "e").exists()


def test_reset_goes_by_the_redis_where_silent_agents_are_named(
    shell: Shell, one_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with one_server.client() as client:
        CrawlByHand(client).agent("a1", {"updated": 5.0})
        assert shell("reset", "--redis-url", one_server.url) == 0, shell.err
        assert not list(client.scan_iter())
    assert "If one of these still runs somewhere, stop it first: a1." in shell.err
