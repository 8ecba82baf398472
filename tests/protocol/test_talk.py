"""Rumours: names out of use, as agents tell each other, each word once."""

from __future__ import annotations

import pytest

from scrapy_ubi.protocol.talk import Rumours


class Agents:
    def __init__(self, *names: str) -> None:
        self.members = list(names)
        self.lives = {name: f"{name}1" for name in names}
        self.heard: dict[str, list[tuple[str, float]]] = {name: [] for name in names}
        self.of = {name: self.rumours(name) for name in names}

    def rumours(self, name: str) -> Rumours:
        def hear(what: str, seconds: float) -> None:
            self.heard[name].append((what, seconds))

        return Rumours("proxies", name, lambda: self.lives[name], lambda: self.members, hear, 100.0, 3)

    def post(self, sender: str, now: float = 0.0) -> int:
        texts = self.of[sender].messages(now)
        for (receiver, lane), text in texts.items():
            assert self.of[receiver].hear(lane, text, now)
            assert self.of[receiver].hear(lane, text, now), "it is read in every exchange"
        return len(texts)


def test_what_one_has_found_the_others_hear_once_with_the_time_that_is_left() -> None:
    agents = Agents("a", "b", "c")
    assert agents.post("a") == 0
    agents.of["a"].found("gate:1", 30.0)
    assert agents.post("a", 10.0) == 2 and agents.post("a", 11.0) == 0
    assert agents.heard["b"] == agents.heard["c"] == [("gate:1", 20.0)]
    assert agents.post("b") == 0, "what was heard is not told on"


def test_a_newcomer_hears_what_holds_and_nothing_of_what_is_over() -> None:
    agents = Agents("a", "b", "c")
    agents.members.remove("c")
    agents.of["a"].found("gate:1", 30.0)
    agents.of["a"].found("gate:2", 90.0)
    agents.post("a")
    agents.members.append("c")
    assert agents.post("a", 40.0) == 1
    assert agents.heard["c"] == [("gate:2", 50.0)]


def test_an_older_word_says_nothing_and_a_new_life_counts_from_one() -> None:
    agents = Agents("a", "b")
    agents.of["a"].found("gate:1", 30.0)
    ((_, lane), old), *_ = agents.of["a"].messages(0.0).items()
    agents.of["b"].hear(lane, old, 0.0)
    agents.of["a"].found("gate:2", 30.0)
    agents.post("a")
    agents.of["b"].hear(lane, old, 0.0)
    assert [name for name, _ in agents.heard["b"]] == ["gate:1", "gate:1", "gate:2"]
    agents.lives["a"], agents.of["a"] = "a2", agents.rumours("a")
    agents.of["a"].found("gate:3", 30.0)
    agents.post("a")
    assert agents.heard["b"][-1] == ("gate:3", 30.0)


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "{}", '{"from":1,"number":1,"left":{}}', '{"from":"a","number":-1,"left":{}}']
)
def test_what_is_no_word_says_nothing(text: str) -> None:
    agents = Agents("a", "b")
    assert agents.of["b"].hear("proxies a", text, 0.0) and not agents.heard["b"]
    assert not agents.of["b"].hear("rates a", text, 0.0)
    agents.of["b"].hear("proxies a", '{"from":"a","number":1,"left":{"g":1e9,"h":null,"i":-1}}', 0.0)
    assert not agents.heard["b"]
