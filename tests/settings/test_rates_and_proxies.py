"""UBI_RATES and UBI_PROXY_POOL as they are written."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings.proxy_pool import ProxyPool
from scrapy_ubi.settings.rates import RateLimit, RateTable, read_rates
from scrapy_ubi.settings.ubi_settings import UbiSettings


def read(**settings: Any) -> UbiSettings:
    return UbiSettings.from_scrapy(settings, "spider")


def test_rates_are_read_from_a_mapping_or_from_json() -> None:
    written = {"API.example": "40/m", "proxy:gate.example:8000": "10/s", "search": "100/5m", "all": "7/d"}
    rates = read(UBI_RATES=written).rates
    assert rates.named["api.example"] == RateLimit(40, 60.0) and rates.named["search"] == RateLimit(100, 300.0)
    assert str(rates) == "all: 7/d, api.example: 40/m, proxy:gate.example:8000: 10/s, search: 100/5m"
    assert read(UBI_RATES='{"a": "90/90s"}').rates == RateTable({"a": RateLimit(90, 90.0)})
    assert str(RateLimit(90, 90.0)) == "90/90s" and not read().rates.named and read().rates.name == ""


@pytest.mark.parametrize(
    "value",
    [
        "40/m",
        {"a": 40},
        {"a": "0/s"},
        {"a": "1/0s"},
        {"a": "1/w"},
        {"a b": "1/s"},
        {"": "1/s"},
        {"a": "1/8d"},
        {"a": "1/s", "A": "2/s"},
        ["a"],
        "{",
        '{"a":' * 100_000,
    ],
)
def test_other_rates_are_refused(value: object) -> None:
    with pytest.raises(UbiSettingError, match="UBI_RATES"):
        read(UBI_RATES=value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("https://api.example/", "is a URL: write host and port alone"),
        ("proxy:http://gate.example:8000", "is a URL: write host and port alone"),
        ("proxy:user:secret@gate.example:8000", "has a user: write host and port alone"),
        (".gov.example", "is a pattern: name each host"),
        ("*", "is a pattern: name each host"),
        ("*.shop.example", "is a pattern: name each host"),
    ],
)
def test_names_that_are_those_of_no_request_are_refused(name: str, said: str) -> None:
    with pytest.raises(UbiSettingError, match=said) as error:
        read(UBI_RATES={name: "40/m"})
    assert "secret" not in str(error.value)


def test_the_one_that_does_not_hold_is_named() -> None:
    rates = {"good.example": "1/s", "bad.example": "40 a minute"}
    with pytest.raises(UbiSettingError, match=r"'bad\.example': '40 a minute' is no rate such as 10/s"):
        read(UBI_RATES=rates)


def test_long_tables_have_a_short_name_of_their_own() -> None:
    one = read_rates({f"host{number}.example": "1/s" for number in range(100)})
    other = read_rates({f"host{number}.example": "1/s" for number in range(101)})
    assert len(one.name) < 250 and one.name != other.name


def test_a_pool_is_a_text_or_a_mapping() -> None:
    assert read(UBI_PROXY_POOL="proxies.txt").proxy_pool == ProxyPool("proxies.txt")
    value = {"proxies": "shop.proxies.load", "statuses": [403, 429], "pattern": "captcha", "seconds": 60}
    pool = read(UBI_PROXY_POOL=value).proxy_pool
    assert pool == ProxyPool("shop.proxies.load", (403, 429), "captcha", 60.0) and pool.may_be_function
    assert not read().proxy_pool.proxies


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "names neither a file"),
        ({"proxies": 1}, "names neither a file"),
        ({"proxies": "a", "status": [1]}, "'status' is none of proxies, statuses, pattern, seconds"),
        ({"proxies": "a", "pattern": "("}, "pattern is '\\('"),
        ({"proxies": "a", "pattern": 1}, "pattern is 1"),
        ({"proxies": "a", "seconds": 0}, "seconds is 0"),
        ({"proxies": "a", "seconds": "10m"}, "seconds is '10m'"),
        ({"proxies": "a", "statuses": [4003]}, "statuses is"),
        ("{bad", "no JSON"),
        ('{"a":' * 100_000, "no JSON"),
        (["http://user:secret@gate.example:8000"], "has the proxies themselves: write them into a file"),
        ("http://user:secret@gate.example:8000", "has the proxies themselves: write them into a file"),
    ],
)
def test_other_pools_are_refused_without_their_passwords(value: object, said: str) -> None:
    with pytest.raises(UbiSettingError, match=f"^UBI_PROXY_POOL does not hold: .*{said}") as error:
        read(UBI_PROXY_POOL=value)
    assert "secret" not in str(error.value)
