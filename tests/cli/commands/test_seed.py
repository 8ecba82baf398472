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

from scrapy_ubi.cli.commands import seed
from scrapy_ubi.transport.redis_keys import RedisKeys
from tests.cli.commands.test_ubi import Shell
from tests.cli.monitor.by_hand import CrawlByHand
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
                    client.xadd(KEYS.seeded, {"seed": number, "said": said, "why": why, "id": "", "by": "a1"})
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
    words = {f"{URL}{name}".encode(): said for name, said in (("a", "OK"), ("b", "KNOWN"), ("c", "REFUSED"))}
    told = {**dict.fromkeys(words.values(), ""), "REFUSED": "a limit"}
    with agents(one_server, lambda fields: (words[fields[b"url"]], told[words[fields[b"url"]]])):
        said = shell.of("seed", "--wait", f"{URL}a", f"{URL}b")
        assert said.splitlines() == [f"OK {URL}a: taken by a1", f"KNOWN {URL}b"]
        said = shell.of("seed", "--wait", f"{URL}c", status=1)
        assert f"REFUSED {URL}c: a limit" in said and "1 of 1 were refused" in said
        answers = json.loads(shell.of("seed", "--wait", "--json", f"{URL}a"))
    assert answers == {
        "crawl": CRAWL,
        "sent": 1,
        "unanswered": 0,
        "answers": [{"url": f"{URL}a", "said": "OK", "why": "", "by": "a1"}],
    }


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


def control(server: Server, **fields: str) -> None:
    with server.client() as client:
        client.hset(KEYS.control, mapping={"run": "r1", **fields})


@pytest.mark.parametrize("finished", ["r1 a1", "r1 a1 lossy", "r1 a1 ~0123456789abcdef01234567"])
def test_a_crawl_that_is_over_refuses_them(shell: Said, one_server: Server, finished: str) -> None:
    control(one_server, finished=finished)
    said = shell.of("seed", URL, status=1)
    assert "Crawl shop:walk is over" in said and "Start it again" in said and not written(one_server)


@pytest.mark.parametrize("finished", ["r0 a1", ""])
def test_the_end_of_another_run_is_none(shell: Said, one_server: Server, finished: str) -> None:
    control(one_server, finished=finished)
    assert "agent a1 takes them" in shell.of("seed", URL)


def test_who_takes_them_is_said(shell: Said, one_server: Server) -> None:
    with one_server.client() as client:
        crawl = CrawlByHand(client, CRAWL)
        crawl.agent("a2")
        assert "2 agents take them (--wait says" in shell.of("seed", URL)
        client.delete(KEYS.beats, KEYS.agents)
        control(one_server)
        assert "no agent of it runs, the next that is started takes them" in shell.of("seed", URL)


def test_agents_that_take_none_are_given_none(shell: Said, one_server: Server) -> None:
    with one_server.client() as client:
        CrawlByHand(client, CRAWL).agent("a1", {"seeds": False})
    assert "takes no URLs from outside" in shell.of("seed", URL, status=1)
    assert not written(one_server)


def test_a_line_that_is_no_url_is_refused_by_its_number_and_the_others_go(
    shell: Said, one_server: Server, tmp_path: Path
) -> None:
    lines = [f"{URL}a", "", "# remark", "shop.example/b", f"{URL}c {URL}d", "{bad", '{"method": "GET"}', f"{URL}e f"]
    (tmp_path / "urls.txt").write_text("\n".join(lines))
    said = shell.of("seed", "-f", "urls.txt", status=1)
    assert "REFUSED shop.example/b: urls.txt, line 4: no absolute http or https URL" in said
    assert "urls.txt, line 5: several URLs; write one a line" in said
    assert "urls.txt, line 6: no request in JSON" in said
    assert "urls.txt, line 7: a request in JSON without 'url'" in said
    assert "4 of 6 were refused." in said
    assert [fields[b"url"] for fields in written(one_server)] == [f"{URL}a".encode(), f"{URL}e f".encode()]


@pytest.mark.parametrize("key", [KEYS.seeds, KEYS.control, KEYS.seeded])
def test_a_key_of_another_type_is_named(shell: Said, one_server: Server, key: str) -> None:
    with one_server.client() as client:
        client.set(key, "oops")
    said = " ".join(shell.of("seed", "--wait", "--timeout", "1", URL, status=1).split())
    assert key in said and "another type than it should" in said
    if key != KEYS.seeded:
        assert key in "".join(shell.of("status").split())


@pytest.mark.parametrize("command", ["status", "report", "hosts"])
def test_a_crawl_of_which_there_is_only_a_key_of_another_type_is_not_said_to_be_absent(
    shell: Said, one_server: Server, command: str
) -> None:
    with one_server.client() as client:
        client.delete(KEYS.beats, KEYS.agents)
        client.set(KEYS.control, "oops")
    said = "".join(shell.of(command, "--crawl", KEYS.crawl, status=1).split())
    assert KEYS.control in said and "no crawl" not in said


def test_reset_forgets_seeds_and_answers(shell: Said, one_server: Server) -> None:
    with one_server.client() as client:
        client.delete(KEYS.beats, KEYS.agents)
        client.xadd(KEYS.seeds, {"url": URL})
        client.xadd(KEYS.seeded, {"seed": "1-1", "said": "OK"})
        shell.of("reset", "--crawl", CRAWL, "--yes")
        assert not client.exists(KEYS.seeds, KEYS.seeded)


def test_seeds_bring_what_the_options_say_unless_their_lines_do(
    shell: Said, one_server: Server, tmp_path: Path
) -> None:
    (tmp_path / "stage.jsonl").write_text(f'{URL}a\n{{"url": "{URL}b", "limits": {{"pages": 9}}, "scope": "domain"}}\n')
    shell.of("seed", "-f", "stage.jsonl", "--limits", "pages=5, bytes=1MB", "--scope", "host", "--label", "kb")
    first, second = written(one_server)
    more = {b"limits": b"pages=5, bytes=1MB", b"scope": b"host", b"label": b"kb"}
    assert first == {b"url": f"{URL}a".encode(), **more}
    assert second.keys() == {b"request", b"label"}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f'{{"url": "{URL}", "limits": "pages=x"}}', "limits: pages='x' is no number"),
        (f'{{"url": "{URL}", "scope": "planet"}}', "scope: 'planet' is none of"),
        (f'{{"url": "{URL}", "label": 5}}', "label: it is neither"),
    ],
)
def test_marks_that_do_not_hold_are_refused_with_their_line(
    shell: Said, one_server: Server, tmp_path: Path, line: str, why: str
) -> None:
    (tmp_path / "stage.jsonl").write_text(f"{URL}a\n{line}\n")
    assert f"stage.jsonl, line 2: no request in JSON ({why}" in shell.of("seed", "-f", "stage.jsonl", status=1)
    assert len(written(one_server)) == 1


def test_options_that_do_not_hold_are_a_wrong_use(shell: Said, one_server: Server) -> None:
    assert "--limits: pages='x' is no number" in shell.of("seed", URL, "--limits", "pages=x", status=2)
    assert not written(one_server)
