"""Why a page failed, in a word."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.settings import Settings

from scrapy_ubi.adapter.requests.page_outcome import reason_of, status_reason


class Deaf(Spider):
    name = "deaf"


class Hears(Spider):
    name = "hears"
    handle_httpstatus_list = (404,)


def reason(status: int = 404, spider: type[Spider] = Deaf, meta: Any = None, **settings: Any) -> str | None:
    return status_reason(status, Request("http://h1.example/", meta=meta), spider(), Settings(settings))


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (IgnoreRequest("Forbidden by robots.txt"), "robots"),
        (IgnoreRequest("max redirections reached"), "redirects"),
        (IgnoreRequest("http://h1.example/ was seen"), "ignored/IgnoreRequest"),
        (TimeoutError("http://h1.example/"), "exception/TimeoutError"),
    ],
)
def test_errors(error: BaseException, word: str) -> None:
    assert reason_of(error) == word


def test_statuses() -> None:
    assert reason() == "http/404"
    assert reason(500, Hears) == "http/500"
    assert reason(200) is reason(304) is None


def test_a_status_that_is_handled_is_no_failure() -> None:
    assert reason(spider=Hears) is None
    assert reason(meta={"handle_httpstatus_list": [404]}) is None
    assert reason(meta={"handle_httpstatus_all": True}) is None
    assert reason(HTTPERROR_ALLOW_ALL=True) is None
    assert reason(HTTPERROR_ALLOWED_CODES=["404"]) is None
    assert reason(spider=Hears, meta={"handle_httpstatus_list": [410]}) == "http/404"
