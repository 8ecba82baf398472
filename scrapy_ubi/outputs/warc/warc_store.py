"""The store `warc`: request, response, metadata, revisit and robots.txt records of each page, in the writer's thread.

Rules of this module:

* One file a part, `<part>.warc.gz`, with a warcinfo record at its beginning and a CDXJ beside it, sorted when sealed.
* Bodies are those that came over the line, before decompression. Responses of a cache, and of other schemes than HTTP,
  are in no WARC. Attempts that Scrapy's retries have replaced are not kept, as they are no pages.
* A page that is visited again and is as it was leaves a revisit record: of its own record where the server says so
  (304), of that with the same payload where it came again, here or in an earlier crawl (`known`). A
  revisit names a record that exists, or none: what a 304 refers to is known as long as this process remembers it
  (`met`), and not after a restart or a hand-over.
* WARC-Date is when the load began. A body that was stopped (UBI_MAX_BODY, a lost connection) is
  WARC-Truncated; a body that was cut only after it had come is there whole. (A load that ran into its limit of time
  leaves no response, and so no record.)
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, NamedTuple

from scrapy import Request
from scrapy.http import Response
from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.requests.check import REQUISITE
from scrapy_ubi.adapter.requests.reason_phrase import REPLAYED, kept_heads
from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.stores import ROBOTS, Page, Store, choice, content_type, number, obeys
from scrapy_ubi.outputs.visit_names import read_visit_name
from scrapy_ubi.outputs.warc import cdxj, members
from scrapy_ubi.outputs.warc.foreign import files_of
from scrapy_ubi.outputs.warc.http_heads import request_head, response_head
from scrapy_ubi.outputs.warc.known import KnownPayloads
from scrapy_ubi.outputs.warc.members import Fields, date, new_id, new_ids
from scrapy_ubi.outputs.warc.met import NOT_MODIFIED, PROFILE, Met, Payloads
from scrapy_ubi.policy.politeness.page_robots import NOARCHIVE, PAGE_ROBOTS
from scrapy_ubi.policy.politeness.usage import USAGE, text_of
from scrapy_ubi.urls.filters.filter_text import FilterError

WARC, LINES = "warc.gz", "cdxj"
REVISIT = 1024  # bytes from which on a payload that was met before is not written again
NOTHING_NEW = 304
NOT_LOADED = frozenset({"cached", REPLAYED})  # flags of responses
HTTP = "application/http; msgtype="
TRUNCATED = {"dataloss": "disconnect", "download_stopped": "length"}  # flag of a response -> why


class _Head(NamedTuple):
    """Of the record of a response: its name, URL and date, and the fields with them."""

    id: str
    url: str
    date: str
    fields: str


class WarcStore(Store):
    """`warc(request=yes, metadata=yes, robots=yes, requisites=no, noarchive=obey, revisit=1024, known=, digest=sha1,
    gzip=auto)`."""

    name: ClassVar[str] = "warc"
    wants_pages: ClassVar[bool] = True
    wants_unchanged: ClassVar[bool] = True

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        self._request = choice(arguments, "request", default=True)
        self._metadata = choice(arguments, "metadata", default=True)
        self.wants_robots = choice(arguments, "robots", default=True)
        self.obeyed = obeys(arguments, NOARCHIVE)
        self.wants_requisites = choice(arguments, "requisites", default=False)
        self._revisit = _revisit(arguments)
        algorithm = (arguments.pop("digest", ()) or ("sha1",))[-1]
        if algorithm not in members.DIGESTS:
            raise FilterError(f"has digest={algorithm!r}", "give sha1 or sha256")
        self._digest = members.DIGESTS[algorithm]
        self._known = _known(arguments.pop("known", ()), algorithm)
        self._compress = _compress(arguments)
        self._info = _info(settings)
        self._met = Payloads()
        self._pages = Payloads()
        self._visits_again = bool(settings.get("UBI_RECRAWL"))
        self._tidied = False
        self._part: Part | None = None
        self._file = ""
        super().__init__(arguments, settings)
        kept_heads.wanted = True

    def page(self, page: Page) -> Page | None:
        """What came, where it came by HTTP and the page does not say `noarchive`."""
        came = page.received
        if came is None or not came.url.startswith(("http://", "https://")) or not NOT_LOADED.isdisjoint(came.flags):
            return None
        return None if self.obeyed in page.robots else page

    def keeps_requisites_of(self, request: Request) -> bool:
        """Whether the page is kept, as far as it says."""
        return not self.obeyed or self.obeyed not in request.meta.get(PAGE_ROBOTS, ())

    def write(self, payload: Page, part: Part) -> None:
        """In the writer's thread."""
        page, came = payload, payload.received
        assert came is not None
        if part is not self._part:
            self._begin(part)
        if not part.end_of(WARC):
            self._put(part, members.record("warcinfo", self._of_file(part), self._info))
        url, when = came.url.partition("#")[0], date(page.began)
        common = f"WARC-Target-URI: {url}\r\nWARC-Date: {when}\r\n"
        if came.ip_address is not None:
            common += f"WARC-IP-Address: {came.ip_address}\r\n"
        name, *beside = new_ids(1 + self._request + self._metadata)
        self._put_response(part, page, came, _Head(name, url, when, f"WARC-Record-ID: {name}\r\n{common}"))
        common += f"WARC-Concurrent-To: {name}\r\n"
        if self._request:
            head, body = request_head(page.request), page.request.body
            fields = f"WARC-Record-ID: {beside.pop()}\r\n{common}Content-Type: {HTTP}request\r\n"
            fields += f"WARC-Block-Digest: {self._digest(head, body)}\r\n"
            self._put(part, members.framed("request", fields, head, body))
        if self._metadata:
            fields = f"WARC-Record-ID: {beside.pop()}\r\n{common}Content-Type: application/warc-fields\r\n"
            self._put(part, members.framed("metadata", fields, _metadata(page)))

    def sealed(self, files: Mapping[str, Path]) -> None:
        """Sort the index."""
        if LINES in files:
            cdxj.sort(files[LINES])

    def _begin(self, part: Part) -> None:
        """A part is written to for the first time. Indexes of files that a killed process has left are sorted, once."""
        self._known.read_indexes(part.path_of(WARC).parent)
        for reason, count in self._known.refused.items():
            self.refused[f"known/{reason}"] = count
        self._part, self._file = part, part.path_of(WARC).name
        if not self._tidied:
            self._tidied = True
            for path in part.path_of(LINES).parent.glob(f"*.{LINES}"):
                cdxj.sort(path)

    def _put_response(self, part: Part, page: Page, came: Response, of: _Head) -> None:
        head, body = self._head(page, came), came.body
        why = next((why for flag, why in TRUNCATED.items() if flag in came.flags), "") if came.flags else ""
        payload = self._digest(body)
        known = 0 < self._revisit <= len(body) and not why
        met = self._met.find(payload) if known else None
        if known and met is None:
            met = self._known.find(payload)
        met, payload, refers = self._refers(page, came, met, payload)
        fields = f"{of.fields}Content-Type: {HTTP}response\r\n"
        fields += f"WARC-Payload-Digest: {payload}\r\n{refers}" if payload else refers
        if refers:
            body = b""
        if why:
            fields += f"WARC-Truncated: {why}\r\n"
        fields += f"WARC-Block-Digest: {self._digest(head, body)}\r\n"
        record = members.framed("revisit" if refers else "response", fields, head, body)
        offset, length = self._put(part, record)
        mime = cdxj.REVISIT if refers else content_type(came)
        part.append(LINES, cdxj.line(of.url, of.date, came.status, mime, payload, length, offset, self._file))
        if known and met is None:
            self._met.wrote(payload, Met(of.id, of.date, payload, of.url), part, WARC)
        if self._visits_again and not why and came.status != NOTHING_NEW:
            page_name = read_visit_name(page.name).page
            self._pages.wrote(page_name, met or Met(of.id, of.date, payload, of.url), part, WARC)

    def _refers(self, page: Page, came: Response, met: Met | None, payload: str) -> tuple[Met | None, str, str]:
        """What a record refers to where it is a revisit: the record, the digest of its payload, "" where that is not
        known, and the fields that say so, "" where it is none."""
        if came.status != NOTHING_NEW or not page.unchanged:
            return met, payload, f"WARC-Profile: {PROFILE}\r\n{met.fields}" if met is not None else ""
        met = self._pages.find(read_visit_name(page.name).page)
        refers = f"WARC-Profile: {NOT_MODIFIED}\r\n{met.fields if met is not None else ''}"
        return met, met.digest if met is not None else "", refers

    @staticmethod
    def _head(page: Page, came: Response) -> bytes:
        whole = not came.flags or not any(flag in came.flags for flag in TRUNCATED)
        return response_head(came, page.request.method, whole)

    def _put(self, part: Part, record: bytes) -> tuple[int, int]:
        """Append a record; where it lies, and how long it is there."""
        member = self._compress(record)
        return part.append(WARC, member), len(member)

    @staticmethod
    def _of_file(part: Part) -> Fields:
        return [
            ("WARC-Record-ID", new_id()), ("WARC-Date", date(part.opened)), ("WARC-Filename", part.path_of(WARC).name),
            ("Content-Type", "application/warc-fields"),
        ]  # fmt: skip


