"""Worlds in which each fault is told: who was lost is named, though whoever knows of it is lost, too."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.simulation.world import World


class Script:
    """A world of hosts whose pages lead on; nobody fetches before second 70. Faults come at their time (s)."""

    def __init__(self, seed: int = 1, hosts: int = 4, pages: int = 10, linked: bool = True) -> None:
        world = self.world = World(seed, hosts, pages, 1, 4, False)
        world.slow, world.scribe, world.halted = 0.005, random.Random(1), True
        url = self.url = world.web.url
        world.web._links = {(one, 1): [] for one in world.web.urls()}
        for page in range(pages - 1 if linked else 0):
            world.web._links[url(0, page), 1] = [url(0, page + 1), url(1, page + 1)]
            world.web._links[url(2, page), 1] = [url(2, page + 1)]
        world.seeds = [url(0, 0)]
        self.sown: list[str] = []
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
        self.world.at(at, lambda: self.sown.append(url) if self.world.redis.append_seed(url) is not None else None)

    def lost(self) -> set[str]:
        """Who is named at the end, when pages are missing."""
        self.world.run(300, 200)
        wanted = self.world.web.reachable([*self.world.seeds, *self.sown])
        assert wanted - self.world.referee.fetched.keys(), "nothing was lost"
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
