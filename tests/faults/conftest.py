"""The web and the group of agents that every test here does something to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from demo.graph import Graph
from tests.support import store_engines
from tests.support.group import Group
from tests.support.server import Server
from tests.support.web import DemoWeb

FOUR = ("a0", "a1", "a2", "a3")

# For tests that name the engine they are about; `make faults ENGINE=sqlite` has one.
ENGINES = pytest.mark.parametrize("engine", store_engines.ENGINES)


class MakeGroup:
    """`make_group(latency=0.005, seeds="all", **settings)`: a group that crawls a web of 600 `pages` of 60 `hosts`.

    `latency` is the mean time (s) an answer takes. Where it is long, there is a request at each host nearly all the
    time: a second agent at any of them is seen at once.
    """

    def __init__(self, place: Path, server: Server, stack: ExitStack) -> None:
        self.server = server
        self._place, self._stack = place, stack

    def __call__(
        self, latency: float = 0.005, seeds: str = "all", hosts: int = 60, pages: int = 600, **settings: object
    ) -> Group:
        web = self._stack.enter_context(DemoWeb(Graph(seed=5, hosts=hosts, pages=pages), latency))
        group = Group(self._place, web, self.server, seeds, **settings)
        self._stack.callback(group.close)
        return group


@pytest.fixture
def make_group(tmp_path: Path, one_server: Server) -> Iterator[MakeGroup]:
    with ExitStack() as stack:
        yield MakeGroup(tmp_path, one_server, stack)
