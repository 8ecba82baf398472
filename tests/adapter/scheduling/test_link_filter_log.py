"""The file of refused links."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from scrapy_ubi.adapter.scheduling.link_filter_log import LONGEST, FilterLog, Noted
from scrapy_ubi.errors import UbiSettingError

REFUSED = Noted(1_700_000_000.5, "traps", "repeats", "http://a.example/a/a/a", 3, "http://a.example/a/a")


def test_a_refusal_is_a_line_of_json(tmp_path: Path) -> None:
    path = tmp_path / "refused.jsonl"
    log = FilterLog(path)
    log.note(REFUSED)
    log.note(REFUSED._replace(url="http://a.example/\ud800\n" + "x" * 5000, page=""))
    log.close()
    first, second = map(json.loads, path.read_text().splitlines())
    assert first == {
        "time": "2023-11-14T22:13:20.500+00:00",
        "filter": "traps",
        "why": "repeats",
        "url": "http://a.example/a/a/a",
        "depth": 3,
        "page": "http://a.example/a/a",
    }
    assert len(second["url"]) == LONGEST and second["page"] == ""
    assert log.unwritten == 0


def test_it_is_written_while_the_crawl_goes_on_and_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "refused.jsonl"
    path.write_text("before\n")
    log = FilterLog(path)
    log.note(REFUSED)
    limit = threading.Event()
    for _ in range(1000):
        if path.stat().st_size > len("before\n"):
            break
        limit.wait(0.01)
    assert len(path.read_text().splitlines()) == 2
    log.close()


def test_many_are_written_in_their_order(tmp_path: Path) -> None:
    log = FilterLog(tmp_path / "refused.jsonl")
    for number in range(5000):
        log.note(REFUSED._replace(depth=number))
    log.close()
    lines = (tmp_path / "refused.jsonl").read_text().splitlines()
    assert [json.loads(line)["depth"] for line in lines] == list(range(5000))


def test_what_does_not_fit_is_counted_and_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "refused.jsonl"
    log = FilterLog(path, most_bytes=100)
    log.note(REFUSED)
    log.close()
    assert (path.read_text(), log.unwritten) == ("", 1)
    assert caplog.text.count("UBI_FILTER_LOG") == 1


def test_what_waits_is_bounded(tmp_path: Path) -> None:
    log = FilterLog(tmp_path / "refused.jsonl", most_waiting=0)
    log.note(REFUSED)
    log.close()
    assert log.unwritten == 1


def test_no_more_of_a_url_waits_than_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Noted] = []
    monkeypatch.setattr(FilterLog, "_write", lambda self, batch: waited.extend(batch))
    log = FilterLog(tmp_path / "refused.jsonl")
    log.note(REFUSED._replace(url="x" * 100_000, page="y" * 100_000))
    log.close()
    assert [(len(noted.url), len(noted.page)) for noted in waited] == [(LONGEST, LONGEST)]


def test_a_full_disk_is_said_and_not_raised(caplog: pytest.LogCaptureFixture) -> None:
    log = FilterLog(Path("/dev/full"))
    log.note(REFUSED)
    log.close()
    assert log.unwritten == 1
    assert "No space left" in caplog.text


def test_a_file_that_cannot_be_written_is_an_error_of_the_setting(tmp_path: Path) -> None:
    with pytest.raises(UbiSettingError, match=r"UBI_FILTER_LOG is .*No such file"):
        FilterLog(tmp_path / "no" / "directory")
