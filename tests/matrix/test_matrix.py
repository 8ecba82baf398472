"""An unmodified project gives the items of plain Scrapy, or is told in one sentence what it lacks.

Each project is run by plain Scrapy, by 1, 2 and 4 agents, and by 4 of which one is killed (SIGKILL) midway and not
started again. `make faults` runs all of them; two run with the other tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.matrix.shops import furnish
from tests.matrix.trial import Arguments, Kill, Outcome, Trial
from tests.support.server import Server
from tests.support.site import Site

pytestmark = pytest.mark.processes

PROJECTS = sorted(folder.name for folder in Path(__file__).with_name("projects").iterdir() if folder.is_dir())

ARGUMENTS: dict[str, tuple[Arguments, ...]] = {"arguments": ({"shop": "3"}, {"shop": "5"})}

KILLED = {"login": "member.example", "api": "api.example"}  # whose fetcher is killed, where that is to be seen

USUAL = (("crawl_rules", 2), ("loaders", 2))  # those that run with the other tests

# What a crawl of several agents says of what it lost. A single one loses nothing, but where one is killed.
LOSES = {"lambdas": "codec/callback", "page_methods": "codec/meta"}


@dataclass
class Matrix:
    """What each project is run with."""

    place: Path
    site: Site
    server: Server

    def run(self, name: str, agents: int, kill: bool = False, more: str = "") -> tuple[Outcome, Outcome]:
        """The outcomes of plain Scrapy and of so many agents."""
        arguments = ARGUMENTS.get(name, ({},))
        trial = Trial(name, self.place, self.site, self.server.url, more)
        try:
            plain = trial.plain(arguments)
            host = KILLED.get(name, "")
            asked = sum(host in (visit.host, "") for visit in self.site.visits)
            self.site.visits.clear()  # what depends on the number of the visit begins anew
            return plain, trial.agents(agents, arguments, Kill(asked // 3, host) if kill else None)
        finally:
            trial.close()


@pytest.fixture
def matrix(tmp_path: Path, one_server: Server) -> Iterator[Matrix]:
    with Site() as site:
        furnish(site)
        yield Matrix(tmp_path, site, one_server)


def _cases() -> Iterator[object]:
    for name in PROJECTS:
        for agents in (1, 2, 4):
            yield pytest.param(name, agents, marks=() if (name, agents) in USUAL else pytest.mark.faults)


@pytest.mark.parametrize(("name", "agents"), [*_cases()])
def test_the_items_are_those_of_plain_scrapy(matrix: Matrix, name: str, agents: int) -> None:
    plain, ours = matrix.run(name, agents)
    assert plain.items and not any(plain.exits), plain.logs[0][-3000:]
    _judge(name, agents, plain, ours, killed=False)


@pytest.mark.faults
@pytest.mark.parametrize("name", PROJECTS)
def test_the_items_are_those_of_plain_scrapy_though_an_agent_is_killed(matrix: Matrix, name: str) -> None:
    plain, ours = matrix.run(name, 4, kill=True)
    _judge(name, 4, plain, ours, killed=True)


@pytest.mark.faults
@pytest.mark.parametrize("name", PROJECTS)
def test_what_is_collected_are_the_items_of_plain_scrapy_each_once_though_an_agent_is_killed(
    matrix: Matrix, name: str
) -> None:
    plain, ours = matrix.run(name, 4, kill=True, more='UBI_STORES = ["items"]')
    missing, more = plain.lines - ours.collected, ours.collected - plain.lines
    tails = "\n".join(f"== {number}\n{log[-3000:]}" for number, log in enumerate(ours.logs))
    if missing or more:
        assert name in LOSES and ours.said(LOSES[name]), f"missing {missing}\nmore {more}\n{tails}"


def _judge(name: str, agents: int, plain: Outcome, ours: Outcome, killed: bool) -> None:
    tails = "\n".join(f"== {number}\n{log[-3000:]}" for number, log in enumerate(ours.logs))
    assert not any(ours.exits), f"{ours.exits}\n{tails}"
    if differs := ours.differs_from(plain, doubles=killed):
        assert agents > 1 and name in LOSES and ours.said(LOSES[name]), f"{differs}\n{tails}"
