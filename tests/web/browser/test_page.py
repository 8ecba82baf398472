"""The page in a browser: hostile text, size, keyboard, narrow and dark, and what each view tells of a made-up crawl."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.web.browser.conftest import Tab
from tests.web.browser.made_up import HOSTILE, TOKEN, MadeUp

pytestmark = pytest.mark.browser

Serve = Callable[[MadeUp], str]
VIEWS = (
    "crawl",
    "ring",
    "hosts",
    "failures",
    "url",
    "mail",
    "outputs",
    "seeds",
    "settings",
    "agent/lab-2",
    "host/news1.site1.example",
)
MOST_NODES = 2000


def walk(tab: Tab, views: tuple[str, ...] = VIEWS) -> None:
    """Every view, each until it has its figures."""
    for view in views:
        tab.show(view)
        tab.until("return document.querySelectorAll('#main .card').length > 0")
        if view in ("hosts", "failures", "mail", "settings", "ring", "outputs"):
            tab.until("return document.querySelectorAll('#main tbody tr').length > 0")


def test_no_view_complains_or_asks_anybody_else(tab: Tab, serve: Serve) -> None:
    address = serve(MadeUp())
    tab.open(address)
    walk(tab)
    assert tab.complaints() == []
    asked = tab.requests()
    assert any("/api/ring" in one for one in asked)
    assert [one for one in asked if not one.startswith((f"{address}/", "data:image/svg+xml"))] == []


def test_markup_in_names_and_titles_is_text(tab: Tab, serve: Serve) -> None:
    crawl = MadeUp(hostile=True)
    tab.open(serve(crawl))
    walk(tab, (*VIEWS[:9], f"agent/{HOSTILE}", f"host/{crawl.host_name(0)}"))
    tab.show("mail?agent=lab-2&dead=1")
    tab.until_says("the letter is not JSON", "</script><script>")
    tab.show("crawl")
    tab.until_says(HOSTILE)
    assert tab.run("return [window.hurt, document.images.length, document.scripts.length]") == [None, 0, 1]
    assert tab.complaints() == []


def test_a_thousand_agents_and_a_million_hosts_are_few_nodes(tab: Tab, serve: Serve) -> None:
    tab.open(serve(MadeUp(agents=1000, hosts=1_000_000)))
    tab.until_says("of 1 000 agents")
    for view in ("crawl", "ring", "hosts", "failures", "mail", "outputs"):
        walk(tab, (view,))
        assert tab.nodes < MOST_NODES, view
    tab.show("hosts")
    tab.until_says("1–50 of 1 000 000 hosts")
    tab.press("Next", ".pager")
    tab.until_says("51–100 of 1 000 000 hosts")
    tab.press("Previous", ".pager")
    tab.until_says("1–50 of 1 000 000 hosts")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_is_wider_than_a_small_screen(tab: Tab, serve: Serve, dark: bool) -> None:
    crawl = MadeUp(agents=40, hostile=True)
    tab.look(width=360, dark=dark)
    tab.open(serve(crawl))
    for view in (*VIEWS[:9], f"agent/{HOSTILE}", f"host/{crawl.host_name(0)}"):
        walk(tab, (view,))
        assert tab.run("return document.documentElement.scrollWidth") <= 360, view


def _contrast(tab: Tab, selector: str) -> float:
    """The contrast of a text to what is behind it, as WCAG defines it."""
    return float(
        tab.run(
            """
            const node = document.querySelector(arguments[0]);
            const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
            const light = (colours) => {
              for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
              const part = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
              const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((value) => part(value / 255));
              return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const behind = [];
            for (let one = node; one; one = one.parentElement) behind.unshift(getComputedStyle(one).backgroundColor);
            const [text, ground] = [light([...behind, getComputedStyle(node).color]), light(behind)];
            return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
            """,
            selector,
        )
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out(tab: Tab, serve: Serve, dark: bool) -> None:
    tab.look(dark=dark)
    tab.open(serve(MadeUp(agents=10)))
    tab.until("return document.querySelector('td .verb') && document.querySelector('.chip.bad')")
    for selector in (
        ".headline",
        ".head .quiet",
        "h2",
        "td a",
        "td .chip.good",
        ".chip.warn",
        ".chip.bad",
        ".chip.calm",
        "#views a",
        "td .verb",
        "th",
    ):
        assert _contrast(tab, selector) >= 4.5, selector


def test_the_keyboard_alone_reaches_and_does_everything(tab: Tab, serve: Serve) -> None:
    crawl = MadeUp()
    tab.open(serve(crawl))
    tab.keys("\ue004")  # Tab
    assert tab.run("return document.activeElement.id") == "skip"
    tab.keys("\ue007")  # Enter
    assert tab.run("return document.activeElement.tagName") == "H1"
    wanted = {
        "Crawl",
        "Ring",
        "Hosts",
        "Failures",
        "URL",
        "Mail",
        "Outputs",
        "Seeds",
        "Settings",
        "Pause",
        "Drain",
        "lab-1",
    }
    rounds = 0
    while wanted:
        tab.keys("\ue004")
        name, shown = tab.run(
            "const a = document.activeElement;"
            "const seen = a === document.body || getComputedStyle(a).outlineStyle !== 'none';"
            "return [a.textContent.trim().split(' ')[0], seen]"
        )
        assert shown, f"the focus cannot be seen at {name}"
        rounds += name == "Skip"  # the link, or the body, where the walk ends and begins anew
        assert rounds < 6, f"not reached: {wanted}"
        wanted -= {name}
    tab.run("document.getElementById('authority').focus()")
    tab.keys("\ue007")
    tab.until("return document.querySelector('dialog[open]')")
    tab.keys(TOKEN, "\ue007")
    tab.until("return !document.body.classList.contains('read-only')")
    tab.run("[...document.querySelectorAll('td .verb')].find(one => one.textContent.startsWith('Drain')).focus()")
    tab.keys("\ue007")
    tab.until("return document.querySelector('dialog[open] .danger')")
    while tab.run("return document.activeElement.textContent") != "Drain":
        tab.keys("\ue004")
        assert tab.run("return document.activeElement.closest('dialog') !== null")
    tab.keys("\ue007")
    tab.until(lambda: ("drain", {"agent": "lab-1", "force": False}) in crawl.told)


def test_without_the_token_buttons_say_so_and_change_nothing(tab: Tab, serve: Serve) -> None:
    crawl = MadeUp()
    tab.open(serve(crawl))
    tab.until("return document.querySelector('td .verb')")
    assert (
        tab.run("return getComputedStyle(document.querySelector('.head .verb'), '::after').content") == '" · read-only"'
    )
    tab.press("Pause the crawl")
    tab.until("return document.querySelector('dialog[open]')")
    tab.type("token", "wrong\ue007")
    tab.until_says("This is not the token.")
    assert tab.run("return document.querySelector('dialog[open]') !== null"), "it stays until it is answered"
    assert crawl.told == []
    assert tab.run("return document.body.classList.contains('read-only')")


def test_a_server_without_a_token_says_how_to_get_one(tab: Tab, serve: Serve) -> None:
    tab.open(serve(MadeUp(token="")))
    tab.press("Pause the crawl")
    tab.until_says("scrapy ubi web --token-file")


def test_a_dead_agent_is_told_aloud(tab: Tab, serve: Serve) -> None:
    crawl = MadeUp()
    tab.open(serve(crawl))
    tab.until_says("What has happened")
    crawl.die("lab-3")
    tab.until("return document.querySelector('[role=alert] .toast')?.textContent.includes('lab-3')")
    tab.until(
        "return [...document.querySelectorAll('.agents tr')]"
        ".some(one => one.textContent.includes('lab-3') && one.querySelector('.chip.bad')?.textContent === 'dead')"
    )
    tab.until("return document.querySelector('.events li').textContent.includes('dead')")


def test_a_warning_is_shown_as_long_as_it_holds(tab: Tab, serve: Serve) -> None:
    crawl = MadeUp()
    tab.open(serve(crawl))
    tab.until_says("What has happened")
    assert not tab.run("return document.querySelector('.head .notice')")
    crawl.warnings = ["URLs from outside that wait: 7; the next agent that is started takes them."]
    tab.until_says("URLs from outside that wait: 7")
    crawl.warnings = []
    tab.until("return !document.querySelector('.head .notice')")


def test_focus_survives_new_figures(tab: Tab, serve: Serve) -> None:
    tab.open(serve(MadeUp()))
    tab.until("return document.querySelector('td .verb')")
    tab.run(
        "window.kept = document.querySelector('td .verb'); window.kept.focus();"
        "window.was = document.querySelector('.agents').textContent"
    )
    tab.until("return document.querySelector('.agents').textContent !== window.was")
    assert tab.run("return document.activeElement === window.kept && window.kept.isConnected")


def test_motion_stops_where_it_is_not_wanted(tab: Tab, serve: Serve) -> None:
    tab.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    )
    tab.open(serve(MadeUp()))
    assert tab.run("return document.getAnimations().length") == 0


def test_the_token_dialog_stays_through_new_figures_and_wrong_tokens_until_it_is_answered(
    tab: Tab, serve: Serve
) -> None:
    crawl = MadeUp()
    tab.open(serve(crawl))
    tab.press("Read-only")
    tab.until("return document.querySelector('dialog[open]')")
    tab.keys("half")
    tab.run("window.was = document.querySelector('.tiles').textContent; window.kept = document.querySelector('dialog')")
    for what in ("dead", "paused"):
        crawl.happen(what, None, f"It is {what}.")
        tab.until("return document.querySelector('.tiles').textContent !== window.was")
        tab.run("window.was = document.querySelector('.tiles').textContent")
    state = "const d = document.querySelector('dialog[open]');" + (
        "return [d === window.kept, document.activeElement?.name, d?.querySelector('input').value,"
        "d?.querySelector('[role=alert]').hidden === false && d.querySelector('[role=alert]').textContent]"
    )
    assert tab.run(state) == [True, "token", "half", False]
    tab.keys("\ue007")
    tab.until("return document.querySelector('dialog [role=alert]').hidden === false")
    assert tab.run(state) == [True, "token", "half", "This is not the token."]
    tab.keys("t\u00f6ken", "\ue007")  # typed over what was there, and nothing that a header could carry
    tab.until("return document.querySelector('dialog [role=alert]').hidden === false")
    assert tab.run(state) == [True, "token", "t\u00f6ken", "This is not the token."]
    tab.keys(TOKEN, "\ue007")
    tab.until("return !document.querySelector('dialog') && !document.body.classList.contains('read-only')")


def _figures(tab: Tab) -> list[str]:
    """The rate of now, as the tile, the curve and the column of the table have it."""
    return list(
        tab.run(
            """
            const tiles = [...document.querySelectorAll(".tile")];
            const tile = tiles.find((one) => one.textContent.startsWith("Pages a second"));
            const rows = [...document.querySelectorAll(".agents tbody td[data-label='Pages/s']")];
            const all = rows.reduce((sum, one) => sum + (Number(one.textContent) || 0), 0);
            const curve = document.querySelector(".chart .now").textContent.replace("/s", "");
            return [tile.querySelector("strong").textContent, curve, all];
            """
        )
    )


def test_one_rate_stands_in_all_places(tab: Tab, serve: Serve) -> None:
    crawl = MadeUp(agents=10)
    tab.open(serve(crawl))
    tab.until("return document.querySelectorAll('.agents tbody tr').length === 10")
    seen = set()
    while len(seen) < 4:  # as it changes
        tile, curve, rows = _figures(tab)
        assert tile == curve
        assert abs(float(tile) - float(rows)) <= 0.2, "the rows are rounded"
        seen.add(tile)


@pytest.mark.parametrize("age, least", [(15.0, "s"), (40.0, "s"), (600.0, "m"), (5_400.0, "m")])
def test_curves_are_as_long_as_the_crawl(tab: Tab, serve: Serve, age: float, least: str) -> None:
    for width in (360, 1280):
        tab.look(width=width)
        tab.open(serve(MadeUp(age=age)))
        tab.until("return document.querySelectorAll('.chart .line').length === 2")
        begin, end, marks = tab.run(
            """
            const art = document.querySelector(".chart svg");
            const box = art.getBoundingClientRect();
            const line = art.querySelector(".line").getBoundingClientRect();
            const marks = [...art.querySelectorAll("text[text-anchor]")].map((one) => {
              const { left, right } = one.getBoundingClientRect();
              return [one.textContent, left, right];
            });
            return [(line.left - box.left) / box.width, (line.right - box.left) / box.width, marks];
            """
        )
        assert begin < 0.05 and end > 0.7, (begin, end)
        assert 2 <= len(marks) <= 20
        assert all((text.count(":") == 2) == (least == "s") for text, _, _ in marks)
        assert all(before[2] < after[1] for before, after in pairwise(marks)), "they lie apart"
