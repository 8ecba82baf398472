"""`collect warc`: each page once, revisits that do not refer to what was removed, and tails that are cut."""

from __future__ import annotations

import json
import random
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.settings import Settings
from warcio.archiveiterator import ArchiveIterator

from scrapy_ubi.cli.commands import collect as command
from scrapy_ubi.outputs.collector import find_outputs
from scrapy_ubi.outputs.part_files import OPEN
from scrapy_ubi.outputs.part_writer import Bundle
from scrapy_ubi.outputs.stores import Page
from scrapy_ubi.outputs.warc import members
from scrapy_ubi.outputs.warc.met import NOT_MODIFIED
from scrapy_ubi.outputs.warc.warc_collector import WarcCollector, index_of
from scrapy_ubi.outputs.warc.warc_store import WarcStore
from scrapy_ubi.outputs.writer import ROW
from tests.outputs.kept import Kept
from tests.outputs.test_warc import check, records
from tests.support.memory_store import MemoryStore

SAME = b"the same on two pages " * 100


class Warcs(Kept):
    """An agent that keeps pages as WARC."""

    def __init__(
        self,
        directory: Path,
        rows: MemoryStore | None = None,
        agent: str = "a",
        settings: dict[str, Any] | None = None,
        **arguments: str,
    ) -> None:
        super().__init__(directory, rows, agent)
        self._arguments = arguments
        self.warc = self._store(settings or {})

    def _store(self, settings: dict[str, Any]) -> WarcStore:
        return WarcStore({name: (value,) for name, value in self._arguments.items()}, Settings(settings))

    def recrawls(self) -> None:
        """Pages will be visited again."""
        self.warc = self._store({"UBI_RECRAWL": "every(1s)"})

    def not_modified(self, number: int) -> None:
        """A second visit of a page: 304."""
        request = Request(f"http://h{number % 7}.example/p{number}")
        came = Response(request.url, status=304)
        page = Page(f"{number:016x}~2", 0, "ok", request, received=came, began=1.8e9, visit=2, unchanged=True)
        self.writer.put([Bundle(self.warc, page.name, 0, "ok", self.warc.page(page), 0)])

    def fetched(self, number: int, body: bytes, attempt: int = 0, kind: str = "ok") -> None:
        request = Request(f"http://h{number % 7}.example/p{number}")
        came = HtmlResponse(request.url, body=body, headers={"Content-Type": "text/html"}, encoding="utf-8")
        page = Page(f"{number:016x}", attempt, kind, request, received=came, response=came, began=1.7e9 + number)
        self.writer.put([Bundle(self.warc, page.name, attempt, kind, self.warc.page(page), len(body))])

    @property
    def warcs(self) -> list[Path]:
        return sorted((self.directory / "out/warc").glob("*.warc.gz*"))


def collected(output: Path, *directories: Path) -> WarcCollector:
    collector = WarcCollector(find_outputs(directories), output)
    with output.open("wb") as file:
        collector.collect(file)
    collector.place_beside()
    return collector


