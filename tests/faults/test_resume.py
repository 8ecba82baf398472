"""Crawls that were stopped or killed, and the same command again: they go on from their disks, and end.

The web's own log is the verdict. After a stop nothing is fetched twice. After kill -9 only that may be fetched again
which no disk has as done: it was under way, or belongs to the last flush; the tests look at the disks in between.
"""

from __future__ import annotations

import json
import re
import signal
from typing import Any

import pytest

from tests.faults.conftest import ENGINES, FOUR, MakeGroup
from tests.support.disks import Disk, unwritten
from tests.support.group import Group

pytestmark = pytest.mark.processes

faults = pytest.mark.faults
SIGNALS = pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
ALONE = {"UBI_REDIS_URL": None}
GOES_ON = "Going on with the crawl in"


def fetched(group: Group) -> set[str]:
    """The documents that the web has given out whole."""
    return set(group.web.visits())


def kill(group: Group, *names: str) -> set[str]:
    """kill -9; what may be fetched again for that."""
    group.kill(*names)
    left = unwritten([group.place / name for name in FOUR], fetched(group))
    assert len(left) < len(fetched(group)), "nothing at all was written"
    print(f"killed after {len(fetched(group))} pages, {len(left)} of them not written")
    return left


def more_is_served(group: Group, pages: int = 30) -> None:
    """Until the web was asked for some more."""
    before = group.web.count()
    group.until(lambda: group.web.count() >= before + pages, "more pages")


# -- killed


@ENGINES
def test_an_agent_alone_that_was_killed_goes_on(make_group: MakeGroup, engine: str) -> None:
    group = make_group(latency=0.03, hosts=20, pages=200, UBI_STORE_ENGINE=engine, **ALONE)
    group.start("a0")
    group.until_served(0.4)
    left = kill(group, "a0")
    group.start("a0")
    verdict = group.end().judge(unwritten=left)
    assert GOES_ON in verdict.logs["a0"]
    assert verdict.stats["duplicates"] <= len(left)


def test_two_agents_that_were_killed_go_on(make_group: MakeGroup) -> None:
    group = make_group(latency=0.03, hosts=20, pages=200, UBI_START_WAIT=0)
    group.start_together("a0", "a1")
    group.until_served(0.4)
    left = kill(group, "a0", "a1")
    group.start_together("a0", "a1")
    verdict = group.end().judge(unwritten=left)
    assert all(GOES_ON in log for log in verdict.logs.values())


@faults
@ENGINES
@pytest.mark.parametrize("emptied", [False, True], ids=["redis kept", "redis emptied"])
def test_four_agents_that_were_killed_go_on(make_group: MakeGroup, emptied: bool, engine: str) -> None:
    group = make_group(latency=0.05, UBI_STORE_ENGINE=engine)
    group.start(*FOUR)
    group.until_served(0.3)
    left = kill(group, *FOUR)
    if emptied:
        group.server.flush()
    group.start(*FOUR)
    verdict = group.end().judge(unwritten=left)
    assert all(GOES_ON in log for log in verdict.logs.values())


@faults
@ENGINES
def test_killed_again_and_again_and_before_anything_was_fetched(make_group: MakeGroup, engine: str) -> None:
    group = make_group(latency=0.05, UBI_STORE_ENGINE=engine)
    group.start(*FOUR)
    group.until_served(0.2)
    left = kill(group, *FOUR)
    group.start(*FOUR)
    more_is_served(group)
    left |= kill(group, *FOUR)
    group.start(*FOUR)
    group.until(lambda: all(log_of(group, name).count(GOES_ON) == 2 for name in FOUR), "all of them go on")
    before = fetched(group)
    group.kill(*FOUR)  # while they wait to see who else lives
    assert fetched(group) == before
    group.start(*FOUR)
    group.end().judge(unwritten=left)


@faults
def test_an_agent_alone_that_is_killed_while_it_opens_its_disk_goes_on(make_group: MakeGroup) -> None:
    group = make_group(latency=0.05, hosts=20, pages=200, **ALONE)
    group.start("a0")
    group.until_served(0.3)
    left = kill(group, "a0")
    for killed in range(1, 4):
        group.start("a0")
        group.until(lambda n=killed: log_of(group, "a0").count("Enabled item pipelines") > n, "a start")
        group.kill("a0")
    left |= unwritten([group.place / "a0"], fetched(group))
    group.start("a0")
    group.end().judge(unwritten=left)


@faults
def test_one_of_four_that_was_killed_and_is_back_before_it_is_missed_goes_on(make_group: MakeGroup) -> None:
    group = make_group(latency=0.05, UBI_FAILURE_TIMEOUT=60)
    group.start(*FOUR)
    group.until_served(0.3)
    group.kill("a1")
    left = unwritten([group.place / "a1"], {url for url, who in fetchers(group).items() if who == "a1"})
    group.start("a1")
    verdict = group.end().judge(unwritten=left)
    assert GOES_ON in verdict.logs["a1"]


