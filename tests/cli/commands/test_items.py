"""`scrapy ubi items`: the items of all agents, as they come, each once; what is waited for stands on standard error."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from scrapy_ubi.cli.commands.items import line_of
from scrapy_ubi.transport.item_stream import ItemStream
from tests.cli.commands.test_seed import CRAWL, Said, shell
from tests.cli.monitor.by_hand import CrawlByHand
from tests.support.server import Server

__all__ = ["shell"]  # a fixture

KEY = f"ubi:{{{CRAWL}}}:items"
LIMIT = 60.0  # s


class Followed:
    """`scrapy ubi items --follow` in a process, and what it has said."""

    def __init__(self, server: Server, place: Path, *options: str) -> None:
        self._out, self._err = place / "out", place / "err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            given = ("--follow", "--crawl", CRAWL, "--redis-url", server.url, *options)
            command = [sys.executable, "-m", "scrapy", "ubi", "items", *given]
            self.popen = subprocess.Popen(command, stdout=out, stderr=err, cwd=place)

    @property
    def ids(self) -> list[str]:
        return [json.loads(line)["id"] for line in self._out.read_text().splitlines()]

    @property
    def said(self) -> str:
        return self._err.read_text()

    def until(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < end and self.popen.poll() is None, (self.ids, self.said)
            time.sleep(0.02)

    def end(self, by: int = signal.SIGINT) -> int:
        self.popen.send_signal(by)
        return self.popen.wait(LIMIT)


class Stream:
    """The stream of the crawl, as agents fill it."""

    def __init__(self, server: Server) -> None:
        self.client: Any = server.client()
        self._stream = ItemStream(self.client, CRAWL)

    def give(self, *names: str, run: str = "r1") -> str:
        return self._stream.append([(name, json.dumps({"of": name}).encode()) for name in names], run).last

    def groups(self) -> list[bytes]:
        return [one["name"] for one in self.client.xinfo_groups(KEY)] if self.client.exists(KEY) else []


@pytest.fixture
def stream(one_server: Server) -> Iterator[Stream]:
    one_server.flush()
    made = Stream(one_server)
    yield made
    made.client.close()


@pytest.fixture
def follow(one_server: Server, tmp_path: Path, stream: Stream) -> Iterator[Callable[..., Followed]]:
    """Start one; returns when it follows."""
    with ExitStack() as stack:
        CrawlByHand(stream.client, CRAWL).agent("a1")

        def begin(*options: str) -> Followed:
            made = Followed(one_server, tmp_path, *options)
            stack.callback(lambda: (made.popen.kill(), made.popen.wait()))
            made.until(stream.groups)
            return made

        yield begin


def test_the_last_items_are_shown_a_line_each(shell: Said, one_server: Server) -> None:
    stream = Stream(one_server)
    assert "There are no items in the stream of crawl shop:walk" in shell.of("items")
    stream.give("a-0", "b-0", "c-0")
    shell.of("items", "--limit", "2")
    assert [json.loads(line)["id"] for line in shell.out.splitlines()] == ["b-0", "c-0"]
    assert json.loads(shell.out.splitlines()[0])["item"] == {"of": "b-0"}


def test_a_line_holds_what_the_entry_does() -> None:
    line = line_of("1-0", {"id": "p-0", "run": "r", "item": '{"a": 1.50}'})
    assert line == '{"id":"p-0","run":"r","at":"1-0","item":{"a": 1.50}}\n'
    odd = line_of("1-0", {"id": "p-0", "run": "r", "item": '{"a":\n1}'})
    assert odd is not None and odd.count("\n") == 1
    assert line_of("1-0", {"id": "p-0", "item": "{}"}) is None and line_of("1-0", {"item": "{"}) is None


@pytest.mark.processes
def test_each_item_is_printed_once_by_run_and_identity(follow: Callable[..., Followed], stream: Stream) -> None:
    stream.give("early-0")
    one = follow()
    stream.give("a-0", "b-0", "a-0")
    one.until(lambda: one.ids == ["a-0", "b-0"])
    stream.client.xadd(KEY, {"odd": "1"})
    stream.give("b-0")
    stream.give("a-0", run="r2")
    one.until(lambda: one.ids == ["a-0", "b-0", "a-0"])
    assert one.end() == 0 and "is no item, and is left out" in one.said and "3 items of crawl shop:walk" in one.said
    assert not stream.groups()


@pytest.mark.processes
def test_it_goes_on_where_another_has_ended(follow: Callable[..., Followed], stream: Stream) -> None:
    place = stream.give("a-0", "b-0")
    stream.give("c-0")
    one = follow("--from", place)
    one.until(lambda: one.ids == ["c-0"])
    assert one.end(signal.SIGTERM) == 0 and f"Go on with --from {place[:5]}" in one.said


@pytest.mark.processes
def test_a_redis_that_was_emptied_is_read_from_its_beginning(
    follow: Callable[..., Followed], stream: Stream, one_server: Server
) -> None:
    one = follow("--from", "start")
    stream.give("a-0")
    one.until(lambda: one.ids == ["a-0"])
    one_server.flush()
    stream.give("a-0", "b-0")
    one.until(lambda: one.ids == ["a-0", "b-0"])
    assert "Redis has lost the stream of items" in one.said
    one_server.kill()
    one.until(lambda: "Waiting for it." in one.said)
    one_server.start()
    stream.give("c-0")
    one.until(lambda: one.ids == ["a-0", "b-0", "c-0"])
    one.end()


@pytest.mark.processes
def test_what_was_taken_out_before_is_said(follow: Callable[..., Followed], stream: Stream) -> None:
    place = stream.give("a-0")
    stream.give("b-0", "c-0")
    ItemStream(stream.client, CRAWL).take_out(2, (1 << 62, 0))
    one = follow("--from", place)
    one.until(lambda: one.ids == ["c-0"])
    assert "are no longer in the stream" in one.said
    one.end()


@pytest.mark.processes
def test_it_says_what_it_waits_for_and_ends_with_the_crawl(follow: Callable[..., Followed], stream: Stream) -> None:
    one = follow("--until-end")

    def said() -> bool:
        CrawlByHand(stream.client, CRAWL).agent("a1")  # it lives on, however long this takes
        return "Waiting for items of 1 agent" in one.said

    one.until(said)
    stream.give("a-0")
    stream.client.hset(f"ubi:{{{CRAWL}}}:control", mapping={"run": "r1", "finished": "r1 a1"})
    assert one.popen.wait(LIMIT) == 0 and one.ids == ["a-0"]


@pytest.mark.processes
def test_without_the_rights_it_ends_with_a_sentence(one_server: Server, tmp_path: Path, stream: Stream) -> None:
    stream.client.execute_command("ACL", "SETUSER", "watcher", "on", ">pw", "~*", "+@read", "+ping", "+time")
    try:
        one = Followed(one_server, tmp_path, "--redis-url", one_server.url.replace("//", "//watcher:pw@"))
        assert one.popen.wait(LIMIT) == 1 and "this user lacks rights" in one.said
    finally:
        stream.client.execute_command("ACL", "DELUSER", "watcher")


def test_a_place_that_is_none_is_refused(shell: Said) -> None:
    said = shell.of("items", "--follow", "--from", "yesterday", status=2)
    assert "'yesterday' is neither now, start nor a place such as 1795250421089-0" in said
