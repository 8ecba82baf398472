"""Addresses to listen at: a host of this machine and a port, in one text."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings


@pytest.mark.parametrize("address", ["127.0.0.1:9410", "0.0.0.0:0", "[::1]:9410", "localhost:65535", "node-1.lan:1"])
def test_an_address_and_a_port(address: str) -> None:
    assert UbiSettings.from_scrapy(Settings({"UBI_METRICS": address})).metrics == address


@pytest.mark.parametrize("nothing", [None, ""])
def test_without_one_nothing_listens(nothing: str | None) -> None:
    assert UbiSettings.from_scrapy(Settings({"UBI_METRICS": nothing})).metrics is None


@pytest.mark.parametrize(
    "value",
    [9410, ":9410", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "http://127.0.0.1:9410", "::1:9410", "a b:1", "-a:1"],
)
def test_what_is_none_is_refused_with_the_setting(value: Any) -> None:
    with pytest.raises(UbiSettingError, match=r"UBI_METRICS is .* address of this machine and a port"):
        UbiSettings.from_scrapy(Settings({"UBI_METRICS": value}))
