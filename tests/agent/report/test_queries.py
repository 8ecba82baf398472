"""What people may ask of a frontier, and what the answers say; what is no question is in test_desk."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy import Request

from scrapy_ubi.adapter.requests.check import NONCE
from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.agent.report import queries
from scrapy_ubi.agent.report.answers_under_way import Answer
from scrapy_ubi.agent.report.host_answers import COPY, OWNER
from scrapy_ubi.agent.report.queries import BadQuestion, Question, Source, answer
from scrapy_ubi.cli.monitor.answers import read_answer
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.frontier_contract import Frontier
from scrapy_ubi.protocol.host import Entry, Failure, Notes
from scrapy_ubi.protocol.notes import canonical
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.key import seed_key

NOW = 100.0
KEYS = RequestKeys(UbiSettings())


class Rests(MemoryFrontier):
    """One in which the hosts named rest."""

    resting: frozenset[str] = frozenset()

    def rests(self, state: Any) -> bool:
        return state.host in self.resting


def entry(key: int, host: str = "a", depth: int = 1, priority: int = 0, request: str = "") -> Entry:
    return Entry(key, f"http://{host}.example/{key}", depth, priority, request)


def failure(key: int, host: str = "a", reason: str = "http/404", when: float = 1.0) -> Failure:
    return Failure(f"{host}.example", entry(key, host), reason, when)


class Agent:
    """A frontier with some hosts, and how it is asked."""

    def __init__(self) -> None:
        self.frontier = Rests(delay=5.0)
        self.copies: set[str] = set()
        self.held: set[str] = set()
        self.plights: dict[str, str] = {}
        self.rates: dict[str, str] = {}
        self.sent: dict[tuple[str, int], str] = {}
        self.fits = True
        self.taken: list[Failure] = []

    def has(self, host: str, waiting: int, done: int = 0) -> None:
        state, _ = self.frontier.add(f"{host}.example", [entry(key, host) for key in range(waiting + done)])
        self.frontier.add_done(state, range(done))

    def source(self) -> Source:
        frontier: Frontier = self.frontier
        return Source(
            "a1",
            frontier,
            NOW,
            lambda state: COPY if state.host in self.copies else OWNER,
            lambda state: state.host in self.held,
            lambda state: self.plights.get(state.host, ""),
            lambda host, key: self.sent.get((host, key), ""),
            self.requeue,
            rates=cast("Any", SimpleNamespace(why=lambda host, now: self.rates.get(host, ""))),
        )

    def requeue(self, failure: Failure) -> bool:
        self.taken.append(failure)
        return self.fits

    def __call__(self, ask: str, **more: Any) -> Answer:
        made = answer(Question.parse(Question(ask, 1.0, **more).text()), self.source())
        assert (made.pop("agent"), made.pop("ask")) == ("a1", ask)
        return json.loads(json.dumps(made))  # as it travels

    def hosts(self, **more: Any) -> list[str]:
        return [row["host"][0] for row in self("hosts", **more)["rows"]]

    def url(self, key: int, host: str = "a") -> Answer:
        return self("url", host=f"{host}.example", key=f"{key:016x}")


@pytest.fixture
def agent() -> Agent:
    return Agent()


# -- hosts


def test_all_that_is_said_of_a_host_is_read_by_those_who_ask(agent: Agent) -> None:
    agent.has("a", 2, 5)
    made = answer(Question.parse(Question("hosts", 1.0).text()), agent.source())
    read = read_answer("a1", "hosts", json.dumps(made).encode())
    assert not isinstance(read, str) and read["rows"] == json.loads(json.dumps(made["rows"]))
    assert read["rows"][0]["needs"] > 0


def test_hosts_come_in_the_order_that_is_asked_for(agent: Agent) -> None:
    agent.has("a", 2, 5)
    agent.has("b", 9, 0)
    agent.has("c", 0, 7)
    for key in range(3):
        agent.frontier.fail(failure(key, "c"))
    agent.frontier.fail(failure(0, "a"))
    for host, after in (("a", 8.0), ("b", 3.0), ("c", 0.0)):
        state = agent.frontier.find(f"{host}.example")
        assert state is not None
        state.next_at = NOW + after
    assert agent.hosts() == ["b", "a", "c"]
    assert agent.hosts(sort="done") == ["c", "a", "b"]
    assert agent.hosts(sort="failed") == ["c", "a", "b"]
    assert agent.hosts(sort="next") == ["b", "a", "c"]  # nothing waits at c
    assert agent.hosts(sort="host") == ["a", "b", "c"]
    assert agent.hosts(limit=1) == ["b"]
    assert agent.hosts(sort="slowest")[0] == "b"  # all have one delay
    assert agent("hosts", limit=1)["total"] == 3


@pytest.mark.parametrize("more", [{}, {"end": "host/dead"}])
def test_a_host_that_fails_tells_its_status_before_a_page_has_failed_for_good(agent: Agent, more: Any) -> None:
    agent.has("a", 2)
    state = agent.frontier.find("a.example")
    assert state is not None
    agent.frontier.note(state, Notes(1, canonical({"error": "http/503", **more})))
    (row,) = agent("hosts")["rows"]
    assert (row["error"], row["failed"]) == ("http/503", 0)
    agent.frontier.note(state, Notes(2, canonical({"error": "no word\n", **more})))
    assert agent("hosts")["rows"][0]["error"] == ""


def test_a_host_tells_its_state_and_its_last_failure(agent: Agent) -> None:
    agent.has("a", 2, 1)
    agent.frontier.fail(failure(0, "a", "robots", 7.0))
    agent.frontier.fail(failure(9, "a", "http/500", 6.0))
    (row,) = agent("hosts")["rows"]
    assert row == {
        "host": "a.example",
        "state": "waiting",
        "role": "owner",
        "queued": 2,
        "done": 1,
        "failed": 2,
        "next": 0.0,
        "error": "robots",
        "learned": "",
        "loads": "",
        "delay": agent.frontier.delay,
        "needs": 2 * agent.frontier.delay,
        "complete": "",
        "bytes": 0,
    }


def test_every_state_of_a_host(agent: Agent) -> None:
    for host in "abcdefgh":
        agent.has(host, 0 if host == "e" else 2)
    found = agent.frontier.pop(NOW, lambda state: state.host == "a.example")
    assert found is not None
    agent.held = {"b.example"}
    agent.frontier.resting = frozenset({"c.example"})
    agent.rates = {"a.example": "a: 1/m", "d.example": "search: 40/m"}
    agent.plights = {"e.example": "health", "f.example": "ended", "g.example": "health", "h.example": "retry-after"}
    rows = agent("hosts", sort="host")["rows"]
    assert [row["state"] for row in rows[:5]] == ["busy", "held", "resting", "rate: search: 40/m", "idle"]
    assert [row["state"] for row in rows[5:]] == ["ended", "excluded", "postponed: retry-after"]
    assert [row["next"] is None for row in rows] == [False, False, False, False, True, False, False, False]


def test_copies_are_shown_when_they_are_asked_for(agent: Agent) -> None:
    agent.has("a", 1)
    agent.has("b", 2)
    agent.copies = agent.held = {"b.example"}
    assert agent.hosts() == ["a"]
    assert agent.hosts(copies=True) == ["b", "a"]
    assert [row["state"] for row in agent("hosts", copies=True)["rows"]] == ["waiting", "waiting"]  # a copy is not held


# -- url


def test_a_url_in_each_of_its_states(agent: Agent) -> None:
    agent.has("a", 3, 1)
    agent.frontier.pop(NOW, lambda state: True)
    agent.sent = {("b.example", 8): "a2"}
    agent.frontier.fail(failure(0, "c", "robots", 7.0))
    assert agent.url(0)["where"] == "done"
    assert agent.url(1) == {"where": "in flight", "role": "owner", "depth": 1, "priority": 0}
    assert (agent.url(2)["where"], agent.url(2)["state"], agent.url(2)["queued"]) == ("queued", "busy", 2)
    assert agent.url(7) == {"where": "unknown", "role": "owner"}
    assert agent.url(7, "b") == {"where": "unknown", "role": ""}
    assert agent.url(8, "b") == {"where": "sent", "role": "", "to": "a2"}
    agent.frontier.add("a.example", [Entry(seed_key(9), "http://a.example/9", 0)])
    assert agent.url(9)["where"] == "queued", "a start request is found by its URL"
    failed = agent.url(0, "c")
    assert (failed["where"], failed["reason"], failed["when"]) == ("failed", "robots", 7.0)


def test_a_waiting_url_has_a_place_in_its_queue(agent: Agent) -> None:
    entries = [
        entry(1, depth=2),
        entry(2, depth=1),
        entry(3, depth=3, priority=9),
        entry(4, depth=2),
        entry(5, depth=2),
    ]
    agent.frontier.add("a.example", entries)
    assert [agent.url(key)["before"] for key in (3, 2, 1, 4, 5)] == [0, 1, 2, 3, 4]


def test_far_back_in_a_long_queue_only_the_length_is_said(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "LOOKED", 3)
    agent.has("a", 5)
    near, far = agent.url(0), agent.url(4)
    assert (near["depth"], near["before"]) == (1, None)
    assert (far["depth"], far["before"], far["queued"]) == (None, None, 5)


# -- failed and requeue


def test_failures_come_newest_first_and_are_chosen(agent: Agent) -> None:
    for index, (host, reason) in enumerate([("a", "http/404"), ("a", "robots"), ("b", "http/500"), ("b", "httpx")]):
        agent.frontier.fail(failure(index, host, reason, float(index)))

    def chosen(**by: Any) -> list[str]:
        return [row["url"][-1] for row in agent("failed", **by)["rows"]]

    assert chosen() == ["3", "2", "1", "0"]
    assert chosen(reason="http") == ["2", "0"]
    assert chosen(reason="http/404") == ["0"]
    assert chosen(host="b.example") == ["3", "2"]
    assert chosen(host="b.example", reason="http/404") == []
    assert chosen(url="http://a.example/1") == ["1"]
    assert chosen(key=f"{2:016x}", url="http://other.example/") == ["2"]
    assert chosen(limit=2) == ["3", "2"]
    assert agent("failed", limit=1) == {
        "total": 4,
        "reasons": {"http/404": 1, "robots": 1, "http/500": 1, "httpx": 1},
        "cut": False,
        "rows": [
            {
                "url": "http://b.example/3",
                "host": "b.example",
                "key": f"{3:016x}",
                "reason": "httpx",
                "when": 3.0,
                "depth": 1,
                "priority": 0,
            }
        ],
    }


def test_an_answer_is_cut_where_it_becomes_too_long(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MOST_BYTES", 500)
    for key in range(9):
        agent.frontier.fail(failure(key))
    made = agent("failed")
    assert made["cut"] and made["total"] == 9 and 0 < len(made["rows"]) < 9
    assert len(json.dumps(made["rows"])) < 600


def test_requeued_failures_are_none_any_more(agent: Agent) -> None:
    for key, reason in enumerate(["http/404", "http/500", "robots"]):
        agent.frontier.fail(failure(key, "a", reason))
    assert agent("requeue", reason="http") == {"requeued": 2, "unfit": 0, "more": False}
    assert [one.entry.key for one in agent.taken] == [0, 1]
    agent.fits = False
    assert agent("requeue", everything=True) == {"requeued": 0, "unfit": 1, "more": False}
    assert [one.reason for one in agent.frontier.failures()] == ["robots"]


def test_many_failures_are_requeued_some_at_a_time(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MOST_REQUEUED", 2)
    for key in range(5):
        agent.frontier.fail(failure(key))
    made = [agent("requeue", everything=True) for _ in range(4)]
    assert [(one["requeued"], one["more"]) for one in made] == [(2, True), (2, True), (1, False), (0, False)]


def test_what_has_failed_again_meanwhile_is_not_requeued(agent: Agent) -> None:
    for key in range(3):
        agent.frontier.fail(failure(key, "a", "limit/host_pages", float(key)))
    assert agent("requeue", everything=True, before=2.0) == {"requeued": 2, "unfit": 0, "more": False}
    assert [one.entry.key for one in agent.taken] == [0, 1]


# -- a request again (requestkeys)


def key_of(url: str, **more: Any) -> int:
    request = Request(url, **more)
    place = KEYS.place(request)
    assert place is not None
    return KEYS.key(request, place)


def test_a_request_goes_in_again_under_the_key_that_its_retry_will_have() -> None:
    text = '{"retries":3,"method":"POST","body":"b","meta":{"retry_times":3,"page":4},"callback":"parse_item"}'
    old = entry(1, request=text)
    again = KEYS.again(old, "cafe")
    assert again is not None
    assert again._replace(key=0, request="") == old._replace(key=0, request="")
    fields = json.loads(again.request)
    assert fields == {"method": "POST", "body": "b", "meta": {"page": 4, NONCE: "cafe"}, "callback": "parse_item"}
    assert again.key == key_of(old.url, method="POST", body="b", meta={NONCE: "cafe"})


def test_a_plain_get_again() -> None:
    again = KEYS.again(entry(1), "cafe")
    assert again is not None
    assert json.loads(again.request) == {"meta": {NONCE: "cafe"}}
    assert again.key == key_of("http://a.example/1", meta={NONCE: "cafe"}) != key_of("http://a.example/1")
    other = KEYS.again(entry(1), "beef")
    assert other is not None and other.key != again.key


def test_one_that_was_meant_to_be_fetched_again_gets_another_nonce() -> None:
    text = json.dumps({"dont_filter": True, "meta": {NONCE: "old", "redirect_urls": ["http://a.example/1"]}})
    again = KEYS.again(entry(1, request=text), "new")
    assert again is not None
    meta = {NONCE: "new", "redirect_urls": ["http://a.example/1"]}
    assert again.key == key_of("http://a.example/1", dont_filter=True, meta=meta)


@pytest.mark.parametrize("text", ["{", "[]", '{"meta":1}', '{"body":{"~":"?"}}'])
def test_what_cannot_be_read_does_not_go_in_again(text: str) -> None:
    assert KEYS.again(entry(1, request=text), "cafe") is None


def test_nor_does_what_is_no_url_any_more() -> None:
    assert KEYS.again(entry(1)._replace(url="mailto:a@b"), "cafe") is None


def test_hosts_are_searched_and_come_page_by_page() -> None:
    agent = Agent()
    for number in range(7):
        agent.has(f"h{number}", waiting=number % 3)
    agent.has("b", waiting=5)

    def names(**more: Any) -> list[str]:
        return [row["host"] for row in agent("hosts", search="h", **more)["rows"]]

    assert names(sort="host") == [f"h{number}.example" for number in range(7)]
    assert agent("hosts", search="h", limit=3)["total"] == 7
    assert names(limit=3) == ["h2.example", "h5.example", "h1.example"]
    assert names(after="-1 h1.example") == ["h4.example", "h0.example", "h3.example", "h6.example"]
    with pytest.raises(BadQuestion, match="after"):
        Question.parse(Question("hosts", 1.0, after="x h1.example").text())


def test_one_host_with_its_queue_and_notes_without_cookies() -> None:
    agent = Agent()
    agent.has("a", waiting=3, done=1)
    state = agent.frontier.find("a.example")
    assert state is not None
    agent.frontier.note(state, Notes(1, canonical({"cookies": {"id": "secret"}, "delay": {"robots": 7}})))
    agent.frontier.fail(failure(9))
    made = agent("host", host="a.example", limit=2)
    assert (made["total"], made["cut"]) == (1, False)
    row = made["rows"][0]
    assert (row["queued"], row["done"], row["delay"], row["notes"]) == (3, 1, 5.0, {"delay": {"robots": 7}})
    assert [one["url"] for one in row["queue"]] == ["http://a.example/1", "http://a.example/2"]
    assert [one["reason"] for one in row["failures"]] == ["http/404"]
    assert agent("host", host="no.example")["rows"] == []
    with pytest.raises(BadQuestion, match="lacks host"):
        Question.parse(Question("host", 1.0).text())
