"""The User-Agent says whom to ask, or somebody is warned that it does not."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.settings import Settings

from scrapy_ubi.adapter.components import bot_page
from scrapy_ubi.adapter.components.bot_page import has_contact, is_loopback, user_agent
from scrapy_ubi.addon import Addon
from scrapy_ubi.agent.profile.figures import package_version
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings
from tests.support.crawls import crawl
from tests.support.site import Site

PAGE = "https://example.org/bot.html"
HOST = "http://h.example"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        running.page(f"{HOST}/", "page")
        running.page(f"{HOST}/two", "page")
        yield running


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the proxy of the tests stood on another machine."""
    monkeypatch.setattr(bot_page, "is_by_loopback", lambda request: False)


class Visit(Spider):
    name = "visit"
    start_urls = (f"{HOST}/",)
    names: tuple[str, ...] = ()  # User-Agents of further requests

    def parse(self, response: Response) -> Iterator[Any]:
        for number, name in enumerate(self.names):
            yield Request(f"{HOST}/two?{number}", self.done, headers={"User-Agent": name})

    def done(self, response: Response) -> None:
        """Nothing."""


def names(site: Site) -> list[str]:
    return [visit.headers["user-agent"] for visit in site.visits]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "UBI_BOT_PAGE" in record.getMessage()]


def test_the_page_makes_the_user_agent(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    crawl(Visit, site.proxy, settings={"UBI_BOT_PAGE": PAGE, "BOT_NAME": "Foo bot"})
    assert names(site) == [f"Foo-bot/{package_version()} (+{PAGE})"]
    assert not warnings(caplog)


@pytest.mark.parametrize("page", [None, PAGE])
def test_a_user_agent_of_ones_own_stays(site: Site, caplog: pytest.LogCaptureFixture, page: str | None) -> None:
    crawl(Visit, site.proxy, settings={"UBI_BOT_PAGE": page, "USER_AGENT": "mine (bots@example.org)"})
    assert names(site) == ["mine (bots@example.org)"]
    assert not warnings(caplog)


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("own", [{}, {"USER_AGENT": "Mozilla/5.0 (X11; Linux x86_64)"}])
def test_leaving_the_machine_without_a_contact_is_warned_of_once(
    site: Site, caplog: pytest.LogCaptureFixture, own: dict[str, str]
) -> None:
    (outcome,) = crawl(Visit, site.proxy, settings=own, names=("other", "third"))
    assert outcome.reason == "finished" and len(site.visits) == 3
    (said,) = warnings(caplog)
    assert "!" not in said
    assert "leaves this machine (first for h.example)" in said
    assert own.get("USER_AGENT", "Scrapy/") in said
    assert [record.levelno for record in caplog.records if "UBI_BOT_PAGE" in record.getMessage()] == [logging.WARNING]


def test_loopback_needs_no_page(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    crawl(Visit, "", start_urls=[f"{site.proxy}/"])
    assert len(site.visits) == 1
    assert not warnings(caplog)


def test_a_proxy_on_this_machine_is_no_way_out_of_it(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    crawl(Visit, site.proxy)
    assert len(site.visits) == 1
    assert not warnings(caplog)


@pytest.mark.parametrize(
    ("proxy", "stays"),
    [
        ("http://127.0.0.1:8900", True),
        ("http://localhost:8900", True),
        ("http://[::1]:8900", True),
        ("127.0.0.1:8900", True),
        ("http://proxy.example:8900", False),
        ("http://10.0.0.1", False),
        ("http://[", False),
        ("", False),
        (None, False),
        (7, False),
    ],
)
def test_whether_a_proxy_is_on_this_machine(proxy: object, stays: bool) -> None:
    assert bot_page.is_by_loopback(Request(f"{HOST}/", meta={"proxy": proxy})) is stays


@pytest.mark.usefixtures("far")
def test_what_a_request_says_itself_counts(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    spoken = {"DEFAULT_REQUEST_HEADERS": {"User-Agent": f"bot (+{PAGE})"}}
    crawl(Visit, site.proxy, settings=spoken)
    assert not warnings(caplog)
    crawl(Visit, site.proxy, settings=spoken, names=("nobody",))
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"bot/1 (+{PAGE})", True),
        ("bot (www.example.org/bot)", True),
        ("bot; mailto:bots@example.org", True),
        ("bot bots@example.org", True),
        ("bot (+http://[2001:db8::1]/)", True),
        ("Scrapy/2.19.0 (+https://scrapy.org)", False),
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", False),
        ("", False),
        ("a@b", False),
        ("https://", False),
    ],
)
def test_what_says_whom_to_ask(text: str, said: bool) -> None:
    assert has_contact(text) is said


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["example.org", "10.0.0.1", "192.168.1.1", "localhost.example.org", "2001:db8::1", "127.1.x"]
)
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("bot", "product"), [("bot", "bot"), ("a (b) c", "a-b-c"), ("", "scrapybot"), ("ü", "scrapybot")]
)
def test_the_name_is_one_product(bot: str, product: str) -> None:
    assert user_agent(bot, PAGE) == f"{product}/{package_version()} (+{PAGE})"


@pytest.mark.parametrize("page", [PAGE, "http://h/", "mailto:bots@example.org", "https://example.org/a?b=c#d"])
def test_a_page_that_holds(page: str) -> None:
    assert UbiSettings.from_scrapy({"UBI_BOT_PAGE": page}, "spider").bot_page == page


@pytest.mark.parametrize(
    "page",
    [
        "example.org",
        "ftp://h/",
        "https://",
        "mailto:",
        "mailto:x",
        f"{PAGE}\r\nX: y",
        f"{PAGE} (b)",
        f"{PAGE})",
        "http://h/ü",
        7,
    ],
)
def test_a_page_that_does_not_hold_is_refused(page: object) -> None:
    with pytest.raises(UbiSettingError, match=r"UBI_BOT_PAGE is .*: give an address"):
        UbiSettings.from_scrapy({"UBI_BOT_PAGE": page}, "spider")
    settings = Settings({"UBI_BOT_PAGE": page})
    Addon().update_settings(settings)
    assert "scrapy.org" in settings["USER_AGENT"]