def lines(warc: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Each line of the index, and the bytes that it points to."""
    data = warc.read_bytes()
    for line in index_of(warc).read_text().splitlines():
        fields = json.loads(line.split(" ", 2)[2])
        yield fields, data[int(fields["offset"]) :][: int(fields["length"])]


def test_each_page_once(tmp_path: Path) -> None:
    one, other = Warcs(tmp_path / "a", size="3000"), Warcs(tmp_path / "b", agent="b")
    for number in range(40):
        one.fetched(number, b"page %d" % number * 50)
        if number % 3 == 0:
            other.fetched(number, b"page %d" % number * 50)
            one.flush()
    for kept in (one, other):
        kept.flush()
        kept.close()
    assert len(one.warcs) > 3
    collector = collected(tmp_path / "all.warc.gz", tmp_path / "a", tmp_path / "b")
    assert (collector.tally.pages, collector.tally.doubles) == (40, 14)
    check(tmp_path / "all.warc.gz")
    kinds = Counter(found.kind for found in records(tmp_path / "all.warc.gz"))
    assert kinds == {"warcinfo": 1, "response": 40, "request": 40, "metadata": 40}
    urls = Counter(fields["url"] for fields, _ in lines(tmp_path / "all.warc.gz"))
    assert set(urls.values()) == {1} and len(urls) == 40


@pytest.mark.parametrize("attempt", [0, 1])
def test_a_revisit_of_what_was_removed_is_a_response_again(tmp_path: Path, attempt: int) -> None:
    """Agent b has page 1 as well; where its attempt counts, page 2 of agent a has lost what it refers to."""
    one, other = Warcs(tmp_path / "a"), Warcs(tmp_path / "b", agent="b")
    one.fetched(1, SAME)
    one.fetched(2, SAME)
    other.fetched(1, SAME, attempt=attempt)
    for kept in (one, other):
        kept.flush()
        kept.close()
    assert Counter(found.kind for found in records(one.warcs[0]))["revisit"] == 1
    collected(tmp_path / "all.warc.gz", tmp_path / "a", tmp_path / "b")
    check(tmp_path / "all.warc.gz")
    found = records(tmp_path / "all.warc.gz")
    ids = {one.head["WARC-Record-ID"] for one in found}
    kinds = Counter(one.kind for one in found)
    assert kinds["response"] == 1 + attempt and kinds["revisit"] == 1 - attempt
    assert all(one.head["WARC-Refers-To"] in ids for one in found if one.kind == "revisit")
    assert all(one.body == SAME for one in found if one.kind == "response")
    for fields, data in lines(tmp_path / "all.warc.gz"):
        (record,) = ArchiveIterator(BytesIO(data))
        assert record.rec_headers["WARC-Target-URI"] == fields["url"]
        assert (fields["mime"] == "warc/revisit") == (record.rec_type == "revisit")


def test_a_page_not_modified_names_the_record_that_has_it_or_none(tmp_path: Path) -> None:
    """Agent a has page 1, and visits it again; agent b got page 2 from another one, and where b's attempt at page 1
    counts, the visit of a has lost what it refers to."""
    one, other = Warcs(tmp_path / "a"), Warcs(tmp_path / "b", agent="b")
    one.recrawls()
    other.recrawls()
    one.fetched(1, SAME)
    one.not_modified(1)
    other.not_modified(2)
    other.fetched(1, SAME, attempt=1)
    for kept in (one, other):
        kept.flush()
        kept.close()
    (here,) = (found for found in records(one.warcs[0]) if found.kind == "revisit")
    (there,) = (found for found in records(other.warcs[0]) if found.kind == "revisit")
    (first,) = (found for found in records(one.warcs[0]) if found.kind == "response")
    assert here.head["WARC-Refers-To"] == first.head["WARC-Record-ID"]
    assert not any(name.startswith("WARC-Refers") for name in there.head)
    collected(tmp_path / "all.warc.gz", tmp_path / "a", tmp_path / "b")
    check(tmp_path / "all.warc.gz")
    found = [one for one in records(tmp_path / "all.warc.gz") if one.kind == "revisit"]
    assert len(found) == 2 and {one.head["WARC-Profile"] for one in found} == {NOT_MODIFIED}
    assert not any(name.startswith("WARC-Refers") for one in found for name in one.head)


def test_the_file_says_what_the_warcinfo_of_its_parts_said(tmp_path: Path) -> None:
    one = Warcs(tmp_path / "a", settings={"USER_AGENT": "walker/1 (+http://w.example)", "ROBOTSTXT_OBEY": True})
    other = Warcs(tmp_path / "b", agent="b", settings={"USER_AGENT": "other/2", "ROBOTSTXT_OBEY": True})
    for number, kept in enumerate((one, other)):
        kept.fetched(number, b"x")
        kept.flush()
        kept.close()
    collected(tmp_path / "all.warc.gz", tmp_path / "a", tmp_path / "b")
    (info,) = (one for one in records(tmp_path / "all.warc.gz") if one.kind == "warcinfo")
    said = dict(line.split(": ", 1) for line in info.body.decode().splitlines())
    assert said["http-header-user-agent"] == "walker/1 (+http://w.example), other/2"
    assert said["robots"] == "obey" and said["software"].startswith("scrapy-ubi/") and "conformsTo" in said
    assert said["description"] == "collected from the parts of a, b"


def test_a_file_cut_at_every_byte_of_its_tail_leaves_whole_members(tmp_path: Path) -> None:
    kept = Warcs(tmp_path / "a", request="no", metadata="no")
    for number in range(3):
        kept.fetched(number, b"done %d" % number)
    kept.flush()
    kept.fetched(3, b"not done")
    kept.written()
    (path,) = kept.warcs
    assert path.name.endswith(OPEN)
    files = {file: file.read_bytes() for file in (tmp_path / "a/out").rglob("*.*")}
    text = kept.rows.get(ROW)
    assert text is not None
    (end,) = (size for name, size in json.loads(text)["files"].items() if name.endswith("warc.gz"))
    whole = files[path]
    assert end < len(whole)
    for cut in range(end, len(whole) + 1):
        for file, data in files.items():
            file.write_bytes(whole[:cut] if file == path else data)
        if cut % 40 == 0:  # before a start has repaired it
            collector = collected(tmp_path / "all.warc.gz", tmp_path / "a")
            assert collector.tally.pages == (4 if cut == len(whole) else 3)
        (sealed,) = Warcs(tmp_path / "a", kept.rows).warcs
        assert sealed.stat().st_size == end
        assert [one.kind for one in members.records(sealed.read_bytes())] == ["warcinfo"] + ["response"] * 3
        for file in (tmp_path / "a/out/warc").iterdir():
            file.unlink()


def test_a_thousand_random_lines_read_the_right_record(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    dice = random.Random(seed)
    kept = Warcs(tmp_path / "a", size="200000")
    for number in range(1100):
        bodies = [b"", SAME, dice.randbytes(dice.randrange(2000)), b"x" * dice.randrange(3000)]
        kept.fetched(number, dice.choice(bodies))
        if dice.random() < 0.05:
            kept.flush()
    kept.flush()
    kept.close()
    collected(tmp_path / "all.warc.gz", tmp_path / "a")
    check(tmp_path / "all.warc.gz")
    found = list(lines(tmp_path / "all.warc.gz"))
    assert len(found) == 1100
    for fields, data in dice.sample(found, 1000):
        (record,) = ArchiveIterator(BytesIO(data))
        assert record.rec_headers["WARC-Target-URI"] == fields["url"]
        assert record.rec_headers["WARC-Payload-Digest"] == fields["digest"]
    for path in kept.warcs:
        text = index_of(path).read_bytes().splitlines()
        assert text == sorted(text)


def test_the_command_writes_the_file_and_its_index(tmp_path: Path) -> None:
    kept = Warcs(tmp_path / "a")
    kept.fetched(1, SAME)
    kept.flush()
    kept.close()
    output = tmp_path / "all.warc.gz"
    opts = Namespace(kind="warc", output=str(output), dir=[str(tmp_path / "a")], run=None, crawl=None, latest=False)
    report = command.run(Settings(), opts)
    assert report.document["pages"] == 1
    check(output)
    assert len(list(lines(output))) == 1
    assert sorted(path.name for path in tmp_path.glob("all*")) == ["all.cdxj", "all.warc.gz"]
