"""`scrapy ubi seed`: URLs into the stream of a crawl, and the answers of its agents, which a test plays."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scrapy_ubi.commands import seed
from scrapy_ubi.transport.redis_keys import RedisKeys
from tests.commands.test_ubi import Shell
from tests.monitor.by_hand import CrawlByHand
from tests.support.server import Server

CRAWL = "shop:walk"
URL = "http://h.example/"
KEYS = RedisKeys(CRAWL)


class Said(Shell):
    """Gives what a command said, on both streams."""

    def of(self, *arguments: str, status: int = 0) -> str:
        assert self(*arguments) == status, self.err
        return self.out + self.err


@pytest.fixture
def shell(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_server: Server
) -> Said:
    """In project shop, whose one crawl runs."""
    (tmp_path / "scrapy.cfg").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
    with one_server.client() as client:
        CrawlByHand(client, CRAWL).agent("a1")
    return Said(capsys, {"UBI_REDIS_URL": one_server.url, "BOT_NAME": "shop"})


def written(server: Server) -> list[dict[bytes, bytes]]:
    with server.client() as client:
        return [fields for _, fields in client.xrange(KEYS.seeds)]


@contextmanager
def agents(server: Server, say: Callable[[dict[bytes, bytes]], tuple[str, str]]) -> Iterator[None]:
    """Agents that answer every seed, and delete it."""
    ended = threading.Event()

    def answer() -> None:
        with server.client() as client:
            while not ended.is_set():
                for number, fields in client.xrange(KEYS.seeds):
                    said, why = say(fields)
                    client.xadd(KEYS.seeded, {"seed": number, "said": said, "why": why, "id": ""})
                    client.xdel(KEYS.seeds, number)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_urls_go_into_the_stream(shell: Said, one_server: Server, tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text(f'# these\n{URL}b\n\n  {URL}c  \n{{"url": "{URL}d"}}\n')
    assert "4 URLs wait for crawl shop:walk" in shell.of("seed", f"{URL}a", "-f", "urls.txt")
    assert "1 URL waits" in shell.of("seed", f"{URL}e", "--priority", "-5", "--force")
    assert written(one_server) == [
        *({b"url": f"{URL}{name}".encode()} for name in "abc"),
        {b"request": f'{{"url": "{URL}d"}}'.encode()},
        {b"url": f"{URL}e".encode(), b"priority": b"-5", b"force": b"1"},
    ]


def test_standard_input(shell: Said, one_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{URL}{number}\n" for number in range(1200))))
    shell.of("seed", "-f", "-")
    assert [fields[b"url"] for fields in written(one_server)] == [f"{URL}{number}".encode() for number in range(1200)]


def test_a_writer_that_waits_learns_what_became_of_each(shell: Said, one_server: Server) -> None:
    words = {f"{URL}a".encode(): ("OK", ""), f"{URL}b".encode(): ("KNOWN", ""), b"ftp://x": ("REFUSED", "no http URL")}
    with agents(one_server, lambda fields: words[fields[b"url"]]):
        said = shell.of("seed", "--wait", f"{URL}a", f"{URL}b")
        assert said.splitlines() == [f"OK {URL}a", f"KNOWN {URL}b"]
        said = shell.of("seed", "--wait", "ftp://x", status=1)
        assert "REFUSED ftp://x: no http URL" in said and "1 of 1 were refused" in said
        answers = json.loads(shell.of("seed", "--wait", "--json", f"{URL}a"))
    assert answers == {
        "crawl": CRAWL, "sent": 1, "unanswered": 0, "answers": [{"url": f"{URL}a", "said": "OK", "why": ""}],
    }  # fmt: skip


def test_a_writer_that_waits_too_long_says_so(shell: Said) -> None:
    said = shell.of("seed", "--wait", "--timeout", "0", URL, status=1)
    assert "1 of 1 were not answered within 0 s" in said


def test_no_more_than_so_many_wait(shell: Said, one_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed, "MOST_WAITING", 2)
    shell.of("seed", URL, f"{URL}2", f"{URL}3")
    assert "2 URLs wait already" in shell.of("seed", "--timeout", "0", URL, status=1)


def test_a_crawl_that_is_named_need_not_have_begun(shell: Said, one_server: Server) -> None:
    assert "has not begun yet" in shell.of("seed", "--crawl", "later", URL)
    with one_server.client() as client:
        assert client.xlen(RedisKeys("later").seeds) == 1


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        ((), 2, "wants URLs"),
        (("-f", "none.txt"), 1, "cannot be read"),
        (("--priority", "high", URL), 2, "no whole number"),
        (("--timeout", "long", URL), 2, "no number of seconds"),
    ],
    ids=["nothing", "no file", "priority", "timeout"],
)
def test_what_cannot_be(shell: Said, arguments: tuple[str, ...], status: int, sentence: str) -> None:
    assert sentence in shell.of("seed", *arguments, status=status)


def test_reset_forgets_seeds_and_answers(shell: Said, one_server: Server) -> None:
    with one_server.client() as client:
        client.delete(KEYS.beats, KEYS.agents)
        client.xadd(KEYS.seeds, {"url": URL})
        client.xadd(KEYS.seeded, {"seed": "1-1", "said": "OK"})
        shell.of("reset", "--crawl", CRAWL, "--yes")
        assert not client.exists(KEYS.seeds, KEYS.seeded)
