"""What is known already."""

from __future__ import annotations

import pytest

from scrapy_ubi.urls.filters import Link
from scrapy_ubi.urls.filters.chain import parse
from scrapy_ubi.urls.filters.filter_text import FilterError
from scrapy_ubi.urls.filters.visited import Visited

LINK = Link("http://a.example/", "http://a.example/")


def test_it_refuses_what_the_crawl_knows() -> None:
    visited = parse("visited")
    assert isinstance(visited, Visited) and str(visited) == "visited"
    assert visited.refuses(LINK) == ""
    visited.is_known = LINK.__eq__
    assert visited.refuses(LINK) == "known"
    assert visited.refuses(LINK._replace(depth=3)) == ""
    assert visited == parse("visited()"), "what it knows is the crawl's, not its own"


def test_it_takes_no_arguments() -> None:
    with pytest.raises(FilterError, match="has an argument"):
        parse("visited(7)")
