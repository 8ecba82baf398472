"""LARM's files: `links.log`, `store.log` and the pages themselves in `pagefile_<n>.pfl`.

Rules of this module:

* One directory a part, in it files of LARM's names; fields are parted by tabs, in UTF-8. What would break a line in a
  title or a link's text (tabs, line ends, other control characters) is a space.
* `links.log`, a line for each link that a page has, also those that a filter refuses: from, to, to in normal form, type
  (0 link, 1 frame, 2 redirect), text of the link or ALT of its image.
* `store.log`, a line for each page: from, URL, URL in normal form, type of the link that led here, status, MIME type,
  size, title, number of the page file, offset there. Number and offset are 0 where the page itself is not kept.
* A page's bytes are those that its callback got. A page file has at most 50,000,000 bytes (unless one page has more):
  its size is looked at before a page is written, not after, as LARM did.
* Pages are read for links in the writer's thread. Those that cost a parser seconds are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

from scrapy.http import HtmlResponse, Response
from scrapy.settings import BaseSettings
from scrapy.utils.response import get_base_url
from selectolax.lexbor import LexborNode
from w3lib.html import strip_html5_whitespace

from scrapy_ubi.links.costly import is_costly
from scrapy_ubi.links.joiner import Joiner
from scrapy_ubi.links.page import Page as Parsed
from scrapy_ubi.links.page import written
from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.stores import Page, Store, choice
from scrapy_ubi.urls import normal_form

LINKS, PAGES = "links.log", "store.log"
MOST = 50_000_000  # bytes of a page file
LINK, FRAME, REDIRECT = 0, 1, 2
LONGEST = 1000  # characters of a title or a text

_FRAMES = ("frame", "iframe")
_SELECTOR = "a[href],area[href],frame[src],iframe[src]"
_blank = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029]+")


class LarmLink(NamedTuple):
    """A link of a page."""

    to: str
    type: int
    text: str


class _LarmPayload(NamedTuple):
    page: Page
    response: Response | None
    body: bytes
    redirect: str


class LarmStore(Store):
    """`larm(pages=yes)`: LARM's three files."""

    name: ClassVar[str] = "larm"
    separator: ClassVar[str] = "/"
    wants_pages: ClassVar[bool] = True

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        self._pages = choice(arguments, "pages", default=True)
        super().__init__(arguments, settings)

    def page(self, page: Page) -> _LarmPayload | None:
        """What came for a page; nothing where nothing came."""
        came = page.response if page.response is not None else page.received
        if came is None:
            return None
        location = came.headers.get("Location") if page.response is None else None
        redirect = came.urljoin(location.decode("latin-1")) if location and 300 <= came.status < 400 else ""
        return _LarmPayload(page, came, page.body, redirect)

    def write(self, payload: _LarmPayload, part: Part) -> None:
        """In the writer's thread."""
        page, came = payload.page, payload.response
        assert came is not None
        title, links = read(came) if not payload.redirect else ("", [LarmLink(_clean(payload.redirect), REDIRECT, "")])
        number, offset = self._put(payload.body, part) if self._pages and payload.body else (0, 0)
        if links:
            part.append(LINKS, _lines(page.url, links))
        kind = REDIRECT if page.redirected_from else LINK
        mime = (came.headers.get("Content-Type") or b"").decode("latin-1").partition(";")[0].strip()
        fields = (
            page.redirected_from or page.from_url, page.url, page.normal, kind, came.status, mime, len(payload.body),
            title, number, offset,
        )  # fmt: skip
        part.append(PAGES, _line(*fields))

    @staticmethod
    def _put(body: bytes, part: Part) -> tuple[int, int]:
        """Put a page into a page file; its number, and the offset there."""
        number = max((int(name[9:-4]) for name in part.files if name.startswith("pagefile_")), default=1)
        end = part.end_of(f"pagefile_{number}.pfl")
        if end and end + len(body) > MOST:
            number += 1
        return number, part.append(f"pagefile_{number}.pfl", body)


def read(response: Response) -> tuple[str, list[LarmLink]]:
    """The title and the links of a page; nothing where it is no HTML, or would take a parser seconds."""
    if not isinstance(response, HtmlResponse):
        return "", []
    page = written(response.text)
    if is_costly(page):
        return "", []
    parsed = Parsed(page)
    titles = parsed.texts("title")
    joiner = Joiner(get_base_url(response), response.url, response.encoding)
    return (titles[0] if titles else ""), list(_links(parsed, joiner.join))


def _links(parsed: Parsed, join: Callable[[str], str | None]) -> Iterator[LarmLink]:
    for node in parsed.chosen(_SELECTOR):
        is_frame = node.tag in _FRAMES
        value = node.attributes.get("src" if is_frame else "href")
        try:
            url = join(strip_html5_whitespace(value)) if value is not None else None
        except ValueError:
            continue
        if url is not None:
            yield LarmLink(url, FRAME if is_frame else LINK, "" if is_frame else _text(node))


def _text(node: LexborNode) -> str:
    """The text of a link, else the ALT of the area or of an image in it."""
    text = node.text(deep=True)[:LONGEST] if node.tag == "a" else ""
    if text.strip():
        return text
    holders = [node] if node.tag == "area" else node.css("img[alt]")
    return next((alt for holder in holders if (alt := holder.attributes.get("alt"))), "")


def _lines(page: str, links: list[LarmLink]) -> bytes:
    """Lines of links, whose URLs have been made safe."""
    lines = [
        f"{page}\t{to}\t{normal_form(to) or to}\t{kind}\t{_clean(text) if text else ''}\n" for to, kind, text in links
    ]
    return "".join(lines).encode("utf-8", "replace")


def _clean(text: str) -> str:
    return _blank.sub(" ", text).strip()


def _line(*fields: Any) -> bytes:
    return ("\t".join(_clean(str(field)[:8192]) for field in fields) + "\n").encode("utf-8", "replace")
