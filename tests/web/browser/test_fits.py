"""Nothing leaves its card, and nothing is cut without a way to read it: at each width, light and dark, with few agents
and many, and with names as long as they can be met."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.web.browser.conftest import Tab
from tests.web.browser.made_up import MadeUp

pytestmark = pytest.mark.browser

Serve = Callable[[MadeUp], str]
WIDTHS = (360, 768, 1060, 1280)
VIEWS = ("crawl", "ring", "hosts", "failures", "url", "mail", "outputs", "seeds", "settings")
ROWS = ("hosts", "failures", "mail", "settings", "ring", "outputs")

FAULTS = Path(__file__).with_name("faults.js").read_text("utf-8")


def settled(tab: Tab, view: str) -> None:
    """Open this view, and wait for its figures."""
    tab.show(view)
    tab.until("return document.querySelectorAll('#main .card').length > 0")
    if view.split("?")[0] in ROWS:
        tab.until("return document.querySelectorAll('#main tbody tr').length > 0")
    if "/" in view:
        tab.until("return document.querySelector('#main dl')")


def walk(tab: Tab, crawl: MadeUp) -> dict[str, Any]:
    """The faults of each view that has some."""
    host, agent = crawl.host_name(1), crawl.names[-1]
    views = (*VIEWS, f"host/{host}", f"agent/{agent}", f"url/{'http%3A%2F%2F' + host}%2Fgone", f"mail?agent={agent}")
    found = {}
    for view in views:
        settled(tab, view)
        tab.painted()
        if faults := tab.run(FAULTS):
            found[view[:20]] = faults
    return found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "agents, long, dark",
    [(1, True, False), (4, True, True), (200, True, False), (4, False, False), (10, False, True)],
    ids=["one-long", "four-long-dark", "many-long", "four", "ten-dark"],
)
def test_nothing_leaves_its_card(tab: Tab, serve: Serve, width: int, agents: int, long: bool, dark: bool) -> None:
    crawl = MadeUp(agents=agents, long=long)
    tab.look(width=width, dark=dark)
    tab.open(serve(crawl))
    assert walk(tab, crawl) == {}


@pytest.mark.parametrize("width", WIDTHS)
def test_dialogs_and_messages_fit(tab: Tab, serve: Serve, width: int) -> None:
    crawl = MadeUp(agents=2, long=True)
    tab.look(width=width)
    tab.open(serve(crawl))
    tab.press("Drain", ".agents")
    tab.until("return document.querySelector('dialog[open]')")
    assert tab.run(FAULTS) == []
    tab.type("token", "secret\ue007")
    tab.until("return document.querySelector('dialog[open] .danger')")
    assert tab.run(FAULTS) == []


def test_every_button_of_a_row_can_be_pressed_however_long_the_name(tab: Tab, serve: Serve) -> None:
    for width in WIDTHS:
        tab.look(width=width)
        tab.open(serve(MadeUp(agents=3, long=True)))
        tab.until("return document.querySelector('.agents td .verb')")
        assert tab.run(
            "return [...document.querySelectorAll('.agents td .verb')].every((one) => {"
            "one.scrollIntoView({block: 'center'}); const box = one.getBoundingClientRect();"
            "return one.contains(document.elementFromPoint(box.right - 4, box.top + box.height / 2));})"
        ), width
