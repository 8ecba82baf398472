"""Which pages go to the browser, host by host (`UBI_BROWSER`), and what their callbacks get.

What a page shows: its words and its links; and whether scripts have made that, by comparing the page as it was sent
with the page as a browser has it.

Rules of this module:

* A page is fetched as any other. HTML that came with 200 and has a script may be shown by the browser as well: all such
  pages of a host that was decided so, those that a host is judged by, and of other hosts those that show next to
  nothing.
* While a host is open its pages are judged one after the other, and others of it wait: none is given without its
  content. A page that scripts have made is given as the browser shows it, whatever is decided of its host.
* What people have said of a host (`scrapy ubi set UBI_BROWSER=... --host`) comes before what was seen.
* Pages of `plain` hosts that show next to nothing are shown until `MOST_SHELLS` of a host were nothing else.
* A page that is to be shown and cannot be has failed: it is tried again, as RETRY_TIMES says, and then has the reason
  `exception/BrowserFailed`.
* Words are those that people see: not what stands in scripts, styles, templates and `noscript`.
* Scripts have made a page where a good part of the words or of the links that the browser shows was not sent. A banner
  or a date beside a text is no such part.
* A page is data from outside: of a longer one the beginning is looked at.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from scrapy.http import HtmlResponse, TextResponse
from selectolax.lexbor import LexborHTMLParser

from scrapy_ubi.ground.clock import unix
from scrapy_ubi.policy.browser.host_judgement import SECTION, HostJudgement, read_judgement

if TYPE_CHECKING:
    from scrapy_ubi.agent import Node
    from scrapy_ubi.protocol.host import HostState
    from scrapy_ubi.settings import UbiSettings

MOST_CHARACTERS = 2_000_000  # of a page that are looked at
MOST_WORDS, MOST_LINKS = 50_000, 10_000
UNSEEN = ("script", "style", "noscript", "template")

SHARE = 0.25  # of what the browser shows, from which on scripts have made the page
WORDS, LINKS = 25, 5  # fewer that are new never count: a date, a banner, a menu
SHELL = 25  # words: a page with scripts that shows fewer may be one that is filled by them

FLAG = "browser"  # of a response that has what the browser shows
MOST_SHELLS = 5
MOST_HOSTS = 10_000  # of which that is counted; beyond, it begins again

Show = Callable[[TextResponse], Awaitable[str]]


@dataclass(frozen=True)
class PageContent:
    """The words of a page, with how often each stands there, and where its links lead as they are written."""

    words: Mapping[str, int]
    links: frozenset[str]

    @property
    def is_shell(self) -> bool:
        """Whether it shows next to nothing."""
        return sum(self.words.values()) < SHELL


def read_content(html: str) -> PageContent:
    """Read what a page shows."""
    tree = LexborHTMLParser(html[:MOST_CHARACTERS])
    tree.strip_tags(list(UNSEEN))
    body = tree.body
    words = body.text(separator=" ").split()[:MOST_WORDS] if body is not None else []
    links = (node.attributes.get("href") for node in tree.css("a[href]")[:MOST_LINKS])
    return PageContent(Counter(words), frozenset(link.strip() for link in links if link and link.strip()))


def is_made_by_scripts(sent: PageContent, shown: PageContent) -> bool:
    """Return whether scripts have made a page, which was `sent` so and which a browser has `shown` so."""
    new_words = sum((Counter(shown.words) - Counter(sent.words)).values())
    new_links = len(shown.links - sent.links)
    return (new_words >= WORDS and new_words >= SHARE * sum(shown.words.values())) or (
        new_links >= LINKS and new_links >= SHARE * len(shown.links)
    )


_script = re.compile(rb"<script", re.IGNORECASE)


def has_scripts(body: bytes) -> bool:
    """Return whether a page has a script at all. One without is what it is."""
    return _script.search(body) is not None


class ShownPages:
    """Decides for the pages of one agent. `show` gives the HTML of a page as a browser has it, and may raise."""

    def __init__(
        self,
        node: Node,
        settings: UbiSettings,
        show: Show,
        count: Callable[[str], object],
        now: Callable[[], float] = unix,
    ) -> None:
        self._node = node
        self._show = show
        self._count = count
        self._now = now
        self._mode = settings.browser
        self._of_host = node.live.of_host
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._shells: Counter[str] = Counter()
        node.live.follow(lambda live: self._follow(live.now, live.of_host))

    def _follow(self, settings: UbiSettings, of_host: Mapping[str, UbiSettings]) -> None:
        self._mode, self._of_host = settings.browser, of_host

    def _mode_of(self, host: str) -> str:
        said = self._of_host.get(host)
        return self._mode if said is None else said.browser

    async def given(self, state: HostState, response: HtmlResponse) -> HtmlResponse:
        """Return what the callback of a page of this host gets. Raises what `show` raises."""
        mode = self._mode_of(state.host)
        if mode == "off" or response.status != 200 or not has_scripts(response.body):
            return response
        if mode == "always":
            return _as_shown(response, await self._show(response))
        if not self._judgement(state).decision:
            lock = self._locks.setdefault(state.host, asyncio.Lock())
            async with lock:
                if not self._judgement(state).decision:
                    return await self._judge(state, response)
        if self._judgement(state).decision == "browser":
            return _as_shown(response, await self._show(response))
        return await self._look_at_shell(state.host, response)

    def _judgement(self, state: HostState) -> HostJudgement:
        return read_judgement(self._node.hosts.get(state, SECTION), self._now())

    async def _judge(self, state: HostState, response: HtmlResponse) -> HtmlResponse:
        """Show one of the pages that a host is judged by."""
        made, html = await self._compare(response)
        judged = self._judgement(state).with_page(made, self._now())
        self._node.hosts.put(state, SECTION, judged.to_note())
        self._count(f"ubi/browser/judged/{'made' if made else 'whole'}")
        if decision := judged.decision:
            self._count(f"ubi/browser/hosts/{decision}")
            self._node.note(f"browser/{decision}", state.host)
        return _as_shown(response, html) if made else response

    async def _look_at_shell(self, host: str, response: HtmlResponse) -> HtmlResponse:
        if self._shells[host] >= MOST_SHELLS or not read_content(response.text).is_shell:
            return response
        made, html = await self._compare(response)
        if made:
            self._count("ubi/browser/shells")
            return _as_shown(response, html)
        if len(self._shells) >= MOST_HOSTS:
            self._shells.clear()
        self._shells[host] += 1
        return response

    async def _compare(self, response: HtmlResponse) -> tuple[bool, str]:
        html = await self._show(response)
        return is_made_by_scripts(read_content(response.text), read_content(html)), html


def _as_shown(response: HtmlResponse, html: str) -> HtmlResponse:
    """The response with this in place of its body."""
    headers = response.headers.copy()
    headers["Content-Type"] = "text/html; charset=utf-8"
    body = html.encode("utf-8", "replace")
    return response.replace(body=body, encoding="utf-8", headers=headers, flags=[*response.flags, FLAG])
