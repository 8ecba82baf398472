"""Which pages have their outputs at which other agent, as a frontier on disk knows it, and what is left of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_ubi.agent.report import queries
from scrapy_ubi.frontier import rows
from scrapy_ubi.frontier.disk_frontier import DiskFrontier
from scrapy_ubi.frontier.restore import restore
from scrapy_ubi.protocol.host import Entry, Failure, HostState
from tests.support.memory_store import MemoryStore

HOST = "shop.example"


def entry(key: int, request: str = "") -> Entry:
    return Entry(key, f"http://{HOST}/{key}", 3, 7, request)


class Copy:
    """The copy of a host at an agent with outputs, on a store that outlasts it."""

    def __init__(self, place: Path, count: int = 200, keeps: bool = True) -> None:
        self.place, self.store = place, MemoryStore()
        self.begin(keeps)
        self.state, _ = self.frontier.add(HOST, [entry(key) for key in range(count)])
        self.frontier.flush()

    def begin(self, keeps: bool = True) -> None:
        self.frontier: DiskFrontier = restore(self.store, self.place / "seen")
        if keeps:
            self.frontier.know_outputs()

    def again(self, keeps: bool = False) -> None:
        """The process is another one, and this is not told to keep anything."""
        self.frontier.seen.close()
        self.begin(keeps)
        self.state = self._found()

    def _found(self) -> HostState:
        state = self.frontier.find(HOST)
        assert state is not None
        return state

    def keys(self, agent: str) -> set[int]:
        found = [*self.frontier.pages_kept_by(agent)]
        assert all(one.entry == entry(one.entry.key) and one.host == HOST for one in found)
        assert len({one.entry.key for one in found}) == len(found)
        return {one.entry.key for one in found}

    def tidy(self) -> None:
        while self.frontier.load(0.0, lambda state: True):
            self.frontier.flush()
        self.frontier.flush()
        self.frontier.check_invariants()


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


def test_who_told_that_a_page_is_done_has_its_outputs(copy: Copy) -> None:
    copy.frontier.add_done(copy.state, range(5), "a1")
    copy.frontier.add_done(copy.state, [3, 5, 6, 999], "a2")
    assert (copy.keys("a1"), copy.keys("a2"), copy.keys("a3")) == ({0, 1, 2, 3, 4}, {5, 6}, set())
    assert copy.frontier.status_of(copy.state, 3) is None


def test_it_is_known_after_a_restart(copy: Copy) -> None:
    copy.frontier.add_done(copy.state, [1, 2], "a1")
    copy.frontier.flush()
    copy.again()
    copy.frontier.add_done(copy.state, [3], "a1")
    assert copy.keys("a1") == {1, 2, 3}


def test_pages_fetched_here_are_nowhere_else(copy: Copy) -> None:
    found = copy.frontier.pop(0.0, lambda state: True)
    assert found is not None
    copy.frontier.finish(*(found[0], found[1].key))
    copy.frontier.add_done(copy.state, [found[1].key], "a1")
    assert copy.keys("a1") == set()


def test_what_was_out_when_another_had_done_it(copy: Copy) -> None:
    found = copy.frontier.pop(0.0, lambda state: True)
    assert found is not None
    copy.frontier.add_done(copy.state, [found[1].key], "a1")
    copy.frontier.put_back(copy.state, found[1].key)
    copy.frontier.flush()
    assert copy.keys("a1") == {found[1].key}


@pytest.mark.parametrize("done", [150, 200], ids=["some wait", "none waits"])
def test_it_outlasts_the_rows_of_the_queue(copy: Copy, done: int) -> None:
    for key in range(done):
        copy.frontier.add_done(copy.state, [key], f"a{key % 2}")
        if key % 40 == 39:
            copy.frontier.flush()
    assert copy.keys("a0") == {*range(0, done, 2)}
    copy.tidy()
    left = copy.store.scan(rows.QUEUE, rows.QUEUE + b"\xff" * 24, 1000)
    assert len(left) < 100, "the queue was tidied"
    assert copy.keys("a0") == {*range(0, done, 2)}
    assert copy.keys("a1") == {*range(1, done, 2)}


@pytest.mark.parametrize("flushed", [True, False])
def test_it_outlasts_the_host(copy: Copy, flushed: bool) -> None:
    copy.frontier.add_done(copy.state, range(10), "a1")
    copy.frontier.add(HOST, [entry(500)])
    copy.frontier.add_done(copy.state, [500], "a1")
    if flushed:
        copy.frontier.flush()
    copy.frontier.drop(HOST)
    copy.frontier.flush()
    assert not copy.store.scan(rows.DONE, rows.DONE + b"\xff" * 24, 10)
    assert copy.keys("a1") == {*range(10), 500}


def test_rows_met_while_pages_are_taken(copy: Copy) -> None:
    copy.frontier.add_done(copy.state, range(20), "a1")
    assert (found := copy.frontier.pop(0.0, lambda state: True)) is not None
    assert found[1].key == 20
    assert copy.keys("a1") == {*range(20)}
    copy.frontier.flush()
    assert copy.keys("a1") == {*range(20)}


@pytest.mark.parametrize("tidied", [True, False])
def test_what_is_forgotten_does_not_come_again(copy: Copy, tidied: bool) -> None:
    copy.frontier.add_done(copy.state, range(150), "a1")
    copy.frontier.flush()
    if tidied:
        copy.tidy()
    for page in [*copy.frontier.pages_kept_by("a1")][:140]:
        copy.frontier.forget_elsewhere("a1", page)
    assert len(copy.keys("a1")) == 10
    copy.tidy()
    copy.again()
    assert len(copy.keys("a1")) == 10


def test_a_page_that_was_not_fetched_again_as_its_owner_had_told_what_it_led_to(copy: Copy) -> None:
    copy.frontier.keep_elsewhere(HOST, entry(7), "a1")
    assert copy.keys("a1") == {7}
    copy.frontier.flush()
    assert copy.keys("a1") == {7}


def test_without_outputs_nothing_is_kept(tmp_path: Path) -> None:
    copy = Copy(tmp_path, keeps=False)
    copy.frontier.add_done(copy.state, range(150), "a1")
    copy.frontier.keep_elsewhere(HOST, entry(7), "a1")
    copy.tidy()
    assert copy.keys("a1") == set()
    assert not copy.store.scan(rows.ELSEWHERE, rows.ELSEWHERE + b"\xff" * 20, 1)
    assert copy.store.get(rows.AGENTS) is None


@pytest.mark.parametrize("most", [4, 1000])
def test_they_are_requeued_once_each_some_at_a_time(copy: Copy, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(queries, "MOST_REQUEUED", most)
    copy.frontier.add_done(copy.state, range(10), "a1")
    taken: list[int] = []

    def take(page: Failure) -> bool:
        taken.append(page.entry.key)
        return page.entry.key != 3  # which does not fit

    question = queries.Question.parse(queries.Question("requeue", 1.0, outputs_of="a1").text())
    source = queries.Source("a2", copy.frontier, 0.0, *[lambda *_: ""] * 4, take)
    made = [queries.answer(question, source) for _ in range(5)]
    assert sum(one["requeued"] for one in made) == 9 and made[-1]["unfit"] == 1
    assert sorted(key for key in taken if key != 3) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert copy.keys("a1") == {3}
