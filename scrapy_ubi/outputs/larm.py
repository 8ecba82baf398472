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
* Pages are read for links in the writer's thread (`larm_links`). A tree that the link extractor has made of a page goes
  there with it, as long as those on their way have no more than `LENT` bytes of pages: then the page is parsed again.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from scrapy.http import HtmlResponse, Response
from scrapy.settings import BaseSettings

from scrapy_ubi.links.page import Page as Parsed
from scrapy_ubi.links.shared import shared
from scrapy_ubi.outputs.larm_links import LINK, REDIRECT, LinkLines, are_clean, clean, parse, read
from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.stores import Page, Store, choice, content_type

LINKS, PAGES = "links.log", "store.log"
MOST = 50_000_000  # bytes of a page file
LENT = 400_000  # bytes of pages whose trees are on their way: some 5 MB of trees, and 13 at worst
LONGEST = 8192  # characters of a field of store.log


class _LarmPayload(NamedTuple):
    page: Page
    response: Response
    body: bytes
    redirect: str
    parsed: Parsed | None


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
        self._on_way: dict[int, int] = {}  # trees -> bytes of their pages
        self._lent = self._returned = 0  # bytes of pages: the first is counted in the loop, the other in the thread
        shared.wanted = True

    def page(self, page: Page) -> _LarmPayload | None:
        """What came for a page; nothing where nothing came."""
        came = page.response if page.response is not None else page.received
        if came is None:
            return None
        location = came.headers.get("Location") if page.response is None else None
        redirect = came.urljoin(location.decode("latin-1")) if location and 300 <= came.status < 400 else ""
        return _LarmPayload(page, came, page.body, redirect, self._lend(came))

    def _lend(self, came: Response) -> Parsed | None:
        """The tree that the link extractor has made of this response, if it is to go with it."""
        parsed, size = shared.take(came), len(came.body)
        if parsed is None or self._lent - self._returned + size > LENT:
            return None
        self._on_way[id(parsed)] = size
        self._lent += size
        return parsed

    def write(self, payload: _LarmPayload, part: Part) -> None:
        """In the writer's thread."""
        page, came, body, redirect, parsed = payload
        self._returned += self._on_way.pop(id(parsed), 0)  # once, however often it is tried to write the page
        title, lines = self._read(page, came, redirect, parsed)
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

    def _read(self, page: Page, came: Response, redirect: str, parsed: Parsed | None) -> tuple[str, bytes]:
        """The title of a page, and the lines of its links."""
        if redirect:
            to = clean(redirect)
            return "", f"{page.url}\t{to}\t{self.normal_form(to) or to}\t{REDIRECT}\t\n".encode("utf-8", "replace")
        if not isinstance(came, HtmlResponse) or (parsed := parsed or parse(came)) is None:
            return "", b""
        links = read(came, parsed)
        # With no tree left the allocator gives its memory back to the system: a third of the time of the next parse.
        self._last = parsed if len(came.body) <= LENT else None
        return links.title, self._lines.of(page.url, links, self.normal_form)

    @staticmethod
    def _put(body: bytes, part: Part) -> tuple[int, int]:
        """Put a page into a page file; its number, and the offset there."""
        number = max((int(name[9:-4]) for name in part.files if name.startswith("pagefile_")), default=1)
        end = part.end_of(f"pagefile_{number}.pfl")
        if end and end + len(body) > MOST:
            number += 1
        return number, part.append(f"pagefile_{number}.pfl", body)


def _line(fields: tuple[str, ...]) -> bytes:
    line = "\t".join(fields) + "\n"
    if len(line) > LONGEST or not are_clean(fields):
        line = "\t".join([clean(field[:LONGEST]) for field in fields]) + "\n"
    return line.encode("utf-8", "replace")
