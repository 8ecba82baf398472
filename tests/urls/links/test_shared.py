"""Pages that are shared: each goes to one reader, and those that are kept have a bound together."""

from __future__ import annotations

import pytest

from scrapy_ubi.urls.links import shared
from scrapy_ubi.urls.links.page import Page
from scrapy_ubi.urls.links.shared import SharedPages


class Source:
    """What a page was parsed from."""


def test_a_page_is_taken_once() -> None:
    pages, source, page = SharedPages(), Source(), Page(b"<a href=x>")
    pages.keep(source, page, 10)
    assert pages.take_page(Source()) is None
    assert pages.take_page(source) is page and pages.take_page(source) is None


def test_those_parsed_first_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "MOST", 100)
    pages, sources, page = SharedPages(), [Source() for _ in range(5)], Page(b"")
    for source in sources:
        pages.keep(source, page, 40)
    pages.keep(sources[4], page, 60)  # once more: counted once
    assert [pages.take_page(source) is page for source in sources] == [False, False, False, True, True]
    large = Source()
    pages.keep(large, page, 101)
    assert pages.take_page(large) is None


def test_a_number_that_another_object_has_now_tells_nothing() -> None:
    pages = SharedPages()
    source = Source()
    pages.keep(source, Page(b""), 10)
    before = id(source)
    del source
    others = [Source() for _ in range(100)]
    assert all(pages.take_page(other) is None for other in others), before
