"""Commands that write to a crawl whose agents sign (`UBI_SECRET`): signed as they want it, or refused before anything
is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scrapy_ubi.agent.steering.live_entries import read_entries
from scrapy_ubi.transport.signer import RUN_FREE, Signer, is_signed
from tests.cli.commands.test_ubi import Shell
from tests.cli.monitor.by_hand import CrawlByHand
from tests.support.server import Server

CRAWL = "shop:walk"
SECRET = "a secret of some length"
SIGNER = Signer(SECRET, CRAWL)
WRITES = {
    "set": ("set", "UBI_HOST_DELAY=2", "--no-wait"),
    "pause": ("pause", "--no-wait"),
    "seed": ("seed", "http://h.example/"),
    "drain": ("drain", "a1", "--no-wait"),
    "hosts": ("hosts", "--timeout", "0"),
    "requeue": ("requeue", "--all", "--timeout", "0"),
}
In = Callable[[str], Shell]


@pytest.fixture
def crawl(one_server: Server) -> Iterator[CrawlByHand]:
    """Two agents that sign."""
    with one_server.client() as client:
        crawl = CrawlByHand(client, CRAWL)
        for name in ("a1", "a2"):
            crawl.agent(name)
            line = client.hget(crawl.keys.beats, name).decode()
            client.hset(crawl.keys.beats, name, SIGNER.text("beat", name, name, line))
            text = client.hget(crawl.keys.agents, name).decode()
            client.hset(crawl.keys.agents, name, SIGNER.text("profile", name, name, text))
        client.hset(crawl.keys.control, mapping=SIGNER.control("r1", {"run": "r1", "memory": "m"}))
        yield crawl


@pytest.fixture
def shell(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_server: Server
) -> In:
    """A shell in project shop, with this secret."""
    (tmp_path / "scrapy.cfg").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
    own = {"UBI_REDIS_URL": one_server.url, "BOT_NAME": "shop"}
    return lambda secret: Shell(capsys, {**own, "UBI_SECRET": secret} if secret else own)


def control(crawl: CrawlByHand) -> dict[str, str]:
    raw = crawl.client.hgetall(crawl.keys.control)
    return {name.decode(): text.decode() for name, text in raw.items()}


def test_what_is_written_is_signed_in_the_run(shell: In, crawl: CrawlByHand) -> None:
    ours = shell(SECRET)
    assert ours("set", "UBI_HOST_DELAY=2", "--no-wait") == 0, ours.err
    assert ours("drain", "a1", "--no-wait") == 0, ours.err
    for name, text in control(crawl).items():
        assert SIGNER.checked("control", "" if name in RUN_FREE else "r1", name, text) is not None, name
    assert {"set:UBI_HOST_DELAY", "drain:a1"} <= control(crawl).keys()
    assert ours("seed", "http://h.example/") == 0, ours.err
    ((_, fields),) = crawl.client.xrange(crawl.keys.seeds)
    assert SIGNER.bound("seed", "", fields) is not None and fields[b"url"] == b"http://h.example/"


def test_a_stranger_does_not_choose_the_next_version(shell: In, crawl: CrawlByHand) -> None:
    crawl.client.hset(crawl.keys.control, "set:UBI_HOST_DELAY", '{"n":9007199254740991,"who":"x","when":1,"value":1}')
    ours = shell(SECRET)
    assert ours("set", "CONCURRENT_REQUESTS=4", "--no-wait") == 0, ours.err
    bare = {name: SIGNER.checked("control", "r1", name, text) for name, text in control(crawl).items()}
    (entry,) = read_entries({name: text for name, text in bare.items() if text is not None})
    assert entry.field == "set:CONCURRENT_REQUESTS" and entry.n < 2**53 - 1


@pytest.mark.parametrize("secret", ["", "another secret, as long"], ids=["none", "another"])
@pytest.mark.parametrize("arguments", WRITES.values(), ids=WRITES)
def test_without_the_secret_nothing_is_written(
    shell: In, crawl: CrawlByHand, arguments: tuple[str, ...], secret: str
) -> None:
    before, wanted = control(crawl), "is another one than that" if secret else "takes signed entries only"
    stranger = shell(secret)
    assert stranger(*arguments) == 1
    assert "UBI_SECRET" in stranger.err and wanted in stranger.err
    assert control(crawl) == before and not crawl.client.exists(crawl.keys.seeds)
    assert SECRET not in stranger.out + stranger.err and (not secret or secret not in stranger.out + stranger.err)


def test_a_crawl_that_does_not_sign_is_not_written_to_signed(shell: In, one_server: Server) -> None:
    with one_server.client() as client:
        crawl = CrawlByHand(client, CRAWL)
        crawl.agent("a1")
        client.hset(crawl.keys.control, "run", "r1")
        ours = shell(SECRET)
        assert ours("set", "UBI_HOST_DELAY=2", "--no-wait") == 1
        assert "do not sign" in ours.err and control(crawl) == {"run": "r1"}


def test_who_looks_needs_no_secret(shell: In, crawl: CrawlByHand) -> None:
    plain = shell("")
    assert plain("status") == 0 and "a1" in plain.out and "crawling" in plain.out and "unreadable" not in plain.out
    assert plain("status", "--json") == 0 and "~" not in plain.out
    assert all(is_signed(text) for text in control(crawl).values())


def test_a_secret_that_is_none_is_refused_and_not_shown(shell: In, crawl: CrawlByHand) -> None:
    short = shell("too short")
    assert short("status") == 1 and "UBI_SECRET is not" in short.err and "too short" not in short.err
