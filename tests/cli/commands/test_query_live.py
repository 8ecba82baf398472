"""Asking living agents: who is asked, who is waited for, and what is made of their answers. The agents are by hand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.cli.commands.query_live import Answers
from scrapy_ubi.transport.redis_keys import ASK
from tests.cli.commands.test_ubi import LIMIT, Shell, crawl, outside, shell
from tests.cli.monitor.by_hand import CrawlByHand

__all__ = ["crawl", "outside", "shell"]  # fixtures: a crawl of a1 and a2, and a shell in which to type

ROW: dict[str, Any] = {
    "host": "h",
    "state": "busy",
    "role": "owner",
    "queued": 1,
    "done": 0,
    "failed": 0,
    "next": 0.5,
    "error": "",
}
ROW |= {"learned": "", "loads": "", "delay": 1.0}


def hosts(agent: str, **changes: Any) -> dict[str, Any]:
    """An answer."""
    rows = [{**ROW, "host": f"{agent}.example"}]
    return {"agent": agent, "ask": "hosts", "total": 1, "cut": False, "rows": rows, **changes}


@contextmanager
def answering(
    crawl: CrawlByHand, answer: Callable[[str, Question], Any], agents: str = "a1 a2"
) -> Iterator[list[Question]]:
    """Agents that answer a question with what `answer` makes of it: JSON, or bytes as they are; None is no answer."""
    given_up = threading.Event()
    asked: list[Question] = []

    def watch() -> None:
        seen: set[bytes] = set()
        while not given_up.wait(0.01):
            for name, text in crawl.client.hgetall(crawl.keys.control).items():
                if name.startswith(ASK.encode()) and name not in seen:
                    seen.add(name)
                    asked.append(Question.parse(text.decode()))
                    for agent in agents.split():
                        made = answer(agent, asked[-1])
                        if made is not None:
                            raw = made if isinstance(made, bytes) else json.dumps(made).encode()
                            crawl.client.hset(crawl.keys.answers(name.decode()[len(ASK) :]), agent, raw)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield asked
    finally:
        given_up.set()
        thread.join(LIMIT)


def left_behind(crawl: CrawlByHand) -> list[bytes]:
    """Questions and answers that are still in Redis."""
    fields = [name for name in crawl.client.hgetall(crawl.keys.control) if name.startswith(ASK.encode())]
    return fields + [key for key in crawl.client.scan_iter() if key.endswith(b":answers")]


@pytest.mark.parametrize("choice", [("--reason", "x" * 300), ("--url", f"http://h/{'x' * 70_000}")])
def test_what_every_agent_would_refuse_is_not_asked(shell: Shell, crawl: CrawlByHand, choice: tuple[str, str]) -> None:
    assert shell("failed", *choice, "--timeout", "0") == 1
    assert shell.err.startswith(f"scrapy ubi: The agents take no such question: {choice[0][2:]} may not be ")
    assert shell.out == ""


def test_all_agents_are_asked_and_nothing_is_left_behind(shell: Shell, crawl: CrawlByHand) -> None:
    with answering(crawl, lambda agent, question: hosts(agent)) as asked:
        data = shell.json("hosts", "--sort", "next", "--limit", "7", "--timeout", "60")
    assert [(row["agent"], row["host"]) for row in data["hosts"]] == [("a1", "a1.example"), ("a2", "a2.example")]
    (question,) = asked
    assert (question.ask, question.sort, question.limit) == ("hosts", "next", 8)  # one more says whether there are more
    assert 115 < question.expires - crawl.now() < 121
    assert left_behind(crawl) == []


def test_the_first_of_all_are_the_first_of_each(shell: Shell, crawl: CrawlByHand) -> None:
    queues = {"a1": (9, 5, 4), "a2": (8, 7, 1)}

    def answer(agent: str, question: Question) -> Any:
        rows = [{**ROW, "host": f"h{queued}", "queued": queued} for queued in queues[agent][: question.limit]]
        return hosts(agent, total=3, rows=rows)

    with answering(crawl, answer):
        data = shell.json("hosts", "--limit", "3")
    assert (data["total"], [row["queued"] for row in data["hosts"]]) == (6, [9, 8, 7])


def test_who_does_not_answer_is_named(shell: Shell, crawl: CrawlByHand) -> None:
    with answering(crawl, lambda agent, question: hosts(agent), agents="a1"):
        assert shell("hosts", "--timeout", "4", "--json") == 1
    data = json.loads(shell.out)
    assert [row["agent"] for row in data["hosts"]] == ["a1"]
    assert data["missing"] == {"a2": "no answer within 4 s"}
    assert shell.err == "scrapy ubi: What some agents know is missing: a2 (no answer within 4 s).\n"
    assert left_behind(crawl) == []


def test_who_is_silent_is_named_and_not_waited_for(shell: Shell, crawl: CrawlByHand) -> None:
    crawl.agent("a2", {"updated": 5.0})
    with answering(crawl, lambda agent, question: hosts(agent), agents="a1"):
        assert shell("hosts", "--timeout", "600") == 1
    assert shell.err == "scrapy ubi: What some agents know is missing: a2 (silent).\n"


def test_why_one_is_missing_is_said_to_the_end() -> None:
    reason = f"The directory {'x' * 60} is in use by a running agent: ask it through its Redis, or stop it first."
    assert Answers({}, {"a2": reason}).complaint == f"What some agents know is missing: a2 ({reason})."


def test_who_has_left_or_died_is_not_asked(shell: Shell, crawl: CrawlByHand) -> None:
    crawl.agent("a2", {"state": "left"}, flags="L")
    crawl.agent("a3")
    crawl.agent("a1", dead=("00006133",))  # a3's incarnation
    with answering(crawl, lambda agent, question: hosts(agent), agents="a1"):
        assert shell("hosts", "--timeout", "600") == 0, shell.err


def test_one_agent_is_asked_by_name(shell: Shell, crawl: CrawlByHand) -> None:
    with answering(crawl, lambda agent, question: hosts(agent) if agent == question.agent else None) as asked:
        data = shell.json("hosts", "--agent", "a2", "--timeout", "600")
    assert [row["agent"] for row in data["hosts"]] == ["a2"] and asked[0].agent == "a2"


def test_who_has_gone_and_is_asked_by_name_is_named(shell: Shell, crawl: CrawlByHand) -> None:
    crawl.agent("a2", {"state": "left"}, flags="L")
    assert shell("hosts", "--agent", "a2", "--timeout", "600") == 1
    assert shell.err == "scrapy ubi: What some agents know is missing: a2 (left).\n"


def test_who_has_published_nothing_yet_is_named(shell: Shell, crawl: CrawlByHand) -> None:
    crawl.client.hdel(crawl.keys.agents, "a2")  # as a Redis that has just forgotten everything: it beats again
    with answering(crawl, lambda agent, question: hosts(agent), agents="a1"):
        assert shell("hosts", "--timeout", "600") == 1
    assert shell.err == "scrapy ubi: What some agents know is missing: a2 (joining).\n"


def test_an_answer_is_read_once_while_others_are_waited_for(
    shell: Shell, crawl: CrawlByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[list[str]] = []

    def read(client: redis.Redis, key: str, names: list[str]) -> list[bytes | None]:
        looked.append(names)
        ready = "a1" if len(looked) == 1 else "a2"
        return [json.dumps(hosts(name)).encode() if name == ready else None for name in names]

    monkeypatch.setattr(redis.Redis, "hmget", read)
    assert shell("hosts", "--timeout", "600") == 0, shell.err
    assert looked == [["a1", "a2"], ["a2"]]
    assert "a1.example" in shell.out and "a2.example" in shell.out


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b"x" * 8_000_001, "8000001 bytes, more than 8000000"),
        (hosts("a1"), "another agent's answer"),
        (hosts("a2", ask="url"), "another agent's answer, or one to another question"),
        ({"agent": "a2", "refused": "unknown field 'x'"}, "it refused the question: unknown field 'x'"),
        (hosts("a2", total=-1), "total is missing or not what it should be"),
        (hosts("a2", rows=[1]), "a row is not an object"),
        (hosts("a2", rows={}), "rows are no list, or too many"),
        (hosts("a2", rows=[{**ROW, "queued": 1e9}]), "queued is missing or not what it should be"),
        (hosts("a2", rows=[{**ROW, "next": float("inf")}]), "next is missing or not what it should be"),
    ],
)
def test_an_answer_that_is_none_is_not_believed(shell: Shell, crawl: CrawlByHand, made: Any, said: str) -> None:
    with answering(crawl, lambda agent, question: hosts("a1") if agent == "a1" else made):
        assert shell("hosts") == 1
    assert "a1.example" in shell.out
    assert f"a2 ({said[:40]}" in shell.err


def test_what_an_agent_says_is_fit_for_a_terminal(shell: Shell, crawl: CrawlByHand) -> None:
    rows = [{**ROW, "host": "\x1b[2Jevil", "error": "\x07" * 300, "queued": 2**62}]
    with answering(crawl, lambda agent, question: hosts(agent, rows=rows)):
        assert shell("hosts") == 0
    assert "\x1b" not in shell.out and "\x07" not in shell.out
    assert max(map(len, shell.out.splitlines())) <= 100


def test_what_was_learned_of_hosts_is_shown_where_there_is_any(
    shell: Shell, crawl: CrawlByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    with answering(crawl, lambda agent, question: hosts(agent)):
        assert shell("hosts") == 0 and "learned" not in shell.out
    with answering(crawl, lambda agent, question: hosts(agent, rows=[{**ROW, "learned": "+index -www slashes 2/5"}])):
        assert shell("hosts") == 0
    assert shell.out.count("+index -www slashes 2/5") == 2 and "learned" in shell.out


def test_how_many_loads_of_hosts_may_be_open_is_shown_where_it_is_not_one(
    shell: Shell, crawl: CrawlByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    with answering(crawl, lambda agent, question: hosts(agent)):
        assert shell("hosts") == 0 and "at once" not in shell.out
    with answering(crawl, lambda agent, question: hosts(agent, rows=[{**ROW, "loads": "3 of auto(8)"}])):
        assert shell("hosts") == 0
    assert shell.out.count("3 of auto(8)") == 2 and "at once" in shell.out


def test_redis_that_goes_away_is_one_sentence(shell: Shell, crawl: CrawlByHand) -> None:
    crawl.client.config_set("maxmemory", "1")
    try:
        assert shell("hosts") == 1
    finally:
        crawl.client.config_set("maxmemory", "0")
    assert shell.err.startswith("scrapy ubi: ") and shell.err.count("\n") == 1


@pytest.mark.parametrize("where", [{}, {"where": "queued", "state": "held", "queued": 12_000, "depth": None}])
def test_where_agents_differ_the_one_that_knows_more_counts(
    shell: Shell, crawl: CrawlByHand, where: dict[str, Any]
) -> None:
    url = "http://h1.example/x"
    owner = shell.json("owner", url)["owner"]

    def answer(agent: str, question: Question) -> Any:
        own = {"where": "unknown"} | where if agent == owner else {"where": "done"}
        return {"agent": agent, "ask": "url", "role": "owner" if agent == owner else "copy", **own}

    with answering(crawl, answer) as asked:
        data = shell.json("url", url)
        assert shell("url", "http://h1.example:80/x#top") == 0
    other = ({"a1", "a2"} - {owner}).pop()
    assert (data["where"], data["agent"], data["owner"]) == ("done", other, owner)
    assert asked[0].key == asked[1].key == data["key"] and asked[0].host == "h1.example"
    assert f"state  done at {other}, a copy" in shell.out
    assert (f"also   queued at {owner}: among 12,000 of its host; the host is held" in shell.out) is bool(where)


@pytest.mark.parametrize("url", ["h1.example/x", "file:///etc/passwd", "mailto:a@b", "http://", "data:,x"])
def test_what_is_no_url_of_a_host_needs_no_crawl_to_say_so(shell: Shell, url: str) -> None:
    assert shell.json("url", url) == {"url": url, "where": "filtered", "filter": "scheme"}
    assert shell("url", url) == 0
    assert "state  filtered (scheme): it is no " in shell.out


def test_why_a_url_is_filtered_is_said_to_the_end(shell: Shell) -> None:
    assert shell("url", "ftp://h1.example/x") == 0
    assert " ".join(shell.out.split()).endswith(
        "such a request is not shared, the agent that finds it fetches it by itself"
    )
    assert max(map(len, shell.out.splitlines())) <= 100


def test_url_goes_by_the_partition_of_the_crawl(shell: Shell, crawl: CrawlByHand) -> None:
    for name in ("a1", "a2"):
        crawl.agent(name, {"partition": "domain"})
    unknown = {"ask": "url", "where": "unknown", "role": ""}
    with answering(crawl, lambda agent, question: {"agent": agent, **unknown}) as asked:
        assert shell.json("url", "http://www.h1.example.co.uk/x")["host"] == "example.co.uk"
    assert asked[0].host == "example.co.uk"


def test_url_goes_by_the_normal_form_of_the_crawl(shell: Shell, crawl: CrawlByHand) -> None:
    for name in ("a1", "a2"):
        crawl.agent(name, {"normaliser": "safe +slashes"})
    unknown = {"ask": "url", "where": "unknown", "role": ""}
    with answering(crawl, lambda agent, question: {"agent": agent, **unknown}) as asked:
        for url in ("http://h1.example/a/b", "http://h1.example/a//b", "http://h1.example/A/b"):
            shell.json("url", url)
    assert len({question.key for question in asked}) == 2


def test_url_says_that_a_fingerprinter_makes_the_keys_of_the_crawl(shell: Shell, crawl: CrawlByHand) -> None:
    for name in ("a1", "a2"):
        crawl.agent(name, {"fingerprinter": "shop.prints.ByParts"})
    unknown = {"ask": "url", "where": "unknown", "role": ""}
    with answering(crawl, lambda agent, question: {"agent": agent, **unknown}):
        found = shell.json("url", "http://h1.example/a")
        assert shell("url", "http://h1.example/a") == 0
    assert (found["key"], found["fingerprinter"], found["host"]) == (None, "shop.prints.ByParts", "h1.example")
    assert found["owner"] in ("a1", "a2")
    assert "a plain GET" not in shell.out and "key " not in shell.out.splitlines()[1]
    assert "REQUEST_FINGERPRINTER_CLASS, shop.prints.ByParts, makes the keys" in " ".join(shell.out.split())
    assert shell("failed", "--url", "http://h1.example/a") == 1
    assert "choose by --host or --reason" in shell.err


def test_requeue_ends_although_what_it_takes_in_fails_again_at_once(shell: Shell, crawl: CrawlByHand) -> None:
    def answer(agent: str, question: Question) -> Any:
        failed_again = not question.before and len(asked) < 20
        return {"agent": agent, "ask": "requeue", "requeued": 5000, "unfit": 0, "more": failed_again}

    begun = time.time()
    with answering(crawl, answer) as asked:
        assert shell.json("requeue", "--all", "--timeout", "600")["requeued"] == 20_000
    assert [begun <= question.before <= time.time() for question in asked] == [False, True]


def test_requeue_is_summed_up(shell: Shell, crawl: CrawlByHand) -> None:
    made = iter([(2, True), (1, False), (1, False), (1, False)])  # a1 has more, so both are asked twice

    def answer(agent: str, question: Question) -> Any:
        requeued, more = next(made)
        return {"agent": agent, "ask": "requeue", "requeued": requeued, "unfit": 1, "more": more}

    with answering(crawl, answer) as asked:
        assert shell("requeue", "--reason", "http/503", "--url", "http://h1.example/") == 0
    assert shell.out.splitlines() == [
        "crawl demo:web, 2 agents: 5 failed requests are queued again (a1 3, a2 2)",
        "2 could not be: too large to travel, unreadable, or the crawl is over",
    ]
    assert (asked[0].reason, asked[0].url, asked[0].everything) == ("http/503", "http://h1.example/", False)
    assert len(asked[0].key) == 16


@pytest.mark.parametrize(
    "arguments",
    [
        ("hosts", "--sort", "size"),
        ("hosts", "--limit", "0"),
        ("hosts", "--limit", "1001"),
        ("failed", "--timeout", "x"),
        ("failed", "--timeout", "nan"),
        ("url",),
        ("reset", "now"),
    ],
)
def test_a_wrong_command_line_is_status_2(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert shell(*arguments) == 2


@pytest.mark.parametrize("what", ["hosts", "url", "failed", "requeue", "reset"])
def test_every_sub_command_has_help(shell: Shell, what: str) -> None:
    assert shell(what, "--help") == 0
    assert shell.out.startswith(f"usage: scrapy ubi {what} ")
    for part in ("--json", "--crawl", "--redis-url", "--dir", "examples:"):
        assert part in shell.out
    assert max(map(len, shell.out.splitlines())) <= 120
