"""`scrapy ubi drain AGENT`: what it writes, what it refuses, and what it waits for. The agents are written by hand."""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from scrapy_ubi.cli.commands.options import add_subcommands
from scrapy_ubi.protocol.beat import LEFT, LOSSY
from tests.cli.commands.test_ubi import LIMIT, Shell, crawl, outside, shell
from tests.cli.monitor.by_hand import CrawlByHand, incarnation

__all__ = ["crawl", "outside", "shell"]  # fixtures: a crawl of a1 and a2, and a shell in which to type

FIELD = "drain:a1"


@contextmanager
def when_asked(crawl: CrawlByHand, what: Callable[[], None]) -> Iterator[None]:
    """Do this as soon as a1 has been asked to leave, beside the test."""
    given_up = threading.Event()

    def watch() -> None:
        while not given_up.wait(0.01):
            if crawl.client.hexists(crawl.keys.control, FIELD):
                what()
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        given_up.set()
        thread.join(LIMIT)


def leaves(crawl: CrawlByHand, flags: str = LEFT) -> None:
    """The same process publishes its last."""
    raw = crawl.client.hget(crawl.keys.agents, "a1")
    assert raw is not None
    crawl.agent("a1", {"state": "left", "started": json.loads(raw)["started"]}, flags=flags)


def look_again(crawl: CrawlByHand) -> None:
    """Return when all that is there now has been looked at, or the command has ended."""

    def reads() -> int:
        return int(crawl.client.info("commandstats")["cmdstat_hgetall"]["calls"])

    before, end = reads(), time.monotonic() + 3
    while reads() < before + 6 and time.monotonic() < end:  # three a look; one may be under way
        time.sleep(0.01)


def word(crawl: CrawlByHand) -> str | None:
    raw = crawl.client.hget(crawl.keys.control, FIELD)
    return raw.decode() if raw is not None else None


def test_the_word_names_the_incarnation_that_is_meant(shell: Shell, crawl: CrawlByHand) -> None:
    assert shell("drain", "a1", "--no-wait") == 0
    assert shell.out == "Agent a1 is asked to leave.\n"
    assert word(crawl) == incarnation("a1")


def test_it_waits_until_the_agent_has_left_and_takes_the_word_back(shell: Shell, crawl: CrawlByHand) -> None:
    with when_asked(crawl, lambda: leaves(crawl)):
        answer = shell.json("drain", "a1")
    assert (answer["agent"], answer["incarnation"], answer["state"]) == ("a1", incarnation("a1"), "left")
    assert word(crawl) is None


def test_a_redis_that_forgets_the_word_is_told_again(shell: Shell, crawl: CrawlByHand) -> None:
    def forget() -> None:
        crawl.client.hdel(crawl.keys.control, FIELD)
        while not crawl.client.hexists(crawl.keys.control, FIELD):
            pass
        leaves(crawl)

    with when_asked(crawl, forget):
        assert shell("drain", "a1") == 0, shell.err
    assert shell.err == "agent a1 is asked to leave\n"


def test_another_process_under_the_name_means_that_this_one_has_gone(shell: Shell, crawl: CrawlByHand) -> None:
    with when_asked(crawl, lambda: crawl.agent("a1", {"pid": 4712}, incarnation="0000beef")):
        assert shell("drain", "a1") == 0, shell.err


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (lambda crawl: crawl.agent("a2", dead=(incarnation("a1"),)), "died before it had handed everything over"),
        (lambda crawl: leaves(crawl, LEFT + LOSSY), "not everything was handed over"),
    ],
)
def test_an_agent_that_does_not_get_to_hand_over_is_a_failure(
    shell: Shell, crawl: CrawlByHand, happens: Callable[[CrawlByHand], None], words: str
) -> None:
    with when_asked(crawl, lambda: happens(crawl)):
        assert shell("drain", "a1") == 1
    assert words in shell.err.splitlines()[-1]


def test_whether_it_handed_everything_over_is_said_by_its_last_beat(shell: Shell, crawl: CrawlByHand) -> None:
    def happens() -> None:
        leaves(crawl, "")  # the profile says so before
        look_again(crawl)
        leaves(crawl, LEFT + LOSSY)

    with when_asked(crawl, happens):
        assert shell("drain", "a1") == 1
    assert "not everything was handed over" in shell.err.splitlines()[-1]


def test_a_crawl_that_ends_meanwhile_is_as_good(shell: Shell, crawl: CrawlByHand) -> None:
    with when_asked(crawl, crawl.finish):
        assert shell("drain", "a1") == 0
    assert "ended with the crawl" in shell.out


def test_it_does_not_wait_for_ever(shell: Shell, crawl: CrawlByHand) -> None:
    assert shell("drain", "a1", "--timeout", "0") == 1
    assert "has not left within 0 s (it is crawling)" in shell.err
    assert word(crawl) == incarnation("a1")


def test_an_unknown_agent_is_refused(shell: Shell, crawl: CrawlByHand) -> None:
    assert shell("drain", "a11") == 1
    assert "did you mean 'a1'?" in shell.err


@pytest.mark.parametrize(
    ("what", "words", "force"),
    [
        (lambda crawl: crawl.agent("a1", {"state": "left"}, flags=LEFT), "has left already", False),
        (lambda crawl: crawl.agent("a1", {"state": "left"}, incarnation="0000beef"), "try again in a moment", False),
        (lambda crawl: crawl.agent("a1", incarnation="0000beef"), "try again in a moment", False),
        (lambda crawl: crawl.agent("a2", dead=(incarnation("a1"),)), "is dead", False),
        (lambda crawl: crawl.finish(), "is finished", False),
        (lambda crawl: crawl.agent("a1", {"updated": 5.0}), "may have crashed", True),
        (lambda crawl: crawl.agent("a2", {"state": "left"}, flags=LEFT), "is the last one", True),
        (lambda crawl: crawl.agent("a2", flags="l"), "is the last one", True),
        (lambda crawl: crawl.client.hset(crawl.keys.control, "drain:a2", incarnation("a2")), "is the last one", True),
    ],
)
def test_where_it_would_do_nothing_or_harm_it_says_so(
    shell: Shell, crawl: CrawlByHand, what: Callable[[CrawlByHand], None], words: str, force: bool
) -> None:
    what(crawl)
    assert shell("drain", "a1", "--no-wait") == 1
    assert words in shell.err and shell.err.count("\n") == 1
    assert ("--force" in shell.err) is force
    assert word(crawl) is None
    assert shell("drain", "a1", "--no-wait", "--force") == (0 if force else 1)


@pytest.mark.parametrize("text", ["x", "-1", "nan", "1e9"])
def test_a_time_that_is_none_is_a_wrong_command_line(text: str) -> None:
    parser = argparse.ArgumentParser()
    add_subcommands(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["drain", "a1", "--timeout", text])
