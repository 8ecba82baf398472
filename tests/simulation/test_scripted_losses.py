"""Worlds in which each fault is told: who was lost is named, though whoever knows of it is lost, too."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from scrapy_ubi.transport.watched import WatchedKey
from tests.simulation.outside import Outside
from tests.simulation.world import EPOCH, World


class Script:
    """A world of hosts whose pages lead on; nobody fetches before second 70. Faults come at their time (s).
    `watched`: Redis is known to have forgotten nothing, so nobody waits when it starts."""

    def __init__(
        self,
        seed: int = 1,
        hosts: int = 4,
        pages: int = 10,
        linked: bool = True,
        copies: int = 1,
        watched: bool = False,
    ) -> None:
        world = self.world = World(seed, hosts, pages, copies, 4, False)
        world.slow, world.scribe, world.halted = 0.005, random.Random(1), True
        world.watched = watched
        if watched:
            world.redis.watched = WatchedKey(("0", -100.0, EPOCH - 100.0))
        self.outside = world.outside = Outside(world, 0, 1.0)
        url = self.url = world.web.url
        world.web._links = {(one, 1): [] for one in world.web.urls()}
        for page in range(pages - 1 if linked else 0):
            world.web._links[url(0, page), 1] = [url(0, page + 1), url(1, page + 1)]
            world.web._links[url(2, page), 1] = [url(2, page + 1)]
        world.seeds = [url(0, 0)]
        world.at(70, lambda: setattr(world, "halted", False))

    def begins(self, at: float, what: Callable[[], object]) -> None:
        """An agent that the world waits for."""
        self.world.awaited += 1

        def begin() -> None:
            self.world.awaited -= 1
            what()

        self.world.at(at, begin)

    def start(self, at: float, name: str) -> None:
        self.begins(at, lambda: self.world.start(name, True))

    def back(self, at: float, name: str) -> None:
        self.begins(at, lambda: self.world.restart(name))

    def kill(self, at: float, name: str, keep: bool = False) -> None:
        self.world.at(at, lambda: self.world.processes[name].crash(keep=keep))

    def leave(self, at: float, name: str) -> None:
        def leave() -> None:
            self.world.processes[name].keeps = True
            self.world.processes[name].leave(1.0)

        self.world.at(at, leave)

    def sow(self, at: float, url: str) -> None:
        """A seed comes from outside."""

        def write() -> None:
            if (number := self.world.redis.append_seed(url)) is not None:
                self.outside.taken_in[number] = url

        self.world.at(at, write)

    def pause(self, at: float, name: str, seconds: float) -> None:
        self.world.at(at, lambda: self.world.processes[name].pause(seconds))

    def restore(self, at: float, before: float) -> None:
        """Redis begins again with what it held at the time before."""
        held: list[dict[str, object]] = []

        def begin_again() -> None:
            self.world.redis.restore(held[0])
            self.world.forgotten()

        self.world.at(before, lambda: held.append(self.world.redis.copy()))
        self.world.at(at, begin_again)

    def replace_early(self, at: float = 2.0, *others: str, second: float = 1.0, third: float = 0.05) -> None:
        """`a`, and the `others`, are killed before they could see that all have settled with `b`; an empty directory
        takes its name, and `c` comes."""
        for place, name in enumerate(("b", "a", *others)):
            self.start(0.4 + place / 10, name)
        for name in ("a", *others):
            self.kill(at, name)
        self.start(at + second, "a")
        self.start(at + third, "c")

    def lose_all_but_c(self, at: float) -> None:
        self.kill(at, "a")
        self.kill(at, "b")
        self.kill(at, "c", keep=True)
        self.back(at + 8, "c")

    def sow_all(self, at: float) -> None:
        for host in range(4):
            self.sow(at, self.url(host, 1))

    def lost(self) -> set[str]:
        """Who is named at the end, when pages are missing."""
        named = self.named()
        wanted = self.world.web.reachable([*self.world.seeds, *self.outside.sure])
        assert wanted - self.world.referee.fetched.keys(), "nothing was lost"
        return named

    def named(self) -> set[str]:
        """Who is named at the end. That more are than have copies is asserted by the world."""
        self.world.run(300, 200)
        return {name for process in self.world.all for name in process.alarm}


@pytest.mark.parametrize("how", ["left", "killed", "killed, and an empty directory takes the name of the lost"])
def test_who_went_on_when_all_others_were_gone_is_named(how: str) -> None:
    script = Script()
    for name in "ac":
        script.start(0, name)
    script.kill(8, "c", keep=True)
    script.back(16, "c")
    for name in "ac":
        script.leave(24, name) if how == "left" else script.kill(24, name, keep=True)
    script.start(30, "b")
    script.sow(50, script.url(2, 0))
    script.kill(56, "b")
    if "empty" in how:
        script.start(57.5, "b")
    for name in "ac":
        script.back(58, name)
    assert script.lost() == {"b"}


def test_those_are_named_whom_one_alone_had_recorded_though_its_directory_is_empty_now() -> None:
    script = Script(hosts=12, pages=4, linked=False)
    for name in "abc":
        script.start(0, name)
    for host in range(12):
        script.sow(8, script.url(host, 1))
    for name in "bc":
        script.kill(14, name)
    script.start(15, "d")
    script.kill(30, "a")
    script.start(33, "a")
    assert script.lost() >= {"b", "c"}


@pytest.mark.parametrize("alone", [True, False])
def test_a_life_is_named_that_had_the_name_of_one_that_is_back(alone: bool) -> None:
    """An empty directory, as the volume was not mounted; now it is."""
    script = Script()
    world = script.world
    for name in "x" if alone else "xd":
        script.start(0, name)
        script.kill(15, name, keep=True)
    world.at(14.9, lambda: first.append(world.processes["x"]))
    first: list[object] = []
    script.start(20, "x")
    script.sow(40, script.url(2, 0))
    script.kill(46, "x")
    script.begins(48, lambda: world.referee.returned(world._start("x", True, first[0])))  # type: ignore[arg-type]
    if not alone:
        script.back(48, "d")
    assert script.lost() == {"x"}


# -- a name that was taken again before all had settled once


def test_who_went_on_while_the_other_had_frozen_is_named_though_redis_has_its_words_of_before() -> None:
    """That all others of its view have settled since tells nothing of what it did without them."""
    script = Script(copies=2, watched=True)
    script.replace_early(14, second=1, third=1)
    script.pause(2.0, "b", 14)
    script.sow_all(9)
    script.restore(14.5, before=1.9)
    script.lose_all_but_c(40)
    assert "a" in script.lost()


@pytest.mark.parametrize("third", [False, True], ids=["the second life", "a third one"])
def test_a_later_life_that_went_on_alone_is_named(third: bool) -> None:
    script = Script(copies=2, watched=True)
    script.replace_early()
    script.kill(12, "b")
    script.kill(12, "c", keep=True)
    if third:
        script.kill(12, "a")
        script.start(14, "a")
    script.sow_all(24)
    script.kill(30, "a")
    script.back(36, "c")
    assert "a" in script.lost()


def test_who_was_alone_before_the_other_came_is_named() -> None:
    script = Script(copies=2, watched=True)
    script.start(0.3, "a")
    script.sow_all(1.5)
    script.start(3, "b")
    script.kill(3.05, "a")
    script.start(4.05, "a")
    script.start(4.05, "c")
    script.lose_all_but_c(22)
    assert script.lost() == {"a"}


@pytest.mark.parametrize("at", [3.8, 5.0, 20.0], ids=["before all have settled", "when they have", "later"])
def test_those_are_named_who_were_lost_with_the_first_life_and_were_too_many(at: float) -> None:
    script = Script(copies=2, watched=True)
    script.replace_early(2.0, "d", "e")
    script.lose_all_but_c(at)
    assert script.named() >= {"a", "d", "e"}


@pytest.mark.parametrize("forgotten", [False, True])
def test_who_went_on_without_the_first_life_that_was_back_is_named_though_nobody_had_judged(forgotten: bool) -> None:
    """Where Redis has forgotten that one, at least who had missed it is named."""
    script = Script(copies=2, watched=True)
    for name in "ak":
        script.start(0.4, name)
    script.kill(3, "a", keep=True)
    script.sow_all(10)
    script.kill(16, "k")
    if forgotten:
        script.world.at(17, script.world.forget)
    script.start(18, "b")
    script.back(18.5, "a")
    script.kill(19.6, "a")
    script.start(21, "a")
    script.start(21, "c")
    script.lose_all_but_c(45)
    assert script.lost() & {"a", "k"}


def test_the_first_life_is_named_that_went_on_while_the_second_had_frozen_which_wrote_over_its_line() -> None:
    """Two lives of one name at once: the first wakes when all others are gone, works alone, and is killed. The second
    wakes, and says what it had said before."""
    script = Script(copies=2, watched=True)
    script.start(0.4, "b")
    script.start(0.5, "a")
    firsts = []
    script.world.at(1.3, lambda: firsts.append(script.world.processes["a"]))
    script.pause(1.3, "a", 29)
    script.start(8, "a")
    script.start(8.05, "c")
    script.kill(20, "b")
    script.kill(20, "c", keep=True)
    script.pause(20, "a", 30)
    script.sow_all(38)
    script.world.at(49, lambda: firsts[0].crash(keep=False))
    script.kill(51.2, "a")
    script.back(57, "c")
    assert "a" in script.lost()
