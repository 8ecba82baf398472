"""Ten things that a person wants to know or to do, each from the page alone, as somebody does who has never seen it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.web.browser.conftest import Tab
from tests.web.browser.made_up import TOKEN, MadeUp

pytestmark = pytest.mark.browser


@pytest.fixture
def crawl() -> MadeUp:
    return MadeUp()


@pytest.fixture
def page(tab: Tab, crawl: MadeUp, serve: Callable[[MadeUp], str]) -> Iterator[Tab]:
    tab.open(serve(crawl))
    yield tab
    assert tab.complaints() == []


def allow(page: Tab) -> None:
    page.press("Read-only")
    page.until("return document.querySelector('dialog[open]')")
    page.type("token", f"{TOKEN}\ue007")
    page.until_says("Changes are allowed in this tab.")


def test_which_host_is_slowest(page: Tab, crawl: MadeUp) -> None:
    slowest = crawl.host_name(3)
    page.until_says("About 9 h 29 min to go.", f"The slowest host: {slowest}, of which 3,416 URLs wait")
    page.press(slowest)
    page.until_says(f"Host {slowest}", "3 416 URLs wait", "That takes 9.5 h at least.")
    page.press("Hosts", "#views")
    page.until("return document.querySelector('.hosts tbody tr')")
    assert slowest in page.run("return document.querySelector('.hosts tbody tr').textContent")


def test_why_did_a_page_fail(page: Tab) -> None:
    page.press("Failures")
    page.until_says("http/404", "robots.txt forbids it")
    page.press("URL", "#views")
    page.type("url", "http://shop.example/gone\ue007")
    page.until_says("It failed at lab-1: http/404", "Requeue it")


def test_where_is_a_url(page: Tab) -> None:
    page.press("URL", "#views")
    page.type("url", "http://shop.example/a page?x=1#y\ue007")
    page.until_says("It waits at lab-1; 41 of its host come before it.", "lab-2")


def test_drain_an_agent(page: Tab, crawl: MadeUp) -> None:
    allow(page)
    page.press("lab-2", ".agents")
    page.press("Drain this agent")
    page.until_says("scrapy ubi drain lab-2")
    page.press("Drain", "dialog")
    page.until_says("lab-2 is asked to leave.", "leaving")
    assert crawl.told == [("drain", {"agent": "lab-2", "force": False})]


def test_double_the_delay_of_a_host(page: Tab, crawl: MadeUp) -> None:
    allow(page)
    page.press("Hosts", "#views")
    page.press("news1.site1.example")
    page.press("Double it")
    page.until_says("UBI_HOST_DELAY = 1, for news1.site1.example only")
    page.press("Set", "dialog")
    page.until_says("all agents have heard it", "Take back")
    assert crawl.told[-1] == ("set", {"values": {"UBI_HOST_DELAY": 1}, "host": "news1.site1.example"})


def test_add_a_seed(page: Tab, crawl: MadeUp) -> None:
    allow(page)
    page.press("Seeds", "#views")
    page.type("urls", "http://new.example/\nnot-a-url")
    page.press("Seed", "form")
    page.until_says("2 URLs sent: OK 1, REFUSED 1.")
    page.until_says("it is no URL")
    assert crawl.told[-1] == ("seeds", {"urls": ["http://new.example/", "not-a-url"], "wait": True, "priority": 1000})


def test_what_waits_in_an_inbox(page: Tab, crawl: MadeUp) -> None:
    page.press("Mail", "#views")
    page.until_says("Inbox of lab-2", "2 letters", "URLs found from lab-1", "/found/0")
    page.press("1", ".table")
    page.until_says("Dead letters of lab-2", "the letter is not JSON")


def test_who_died_when(page: Tab, crawl: MadeUp) -> None:
    crawl.die("lab-4")
    page.until("return document.querySelector('.events li').textContent.includes('lab-4')")
    assert "dead" in page.run("return document.querySelector('.events li').textContent")
    page.until("return document.querySelector('.agents tbody tr').textContent.startsWith('lab-4dead')")  # the first row
    assert page.run("return document.querySelector('.events time').title") != ""
    page.until_says("dead: agent lab-0")  # before this server looked: an agent has noted it


def test_is_it_nearly_done(page: Tab) -> None:
    page.until_says("known URLs done", "About 9 h 29 min to go.")


def test_what_came_out(page: Tab) -> None:
    page.press("Outputs", "#views")
    page.until_says("pages fetched", "items", "warc", "scrapy ubi collect items -o items.jsonl", "Pages")
    page.until_says("Pages that are near copies", "Copies found last", "differs in few words from")
