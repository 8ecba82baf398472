"""Which pages go to the browser, without a browser: what is shown is what a test says."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy.http import HtmlResponse, TextResponse
from scrapy.settings import Settings

from scrapy_ubi.adapter.browser.shown_pages import MOST_SHELLS, ShownPages
from scrapy_ubi.policy.browser.host_judgement import HOLDS
from scrapy_ubi.settings import UbiSettings

TEXT = " ".join(f"word{number}" for number in range(60))
SHELL = "<html><body><div id=app></div><script src=app.js></script></body></html>"
WHOLE = f"<html><body><p>{TEXT}</p><script src=app.js></script></body></html>"
FILLED = f"<html><body><div id=app><p>{TEXT}</p></div></body></html>"
SETTINGS = UbiSettings.from_scrapy(Settings({"UBI_BROWSER": "auto"}), "spider")


class Agent:
    """One agent's pages, its hosts' notes, and what the browser was asked to show."""

    def __init__(self, settings: UbiSettings = SETTINGS) -> None:
        self.notes: dict[tuple[str, str], object] = {}
        self.shown: list[str] = []
        self.now = 1_800_000_000.0
        self.fills = True  # whether scripts fill shells
        self.stats = Counter[str]()
        self.noted: list[tuple[str, str]] = []
        self.at_once = self.most_at_once = 0
        self.followers: list[Any] = []
        self.live = SimpleNamespace(now=settings, of_host={}, follow=self.followers.append)
        hosts = SimpleNamespace(get=self._get, put=self._put)
        node = SimpleNamespace(hosts=hosts, live=self.live, note=lambda what, host: self.noted.append((what, host)))
        self.pages = ShownPages(cast("Any", node), settings, self._show, self._count, lambda: self.now)

    def _get(self, state: Any, section: str) -> object | None:
        return self.notes.get((state.host, section))

    def _put(self, state: Any, section: str, value: object) -> None:
        self.notes[state.host, section] = value

    def _count(self, name: str) -> None:
        self.stats[name] += 1

    async def _show(self, response: TextResponse) -> str:
        self.shown.append(response.url)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return FILLED if "id=app" in response.text and self.fills else response.text

    async def page(self, body: str, host: str = "h.example", status: int = 200) -> HtmlResponse:
        url = f"http://{host}/"
        response = HtmlResponse(url, body=body.encode(), encoding="utf-8", status=status)
        return await self.pages.given(cast("Any", SimpleNamespace(host=host)), response)

    def visit(self, *bodies: str, host: str = "h.example") -> list[HtmlResponse]:
        """Pages that are under way together."""

        async def run() -> list[HtmlResponse]:
            return list(await asyncio.gather(*(self.page(body, host) for body in bodies)))

        return asyncio.run(run())

    def set(self, host: str, mode: str) -> None:
        """People say this of a host."""
        self.live.of_host = {host: replace(SETTINGS, browser=cast("Any", mode))}
        for follower in self.followers:
            follower(self.live)


def test_two_pages_decide_that_a_hosts_pages_go_to_the_browser() -> None:
    agent = Agent()
    given = agent.visit(*[SHELL] * 6)
    assert [page.text for page in given] == [FILLED] * 6 and all("browser" in page.flags for page in given)
    assert agent.stats["ubi/browser/judged/made"] == 2 and agent.noted == [("browser/browser", "h.example")]
    assert agent.notes["h.example", "browser"] == [2, 0, agent.now]


def test_pages_that_come_whole_are_given_as_they_came_and_cost_two_looks() -> None:
    agent = Agent()
    given = agent.visit(*[WHOLE] * 9)
    assert [page.text for page in given] == [WHOLE] * 9 and not any(page.flags for page in given)
    assert len(agent.shown) == 2 and agent.most_at_once == 1, "while a host is open, one after the other"
    assert agent.visit(WHOLE)[0].text == WHOLE and len(agent.shown) == 2


def test_each_host_is_judged_by_itself_and_by_pages_with_scripts_alone() -> None:
    agent = Agent()
    agent.visit(WHOLE, WHOLE)
    assert [page.text for page in agent.visit("<p>one", "<p>two", host="b.example")] == ["<p>one", "<p>two"]
    assert len(agent.shown) == 2
    agent.visit(SHELL, SHELL, host="b.example")
    assert agent.noted == [("browser/plain", "h.example"), ("browser/browser", "b.example")]


def test_a_page_that_scripts_make_is_given_so_whatever_its_host_is() -> None:
    agent = Agent()
    agent.visit(WHOLE, WHOLE)
    assert agent.visit(SHELL)[0].text == FILLED and agent.stats["ubi/browser/shells"] == 1


def test_shells_that_nothing_fills_cost_a_few_looks() -> None:
    agent = Agent()
    agent.visit(WHOLE, WHOLE)
    agent.fills = False
    agent.visit(*[SHELL] * 3)
    for _ in range(3 * MOST_SHELLS):
        agent.visit(SHELL)
    assert len(agent.shown) <= 2 + 3 + MOST_SHELLS


def test_a_decision_is_made_again_after_a_week() -> None:
    agent = Agent()
    agent.visit(WHOLE, WHOLE)
    agent.now += HOLDS
    agent.visit(SHELL, SHELL, SHELL)
    assert [what for what, _ in agent.noted] == ["browser/plain", "browser/browser"]


@pytest.mark.parametrize(("mode", "text"), [("always", FILLED), ("off", SHELL)])
def test_what_people_say_of_a_host_comes_first(mode: str, text: str) -> None:
    agent = Agent()
    agent.set("h.example", mode)
    assert agent.visit(SHELL)[0].text == text and not agent.notes
    agent.visit(SHELL, SHELL, host="b.example")
    assert agent.noted == [("browser/browser", "b.example")]


def test_errors_are_not_shown() -> None:
    agent = Agent()
    assert asyncio.run(agent.page(SHELL, status=404)).text == SHELL and not agent.shown


def test_what_is_shown_says_its_encoding() -> None:
    agent = Agent(replace(SETTINGS, browser="always"))
    page = asyncio.run(agent.page(SHELL.replace("id=app>", "id=app>é")))
    assert page.encoding == "utf-8" and page.headers["Content-Type"] == b"text/html; charset=utf-8"


def test_an_agent_that_has_heard_before_its_first_page_follows() -> None:
    agent = Agent()
    agent.live.of_host = {"h.example": replace(SETTINGS, browser="off")}
    node = cast("Any", SimpleNamespace(hosts=None, live=agent.live))
    pages = ShownPages(node, SETTINGS, agent._show, agent._count)
    response = HtmlResponse("http://h.example/", body=SHELL.encode(), encoding="utf-8")
    asyncio.run(pages.given(cast("Any", SimpleNamespace(host="h.example")), response))
    assert not agent.shown