def _metadata(page: Page) -> bytes:
    """What is known of a page, in the words that Heritrix has for it, and ours."""
    via = page.redirected_from or page.from_url
    text = f"via: {_on_one_line(via)}\r\n" if via else ""
    if hops := _hops(page):
        text += f"hopsFromSeed: {hops}\r\n"
    if page.came:
        text += f"fetchTimeMs: {max(0, round((page.came - page.began) * 1000))}\r\n"
    text += f"ubi-key: {page.name}\r\n"
    if page.visit > 1:
        text += f"ubi-visit: {page.visit}\r\n"
    if page.unchanged:
        text += "ubi-unchanged: yes\r\n"
    if page.attempt:
        text += f"ubi-attempt: {page.attempt}\r\n"
    if page.failed:
        text += f"ubi-failed: {_on_one_line(page.failed)}\r\n"
    if page.received is not None and page.received.protocol:
        text += f"protocol: {_on_one_line(page.received.protocol)}\r\n"
    if isinstance(usage := page.request.meta.get(USAGE), dict):
        text += f"ubi-usage: {_on_one_line(text_of(usage))}\r\n"
    if page.robots:
        text += f"ubi-page-robots: {', '.join(page.robots)}\r\n"
    return text.encode("utf-8", "replace")


def _hops(page: Page) -> str:
    """Return the way from the seed in Heritrix's letters: a link each, then the redirects that led to this URL; those
    of the pages before are not known. A robots.txt is a prerequisite, a requisite is embedded."""
    if page.name.startswith(ROBOTS):
        return "P"
    came_by = page.request.meta.get("redirect_urls")
    embedded = "E" if REQUISITE in page.request.meta else ""
    return "L" * page.depth + embedded + "R" * (len(came_by) if isinstance(came_by, list) else 0)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _info(settings: BaseSettings) -> bytes:
    found = {
        "software": f"scrapy-ubi/{version('scrapy-ubi')}",
        "format": "WARC File Format 1.1",
        "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        "isPartOf": settings.get("UBI_CRAWL") or settings.get("BOT_NAME") or "",
        "http-header-user-agent": settings.get("USER_AGENT") or "",
        "robots": "obey" if settings.getbool("ROBOTSTXT_OBEY") else "ignore",
    }
    lines = [f"{name}: {' '.join(str(value).split())}\r\n" for name, value in found.items() if value]
    return "".join(lines).encode("utf-8", "replace")


def _revisit(arguments: dict[str, tuple[str, ...]]) -> float:
    """Bytes from which on a payload is looked up; 0: none is."""
    if arguments.get("revisit", ("",))[-1] == "no":
        del arguments["revisit"]
        return 0
    return number(arguments, "revisit", REVISIT)


def _known(patterns: tuple[str, ...], algorithm: str) -> KnownPayloads:
    """What the indexes of earlier crawls say. Raises FilterError."""
    paths, empty = files_of(patterns)
    if empty:
        raise FilterError(f"has known={empty[0]!r}, which is no file", "give paths or globs of CDXJ files")
    return KnownPayloads(paths, algorithm)


def _compress(arguments: dict[str, tuple[str, ...]]) -> members.Compress:
    asked = (arguments.pop("gzip", ()) or ("auto",))[-1]
    if asked not in ("auto", "isal", "zlib"):
        raise FilterError(f"has gzip={asked!r}", "give auto, isal or zlib")
    found = members.by_isal() if asked != "zlib" else None
    if found is None and asked == "isal":
        raise FilterError("wants isal, which is not installed", "install it: pip install 'scrapy-ubi[warc]'")
    return found or members.by_zlib


__all__ = ["LINES", "WARC", "WarcStore"]
