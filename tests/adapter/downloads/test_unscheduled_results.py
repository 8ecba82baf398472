"""UnscheduledResults beside the scheduler: how each one ends is counted, and said in the end."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from scrapy_ubi.adapter.downloads.gate import Withdrawn
from scrapy_ubi.adapter.downloads.unscheduled import MOST_NAMED, ForeignHost, UnscheduledResults
from scrapy_ubi.adapter.requests.page_outcome import FORBIDDEN
from scrapy_ubi.adapter.robots.fetch import RobotsLoad, request_for

URL = "http://h1.example/x.png"


class Counted:
    def __init__(self) -> None:
        self.stats: Counter[str] = Counter()
        self.noted: list[tuple[str, str]] = []
        self.downloads = UnscheduledResults(
            lambda stat: self.stats.update([stat]),
            lambda what, host: self.noted.append((what, host)),
            lambda url: "h1.example" if "h1" in url else None,
        )

    def make(self, end: Response | Exception, request: Request | None = None) -> None:
        async def download(request: Request) -> Response:
            if isinstance(end, Exception):
                raise end
            return end

        made = self.downloads.make(request or Request(URL), download)
        if isinstance(end, Exception):
            with pytest.raises(type(end)):
                asyncio.run(made)
        else:
            assert asyncio.run(made) is end


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (ForeignHost(), "refused"),
        (Withdrawn(), "ended"),
        (IgnoreRequest(FORBIDDEN), "robots"),
        (TimeoutError(), "exception/TimeoutError"),
        (Response(URL, status=404), "http/404"),
        (Response(URL, status=301), "http/301"),
    ],
)
def test_each_that_fails_is_counted_by_its_reason(end: Response | Exception, reason: str) -> None:
    counted = Counted()
    counted.make(end)
    assert counted.stats == {f"ubi/downloads/failed/{reason}": 1}
    assert counted.noted == [(f"download/{reason}", "h1.example")]


def test_one_that_came_and_a_robots_txt_are_no_failures(caplog: pytest.LogCaptureFixture) -> None:
    counted = Counted()
    counted.make(Response(URL))
    counted.make(Withdrawn(), request_for("http://h1.example/robots.txt", RobotsLoad(False, False, 1.0)))
    marked = Request("http://h1.example/robots.txt", callback=NO_CALLBACK, meta={"dont_obey_robotstxt": True})
    counted.make(Response(URL, status=404), marked)
    assert counted.stats == {"ubi/downloads/loaded": 1} and not counted.noted
    counted.downloads.close()
    assert not caplog.records


def test_how_many_failed_is_said_in_the_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    counted = Counted()
    counted.make(Response(URL))
    counted.make(Response(URL, status=404))
    counted.downloads.close()
    counted.make(ForeignHost())
    counted.make(ForeignHost())
    counted.downloads.close()
    first, second = caplog.records
    assert (first.levelname, second.levelname) == ("INFO", "WARNING")
    assert "Of 2 downloads" in first.getMessage() and "1 failed" in first.getMessage()
    assert "Of 4 downloads" in second.getMessage() and "refused 2, http/404 1" in second.getMessage()


def test_the_line_in_the_end_names_a_bounded_number_of_reasons(caplog: pytest.LogCaptureFixture) -> None:
    counted = Counted()
    for status in range(400, 440):
        counted.make(Response(URL, status=status))
    counted.make(ForeignHost())
    counted.downloads.close()
    (record,) = caplog.records
    assert record.getMessage().count("http/") == MOST_NAMED - 1 and "refused 1, http/" in record.getMessage()