# -- stopped


@faults
@SIGNALS
def test_an_agent_alone_that_was_stopped_goes_on_and_fetches_nothing_twice(make_group: MakeGroup, by: int) -> None:
    group = make_group(latency=0.05, hosts=20, pages=200, **ALONE)
    group.start("a0")
    group.until_served(0.3)
    group.stop_all(by)
    assert group.said("a0", "and the same command goes on with it")
    assert len(fetched(group)) < len(group.truth)
    before = len(group.web.log())
    with Disk(group.place / "a0") as disk:
        counted = disk.facts["counters"]["pages"]
        assert disk.done(fetched(group)) == fetched(group)
    group.start("a0")
    verdict = group.end().judge()
    assert verdict.stats["duplicates"] == 0
    answered = [row for row in verdict.log[before:] if row["kind"] != "robots" and row["status"]]
    assert stat(verdict.logs["a0"], "ubi/pages") == counted + len(answered)


@faults
@SIGNALS
def test_four_agents_that_were_stopped_go_on_and_fetch_nothing_twice(make_group: MakeGroup, by: int) -> None:
    group = make_group(latency=0.05)
    group.start(*FOUR)
    group.until_served(0.3)
    group.stop_all(by)
    assert len(fetched(group)) < len(group.truth)
    counted = sum(one["pages"] for one in group.counters().values())
    before = len(group.web.log())
    group.start(*FOUR)
    verdict = group.end().judge()
    assert verdict.stats["duplicates"] == 0
    answered = [row for row in verdict.log[before:] if row["kind"] != "robots" and row["status"]]
    assert sum(one["pages"] for one in group.counters().values()) == counted + len(answered)


EXPECTS = "may come back with what they did last"


@faults
@pytest.mark.parametrize("emptied", [False, True])
def test_four_agents_that_were_stopped_and_come_back_one_after_the_other_fetch_nothing_twice(
    make_group: MakeGroup, emptied: bool
) -> None:
    """The first finds a Redis that is known, and the last words of the others; or an empty one, as with `scrapy ubi
    run`, and waits for those whom its disk knows."""
    group = make_group(latency=0.05, UBI_START_WAIT=0, UBI_LEASE_TIMEOUT=60, UBI_FAILURE_TIMEOUT=80)
    group.start_together(*FOUR)
    group.until_served(0.2)
    group.stop_all()
    if emptied:
        group.server.flush()
    group.start("a0")
    group.until(lambda: group.said("a0", EXPECTS), "that it waits for the others")
    group.start(*FOUR[1:])
    group.end().judge()


@faults
def test_who_was_stopped_with_others_and_comes_back_alone_waits_for_them_and_then_goes_on(
    make_group: MakeGroup,
) -> None:
    group = make_group(latency=0.05)
    group.start(*FOUR)
    group.until_served(0.2)
    group.stop_all()
    group.start("a0", UBI_START_WAIT=0)
    verdict = group.end()
    assert EXPECTS in verdict.logs["a0"]
    assert set(verdict.fetchers()) == group.truth


# -- over


@faults
def test_a_disk_that_missed_the_end_is_not_mixed_into_the_next_crawl(make_group: MakeGroup) -> None:
    """Neither when it is started alone afterwards, nor with the others."""
    group = make_group(latency=0.05, hosts=20, pages=200)
    group.start(*FOUR)
    group.until_served(0.3)
    group.kill("a1")
    group.end().judge(lost=["a1"])
    finished = "of this name is finished"
    group.web.reset()
    group.start("a1")  # it alone
    verdict = group.end().judge()
    assert finished in verdict.logs["a1"] and set(verdict.stats["agents"]) == {"a1"}
    group.web.reset()
    group.start(*FOUR)  # all of them, whose disks are of two crawls that are over
    verdict = group.end().judge()
    assert verdict.stats["duplicates"] == 0
    assert all("is finished: the directory is emptied" in log for log in verdict.logs.values())
    assert not any(GOES_ON in log for log in verdict.logs.values())


# -- what a request is


