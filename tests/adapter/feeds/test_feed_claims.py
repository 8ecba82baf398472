"""An agent's feeds: whose name is whose, what a crash would cost, and items that outlast the process."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from scrapy_ubi.adapter.feeds import feed_claims
from scrapy_ubi.adapter.feeds.feed_claims import FeedClaims, lock_place, mend
from scrapy_ubi.adapter.feeds.feed_params import FeedParams
from scrapy_ubi.adapter.scrapy_private.feed_slots import FeedSlots
from scrapy_ubi.agent.crawl.disk import AgentDisk
from scrapy_ubi.errors import UbiRefused
from scrapy_ubi.protocol.snapshot import Changes
from scrapy_ubi.settings import UbiSettings
from tests.support.crawls import crawl
from tests.support.site import Site, links

HOST = "http://h1.example"
PATIENT = {"format": "jsonlines"}
LINES = {"format": "jsonlines", "encoding": None}
CSV = {"format": "csv", "encoding": "utf-8"}


class Feeding(Spider):
    name = "feeding"
    kind = "all"


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))


class Claims:
    """The feeds of one agent of its own, with this name."""

    def __init__(self, feeds: Mapping[Any, Any], agent: str = "a1", shared: bool = False, alone: bool = False) -> None:
        # Scrapy takes the format from the name since 2.19 only.
        feeds = {uri: {"format": str(uri).rpartition(".")[2], **options} for uri, options in feeds.items()}
        settings = {"FEEDS": feeds, "FEED_URI_PARAMS": FeedParams()}
        storages = {"remote": "tests.adapter.feeds.test_feed_claims.Remote"}
        self.crawler = get_crawler(Feeding, {**settings, "FEED_STORAGES": storages})
        self.spider = Feeding()
        times = {"time": "now", "batch_time": "now"}
        scheduler = SimpleNamespace(agent_id=agent, settings=UbiSettings(), feed_times=times)
        slot = SimpleNamespace(scheduler=scheduler)  # where it is before Scrapy 2.19
        self.spider.crawler = mock.Mock(engine=SimpleNamespace(scheduler=scheduler, _slot=slot))
        self.claims = FeedClaims(self.crawler, shared, alone)
        self.claims.claim(self.spider)


class Remote:
    """A storage somewhere else."""

    def __init__(self, uri: str, *, feed_options: object = None) -> None:
        pass


# -- names


def test_a_second_agent_on_the_machine_is_refused(tmp_path: Path) -> None:
    first = Claims({"items.jsonl": {}})
    with pytest.raises(UbiRefused, match=rf"The feed '.*items.jsonl'.*process {os.getpid()}.*%\(ubi_agent\)s"):
        Claims({f"file://{tmp_path}/items.jsonl": {}}, "a2")
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"], "no litter beside the user's files"
    first.crawler.signals.send_catch_log(signals.engine_stopped)
    Claims({"items.jsonl": {}}, "a2")


def test_what_was_locked_before_a_refusal_is_let_go() -> None:
    first = Claims({"b.jl": {}})
    with pytest.raises(UbiRefused):
        Claims({"a.jl": {}, "b.jl": {}})
    second = Claims({"a.jl": {}})
    assert first is not second


@pytest.mark.parametrize(
    ("name", "apart"),
    [
        ("%(ubi_agent)s.jl", True),
        ("%(name)s.jl", False),
        ("%(kind)s.jl", False),
        ("%(time)s.jl", False),
        ("%(batch_id)d-%(time)s.jl", False),
        ("stdout:", True),
        ("/dev/null", True),
    ],
)
def test_names_that_keep_agents_apart(name: str, apart: bool) -> None:
    options = {"batch_item_count": 10 if "batch" in name else 0, **PATIENT}
    first = Claims({name: options})
    try:
        Claims({name: options}, "a2")
        refused = False
    except UbiRefused:
        refused = True
    assert refused != apart
    assert first


def test_agents_that_may_share_a_feed_are_not_refused(caplog: pytest.LogCaptureFixture) -> None:
    first = Claims({"x.jl": {}})
    second = Claims({"x.jl": {}, "remote://h/x.jl": {"batch_item_count": 0}}, "a2", shared=True)
    assert first and second
    assert "is written by" not in caplog.text


def test_crawls_without_redis_are_warned_only(caplog: pytest.LogCaptureFixture) -> None:
    first, second = Claims({"x.jl": {}}, alone=True), Claims({"x.jl": {}}, alone=True)
    assert first and second
    assert "also written by another process" in caplog.text


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("remote://me:secret@h/%(name)s-%(time)s.jl", True),
        ("remote://h/%(kind)s.jl", True),
        ("remote://h/%(ubi_agent)s.jl", False),
    ],
)
def test_a_remote_feed_of_one_name_is_refused_for_the_first_agent_too(name: str, refused: bool) -> None:
    assert Claims({name: PATIENT}, alone=True)
    if not refused:
        assert Claims({name: PATIENT})
        return
    with pytest.raises(UbiRefused, match=r"remote://h/.*UBI_SHARED_FEEDS = True") as error:
        Claims({name: PATIENT})
    assert "secret" not in str(error.value)


def test_a_function_of_the_users_makes_names_of_its_own() -> None:
    own = FeedParams(lambda params, spider: {**params, "kind": params["ubi_agent"]})
    for agent in ("a1", "a2"):
        assert Claims({"remote://h/%(kind)s.jl": {**PATIENT, "uri_params": own}}, agent)


def test_a_machine_on_which_nothing_can_be_locked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "temporary").rmdir()
    (tmp_path / "temporary").write_text("in the way")
    assert Claims({"x.jl": {}})
    assert "cannot be seen whether another agent writes the feed 'x.jl'" in caplog.text


def test_locks_are_not_made_where_others_may_write(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """They could put a link there, in the place of a lock."""
    place = lock_place(tmp_path / "x.jl").parent.parent
    place.mkdir()
    place.chmod(0o777)
    assert Claims({"x.jl": {}})
    assert "another user may write there" in caplog.text and not list(place.iterdir())


def test_the_lock_is_of_the_file_however_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    first = Claims({"there/x.jl": {}})
    assert first and lock_place(tmp_path / "there/x.jl").is_dir()
    with pytest.raises(UbiRefused):
        Claims({"link/x.jl": {}})


# -- what a crash costs


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("x.jl", {}, ""),
        ("x.csv", {"batch_item_count": 0}, ""),
        ("remote://h/x.jl", {}, "temporary file until the spider closes"),
        ("remote://h/%(batch_id)d.jl", {"batch_item_count": 10}, "temporary file until the spider closes"),
        ("remote://h/%(batch_time)s.jl", {"batch_item_count": 10}, ""),
        ("x.jl", {"postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]}, "compressed"),
    ],
)
def test_what_a_crash_would_cost_is_said_at_the_start(
    name: str, options: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert Claims({name: options}, alone=True)
    sentences = [record.getMessage() for record in caplog.records if "should this process crash" in record.getMessage()]
    assert len(sentences) == bool(said)
    assert not said or (said in sentences[0] and "FEED_EXPORT_BATCH_ITEM_COUNT" in sentences[0])


@pytest.mark.parametrize(
    ("name", "options", "lost"),
    [
        ("x.jl", {"overwrite": True}, True),
        ("x.jl", {}, False),
        ("%(time)s.jl", {"overwrite": True}, False),
        ("remote://h/x.jl", {}, True),
        ("remote://h/%(time)s.jl", {}, False),
    ],
)
def test_a_feed_that_begins_anew_while_the_crawl_goes_on_is_named(
    name: str, options: dict[str, Any], lost: bool, caplog: pytest.LogCaptureFixture
) -> None:
    Path("x.jl").write_text("{}\n")
    agent = Claims({name: options}, alone=True)
    agent.claims.goes_on(agent.spider)
    assert ("begins again" in caplog.text) == lost


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("x.json", {"format": "json"}, True),
        ("x.json", {"format": "xml"}, True),
        ("x.json", {"format": "jsonlines"}, False),
        ("x.json", {"format": "json", "overwrite": True}, False),  # begins again
        ("x-%(time)s.json", {"format": "json"}, False),
        ("none.json", {"format": "json"}, False),
    ],
)
def test_a_feed_that_is_one_document_and_is_appended_to_is_named(
    name: str, options: dict[str, Any], said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    Path("x.json").write_text('[\n{"a": 1}')
    agent = Claims({name: options}, alone=True)
    agent.claims.goes_on(agent.spider)
    assert ("cannot be read as one" in caplog.text) == said


# -- items before done marks


class Slow:
    """A pipeline that takes its time."""

    async def process_item(self, item: Any) -> Any:
        await asyncio.sleep(0.01)
        return item


class Walk(Spider):
    name = "walk"

    async def start(self) -> Any:
        for number in range(20):
            yield Request(f"http://h{number}.example/")

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}
        yield from response.follow_all(css="a")  # type: ignore[attr-defined]


@pytest.mark.parametrize("lean", [True, False])
@pytest.mark.parametrize("pipelines", [{}, {Slow: 1}], ids=["", "slow"])
@pytest.mark.parametrize("options", [{}, {"batch_item_count": 7}], ids=["", "batches"])
def test_what_is_done_on_the_disk_has_its_item_in_the_file(
    site: Site, tmp_path: Path, lean: bool, pipelines: dict[Any, int], options: dict[str, Any]
) -> None:
    for number in range(20):
        site.page(f"http://h{number}.example/", links("/1", "/2"))
        site.page(f"http://h{number}.example/1")
        site.page(f"http://h{number}.example/2")
    looks: list[tuple[int, int]] = []
    collect = AgentDisk.collect

    def looked(keeper: AgentDisk, changes: Changes, facts: Mapping[str, Any] | None) -> None:
        done = sum(state.done_count for state in keeper.frontier.states())
        files = tmp_path.glob("*.jl")
        looks.append((done, sum(1 for file in files for line in file.read_text().splitlines() if json.loads(line))))
        collect(keeper, changes, facts)

    async def heard(item: Any) -> None:
        await asyncio.sleep(0.005)

    def listen(crawlers: list[Crawler]) -> None:
        crawlers[0].signals.connect(heard, signals.item_scraped, weak=False)

    name = str(tmp_path / ("%(batch_id)d.jl" if options else "items.jl"))
    settings = {"FEEDS": {name: {**PATIENT, **options}}, "UBI_LEAN": lean, "ITEM_PIPELINES": pipelines}
    with mock.patch.object(AgentDisk, "collect", looked):
        crawl(Walk, site.proxy, settings=settings, with_crawlers=listen)
    assert looks[-1] == (60, 60)
    assert all(done <= items for done, items in looks), looks
    assert len({done for done, _ in looks}) > 3, "it was looked at in the middle"


def test_a_feed_that_cannot_be_flushed_is_named() -> None:
    agent = Claims({"x.jl": {}})
    assert agent.claims.flush() == ""
    broken = mock.Mock(side_effect=OSError(28, "No space left on device", "file:///x.jl"))
    with mock.patch.object(FeedSlots, "flush", broken):
        assert agent.claims.flush().startswith("The feed 'file:///x.jl' cannot be written (No space left on device)")


# -- torn files


def test_what_a_killed_process_left_is_cut_off_before_the_next_item(site: Site, tmp_path: Path) -> None:
    site.page("http://h0.example/")
    (tmp_path / "items.jl").write_text('{"url": "whole"}\n{"url": "to')
    crawl(Walk, site.proxy, settings={"FEEDS": {str(tmp_path / "items.jl"): PATIENT}})
    urls = [json.loads(line)["url"] for line in (tmp_path / "items.jl").read_text().splitlines()]
    assert urls == ["whole", "http://h0.example/"]


def mended(path: Path, content: bytes, options: dict[str, object]) -> bytes:
    path.write_bytes(content)
    mend(path, options)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (b'{"a": 1}\n', b'{"a": 1}\n'),
        (b'{"a": 1}\n{"b": ', b'{"a": 1}\n'),
        (b'{"a": 1}\n{"b": 2}', b'{"a": 1}\n{"b": 2}\n'),
        (b'{"a": 1}\n12', b'{"a": 1}\n'),
        (b'{"a": ', b""),
    ],
)
def test_lines(tmp_path: Path, before: bytes, after: bytes) -> None:
    assert mended(tmp_path / "f", before, LINES) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a,b\r\n1,2\r\n", b"a,b\r\n1,2\r\n"),
        (b"a,b\r\n1,", b"a,b\r\n"),
        (b'a,b\r\n1,"two\r\nlin', b"a,b\r\n"),
        (b'a,b\r\n1,"two\r\n', b"a,b\r\n"),
        (b'a,b\r\n1,"two\r\nlines"\r\n', b'a,b\r\n1,"two\r\nlines"\r\n'),
        (b'a,b\r\n1,"say ""x""\n', b"a,b\r\n"),
    ],
)
def test_rows(tmp_path: Path, before: bytes, after: bytes) -> None:
    assert mended(tmp_path / "f", before, CSV) == after


@given(st.lists(st.lists(st.text(max_size=6), min_size=2, max_size=3), max_size=6), st.integers(0, 80), st.data())
def test_wherever_it_is_torn_whole_rows_stay(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], size: int, data: st.DataObject
) -> None:
    """However small the pieces are in which the file is read."""
    stream = io.StringIO(newline="")
    writer, ends = csv.writer(stream), [0]
    for row in rows:
        writer.writerow(row)
        ends.append(len(stream.getvalue().encode("utf-8", "replace")))
    content = stream.getvalue().encode("utf-8", "replace")[:size]
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    with mock.patch.object(feed_claims, "CHUNK", data.draw(st.integers(1, 9))):
        found = mended(path, content, CSV)
    whole = max(end for end in ends if end <= len(content))
    assert content.startswith(found) and len(found) >= whole, "no whole row is cut off"
    assert found == b"" or found.endswith(b"\n")
    assert found.count(b'"') % 2 == 0


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=5)), max_size=5), st.integers(0, 90))
def test_wherever_it_is_torn_whole_lines_stay(
    tmp_path_factory: pytest.TempPathFactory, items: list[dict[str, str]], size: int
) -> None:
    content = "".join(f"{json.dumps(item)}\n" for item in items).encode()[:size]
    with mock.patch.object(feed_claims, "CHUNK", 7):
        found = mended(tmp_path_factory.getbasetemp() / "lines.jl", content, LINES)
    assert [json.loads(line) for line in found.splitlines()] == items[: found.count(b"\n")]
    assert content.count(b"\n") <= found.count(b"\n") <= content.count(b"\n") + 1


@pytest.mark.parametrize(
    "options",
    [
        {"format": "xml"},
        {"format": "json"},
        {"format": "jsonlines", "encoding": "utf-16"},
        {"format": "jsonlines", "encoding": "no such"},
        {"format": "jsonlines", "postprocessing": ["gzip"]},
        {"format": "csv", "item_export_kwargs": {"quotechar": "'"}},
    ],
)
def test_what_is_not_known_line_by_line_is_left_alone(tmp_path: Path, options: dict[str, object]) -> None:
    assert mended(tmp_path / "f", b'x\n"torn', options) == b'x\n"torn'


def test_there_need_be_no_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mend(tmp_path / "none", LINES)
    mend(tmp_path, LINES)
    assert not caplog.records


def test_a_file_that_cannot_be_mended_is_left_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "f").write_bytes(b"torn")
    with mock.patch.object(Path, "open", side_effect=PermissionError(13, "Permission denied")):
        mend(tmp_path / "f", LINES)
    assert "cannot be looked at (Permission denied)" in caplog.text
