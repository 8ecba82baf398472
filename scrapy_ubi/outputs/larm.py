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
* Normal forms are those of the frontier (UBI_NORMALISE). The last ones are remembered: pages of a site share links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from scrapy.http import HtmlResponse, Response
from scrapy.settings import BaseSettings
from scrapy.utils.response import get_base_url
from selectolax.lexbor import LexborNode
from w3lib.html import strip_html5_whitespace

from scrapy_ubi.links.costly import is_costly
from scrapy_ubi.links.joiner import WEB, Joiner, plain
from scrapy_ubi.links.page import Page as Parsed
from scrapy_ubi.links.page import written
from scrapy_ubi.links.usual import long_way
from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.stores import Page, Store, choice

LINKS, PAGES = "links.log", "store.log"
MOST = 50_000_000  # bytes of a page file
LINK, FRAME, REDIRECT = 0, 1, 2
LONGEST = 1000  # characters of a title or a text

FORMS = 16_384  # normal forms remembered: some MB

_FRAMES = ("frame", "iframe")
_OTHERS = ("area", *_FRAMES)
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
        self._forms: dict[str, str] = {}

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
            part.append(LINKS, self._lines(page.url, links))
        kind = REDIRECT if page.redirected_from else LINK
        mime = (came.headers.get("Content-Type") or b"").decode("latin-1").partition(";")[0].strip()
        fields = (
            page.redirected_from or page.from_url, page.url, page.normal, kind, came.status, mime, len(payload.body),
            title, number, offset,
        )  # fmt: skip
        part.append(PAGES, _line(*fields))

    def _lines(self, page: str, links: list[LarmLink]) -> bytes:
        """Lines of links, whose URLs have been made safe."""
        forms, lines = self._forms, []
        for to, kind, text in links:
            if (form := forms.get(to)) is None:
                if len(forms) >= FORMS:
                    forms.clear()
                form = forms[to] = self.normal_form(to) or to
            lines.append(f"{page}\t{to}\t{form}\t{kind}\t{_clean(text) if text else ''}\n")
        return "".join(lines).encode("utf-8", "replace")

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
    return (titles[0] if titles else ""), list(_links(parsed, _joiner(response)))


def _joiner(response: HtmlResponse) -> Joiner:
    """What joins links to the page's base. To look for a base takes as long as to join 20 links."""
    usual = "<base" not in response.text[:4096].lower() and plain(response.url)
    return Joiner(response.url if usual else get_base_url(response), response.url, response.encoding)


def _links(parsed: Parsed, joiner: Joiner) -> Iterator[LarmLink]:
    found = [
        (node, strip_html5_whitespace(value))
        for node in parsed.tagged("a", _OTHERS, _SELECTOR)
        if (value := node.attrs.get("src" if node.tag in _FRAMES else "href")) is not None
    ]
    urls = _joined({value for _, value in found}, joiner)
    for node, value in found:
        url = urls[value]
        if url is not None:
            is_frame = node.tag in _FRAMES
            yield LarmLink(url, FRAME if is_frame else LINK, "" if is_frame else _text(node))


def _joined(values: set[str], joiner: Joiner) -> dict[str, str | None]:
    """The URL that each value means; None where it means none."""
    others = long_way(values, "\n".join(values) + "\n", joiner)
    return {value: joiner.join(value) if value in others else _shortly(value, joiner) for value in values}


def _shortly(value: str, joiner: Joiner) -> str:
    """The URL of what takes no more than putting two strings together."""
    first = value[0]
    if first == "/":
        return joiner.root + value
    if first == "h" and value.startswith(WEB):
        return value
    return joiner.special(value) if first in ".?#" else joiner.folder + value


def _text(node: LexborNode) -> str:
    """The text of a link, else the ALT of the area or of an image in it."""
    text = (node.text_lexbor() or "")[:LONGEST] if node.tag == "a" else ""
    if text.strip():
        return text
    holders = [node] if node.tag == "area" else node.css("img[alt]")
    return next((alt for holder in holders if (alt := holder.attributes.get("alt"))), "")


def _clean(text: str) -> str:
    return _blank.sub(" ", text).strip()


def _line(*fields: Any) -> bytes:
    return ("\t".join(_clean(str(field)[:8192]) for field in fields) + "\n").encode("utf-8", "replace")