@faults
def test_what_was_known_of_requests_survives(make_group: MakeGroup) -> None:
    """Method, body, meta, cb_kwargs, priority, depth; what failed, and the counters."""
    group = make_group(latency=0.05, hosts=20, pages=300, **ALONE)
    host = group.web.graph.names[1]
    group.start("a0", spider="tracer", arguments={"forms": "40", "host": host})
    group.until(lambda: forms(group) >= 8, "some forms")
    group.until_served(0.2)
    left = kill(group, "a0")
    sent, before = forms(group), len(group.web.log())
    assert sent < 40
    with Disk(group.place / "a0") as disk:
        counted, seconds = disk.facts["counters"]["pages"], disk.facts["counters"]["seconds"]
    group.start("a0", spider="tracer", arguments={"seeds": ""})  # start() yields nothing: all is from the disk
    verdict = group.end().judge(unwritten=left)
    items = read_items(group, 1)
    answers = {item["form"]: item for item in items if "form" in item}
    resumed = [*answers]
    assert len(resumed) == forms(group) - sent and len(resumed) + sent >= 40
    assert sorted(resumed, key=lambda number: -(number % 5)) == resumed, "by priority"
    for number, item in answers.items():
        assert (item["method"], item["body"], item["type"]) == ("POST", f"form {number}", "text/plain")
        assert item["mark"] == {"number": number}
    pages = [item for item in items if "trail" in item]
    assert pages and all(item["depth"] == len(item["trail"]) - 1 > 0 for item in pages)
    ended = [row for row in verdict.log[before:] if row["kind"] != "robots" and row["status"]]
    assert stat(verdict.logs["a0"], "ubi/pages") == counted + len(ended)
    assert stat(verdict.logs["a0"], "ubi/seconds") > seconds
    with Disk(group.place / "a0") as disk:
        failed = {failure.entry.url.partition("#")[0] for failure in disk.frontier.failures()}
        assert disk.facts["finished"] is True
    assert {url for url in failed if "/private/" not in url} == {url for url in group.truth if "/gone/" in url}


@faults
def test_no_host_is_hurried_by_a_restart(make_group: MakeGroup) -> None:
    """The delay is longer than a restart takes, so that a forgotten one would be seen."""
    delay = 6
    group = make_group(latency=0.05, hosts=12, pages=24, UBI_HOST_DELAY=delay, **ALONE)
    group.start("a0")
    group.until(lambda: len(fetched(group)) >= 8, "some pages")
    left = kill(group, "a0")
    group.start("a0")
    verdict = group.end().judge(unwritten=left)
    last: dict[str, float] = {}
    for row in verdict.log:
        assert row["start"] - last.get(row["host"], -delay) >= delay, row
        last[row["host"]] = row["start"]


# -- damaged


@faults
def test_a_damaged_store_is_refused_once_and_the_crawl_begins_anew(make_group: MakeGroup) -> None:
    """Where nobody else holds a copy; never without a word."""
    group = make_group(latency=0.05, hosts=20, pages=200, **ALONE)
    group.start("a0")
    group.until_served(0.4)
    kill(group, "a0")
    said = refused_for_damage(group)
    assert "a crawl of one agent begins again" in said
    group.web.reset()
    group.start("a0")
    verdict = group.end().judge()
    assert GOES_ON not in verdict.logs["a0"]


@faults
def test_an_agent_whose_store_is_damaged_goes_on_with_what_others_hold(make_group: MakeGroup) -> None:
    group = make_group(latency=0.05, hosts=20, pages=200)
    group.start("a0", "a1")
    group.until_served(0.5)
    group.kill("a0", "a1")
    left = unwritten([group.place / "a1"], fetched(group))
    assert len(left) < len(fetched(group))
    refused_for_damage(group)
    group.start("a0", "a1")
    verdict = group.end().judge(unwritten=left)
    assert GOES_ON in verdict.logs["a1"] and GOES_ON not in verdict.logs["a0"]


def tear(group: Group, name: str, part: float) -> set[str]:
    """Leave so much of what the newest log of this agent's store holds, and garbage for the rest; the pages it fetched
    that are not done in the store then."""
    mine = {url for url, who in fetchers(group).items() if who == name}
    whole = unwritten([group.place / name], mine)
    store = group.place / name / "store"
    log = max([*store.glob("*.log"), *store.glob("*-wal")])
    content = log.read_bytes().rstrip(b"\0")
    kept = int(len(content) * part)
    log.write_bytes(content[:kept] + bytes(byte ^ 255 for byte in content[kept:]))
    left = unwritten([group.place / name], mine)
    assert whole < left, "pages that were done are not any more"
    print(f"torn: {len(left)} of the {len(mine)} pages of {name} are done no more")
    return left


TORN = "has lost what was written last"


@ENGINES
def test_an_agent_alone_whose_log_is_torn_goes_on_with_what_stands_before_the_tear(
    make_group: MakeGroup, engine: str
) -> None:
    group = make_group(latency=0.03, hosts=20, pages=200, UBI_STORE_ENGINE=engine, **ALONE)
    group.start("a0")
    group.until_served(0.6)
    group.kill("a0")
    left = tear(group, "a0", 0.6)
    group.start("a0")
    verdict = group.end().judge(unwritten=left)
    assert GOES_ON in verdict.logs["a0"] and TORN in verdict.logs["a0"]


