"""`scrapy ubi set | unset | pause | resume | finish | settings`: what they write, refuse, and wait for."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from scrapy_ubi.agent.steering.live_entries import MOST, LiveEntry, LiveTable, field_of, merged, read_entries
from scrapy_ubi.agent.steering.runtime import refusal
from tests.cli.commands.test_ubi import LIMIT, Shell, crawl, outside, shell
from tests.cli.monitor.by_hand import CrawlByHand

__all__ = ["crawl", "outside", "shell"]  # fixtures: a crawl of a1 and a2, and a shell in which to type


def written(crawl: CrawlByHand) -> dict[str, dict[str, Any]]:
    """What stands in the control hash, by field."""
    control = crawl.client.hgetall(crawl.keys.control)
    return {name.decode(): json.loads(text) for name, text in control.items() if name.startswith(b"set:")}


def fields(crawl: CrawlByHand) -> dict[str, str]:
    return {name.decode(): text.decode() for name, text in crawl.client.hgetall(crawl.keys.control).items()}


@contextmanager
def agents_listen(crawl: CrawlByHand, *names: str, first: Callable[[], None] = lambda: None) -> Iterator[None]:
    """These agents hear what is said, and publish that they have, beside the test; before that, `first` happens once.

    What Redis has forgotten of what they know they write again, as agents do.
    """
    over, done = threading.Event(), threading.Event()

    def listen() -> None:
        table = LiveTable(refusal)
        while not over.wait(0.01):
            if not done.is_set() and not any(name.startswith("set:") for name in fields(crawl)):
                continue
            if not done.is_set():
                done.set()
                first()
            table.merge(fields(crawl))
            if lacks := table.lacking(fields(crawl)):
                crawl.client.hset(crawl.keys.control, mapping={name: text for name, (_, text) in lacks.items()})
            for name in names:
                crawl.agent(name, {"live": table.mark})

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(LIMIT)


def test_a_value_is_written_and_waited_for(shell: Shell, crawl: CrawlByHand) -> None:
    with agents_listen(crawl, "a1", "a2"):
        assert shell("set", "UBI_HOST_DELAY=2.5", "CONCURRENT_REQUESTS=8") == 0, shell.err
    assert "UBI_HOST_DELAY = 2.5; CONCURRENT_REQUESTS = 8" in shell.out
    assert "2 agents have heard it" in shell.out
    said = written(crawl)
    assert {name: one["value"] for name, one in said.items()} == {
        "set:UBI_HOST_DELAY": 2.5,
        "set:CONCURRENT_REQUESTS": 8,
    }
    assert all(one["n"] > 1_600_000_000_000 and "@" in one["who"] for one in said.values())


def test_lists_are_json_and_one_filter_is_a_text(shell: Shell, crawl: CrawlByHand) -> None:
    assert shell("set", 'UBI_FILTERS=["length(500)", "depth(3)"]', "--no-wait") == 0, shell.err
    assert written(crawl)["set:UBI_FILTERS"]["value"] == ["length(500)", "depth(3)"]
    assert shell("set", "UBI_FILTERS=length(300)", "--no-wait") == 0
    assert written(crawl)["set:UBI_FILTERS"]["value"] == ["length(300)"]


def test_each_word_is_newer_than_all_before(shell: Shell, crawl: CrawlByHand) -> None:
    before = LiveEntry("UBI_HOST_DELAY", "", 1.0, 2**52, "b", 1.0)
    crawl.client.hset(crawl.keys.control, before.field, before.text)
    assert shell("set", "UBI_HOST_DELAY=2", "--no-wait") == 0
    assert written(crawl)["set:UBI_HOST_DELAY"]["n"] == 2**52 + 1
    crawl.client.delete(crawl.keys.control)  # Redis has forgotten, and an agent publishes what it knows
    crawl.agent("a1", {"live": f"{2**52 + 7}-00000000"})
    assert shell("set", "UBI_HOST_DELAY=3", "--no-wait") == 0
    assert written(crawl)["set:UBI_HOST_DELAY"]["n"] == 2**52 + 8


def test_a_redis_that_forgets_meanwhile_is_told_again(shell: Shell, crawl: CrawlByHand) -> None:
    with agents_listen(crawl, "a1", "a2", first=lambda: crawl.client.delete(crawl.keys.control) and None):
        assert shell("set", "UBI_HOST_DELAY=2") == 0, shell.err
    assert written(crawl)["set:UBI_HOST_DELAY"]["value"] == 2.0


def test_who_has_not_heard_is_named(shell: Shell, crawl: CrawlByHand) -> None:
    with agents_listen(crawl, "a1"):
        assert shell("set", "UBI_HOST_DELAY=2", "--timeout", "4") == 1
        assert "Not heard within 4 s by a2" in shell.err
        assert shell("settings", "--changed") == 0
    assert "Not yet at the newest" in shell.out and "a2" in shell.out
    assert shell.json("settings")["behind"] == ["a2"]


def test_what_another_says_later_holds(shell: Shell, crawl: CrawlByHand) -> None:
    def ann() -> None:
        later = LiveEntry("UBI_HOST_DELAY", "", 9.0, 2**52, "ann", 1.0)
        crawl.client.hset(crawl.keys.control, later.field, later.text)

    with agents_listen(crawl, "a1", "a2", first=ann):
        assert shell("set", "UBI_HOST_DELAY=2") == 1
    assert "ann has set UBI_HOST_DELAY meanwhile" in shell.err


REFUSED = {
    "UBI_PARTITION=domain": "which agent owns a host",
    "UBI_NORMALISE=larm": "which URLs are one",
    "UBI_FAILURE_TIMEOUT=3": "counts as dead",
    "UBI_MAX_LETTER_BYTES=99999": "agree",
    "UBI_STORES=items": "read once",
    "UBI_HOST_CONCURRENCY=8": "counted from the start",
    "UBI_HOST_DELY=3": "did you mean 'UBI_HOST_DELAY'",
    "UBI_HOST_MAX_PAGES=5": "it is the former name of a limit: set UBI_HOST_LIMITS, for example 'pages=500'",
    "UBI_ERROR_LOG=a": "it is no setting any more",
    "UBI_RATES={}": "agree",
    "UBI_HOST_LIMITS=limits.txt": "reads no file",
    "UBI_HOST_LIMITS=pagse=5": "'pagse' is no limit",
    "UBI_HOST_DELAY": "NAME=VALUE",
    "UBI_HOST_DELAY=soon": "a number of seconds",
    "UBI_HOST_DELAY=-1": "of at least 0",
    "UBI_FILTERS=[": "as JSON",
    "UBI_FILTERS=length(": "cannot be read",
    "UBI_FILTERS=os.system(x)": "filters of the suite",
    "UBI_FILTERS=scope(file=/etc/passwd)": "reads a file",
    "LOG_LEVEL=LOUD": "'INFO'",
}


@pytest.mark.parametrize("value", REFUSED)
def test_what_cannot_be_set_is_refused_with_the_reason_and_nothing_is_written(
    shell: Shell, crawl: CrawlByHand, value: str
) -> None:
    assert shell("set", "UBI_ROBOTS_TTL=60", value) == 1
    assert REFUSED[value] in shell.err and shell.err.count("\n") == 1
    assert written(crawl) == {}


def test_of_a_host_is_only_what_can_be_one_of_a_host(shell: Shell, crawl: CrawlByHand) -> None:
    assert shell("set", "UBI_HOST_LIMITS=pages=5", "--host", "http://H1.example/x", "--no-wait") == 0, shell.err
    assert [*written(crawl)] == [field_of("UBI_HOST_LIMITS", "h1.example")]
    assert shell("set", "UBI_ROBOTS_TTL=60", "--host", "h1.example") == 1
    assert "for the whole crawl" in shell.err
    assert shell("set", "UBI_HOST_LIMITS=pages=5", "--host", "a b") == 1
    assert "is no host" in shell.err


@pytest.mark.parametrize("pattern", [".gov.example", "*", "*.gov.example"])
def test_a_pattern_is_no_host_and_the_remedy_holds_when_pasted(shell: Shell, crawl: CrawlByHand, pattern: str) -> None:
    assert shell("set", "UBI_HOST_LIMITS=pages=5", "--host", pattern) == 1
    assert shell.err.count("\n") == 1 and not written(crawl)
    pasted = shlex.split(shell.err[shell.err.index("UBI_HOST_LIMITS='") :].split(", in place")[0])
    assert shell("set", *pasted, "--no-wait") == 0, shell.err
    assert ".gov.example" in str(written(crawl)["set:UBI_HOST_LIMITS"])


def test_what_was_said_is_taken_back(shell: Shell, crawl: CrawlByHand) -> None:
    assert shell("set", "UBI_HOST_DELAY=2", "UBI_MAX_BODY=9", "--no-wait") == 0
    assert shell("set", "UBI_HOST_DELAY=3", "--host", "h1.example", "--no-wait") == 0
    assert shell("unset", "UBI_HOST_DELAY", "--no-wait") == 0 and "as at the start" in shell.out
    assert {name: one["value"] for name, one in written(crawl).items()} == {
        "set:UBI_HOST_DELAY": None,
        "set:UBI_MAX_BODY": 9,
        "set:UBI_HOST_DELAY:h1.example": 3.0,
    }
    assert shell("unset", "UBI_HOST_DELAY", "--no-wait") == 0 and "nothing is taken back" in shell.out
    assert shell("unset", "--all", "--no-wait") == 0
    assert shell("unset", "--all", "--host", "h1.example", "--no-wait") == 0
    assert {one["value"] for one in written(crawl).values()} == {None}
    assert shell("unset", "UBI_PARTITION") == 1


def test_a_crawl_and_its_hosts_are_paused_and_go_on(shell: Shell, crawl: CrawlByHand) -> None:
    assert shell("resume") == 0 and "is not paused" in shell.out
    with agents_listen(crawl, "a1", "a2"):
        assert shell("pause") == 0 and "loads under way end" in shell.out
        assert shell("pause", "--host", "h1.example") == 0
        assert shell("pause") == 0 and "paused already" in shell.out
    assert shell("status") == 0
    assert shell.out.splitlines()[0].startswith("crawl demo:web: running, paused, 2 of 2")
    assert shell("finish", "--no-wait") == 0 and "once it is resumed" in shell.out
    assert shell("resume", "--no-wait") == 0 and "hosts that stay paused: 1" in shell.out
    assert shell("resume", "--host", "h1.example", "--no-wait") == 0
    assert {name: one["value"] for name, one in written(crawl).items()} == {
        "set:pause": None,
        "set:pause:h1.example": None,
        "set:finish": True,
    }
    assert shell("status") == 0 and "paused" not in shell.out.splitlines()[0]


def test_a_crawl_without_agents_keeps_it_for_those_that_start(shell: Shell, crawl: CrawlByHand) -> None:
    for name in ("a1", "a2"):
        crawl.agent(name, {"state": "left"}, flags="L")
    assert shell("pause") == 0
    assert "those that start hear it before their first request" in shell.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["UBI_HOST_LIMITS=pages=50"], "`scrapy ubi requeue --reason limit`"),
        (["UBI_HOST_LIMITS=pages=50", "--host", "a.example"], "`scrapy ubi requeue --reason limit --host a.example`"),
        (["UBI_HOST_LIMITS=pages=50", "--host", "b.example"], ""),
        (["UBI_HOST_TRIES=9"], ""),
    ],
)
def test_what_a_limit_has_failed_is_said_not_to_come_back_by_itself(
    shell: Shell, crawl: CrawlByHand, words: list[str], said: str
) -> None:
    counters = {"failed": {"limit/host_pages": 3}, "failed_at": {"limit/host_pages": {"a.example": 3}}}
    crawl.agent("a1", {"state": "left", "counters": counters}, flags="L")
    crawl.agent("a2", {"state": "left"}, flags="L")
    assert shell("set", *words) == 0, shell.err
    assert (said and f"What has failed by it before stays so, until {said}." in shell.out) or (
        not said and "requeue" not in shell.out
    )


def test_settings_are_shown_with_who_has_changed_them(shell: Shell, crawl: CrawlByHand) -> None:
    shell.settings["UBI_ROBOTS_TTL"] = 77
    assert shell("settings", "--changed") == 0 and "0 values were given" in shell.out
    assert shell("set", "UBI_HOST_DELAY=2", "--no-wait") == 0
    assert shell("set", "UBI_HOST_DELAY=3", "--host", "h1.example", "--no-wait") == 0
    assert shell("settings") == 0
    rows = {tuple(line.split()[:3]) for line in shell.out.splitlines()}
    assert ("UBI_HOST_DELAY", "h1.example", "3.0") in rows and ("UBI_HOST_DELAY", "2.0") in {row[:2] for row in rows}
    assert ("UBI_ROBOTS_TTL", "77.0", "settings.py") in rows
    assert shell("settings", "--changed") == 0 and "UBI_ROBOTS_TTL" not in shell.out
    changed = shell.json("settings")["changed"]
    assert [(one["name"], one["host"], one["value"]) for one in changed] == [
        ("UBI_HOST_DELAY", "", 2.0),
        ("UBI_HOST_DELAY", "h1.example", 3.0),
    ]


def test_what_agents_refuse_is_shown(shell: Shell, crawl: CrawlByHand) -> None:
    crawl.agent("a1", {"live_refused": {"set:UBI_X": "no live\x1b setting"}})
    crawl.client.hset(crawl.keys.control, "set:UBI_X", "garbage")
    assert shell("settings", "--changed") == 0
    assert "Agent a1 refuses set:UBI_X: no live" in shell.out and "\x1b" not in shell.out
    assert shell.json("settings")["refused"] == {"a1": {"set:UBI_X": "no live\x1b setting"}}


def test_a_value_that_stands_is_not_pushed_out(shell: Shell, crawl: CrawlByHand) -> None:
    crowd = [LiveEntry("pause", f"h{number}.example", True, 1, "a", 1.0) for number in range(MOST)]
    crawl.client.hset(crawl.keys.control, mapping={entry.field: entry.text for entry in crowd})
    assert shell("set", "UBI_HOST_DELAY=2", "--no-wait") == 1
    assert f"keeps {MOST} values" in shell.err
    assert shell("resume", "--host", "h7.example", "--no-wait") == 0
    assert shell("set", "UBI_HOST_DELAY=2", "--no-wait") == 0, "the oldest are said again"
    entries = merged(*read_entries(fields(crawl)))
    assert len(entries) == MOST and all(entry.stands for entry in entries.values())
    assert entries["set:UBI_HOST_DELAY"].value == 2.0 and "set:pause:h7.example" not in entries


def test_without_redis_there_is_nobody_to_tell(shell: Shell) -> None:
    del shell.settings["UBI_REDIS_URL"]
    assert shell("pause") == 1 and "UBI_REDIS_URL" in shell.err
