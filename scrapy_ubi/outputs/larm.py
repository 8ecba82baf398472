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
* Pages are parsed for links in the writer's thread (`larm_links`). Where the link extractor has made a tree of a page,
  its links are read off that, in the loop: to keep trees until the thread comes to them takes longer.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from scrapy.http import HtmlResponse, Response
from scrapy.settings import BaseSettings

from scrapy_ubi.outputs.larm_links import LINK, REDIRECT, LinkLines, LinksRead, are_clean, clean, parse_page, read
from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.stores import Page, Store, choice, content_type
from scrapy_ubi.urls.links.page import Page as Parsed
from scrapy_ubi.urls.links.shared import shared

LINKS, PAGES = "links.log", "store.log"
MOST = 50_000_000  # bytes of a page file
KEPT = 400_000  # bytes of a page whose tree is kept until the next one
LONGEST = 8192  # characters of a field of store.log


class _LarmPayload(NamedTuple):
    page: Page
    response: Response
    body: bytes
    redirect: str
    links: LinksRead | None  # where they were read already


class LarmStore(Store):
    """`larm(pages=yes)`: LARM's three files."""

    name: ClassVar[str] = "larm"
    separator: ClassVar[str] = "/"
    wants_pages: ClassVar[bool] = True

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        self._pages = choice(arguments, "pages", default=True)
        super().__init__(arguments, settings)
        self._lines = LinkLines()
        self._last: Parsed | None = None
        self._file: tuple[Part | None, int, str] = None, 0, ""  # of which part, the number and name of its page file
        shared.wanted = True

    def page(self, page: Page) -> _LarmPayload | None:
        """What came for a page; nothing where nothing came."""
        came = page.response if page.response is not None else page.received
        if came is None:
            return None
        location = came.headers.get("Location") if page.response is None else None
        redirect = came.urljoin(location.decode("latin-1")) if location and 300 <= came.status < 400 else ""
        parsed = shared.take_page(came)
        links = read(came, came.text, parsed) if parsed is not None and isinstance(came, HtmlResponse) else None
        return _LarmPayload(page, came, page.body, redirect, links)

    def write(self, payload: _LarmPayload, part: Part) -> None:
        """In the writer's thread."""
        page, came, body, redirect, links = payload
        title, lines = self._read(page, came, redirect, links)
        number, offset = self._put(body, part) if self._pages and body else (0, 0)
        if lines:
            part.append(LINKS, lines)
        by = page.redirected_from
        mime = content_type(came).partition(";")[0].strip()
        fields = (
            by or page.from_url, page.url, page.normal, str(REDIRECT if by else LINK), str(came.status), mime,
            str(len(body)), title, str(number), str(offset),
        )  # fmt: skip
        part.append(PAGES, _line(fields))

    def _read(self, page: Page, came: Response, redirect: str, links: LinksRead | None) -> tuple[str, bytes]:
        """The title of a page, and the lines of its links."""
        if redirect:
            to = clean(redirect)
            return "", f"{page.url}\t{to}\t{self.normal_form(to) or to}\t{REDIRECT}\t\n".encode("utf-8", "replace")
        if links is None:
            if not isinstance(came, HtmlResponse):
                return "", b""
            if (parsed := parse_page(text := came.text)) is None:
                self.leave_unread(came.url)
                return "", b""
            links = read(came, text, parsed)
            # With no tree left the allocator gives its memory back to the system, and asks for it at the next one.
            self._last = parsed if len(came.body) <= KEPT else None
        return links.title, self._lines.format_links(page.url, links, self.normal_form)

    def _put(self, body: bytes, part: Part) -> tuple[int, int]:
        """Put a page into a page file; its number, and the offset there."""
        of, number, name = self._file
        if of is not part:
            number, name = 1, _page_file(1)
        end = part.end_of(name)
        if end and end + len(body) > MOST:
            number, name = number + 1, _page_file(number + 1)
        offset = part.append(name, body)
        self._file = part, number, name
        return number, offset


def _page_file(number: int) -> str:
    return f"pagefile_{number}.pfl"


def _line(fields: tuple[str, ...]) -> bytes:
    line = "\t".join(fields) + "\n"
    if len(line) > LONGEST or not are_clean(fields):
        line = "\t".join([clean(field[:LONGEST]) for field in fields]) + "\n"
    return line.encode("utf-8", "replace")