@faults
@ENGINES
def test_one_of_two_whose_log_is_torn_is_brought_what_it_had_taken_since(make_group: MakeGroup, engine: str) -> None:
    """The other one holds copies of what was handed to it after the tear, and has counted on its."""
    group = make_group(latency=0.03, hosts=20, pages=200, UBI_FAILURE_TIMEOUT=60, UBI_STORE_ENGINE=engine)
    group.start("a0", "a1")
    group.until_served(0.6)
    group.kill("a1")
    left = tear(group, "a1", 0.9)
    group.start("a1")
    verdict = group.end().judge(unwritten=left)
    assert GOES_ON in verdict.logs["a1"] and TORN in verdict.logs["a1"]


@faults
@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_four_agents_with_one_torn_log_go_on_after_a_kill_of_all(make_group: MakeGroup, part: float) -> None:
    group = make_group(latency=0.03)
    group.start(*FOUR)
    group.until_served(0.5)
    group.kill(*FOUR)
    left = unwritten([group.place / name for name in FOUR], fetched(group)) | tear(group, "a2", part)
    group.start(*FOUR)
    verdict = group.end().judge(unwritten=left)
    assert TORN in verdict.logs["a2"]


def refused_for_damage(group: Group) -> str:
    """Break the table of contents of a0's store, and start a0; what it says."""
    store = group.place / "a0" / "store"
    contents = max([*store.glob("MANIFEST-*"), *store.glob("*.sqlite")])
    for log in store.glob("*-wal"):  # SQLite's pages in it would stand in for those of its file
        log.unlink()
    contents.write_bytes(contents.read_bytes()[:20])
    (group.place / "a0.log").rename(group.place / "killed.log")
    before = [row for row in group.web.log() if row["agent"] == "a0"]
    group.start("a0", LOG_LEVEL="WARNING")
    assert group.agents.pop("a0").popen.wait() == 1
    said = log_of(group, "a0")
    assert said.startswith("scrapy_ubi: ") and "is damaged" in said and said.count("\n") == 1, said
    (aside,) = (group.place / "a0").glob("damaged-*")
    assert str(aside) in said and (aside / "store").is_dir()
    assert [row for row in group.web.log() if row["agent"] == "a0"] == before
    return said


@faults
def test_without_its_index_of_known_urls_a_crawl_goes_on(make_group: MakeGroup) -> None:
    group = make_group(latency=0.05, hosts=20, pages=200, **ALONE)
    group.start("a0")
    group.until_served(0.4)
    left = kill(group, "a0")
    (group.place / "a0" / "seen").unlink()
    group.start("a0")
    verdict = group.end().judge(unwritten=left)
    assert "seen is missing: it is made again" in verdict.logs["a0"]


# -- settings


@faults
def test_settings_that_decide_where_urls_belong_may_not_change(make_group: MakeGroup) -> None:
    group = make_group(latency=0.05, hosts=20, pages=200)
    group.start("a0", "a1")
    group.until_served(0.3)
    left = kill(group, "a0", "a1")
    before = group.web.count()
    changes: dict[str, tuple[object, object]] = {
        "UBI_PARTITION": ("host", "domain"),
        "UBI_REPLICATION": (1, 2),
        "UBI_NORMALISE": ("scrapy", "larm"),
    }
    for setting, (old, new) in changes.items():
        log = group.place / "a0.log"
        log.unlink()
        group.start("a0", LOG_LEVEL="WARNING", **{setting: new})
        assert group.agents.pop("a0").popen.wait() == 1
        said = log.read_text()
        assert said.startswith("scrapy_ubi: The crawl in ") and said.count("\n") == 1, said
        assert (
            f"{setting} = {old!r}, now it is {new!r}" in said and "set it back" in said and "scrapy ubi reset" in said
        )
    assert group.web.count() == before
    group.start("a0", "a1")
    group.end().judge(unwritten=left)


# -- helpers


def log_of(group: Group, name: str) -> str:
    return (group.place / f"{name}.log").read_text(errors="replace")


def fetchers(group: Group) -> dict[str, str]:
    """Document -> who fetched it first."""
    found: dict[str, str] = {}
    for row in group.web.log():
        found.setdefault(f"http://{row['host']}{row['path']}", row["agent"])
    return {url: found[url] for url in fetched(group)}


def stat(log: str, name: str) -> float:
    """A figure of the last stats in a log."""
    return float(re.findall(rf"'{name}': ([\d.]+)", log)[-1])


def forms(group: Group) -> int:
    """How many forms the web has answered."""
    return sum(row["kind"] == "form" and row["status"] == 200 for row in group.web.log())


def read_items(group: Group, run: int) -> list[dict[str, Any]]:
    """The items of a0's process of that number, from 0."""
    return [json.loads(line) for line in (group.place / f"a0.{run}.jsonl").read_text().splitlines()]
