"""Starts that are refused: one sentence, exit status 1, and the web has not been asked for anything."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from tests.faults.conftest import MakeGroup
from tests.support.group import LIMIT
from tests.support.server import Server, free_port

pytestmark = pytest.mark.processes


def test_settings_and_servers_that_cannot_be_used_are_refused(make_group: MakeGroup) -> None:
    group = make_group(LOG_LEVEL="WARNING")
    with Server(make_group.server.kind, options=("--requirepass", "secret")) as locked:
        group.start("unknown", UBI_AGENT_CAPACTIY=2)
        group.start("negative", UBI_AGENT_CAPACITY=-1)
        group.start("locked", UBI_REDIS_URL=locked.url)
        group.start("away", UBI_REDIS_URL=f"redis://127.0.0.1:{free_port()}/0", UBI_REDIS_WAIT=1)
        verdict = group.end()
    assert verdict.exits == dict.fromkeys(verdict.exits, 1), verdict.logs
    for said in verdict.logs.values():
        assert said.startswith("scrapy_ubi: ") and said.count("\n") == 1, said
    words = {
        "unknown": ["UBI_AGENT_CAPACTIY", "did you mean UBI_AGENT_CAPACITY"],
        "negative": ["UBI_AGENT_CAPACITY", "-1"],
        "locked": ["UBI_REDIS_URL", "password"],
        "away": ["UBI_REDIS_URL", "refused"],
    }
    for name, expected in words.items():
        assert all(word in verdict.logs[name] for word in expected), verdict.logs[name]
    assert group.web.count() == 0


@pytest.mark.parametrize("copied", [False, True])
def test_a_second_process_of_one_identifier_is_refused_and_the_first_goes_on(
    make_group: MakeGroup, copied: bool
) -> None:
    """Also in a copy of the directory in which the first one runs."""
    group = make_group(latency=0.1, hosts=20, pages=200, UBI_START_WAIT=0, UBI_ROBOTS_TIMEOUT=LIMIT)
    group.start("a0")
    group.until_served(0.05)
    if copied:
        group.pause("a0")  # else files come and go while they are copied
        shutil.copytree(group.agents["a0"].directory, group.place / "elsewhere")
        group.resume("a0")
    elsewhere = {"UBI_DIR": group.place / "elsewhere", "USER_AGENT": "second", "LOG_LEVEL": "WARNING"}
    with group.web.held():  # the first one is at work until the second has ended
        group.start("second", UBI_AGENT_ID="a0", **elsewhere)
        group.until_ended("second")
    refused = group.agents.pop("second")
    said = refused.log.read_text()
    assert refused.popen.returncode == 1, said
    assert said.startswith("scrapy_ubi: Another process lives as agent a0") and said.count("\n") == 1, said
    assert "UBI_AGENT_ID" in said
    verdict = group.end().judge()
    assert set(verdict.stats["agents"]) == {"a0"}


@pytest.mark.faults  # tests/agent/test_redis.py has the same rule in one process
def test_a_process_that_wakes_when_another_has_its_identifier_stops_and_that_one_goes_on(make_group: MakeGroup) -> None:
    group = make_group(latency=0.3, hosts=30)
    group.start("a0", "a1", "a2")
    group.until_served(0.08)
    group.pause("a1")
    group.until_replaced("a1")
    group.start("second", UBI_AGENT_ID="a1")
    group.until(lambda: "second" in group.web.stats()["agents"], "a page fetched by the second")
    group.resume("a1")
    group.until_ended("a1")
    woken = group.agents.pop("a1")
    stopped = woken.log.read_text()
    assert woken.popen.returncode == 1
    assert "Another process lives as agent a1" in stopped
    assert "Closing spider (ubi_stopped)" in stopped
    group.end().judge(lost=["a1"])
    assert group.counters()["a1"]["rejoins"] == 0


@pytest.mark.parametrize("paused", [False, True])
def test_a_line_of_a_former_life_stops_nobody(make_group: MakeGroup, paused: bool) -> None:
    """As a Redis has it that comes back from its file."""
    group = make_group(latency=0.2, hosts=30, pages=240)
    group.start("a0", "a1")
    group.until_served(0.05)
    if paused:
        group.pause("a1")
        count = group.beats()["a0"].counter
        group.until(lambda: group.beats()["a0"].counter > count + 4, "some beats")
    beat = group.beats()["a1"]
    with group.server.client() as client:
        together = client.pipeline(transaction=False)  # a server reads it in one go; SAVE is refused in transactions
        together.hset(group.keys.beats, "a1", replace(beat, incarnation="0" * 8).line(beat.counter))
        together.save()
        together.execute()
    group.server.kill()
    try:
        group.server.start()
    finally:
        group.server.forget_file()
    if paused:
        group.resume("a1")
    group.until(lambda: group.beats()["a1"].incarnation != "0" * 8, "a beat over it")
    group.end().judge(lost=["a1"] if paused else [])
    assert group.counters()["a1"]["rejoins"] == 0
