"""`scrapy ubi doctor`: each check says ok, or what is wrong and what to do."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_ubi.adapter.process.agent_directory import take_lock
from scrapy_ubi.cli.commands import doctor
from scrapy_ubi.errors import UbiError
from scrapy_ubi.transport.redis_keys import RedisKeys
from tests.support.server import Server


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor, "inside_project", lambda: True)
    monkeypatch.setattr("scrapy_ubi.cli.commands.project.inside_project", lambda: True)


def look(opts: dict[str, Any] | None = None, **settings: object) -> dict[str, list[doctor.Finding]]:
    """The findings by what was looked at."""
    given = Settings({"ADDONS": {"scrapy_ubi.Addon": 500}, "BOT_NAME": "bot", **settings})
    asked = argparse.Namespace(**{"spider": None, "crawl": None, "redis_url": None, **(opts or {})})
    report = doctor.run(given, asked)
    found: dict[str, list[doctor.Finding]] = {}
    for one in report.document["checks"]:  # type: ignore[union-attr]
        found.setdefault(one["about"], []).append(doctor.Finding(**one))
    return found


def states(found: dict[str, list[doctor.Finding]], about: str) -> set[str]:
    return {one.state for one in found.get(about, [])}


def texts(found: dict[str, list[doctor.Finding]], about: str) -> str:
    return " ".join(one.text for one in found.get(about, []))


def test_a_project_that_is_well_is_ok_throughout() -> None:
    found = look()
    assert {one.state for some in found.values() for one in some} == {"ok"}, found


def test_an_addon_that_is_not_on_is_wrong_and_one_that_is_off_is_looked_at() -> None:
    assert states(look(ADDONS={}), "add-on") == {"wrong"}
    assert states(look(UBI_ENABLED=False), "add-on") == {"look"}


def test_what_refuses_the_start_is_wrong_with_its_sentence() -> None:
    for settings in ({"SCHEDULER": "my.Scheduler"}, {"UBI_REPLICATION": -1}, {"UBI_NO_SUCH": 1}):
        found = look(**settings)
        assert "wrong" in states(found, "settings")
        assert next(iter(settings)) in texts(found, "settings")


def test_settings_that_are_passed_over_are_named() -> None:
    found = look(DUPEFILTER_CLASS="my.Filter")
    assert states(found, "settings") == {"look"}
    assert "DUPEFILTER_CLASS" in texts(found, "settings")


def test_a_directory_that_cannot_be_written_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert states(look(UBI_DIR=str(tmp_path / "d")), "directory") == {"wrong"}


def test_running_and_stopped_agents_of_this_directory_are_told_apart(tmp_path: Path) -> None:
    for name in ("a1", "a2"):
        place = tmp_path / "d" / name
        place.mkdir(parents=True)
        (place / "agent.json").write_text(f'{{"agent": "{name}", "crawl": "c"}}')
    lock = take_lock(tmp_path / "d" / "a1", "")
    try:
        said = texts(look(UBI_DIR=str(tmp_path / "d"), UBI_CRAWL="c"), "agents")
    finally:
        lock.release()
    assert "running: a1" in said
    assert "used again at the next start: 1" in said


def test_a_redis_that_is_away_is_wrong() -> None:
    found = look(UBI_REDIS_URL="redis://127.0.0.1:1/0")
    assert states(found, "Redis") == {"wrong"}
    assert "127.0.0.1:1" in texts(found, "Redis")


def test_a_redis_is_looked_at_and_left_as_it_was(server: Server) -> None:
    found = look(UBI_REDIS_URL=server.url, UBI_CRAWL="c")
    assert states(found, "Redis") == states(found, "rights") == states(found, "clock") == {"ok"}
    assert "has not begun" in texts(found, "crawl")
    assert server.client().dbsize() == 0


@pytest.mark.parametrize("given", [{}, {"UBI_MAIL_SLOTS": 1}, {"UBI_MAIL_SLOTS": "x"}])
def test_rights_are_asked_for_the_mail_slots_that_the_agents_of_the_crawl_have(
    server: Server, given: dict[str, object]
) -> None:
    client = server.client()
    client.execute_command("ACL", "SETUSER", "few", "on", ">secret", "~ubi:{c}:*", "~ubi:watched", "+@all")
    client.hset(RedisKeys("c").agents, "a1", '{"agent":"a1","mail_slots":3,"state":"crawling"}')
    url = server.url.replace("//", "//few:secret@")
    try:
        found = look(UBI_REDIS_URL=url, UBI_CRAWL="c", **given)
    finally:
        client.execute_command("ACL", "DELUSER", "few")
    assert states(found, "rights") == {"wrong"}
    assert "XADD" in texts(found, "rights")


def test_a_redis_that_throws_keys_away_is_looked_at(server: Server) -> None:
    client = server.client()
    client.config_set("maxmemory", "200mb")
    client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        found = look(UBI_REDIS_URL=server.url)
    finally:
        client.config_set("maxmemory", "0")
        client.config_set("maxmemory-policy", "noeviction")
    assert states(found, "eviction") == {"look"}
    assert "noeviction" in texts(found, "eviction")


def test_a_spider_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UbiError, match="no spider 'x'"):
        look({"spider": "x"})


def test_what_a_server_does_not_know_is_named_with_the_commands() -> None:
    for missing, said in ((("EVAL", "XADD"), "EVAL, XADD"), (("SETRANGE",), "SETRANGE")):
        with Server("valkey", options=[word for name in missing for word in ("--rename-command", name, "")]) as server:
            found = look(UBI_REDIS_URL=server.url, UBI_CRAWL="c")
        assert states(found, "commands") == {"wrong"}
        assert f"does not know what agents need: {said}." in texts(found, "commands")
    with Server("valkey", options=("--rename-command", "XAUTOCLAIM", "")) as server:
        found = look(UBI_REDIS_URL=server.url, UBI_CRAWL="c")
    assert states(found, "commands") == {"ok", "look"}
    assert "URLs from outside (UBI_SERVE) need: XAUTOCLAIM." in texts(found, "commands")
