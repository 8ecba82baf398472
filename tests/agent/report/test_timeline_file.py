"""The timeline's file: torn tails, beginning again, writing again what has become long."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_ubi.agent.report import timeline_file
from scrapy_ubi.agent.report.timeline import Event, Sample, Timeline, line_of
from scrapy_ubi.agent.report.timeline_file import NEW, TIMELINE, TimelineFile, read_timeline

NOW = 1_800_000_000


def lines(*times: int) -> list[str]:
    return [line_of(Sample(NOW + at, pages=at)) for at in times]


def pages(directory: Path) -> list[int]:
    return [sample.pages for sample in read_timeline(directory, NOW + 1000)[0].samples]


def test_what_is_appended_is_there_after_a_restart(tmp_path: Path) -> None:
    file = TimelineFile(tmp_path)
    assert len(file.open_timeline(NOW, new=False)) == 0
    file.append(lines(1, 2))
    file.append([line_of(Event(NOW + 3, "dead", "a2"))])
    again = TimelineFile(tmp_path).open_timeline(NOW + 100, new=False)
    assert [sample.pages for sample in again.samples] == [1, 2]
    assert again.events == [Event(NOW + 3, "dead", "a2")]


def test_a_torn_line_is_passed_over_and_the_next_one_is_whole(tmp_path: Path) -> None:
    file = TimelineFile(tmp_path)
    file.append(lines(1, 2))
    with open(tmp_path / TIMELINE, "ab") as stream:
        stream.write(lines(3)[0].encode()[:-9])
    found, bad = read_timeline(tmp_path, NOW + 1000)
    assert ([sample.pages for sample in found.samples], bad) == ([1, 2], 1)
    file.append(lines(4))  # without a restart in between
    assert pages(tmp_path) == [1, 2, 4]


def test_a_start_writes_only_what_holds(tmp_path: Path) -> None:
    (tmp_path / TIMELINE).write_bytes(b"\x00\xff{\n" + lines(1)[0].encode() + b"\nno json\n" + lines(2)[0].encode())
    TimelineFile(tmp_path).open_timeline(NOW + 1000, new=False)
    assert (tmp_path / TIMELINE).read_text().splitlines() == lines(1)


def test_a_crawl_that_begins_again_has_a_timeline_of_its_own(tmp_path: Path) -> None:
    TimelineFile(tmp_path).append(lines(1, 2))
    TimelineFile(tmp_path).open_timeline(NOW, new=True)
    assert pages(tmp_path) == []


def test_a_file_that_has_become_long_is_written_again(tmp_path: Path) -> None:
    file = TimelineFile(tmp_path)
    file.open_timeline(NOW, new=True)
    assert not file.is_long(0)
    file.append(lines(*range(timeline_file.SPARE + 2)))
    assert file.is_long(0)
    assert not file.is_long(timeline_file.SPARE)
    file.rewrite(lines(7))
    assert pages(tmp_path) == [7]
    assert not file.is_long(0)
    assert not (tmp_path / NEW).exists()


def test_of_a_file_that_is_much_too_large_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TimelineFile(tmp_path).append(lines(*range(1000)))
    monkeypatch.setattr(timeline_file, "MOST_BYTES", 500)
    found = pages(tmp_path)
    assert found == list(range(1000 - len(found), 1000))
    assert 5 < len(found) < 30


def test_without_a_file_nothing_is_known(tmp_path: Path) -> None:
    found, bad = read_timeline(tmp_path / "nowhere", NOW)
    assert (len(found), bad) == (0, 0)
    assert isinstance(found, Timeline)
