"""UBI_FAST in the settings: what it changes, and what the user's own settings keep."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from scrapy.core.downloader.handlers import http11
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.settings import BaseSettings, Settings

from scrapy_ubi import Addon
from scrapy_ubi.adapter.components.scheduler_builder import REFUSAL
from scrapy_ubi.fast.http.handler import UbiDownloadHandler
from tests.support.builders import applied

OWN = "own.Handler"
ASKED: list[dict[str, Any]] = [{}, {"UBI_FAST": True}]  # the default, and where the user has turned it on


def test_it_is_on_by_default_and_false_takes_it_back(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert handlers(applied()) == {"http": UbiDownloadHandler, "https": UbiDownloadHandler}
    assert caplog.text.count("UBI_FAST") == 1
    assert handlers(applied(UBI_FAST=False)) == handlers(Settings())


@pytest.mark.parametrize("name", ["DOWNLOAD_BIND_ADDRESS", "ASYNCIO_EVENT_LOOP"])
def test_by_default_what_only_scrapys_handler_was_made_for_keeps_it_with_one_line(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        settings = applied(**{name: "127.0.0.1"})
    assert handlers(settings) == handlers(Settings())
    said = [record for record in caplog.records if "UBI_FAST" in record.getMessage()]
    assert {record.levelno for record in said} == {logging.INFO} and all(name in each.getMessage() for each in said)


def test_without_twisteds_reactor_it_is_used_only_where_it_is_turned_on() -> None:
    assert handlers(applied(TWISTED_REACTOR_ENABLED=False)) == handlers(Settings())
    assert handlers(applied(TWISTED_REACTOR_ENABLED=False, UBI_FAST=True))["http"] is UbiDownloadHandler


def handlers(settings: BaseSettings) -> dict[str, Any]:
    found = settings.getwithbase("DOWNLOAD_HANDLERS")
    return {scheme: found[scheme] for scheme in ("http", "https")}


@pytest.mark.parametrize("value", [False, "0", "false"])
def test_without_it_nothing_changes(value: Any) -> None:
    before, after = Settings(), applied(UBI_FAST=value)
    assert handlers(after) == handlers(before)


@pytest.mark.parametrize("value", [True, "1", "True"])
def test_with_it_both_schemes_have_our_handler(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        settings = applied(UBI_FAST=value)
    assert handlers(settings) == {"http": UbiDownloadHandler, "https": UbiDownloadHandler}
    assert settings.getwithbase("DOWNLOAD_HANDLERS")["ftp"], "the others stay"
    assert caplog.text.count("UBI_FAST") == 1


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_handler_of_the_users_stays_and_the_log_says_so(
    scheme: str, asked: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    settings = applied(**asked, DOWNLOAD_HANDLERS={scheme: OWN, "x": OWN})
    other = {"http": "https", "https": "http"}[scheme]
    assert handlers(settings) == {scheme: OWN, other: UbiDownloadHandler}
    assert settings.getwithbase("DOWNLOAD_HANDLERS")["x"] == OWN
    assert f"how {scheme}:// is fetched: DOWNLOAD_HANDLERS" in caplog.text


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("handler", [OWN, "scrapy.core.downloader.handlers.http2.H2DownloadHandler", None])
def test_a_handler_among_scrapys_own_stays_as_well(
    handler: str | None, asked: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    base = {**Settings()["DOWNLOAD_HANDLERS_BASE"], "https": handler}
    settings = applied(**asked, DOWNLOAD_HANDLERS_BASE=base)
    assert settings.getwithbase("DOWNLOAD_HANDLERS")["https"] == handler
    assert settings.getwithbase("DOWNLOAD_HANDLERS")["http"] is UbiDownloadHandler
    assert "how https:// is fetched: DOWNLOAD_HANDLERS_BASE" in caplog.text


class OwnAgent:
    """Stands for a class of Scrapy's."""


async def own_close(self: HTTP11DownloadHandler) -> None:
    """Stands for a method of Scrapy's."""


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [(HTTP11DownloadHandler, "close", own_close), (http11, "_TunnelingAgent", OwnAgent)],
)
def test_a_patched_handler_of_scrapys_stays_by_default(
    place: Any, name: str, value: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(place, name, value, raising=False)
    with caplog.at_level(logging.INFO):
        assert handlers(applied()) == handlers(Settings())
    assert f".{name} is not Scrapy's own" in caplog.text
    assert handlers(applied(UBI_FAST=True))["http"] is UbiDownloadHandler, "where the user has turned it on"


MADE_BY_PYTHON = """
import collections, dataclasses, enum, typing
class Typed(typing.TypedDict):
    a: int
class Named(typing.NamedTuple):
    a: int
Plain = collections.namedtuple("Plain", "a")
@dataclasses.dataclass(frozen=True, slots=True)
class Data:
    a: int
class Numbers(enum.Enum):
    A = 1
class Flags(enum.IntFlag):
    A = 1
class Shape(typing.Protocol):
    def size(self) -> int: ...
"""


@pytest.mark.parametrize("name", ["Typed", "Named", "Plain", "Data", "Numbers", "Flags", "Shape"])
def test_what_python_itself_adds_to_a_class_of_scrapys_is_no_patch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = {"__name__": http11.__name__}
    exec(MADE_BY_PYTHON, vars(http11), written)  # noqa: S102 - a class whose functions are Scrapy's module's
    monkeypatch.setattr(http11, name, written[name], raising=False)
    assert written[name].__module__ == http11.__name__
    assert handlers(applied())["http"] is UbiDownloadHandler


@pytest.mark.parametrize(
    ("name", "value"),
    [("DOWNLOADER_CLIENTCONTEXTFACTORY", "own.Factory"), ("DOWNLOADER_CLIENT_TLS_METHOD", "TLSv1.2")],
)
def test_tls_for_twisted_keeps_scrapys_handler_for_https(
    name: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = applied(UBI_FAST=True, **{name: value})
    assert handlers(settings)["https"] == handlers(Settings())["https"]
    assert handlers(settings)["http"] is UbiDownloadHandler
    assert f"how https:// is fetched: {name} is set" in caplog.text


def test_another_loop_keeps_scrapys_handlers(caplog: pytest.LogCaptureFixture) -> None:
    settings = applied(UBI_FAST=True, ASYNCIO_EVENT_LOOP="uvloop.Loop")
    assert handlers(settings) == handlers(Settings())
    assert "ASYNCIO_EVENT_LOOP is 'uvloop.Loop'" in caplog.text


def test_applied_twice_it_says_nothing_of_its_own_handler(caplog: pytest.LogCaptureFixture) -> None:
    settings = applied(UBI_FAST=True)
    Addon().update_settings(settings)
    assert handlers(settings)["http"] is UbiDownloadHandler
    assert "does not change" not in caplog.text


def test_a_value_that_is_none_is_refused() -> None:
    settings = applied(UBI_FAST="perhaps")
    assert settings[REFUSAL].startswith("UBI_FAST is 'perhaps'")
