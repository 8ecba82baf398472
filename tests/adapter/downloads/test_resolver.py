"""Names of hosts, and what is none."""

from __future__ import annotations

from typing import NoReturn

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import CannotResolveHostError

from scrapy_ubi.adapter.downloads import resolver
from scrapy_ubi.adapter.downloads.resolver import Resolver
from tests.fast.http.raw import run


@pytest.mark.parametrize("host", ["a..example", ".example", "x" * 64 + ".example"])
def test_what_is_no_name_is_not_asked_for(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(host: str) -> NoReturn:
        raise AssertionError("Twisted's resolver has no answer to that, ever")

    monkeypatch.setattr(resolver, "is_reactor_installed", lambda: True)
    monkeypatch.setattr(resolver, "_by_reactor", ask)
    with pytest.raises(CannotResolveHostError, match="no name of a host"):
        run(Resolver(Crawler(Spider, {"TWISTED_REACTOR_ENABLED": True})).addresses(host))
