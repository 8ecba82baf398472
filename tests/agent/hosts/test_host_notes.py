"""What is noted of hosts, how long they are left alone, and what of it comes from elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ubi.agent.hosts import host_notes
from scrapy_ubi.agent.hosts.host_notes import MOST_POSTPONE, UNNOTED, HostNotes
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.frontier_contract import Frontier
from scrapy_ubi.protocol.host import MOST_NOTES, HostState, Notes
from scrapy_ubi.protocol.host_policy import HostPolicy
from scrapy_ubi.protocol.lane import STATE
from scrapy_ubi.protocol.memory_state import SetState
from scrapy_ubi.protocol.notes import canonical
from scrapy_ubi.protocol.received import Delta, Received
from tests.frontier.frontiers import DictKind, Reading, reopened
from tests.protocol.handovers import full
from tests.support.memory_store import MemoryStore
from tests.support.views import ordered
from tests.support.village import Village, page

HOST, OTHER = "h1.example", "h2.example"
EPOCH = 1_800_000_000.0  # unix time less the agent's clock


class House:
    """The hosts of agent `a`, alone, at a time that only a test moves."""

    def __init__(self, delay: float = 2.0, frontier: Frontier | None = None) -> None:
        self.now = 100.0
        frontier = MemoryFrontier(delay) if frontier is None else frontier
        self.hosts = HostNotes(lambda: self.now, lambda: self.now + EPOCH)
        self.begin(frontier)

    def begin(self, frontier: Frontier) -> None:
        """Begin the crawl of this frontier."""
        policy = HostPolicy(on_notes=self.hosts.arrived, on_request=self.hosts.lift_for)
        self.agent = Agent("a", "5" * 8, Config(), frontier, lambda: "1" * 8, self.now, policy)
        self.agent.sure()
        self.hosts.work_for(self.agent, self.agent.frontier)

    def state(self, host: str = HOST) -> HostState:
        return self.agent.frontier.add(host, ())[0]

    def arrives(self, text: dict[str, Any], version: int = 9, host: str = HOST) -> HostState:
        """Notes of a host come from another agent."""
        delta = Delta(host, (), notes=Notes(version, canonical(text)))
        view = self.agent.view.digest
        self.agent.inbound.receive(Received("z", "z/a/state", STATE, version, 1, view, (delta,)))
        return self.state(host)


@pytest.fixture
def house() -> House:
    return House()


# -- sections


def test_what_is_put_is_got(house: House) -> None:
    state = house.state()
    assert house.hosts.get(state, "robots") is None
    house.hosts.put(state, "robots", {"delay": 1.5, "rules": ["/a"]})
    house.hosts.put(state, "health", [1, 2])
    assert house.hosts.get(state, "robots") == {"delay": 1.5, "rules": ["/a"]}
    assert house.hosts.get(state, "health") == [1, 2]
    assert house.hosts.get(house.state(OTHER), "health") is None
    house.hosts.put(state, "robots", None)
    assert house.hosts.get(state, "robots") is None
    assert state.notes == Notes(3, '{"health":[1,2]}')


@pytest.mark.parametrize("value", [0, False, "", [], {}])
def test_a_value_that_is_nothing_much_is_one(house: House, value: object) -> None:
    house.hosts.put(house.state(), "a", value)
    assert house.hosts.get(house.state(), "a") == value


def test_what_has_not_changed_is_no_news(house: House) -> None:
    state = house.state()
    house.hosts.put(state, "a", None)
    assert state.notes.version == 0
    house.hosts.put(state, "a", {"x": 1, "y": 2})
    house.hosts.put(state, "a", {"y": 2, "x": 1})
    house.hosts.put(state, "b", None)
    assert state.notes.version == 1


def test_what_is_put_is_taken_as_it_is_then(house: House) -> None:
    value = [1]
    house.hosts.put(house.state(), "a", value)
    value.append(2)
    assert house.hosts.get(house.state(), "a") == [1]


def test_what_is_not_json_is_a_mistake(house: House) -> None:
    with pytest.raises(ValueError, match="JSON"):
        house.hosts.put(house.state(), "a", object())
    assert house.state().notes.version == 0


def test_what_is_too_large_is_left_out_and_counted(house: House) -> None:
    state = house.state()
    house.hosts.put(state, "a", 1)
    house.hosts.put(state, "b", 2)
    house.hosts.put(state, "b", "x" * MOST_NOTES)
    assert house.hosts.counted == {"notes_too_large": 1}
    assert state.notes.text == '{"a":1}', "what was there of it is not true any more"
    house.hosts.put(state, "b", "x" * (MOST_NOTES - len('{"a":1,"b":""}')))
    assert len(state.notes.text) == MOST_NOTES


def test_of_a_host_that_is_not_held_nothing_is_noted(house: House) -> None:
    for state in (SetState(HOST), house.state(OTHER)):
        house.agent.frontier.drop(OTHER) if state.host == OTHER else None
        house.hosts.put(state, "a", 1)
        house.hosts.postpone(state, 10.0, "busy")
        assert house.hosts.get(state, "a") is None
        assert state.next_at == 0.0


def test_few_notes_are_kept_as_objects(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_notes, "PARSED", 3)
    for number in range(10):
        house.hosts.put(house.state(f"h{number}"), "a", number)
    assert [house.hosts.get(house.state(f"h{number}"), "a") for number in range(10)] == list(range(10))
    assert house.hosts.parsed <= 3


# -- delays


def test_the_largest_delay_counts(house: House) -> None:
    state = house.state()
    house.hosts.set_delay(state, "robots", 5.0)
    house.hosts.set_delay(state, "response", 3.0, kept=False)
    assert state.pause == 5.0
    house.hosts.set_delay(state, "response", 7.5, kept=False)
    assert state.pause == 7.5
    assert house.hosts.get(state, "delay") == {"robots": 5.0}, "the other is for here and now"
    assert house.hosts.delays(state) == {"robots": 5.0, "response": 7.5}
    house.hosts.set_delay(state, "response", 0.0, kept=False)
    assert state.pause == 5.0
    house.hosts.set_delay(state, "robots", 0.0)
    assert (state.pause, house.hosts.get(state, "delay")) == (0.0, None)
    assert house.hosts.delays(state) == {}


def test_the_frontier_keeps_to_it(house: House) -> None:
    frontier, state = house.agent.frontier, house.state()
    frontier.add(HOST, [page(HOST, 1), page(HOST, 2)])
    house.hosts.set_delay(state, "robots", 5.0)
    assert frontier.pop(house.now, lambda state: True)
    frontier.free(state, house.now)
    assert state.next_at == house.now + 5.0


@pytest.mark.parametrize(("seconds", "kept"), [(-1.0, 0.0), (float("nan"), 0.0), (1e9, MOST_POSTPONE), (0.1234, 0.123)])
def test_a_delay_is_kept_in_bounds(house: House, seconds: float, kept: float) -> None:
    house.hosts.set_delay(house.state(), "robots", seconds)
    assert house.state().pause == kept
    assert house.hosts.counted["clipped"] == (seconds > MOST_POSTPONE)


def test_delays_for_here_and_now_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_notes, "MOST_BRIEF", 3)
    house = House()
    for number in range(90):
        state = house.state(f"h{number}")
        house.hosts.set_delay(state, "response", 4.0, kept=False)
        if number > 1:
            house.agent.frontier.drop(state.host)
    assert house.hosts.brief <= 3 + 2 * 3
    assert house.hosts.delays(house.state("h0")) == {"response": 4.0}


# -- until


def test_a_postponed_host_is_left_alone(house: House) -> None:
    frontier, state = house.agent.frontier, house.state()
    frontier.add(HOST, [page(HOST, 1)])
    house.hosts.postpone(state, 30.0, "robots")
    assert house.hosts.postponed(state) == (house.now + EPOCH + 30.0, "robots")
    assert frontier.pop(house.now + 29.9, lambda state: True) is None
    house.now += 30.0
    assert frontier.pop(house.now, lambda state: True)
    assert house.hosts.postponed(state) is None
    assert house.hosts.counted == {"postponed/robots": 1}


def test_a_later_time_wins(house: House) -> None:
    state = house.state()
    house.hosts.postpone(state, 30.0, "first")
    house.hosts.postpone(state, 20.0, "second")
    assert state.next_at == house.now + 30.0
    house.hosts.postpone(state, 40.0, "third")
    assert state.next_at == house.now + 40.0
    assert house.hosts.postponed(state) == (house.now + EPOCH + 40.0, "third")
    assert house.hosts.counted == {"postponed/first": 1, "postponed/third": 1}


def test_it_holds_also_for_a_host_that_is_busy(house: House) -> None:
    frontier = house.agent.frontier
    frontier.add(HOST, [page(HOST, 1), page(HOST, 2)])
    state, _ = frontier.pop(house.now, lambda state: True) or pytest.fail("nothing")
    house.hosts.postpone(state, 30.0, "response")
    frontier.free(state, house.now)
    assert frontier.pop(house.now + 29.0, lambda state: True) is None


def test_nobody_is_put_off_for_longer_than_a_day(house: House) -> None:
    house.hosts.postpone(house.state(), 1e12, "robots")
    assert house.state().next_at == house.now + MOST_POSTPONE
    assert house.hosts.counted == {"clipped": 1, "postponed/robots": 1}


# -- from elsewhere


def test_what_arrives_is_followed_and_told(house: House) -> None:
    changed: list[str] = []
    house.hosts.on_change(lambda state: changed.append(state.host))
    state = house.arrives({"delay": {"robots": 8}, "until": [house.now + EPOCH + 60, "health"], "robots": [1]})
    assert (state.pause, state.next_at) == (8.0, house.now + 60)
    assert house.hosts.get(state, "robots") == [1]
    assert house.hosts.postponed(state) == (house.now + EPOCH + 60, "health")
    house.arrives({"delay": {"robots": 3}}, version=10)
    assert state.pause == 3.0
    assert changed == [HOST, HOST]
    house.hosts.put(state, "robots", None)
    assert changed == [HOST, HOST], "what is noted here is no news"


STRANGE: list[dict[str, Any]] = [
    {"delay": 5},
    {"delay": ["robots"]},
    {"delay": {"robots": "5", "a": None, "b": True, "c": [1], "d": -1, "e": 10**400, "f": 1e300}},
    {"until": 5},
    {"until": []},
    {"until": ["tomorrow", "why"]},
    {"until": [None, "why"]},
    {"until": [True, "why"]},
    {"until": [10**400, "why"]},
    {"until": [-1, "why"]},
    {"until": [1, "long ago"]},
    {"until": {"0": 1}},
]


@pytest.mark.parametrize("notes", STRANGE, ids=str)
def test_what_makes_no_sense_is_nothing(house: House, notes: dict[str, Any]) -> None:
    state = house.arrives(notes)
    assert (state.pause, state.next_at) == (0.0, 0.0)
    assert house.hosts.postponed(state) is None
    house.hosts.postpone(state, 5.0, "busy")
    house.hosts.set_delay(state, "robots", 5.0)
    assert (state.pause, state.next_at) == (5.0, house.now + 5.0)


@pytest.mark.parametrize("why", [None, 7, "", "two\nlines", "x" * 100, ["a"]], ids=str)
def test_a_reason_that_is_none_is_not_shown(house: House, why: object) -> None:
    state = house.arrives({"until": [house.now + EPOCH + 60, why]})
    assert house.hosts.postponed(state) == (house.now + EPOCH + 60, "?")


def test_a_time_of_another_clock_is_bounded(house: House) -> None:
    state = house.arrives({"until": [house.now + EPOCH + 10 * MOST_POSTPONE, "health"]})
    assert state.next_at == house.now + MOST_POSTPONE
    assert house.hosts.ahead == 1


@pytest.mark.parametrize("lead", [120.0, 3600.0, 86_400.0, 1e8])
@pytest.mark.parametrize("seconds", [5.0, 600.0, MOST_POSTPONE - 1])
def test_a_host_is_left_alone_no_longer_than_was_noted_though_that_was_by_a_clock_that_is_ahead(
    house: House, seconds: float, lead: float
) -> None:
    wall = house.now + EPOCH
    state = house.arrives({"until": [wall + lead + seconds, "busy", seconds]})
    assert state.next_at == pytest.approx(house.now + seconds), "it counts as said just now"
    assert house.hosts.ahead == 1
    house.now += seconds + 1
    assert house.hosts.postponed(state) is None and house.hosts.blocked_reason(state) == ""
    house.hosts.postpone(state, 7.0, "busy")
    assert house.hosts.postponed(state) == (house.now + EPOCH + 7, "busy"), "what is said here counts"


@pytest.mark.parametrize("seconds", [1.0, 3600.0, MOST_POSTPONE - 1, MOST_POSTPONE])
def test_what_a_right_clock_has_noted_holds_to_its_end(house: House, seconds: float) -> None:
    house.hosts.postpone(house.state(), seconds, "retry-after")
    text = json.loads(house.state().notes.text)
    house.now += seconds / 2
    state = house.arrives(text, host=OTHER)
    assert state.next_at == pytest.approx(house.now + seconds / 2)
    assert house.hosts.ahead == 0


@pytest.mark.parametrize("asked", [None, 0.0, 1.0, 60.0, 300.0, 500.0])
def test_what_a_host_has_asked_for_is_told_from_what_it_is_given_beyond_that(house: House, asked: float | None) -> None:
    """Its pages wait for the whole; files and awaited downloads for what it has asked for, at an heir as well."""
    house.hosts.postpone(house.state(), 300.0, "retry-after", asked)
    heir = house.arrives(json.loads(house.state().notes.text), host=OTHER)
    left = 300.0 if asked is None else min(asked, 300.0)
    for state in (house.state(), heir):
        assert state.next_at == pytest.approx(house.now + 300)
        assert house.hosts.asked_left(state) == pytest.approx(left, abs=0.01)
        assert house.hosts.rests(state) == (left < 300)
    house.now += 100
    assert house.hosts.asked_left(heir) == pytest.approx(max(0.0, left - 100), abs=0.01)


@pytest.mark.parametrize("asked", ["1", -1, 1e300, None, [], 300.0, 4000])
def test_of_nonsense_about_what_was_asked_for_all_counts_as_asked_for(house: House, asked: Any) -> None:
    state = house.arrives({"until": [house.now + EPOCH + 300, "retry-after", 300.0, asked]})
    assert house.hosts.asked_left(state) == pytest.approx(300, abs=0.01) and not house.hosts.rests(state)


def test_an_heir_keeps_to_what_the_owner_noted() -> None:
    hosts = {name: HostNotes(lambda: village.now, lambda: village.now + EPOCH) for name in "ab"}
    policies = {name: HostPolicy(on_notes=one.arrived, on_request=one.lift_for) for name, one in hosts.items()}
    village, host = Village("a", "b", policies=policies), ordered("a", "b")
    for name, agent in village.agents.items():
        hosts[name].work_for(agent, agent.frontier)
    full(village, host)
    hosts["a"].postpone(village.state("a", host), 500.0, "health")
    hosts["a"].set_delay(village.state("a", host), "robots", 20.0)
    hosts["a"].set_delay(village.state("a", host), "response", 50.0, kept=False)
    ready = village.now + 500.0
    village.settle()
    village.kill("a")
    village.until(lambda: "a" not in village.agents["b"].view.members)
    state = village.state("b", host)
    assert state.pause == 20.0
    for _ in range(30):
        village.turn()
        assert village.visit("b") is None
    village.turn(seconds=ready - village.now)  # one long second; then its lease has to be renewed
    village.until(lambda: village.visit("b"))
    first = village.now
    village.until(lambda: village.visit("b"))
    assert village.now - first >= 20.0


# -- from a disk


def test_what_was_noted_is_followed_after_a_restart() -> None:
    frontier = reopened(MemoryStore(), DictKind())
    house, changed = House(frontier=frontier), []
    frontier.add(HOST, [page(HOST, 1)])
    frontier.add(OTHER, [page(OTHER, 1)])
    house.hosts.postpone(house.state(), 500.0, "health")
    house.hosts.set_delay(house.state(), "robots", 20.0)
    house.hosts.put(house.state(), "robots", ["/a"])
    house.hosts.set_delay(house.state(), "response", 50.0, kept=False)
    assert isinstance(frontier, Reading)
    frontier.flush()
    again = House(frontier=reopened(frontier.store, DictKind(frontier.seen)))
    again.hosts.on_change(lambda state: changed.append(state.host))
    state = again.state()
    assert (state.pause, state.next_at) == (20.0, house.now + 500.0)
    assert again.hosts.get(state, "robots") == ["/a"]
    assert again.hosts.postponed(state) == (house.now + EPOCH + 500.0, "health")
    assert changed == [HOST]


@pytest.mark.parametrize("lead", [3600.0, 86_400.0, 1e8])
@pytest.mark.parametrize(("delay", "pause"), [(0.0, 0.0), (2.0, 0.0), (2.0, 30.0), (300.0, 0.0)])
def test_a_host_that_the_disk_has_far_ahead_may_be_fetched_after_its_delay(
    delay: float, pause: float, lead: float
) -> None:
    frontier = reopened(MemoryStore(), DictKind(), delay)
    house = House(delay, frontier)
    state, _ = frontier.add(HOST, [page(HOST, 1)])
    house.hosts.set_delay(state, "robots", pause)
    house.now += lead  # this clock is ahead
    frontier.postpone(state, house.now + max(delay, pause))
    house.now -= lead
    frontier.flush()
    again = House(delay, reopened(frontier.store, DictKind(frontier.seen), delay))
    assert again.state().next_at == house.now + max(delay, pause)
    assert again.hosts.ahead == 1


def test_a_host_that_the_disk_has_a_little_ahead_without_a_note_waits_for_that() -> None:
    frontier = reopened(MemoryStore(), DictKind())
    house = House(frontier=frontier)
    frontier.add(HOST, [page(HOST, 1)])
    house.hosts.wait_until(house.state(), house.now + UNNOTED - 1)
    frontier.flush()
    again = House(frontier=reopened(frontier.store, DictKind(frontier.seen)))
    assert (again.state().next_at, again.hosts.ahead) == (house.now + UNNOTED - 1, 0)


def test_a_crawl_that_begins_anew_forgets_what_was_noted(house: House) -> None:
    house.hosts.put(house.state(), "robots", 1)
    house.hosts.set_delay(house.state(), "response", 5.0, kept=False)
    changed: list[str] = []
    house.hosts.on_change(lambda state: changed.append(state.host))
    assert changed.pop() == HOST
    house.begin(MemoryFrontier(2.0))
    assert house.hosts.get(house.state(), "robots") is None
    assert house.hosts.delays(house.state()) == {}
    house.arrives({"robots": 2})
    assert changed == [HOST], "those who listen still do"


@pytest.mark.parametrize(
    ("noted", "status"), [("http/429", 429), ("http/503", 503), ("http/500", None), ("exception/X", None), (429, None)]
)
def test_with_which_status_a_host_asks_to_be_left_alone_is_known_from_its_notes(
    house: House, noted: object, status: int | None
) -> None:
    state = house.state()
    assert house.hosts.asked_status(state) is None
    house.hosts.put(state, "error", noted)
    assert house.hosts.asked_status(state) == status


def test_a_host_that_is_given_up_still_says_with_what_it_failed(house: House) -> None:
    state = house.state()
    house.hosts.put(state, "error", "http/503")
    house.hosts.end_host(state, "host/dead")
    assert house.hosts.get(state, "error") == "http/503" and house.hosts.read_end_reason(state) == "host/dead"
