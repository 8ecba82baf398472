"""The scores of links beside Scrapy's requests: what is read at the start, what a link's text is, what is counted."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_ubi import PlainLinks
from scrapy_ubi.adapter.scheduling.link_scores import LinkScores
from scrapy_ubi.adapter.scheduling.stat_buffer import StatBuffer
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls.scores import LinkBatch, ScoreChain
from tests.support.builders import applied

HOST = "http://h.example"
ASKED: list[LinkBatch] = []


def asked(links: LinkBatch) -> list[float]:
    """A scorer that notes what it is asked."""
    ASKED.append(links)
    return [1.0] * len(links.urls)


class Counts(StatBuffer):
    """What was counted."""

    def __init__(self) -> None:
        self.collector = MemoryStatsCollector(Crawler(Spider))
        super().__init__(self.collector)

    def told(self) -> dict[str, Any]:
        self.page_done()
        return dict(self.collector.get_stats())


def read(counts: StatBuffer, **settings: Any) -> LinkScores | None:
    return asyncio.run(LinkScores.from_settings(UbiSettings.from_scrapy(applied(**settings), "s"), counts))


def test_off_there_is_nothing() -> None:
    assert read(Counts()) is None


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"UBI_SCORE": ["keywords()"]}, r"UBI_SCORE.*lacks keywords.*name some"),
        ({"UBI_SCORE": [5]}, "UBI_SCORE.*is no scorer.*give scorers"),
        ({"UBI_SCORE": 5}, "UBI_SCORE.*give a list of scorers"),
        ({"UBI_SCORE": ["file(no/such/file)"]}, "UBI_SCORE.*cannot be read.*scrapy ubi rank"),
    ],
)
def test_a_setting_that_does_not_hold_is_an_error_at_the_start(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(UbiSettingError, match=says):
        asyncio.run(LinkScores.from_settings(UbiSettings.from_scrapy(applied(**settings), "s"), Counts()))


def test_what_is_left_out_of_a_file_is_counted_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "scores").write_text(f"{HOST}/\t1\nno tab\n{HOST}/\t2\n")
    with caplog.at_level(logging.INFO):
        assert read(counts := Counts(), UBI_SCORE=[("file", str(tmp_path / "scores"))]) is not None
    assert counts.told() == {"ubi/scores/read": 1, "ubi/scores/refused/line": 1, "ubi/scores/refused/double": 1}
    assert "2 of 3 lines are left out" in caplog.text and "the first is line 2 (line)" in caplog.text


def test_scores_count_by_the_normal_form_of_the_crawl(tmp_path: Path) -> None:
    (tmp_path / "scores").write_text(f"{HOST}/A/index.html\t7\n")
    for steps, score in (("larm", 7), ("scrapy", 0)):
        scores = read(Counts(), UBI_SCORE=[("file", str(tmp_path / "scores"))], UBI_NORMALISE=steps)
        assert scores is not None
        scores.raise_request(request := Request(f"{HOST}/a/", priority=1), "")
        assert request.priority == 1 + score


def test_scorers_are_asked_about_url_text_depth_and_page() -> None:
    ASKED.clear()
    scores = LinkScores(ScoreChain.read([f"{__name__}.asked"]), Counts(), now=lambda: 5.0)
    scores.raise_request(Request(HOST, meta={"link_text": "a text", "depth": 2}), "http://p/")
    scores.raise_request(Request(HOST, meta={"link_text": 7}), "")
    assert [LinkBatch((HOST,), ("a text",), 2, "http://p/", 5.0), LinkBatch((HOST,), ("",), 0, "", 5.0)] == ASKED


@pytest.mark.parametrize("texts", ["anchors", "link_texts"])
def test_of_plain_links_a_slice_at_a_time(texts: str) -> None:
    ASKED.clear()
    plain = PlainLinks(["http://a/", 7, "http://b/", "http://a/"], **{texts: ["one", "two", None, "four"]})  # type: ignore[arg-type]
    scores = LinkScores(ScoreChain.read([f"{__name__}.asked"]), Counts(), now=lambda: 5.0)
    assert scores.of_links(plain, 0, 2, 3, "http://p/") == [1, 1] and scores.of_links(plain, 2, 502, 3, "") == [1]
    assert [
        LinkBatch(["http://a/", ""], ["one", "two"], 3, "http://p/", 5.0),
        LinkBatch(["http://b/"], [""], 3, "", 5.0),
    ] == ASKED


def broken(links: LinkBatch) -> list[float]:
    raise RuntimeError


def test_a_scorer_that_fails_is_counted_each_time_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    scores = LinkScores(ScoreChain.read([f"{__name__}.broken"]), counts := Counts())
    assert scores.of_links(PlainLinks(["http://a/", "http://b/"]), 0, 500, 0, "") == [0, 0]
    assert counts.told() == {"ubi/score/errors/broken/raised": 2}
    assert [record.levelname for record in caplog.records] == ["ERROR"] and "Shown once" in caplog.text
