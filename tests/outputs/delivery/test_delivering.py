"""What stores that give items to a receiver have in common: given before the mark, at least once, once by identity."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy.settings import Settings

from scrapy_ubi.frontier.store import StoreHeldBack
from scrapy_ubi.outputs.delivery.delivering import DeliveringStore, Entry, NotTaken, Place
from tests.outputs.delivery.agent import DeliveringAgent
from tests.support.memory_store import MemoryStore


class Told(DeliveringStore):
    """A receiver in memory, which may be away, or lose what it was given last."""

    name: ClassVar[str] = "told"
    longest_pause = 0.0

    def __init__(self, arguments: dict[str, tuple[str, ...]], **options: Any) -> None:
        super().__init__(arguments, Settings(options))
        self.got: list[str] = []
        self.items: list[Any] = []
        self.away = self.loses = False
        self.keeps = True  # for good, at once

    def send(self, entries: Sequence[Entry], run: str, after: Place) -> bool:
        if self.away:
            raise NotTaken("The receiver is away.")
        if self.loses:
            self.loses = False
            self.sent = dict(self.low)
            return False
        self.got += [entry.id for entry in entries]
        self.items += [json.loads(entry.item) for entry in entries]
        if self.keeps:
            self.low[after.part] = after.offset
        return True


class Agent(DeliveringAgent):
    """One whose receiver is in memory."""

    def __init__(self, place: Path, rows: MemoryStore | None = None, **arguments: str) -> None:
        super().__init__(place, Told({key: (value,) for key, value in arguments.items()}), rows)


def test_items_are_given_before_the_flush_is_written(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.page("p", {"a": 1}, {"b": "ä\n"})
    mark = agent.writer.mark("run")
    agent.writer.rows(mark)
    assert agent.store.got == ["p-0", "p-1"] and agent.store.items == [{"a": 1}, {"b": "ä\n"}]
    agent.end()


def test_where_they_are_not_taken_the_flush_waits_and_they_are_given_in_their_order(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.store.away = True
    agent.page("p", 1)
    mark = agent.writer.mark("run")
    for _ in range(3):
        with pytest.raises(StoreHeldBack, match="The receiver is away"):
            agent.writer.rows(mark)
    agent.page("q", 2)
    agent.store.away = False
    agent.writer.rows(mark)
    agent.flush()
    assert agent.store.got == ["p-0", "q-0"]
    agent.end()


def test_what_was_not_given_is_not_done_and_what_was_is_not_given_again(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.page("p", 1)
    agent.flush()
    agent.store.away = True
    agent.page("q", 2)
    agent.end()
    again = Agent(tmp_path, agent.rows)
    again.page("r", 3)
    again.flush()
    assert again.store.got == ["r-0"]  # q is not done: it is fetched again
    again.end()


def test_what_the_receiver_has_lost_is_given_again_also_after_a_restart(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.store.keeps = False
    agent.page("p", 1)
    agent.flush()
    agent.store.loses = True
    agent.page("q", 2)
    agent.flush()
    assert agent.store.got == ["p-0", "p-0", "q-0"]
    agent.kill()
    again = Agent(tmp_path, agent.rows)
    again.store.loses = True
    again.page("r", 3)
    again.flush()
    assert again.store.got == ["p-0", "q-0", "r-0"]
    again.end()


def test_a_damaged_state_gives_all_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent(tmp_path)
    agent.page("p", 1)
    agent.flush()
    agent.end()
    for text in ("{", "[]", '{"sent": {"x": -1}, "low": {}}', '{"sent": 3}'):
        (tmp_path / "out" / "told.state").write_text(text)
        again = Agent(tmp_path, agent.rows)
        again.flush()
        assert again.store.got == ["p-0"] and "told.state is damaged" in caplog.text
        again.end()
        caplog.clear()


def test_sealed_files_are_deleted_once_the_receiver_has_all(tmp_path: Path) -> None:
    agent = Agent(tmp_path, size="10")
    for number in range(20):
        agent.page(f"p{number}", number)
        agent.flush()
    agent.flush()
    assert len(agent.store.got) == 20 and len(agent.files()) <= 2
    assert len(agent.store.sent) <= 2 and len(agent.store.low) <= 2
    agent.end()
    again = Agent(tmp_path, agent.rows)
    again.flush()
    assert not again.store.got
    again.end()


def test_what_other_attempts_have_left_has_an_identity_of_its_own(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.page("p", 1, kind="again")
    agent.page("p", 2, kind="again", attempt=1)
    agent.page("p", 3, attempt=2)
    agent.page("q", 4, kind="failed")
    agent.flush()
    assert agent.store.got == ["p.again0-0", "p.again1-0", "p-0", "q.failed0-0"]
    agent.end()


def test_items_are_utf_8_whatever_a_feed_is() -> None:
    assert Told({}, FEED_EXPORT_ENCODING="utf-16").item({"a": "ä"}) == '{"a": "ä"}\n'.encode()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["page", "flush", "away", "back", "lose", "kill"]), max_size=40), st.booleans())
def test_each_item_of_a_page_that_is_done_was_given(tmp_path_factory: Any, acts: list[str], keeps: bool) -> None:
    """Whatever fails, in whatever order."""
    place = tmp_path_factory.mktemp("agent")
    agent, number, got, flushed, waits = Agent(place, size="60"), 0, set[str](), set[str](), set[str]()
    agent.store.keeps = keeps

    marked = set[str]()

    def flush(agent: Agent) -> None:
        if agent.mark is None:
            marked.update(waits)
            waits.clear()
        try:
            agent.flush()
        except StoreHeldBack:
            return
        flushed.update(marked)
        marked.clear()
        assert flushed <= got | {*agent.store.got}

    for act in acts:
        if act == "page":
            number += 1
            waits.add(f"p{number}-0")
            agent.page(f"p{number}", number)
        elif act == "kill":
            got.update(agent.store.got)
            waits.clear()
            marked.clear()
            agent.kill()
            agent = Agent(place, agent.rows, size="60")
            agent.store.keeps = keeps
        elif act == "flush":
            flush(agent)
        else:
            agent.store.away = act == "away"
            agent.store.loses = act == "lose"
    agent.store.away = False
    flush(agent)
    if agent.store.loses:
        flush(agent)
    agent.end()
    assert flushed <= got | {*agent.store.got}


def test_the_state_is_plain(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.page("p", 1)
    agent.flush()
    state: Mapping[str, Any] = json.loads((tmp_path / "out" / "told.state").read_text())
    assert state["sent"] == state["low"] and len(state["sent"]) == 1
    agent.end()
