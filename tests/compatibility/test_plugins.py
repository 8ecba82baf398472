"""An ordinary project with a plug-in gives plain Scrapy's items: by one agent, by two, by two of which one is killed.

Each is run by plain Scrapy with the plug-in first. `make compatibility` runs all of them, in an environment of its own
where the plug-ins are; what is missing there is skipped, and said.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility.cases import BUCKET, CASES, Case, World, s3_client
from tests.compatibility.town import furnish
from tests.matrix.trial import Kill, Outcome, Trial
from tests.support.server import Server
from tests.support.site import Site

pytestmark = pytest.mark.compatibility

LIMIT = 900.0  # s for one run, on a machine that does other things as well
TAIL = 4000  # characters of a log that a failure shows
KILL_AFTER = 30  # requests
# Plug-ins hold the loop at times: botocore reads its tables for each file, a browser starts.
SETTINGS = """
UBI_STORES = ["items"]
UBI_LEASE_TIMEOUT = 8.0
UBI_FAILURE_TIMEOUT = 14.0
"""


def importable(what: str, modules: Sequence[str], programs: Sequence[str] = ()) -> None:
    """Skip the test where a plug-in, or a program, is not installed, and say so."""
    missing = [name for name in modules if find_spec(name) is None]
    missing += [name for name in programs if shutil.which(name) is None]
    if missing:
        pytest.skip(f"NOT TRIED: {what}: {', '.join(missing)} is not installed")


@pytest.fixture
def world(one_server: Server) -> Iterator[World]:
    with Site() as site:
        furnish(site)
        yield World(site, one_server)


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """The address of an S3 of our own."""
    server: Any = import_module("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=CASES, ids=[case.name for case in CASES])
def case(request: pytest.FixtureRequest, world: World) -> Case:
    """A case whose plug-ins are there."""
    case: Case = request.param
    importable(case.name, case.needs, case.programs)
    if case.name == "s3_feeds":
        world.s3 = request.getfixturevalue("moto")
        s3_client(world.s3).create_bucket(
            Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
        )  # fmt: skip
    return case


class Runs:
    """The runs of one case, each with all that it left."""

    def __init__(self, case: Case, place: Path, world: World, more: str = "") -> None:
        self._case, self._place, self._world = case, place, world
        self._trial = Trial(
            case.name, place, world.site, world.server.url, more,
            always=world.lines(), project=case.project(), limit=LIMIT,
        )  # fmt: skip

    def plain(self) -> tuple[Outcome, Counter[str]]:
        self._world.site.visits.clear()
        return self._trial.plain(), self._case.items(self._place / "plain", self._world)

    def agents(self, number: int, kill: bool = False) -> tuple[Outcome, Counter[str]]:
        self._world.site.visits.clear()
        found = self._trial.agents(number, kill=Kill(KILL_AFTER) if kill else None)
        name = f"agents-{number}-killed" if kill else f"agents-{number}"
        return found, self._case.items(self._place / name, self._world)

    def close(self) -> None:
        self._trial.close()


def _tails(outcome: Outcome) -> str:
    return "\n".join(f"== {number}\n{log[-TAIL:]}" for number, log in enumerate(outcome.logs))


def differences(plain: Counter[str], ours: Counter[str], doubles: bool) -> str:
    """What is missing and what is too much; `doubles`: an item may come more often than in plain Scrapy."""
    missing, more = plain - ours, ours - plain
    if doubles:
        more = Counter({item: number for item, number in more.items() if item not in plain})
    return f"missing {[*missing.elements()][:4]}, more {[*more.elements()][:4]}" if missing or more else ""


def test_the_items_are_those_of_plain_scrapy(case: Case, world: World, tmp_path: Path) -> None:
    """By one agent, by two, and by two of which one is killed (SIGKILL) midway and not started again."""
    runs = Runs(case, tmp_path, world, SETTINGS)
    try:
        plain, elsewhere = runs.plain()
        if case.broken:
            _judge_broken(case, plain, runs.agents(1)[0])
            return
        assert plain.lines and not any(plain.exits), _tails(plain)
        for number, kill in ((1, False), (2, False), (2, True)):
            _judge(case, (plain, elsewhere), runs.agents(number, kill), number, kill)
    finally:
        runs.close()


def _judge_broken(case: Case, plain: Outcome, ours: Outcome) -> None:
    """Plain Scrapy cannot run with it. If it can by now, its row of the table is to be tried again."""
    assert plain.said(case.broken), f"{case.name} runs now\n{_tails(plain)}"
    assert ours.said(case.broken), _tails(ours)


def _judge(
    case: Case, plain: tuple[Outcome, Counter[str]], ours: tuple[Outcome, Counter[str]], number: int, kill: bool
) -> None:
    found, elsewhere = ours
    run = f"{case.name}, {number} agents{', one killed' if kill else ''}"
    assert not any(found.exits), f"{run}: {found.exits}\n{_tails(found)}"
    assert not (plain[0].lines - found.collected or found.collected - plain[0].lines), (
        f"{run}: collected: {differences(plain[0].lines, found.collected, False)}\n{_tails(found)}"
    )
    if differs := differences(plain[0].lines, found.lines, kill):
        assert kill, f"{run}: {differs}\n{_tails(found)}"
    if differs := differences(plain[1], elsewhere, kill):
        assert kill and case.loses and found.said(case.loses), f"{run}: elsewhere: {differs}\n{_tails(found)}"
    assert not found.said(r"codec/meta|untravelled/meta"), f"{run}: meta was lost\n{_tails(found)}"
    if case.says and number > 1:
        assert found.said(case.says), f"{run}: not said: {case.says}\n{_tails(found)}"
