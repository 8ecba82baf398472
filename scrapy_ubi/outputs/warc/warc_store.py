"""The store `warc`: request, response, metadata, revisit and robots.txt records of each page, in the writer's thread.

Rules of this module:

* One file a part, `<part>.warc.gz`, with a warcinfo record at its beginning and a CDXJ beside it, sorted when sealed.
* Bodies are those that came over the line, before decompression. Responses of a cache, and of other schemes than HTTP,
  are in no WARC. Attempts that Scrapy's retries have replaced are not kept, as they are no pages.
* WARC-Date is when the load began. A body that was stopped (UBI_MAX_BODY, a lost connection) is
  WARC-Truncated; a body that was cut only after it had come is there whole. (A load that ran into its limit of time
  leaves no response, and so no record.)
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from scrapy.http import Response
from scrapy.settings import BaseSettings

from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.stores import Page, Store, choice, number
from scrapy_ubi.outputs.warc import cdxj, members
from scrapy_ubi.outputs.warc.http_heads import request_head, response_head
from scrapy_ubi.outputs.warc.members import Fields, date, digest, new_id
from scrapy_ubi.outputs.warc.met import PROFILE, Met, Payloads
from scrapy_ubi.requests.reason import REPLAYED
from scrapy_ubi.urls.filters.filter_text import FilterError

WARC, LINES = "warc.gz", "cdxj"
REVISIT = 1024  # bytes from which on a payload that was met before is not written again
NOT_LOADED = frozenset({"cached", REPLAYED})  # flags of responses
HTTP = "application/http; msgtype="
TRUNCATED = {"dataloss": "disconnect", "download_stopped": "length"}  # flag of a response -> why


class WarcStore(Store):
    """`warc(request=yes, metadata=yes, robots=yes, revisit=1024, gzip=auto)`."""

    name: ClassVar[str] = "warc"
    wants_pages: ClassVar[bool] = True

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        self._request = choice(arguments, "request", default=True)
        self._metadata = choice(arguments, "metadata", default=True)
        self.wants_robots = choice(arguments, "robots", default=True)
        self._revisit = _revisit(arguments)
        self._compress = _compress(arguments)
        self._info = _info(settings)
        self._met = Payloads()
        self._tidied = False
        super().__init__(arguments, settings)

    def page(self, page: Page) -> Page | None:
        """What came, where it came by HTTP."""
        came = page.received
        if came is None or not came.url.startswith(("http://", "https://")) or not NOT_LOADED.isdisjoint(came.flags):
            return None
        return page

    def write(self, payload: Page, part: Part) -> None:
        """In the writer's thread."""
        page, came = payload, payload.received
        assert came is not None
        self._tidy(part)
        if not part.end_of(WARC):
            self._put(part, "warcinfo", self._of_file(part), self._info)
        url, when = came.url.partition("#")[0], date(page.began)
        common = [("WARC-Target-URI", url), ("WARC-Date", when)]
        if came.ip_address is not None:
            common.append(("WARC-IP-Address", str(came.ip_address)))
        name = new_id()
        self._put_response(part, page, came, [("WARC-Record-ID", name), *common])
        beside = [*common, ("WARC-Concurrent-To", name)]
        if self._request:
            fields = [("WARC-Record-ID", new_id()), *beside, ("Content-Type", HTTP + "request")]
            head, body = request_head(page.request), page.request.body
            self._put(part, "request", [*fields, ("WARC-Block-Digest", digest(head, body))], head, body)
        if self._metadata:
            fields = [("WARC-Record-ID", new_id()), *beside, ("Content-Type", "application/warc-fields")]
            self._put(part, "metadata", fields, _metadata(page))

    def sealed(self, files: Mapping[str, Path]) -> None:
        """Sort the index."""
        if LINES in files:
            cdxj.sort(files[LINES])

    def _tidy(self, part: Part) -> None:
        """Sort the indexes of files that a killed process has left, once."""
        if not self._tidied:
            self._tidied = True
            for path in part.path_of(LINES).parent.glob(f"*.{LINES}"):
                cdxj.sort(path)

    def _put_response(self, part: Part, page: Page, came: Response, fields: Fields) -> None:
        head, body = self._head(page, came), came.body
        why = next((why for flag, why in TRUNCATED.items() if flag in came.flags), "")
        payload = digest(body)
        met = self._met.find(payload) if self._revisit and len(body) >= self._revisit and not why else None
        fields += [("Content-Type", HTTP + "response"), ("WARC-Payload-Digest", payload)]
        if met is not None:
            fields += [
                ("WARC-Profile", PROFILE), ("WARC-Refers-To", met.id), ("WARC-Refers-To-Target-URI", met.url),
                ("WARC-Refers-To-Date", met.date),
            ]  # fmt: skip
            body = b""
        if why:
            fields.append(("WARC-Truncated", why))
        fields.append(("WARC-Block-Digest", digest(head, body)))
        kind = "response" if met is None else "revisit"
        offset, length = self._put(part, kind, fields, head, body)
        mime = (came.headers.get("Content-Type") or b"").decode("latin-1") if met is None else cdxj.REVISIT
        named = dict(fields)
        url, when = named["WARC-Target-URI"], named["WARC-Date"]
        line = cdxj.line(url, when, came.status, mime, payload, length, offset, part.path_of(WARC).name)
        part.append(LINES, line)
        if self._revisit and met is None and len(body) >= self._revisit and not why:
            self._met.wrote(payload, Met(named["WARC-Record-ID"], when, url), part, WARC)

    @staticmethod
    def _head(page: Page, came: Response) -> bytes:
        whole = not any(flag in came.flags for flag in TRUNCATED)
        return response_head(came, page.request.method, whole)

    def _put(self, part: Part, kind: str, fields: Fields, *block: bytes) -> tuple[int, int]:
        """Append a record; where it lies, and how long it is there."""
        member = self._compress(members.record(kind, fields, *block))
        return part.append(WARC, member), len(member)

    @staticmethod
    def _of_file(part: Part) -> Fields:
        return [
            ("WARC-Record-ID", new_id()), ("WARC-Date", date(part.opened)), ("WARC-Filename", part.path_of(WARC).name),
            ("Content-Type", "application/warc-fields"),
        ]  # fmt: skip


def _metadata(page: Page) -> bytes:
    """What is known of a page, in the words that Heritrix has for it, and ours."""
    found: dict[str, Any] = {
        "via": page.redirected_from or page.from_url,
        "hopsFromSeed": page.depth or "",
        "fetchTimeMs": max(0, round((page.came - page.began) * 1000)) if page.came else "",
        "ubi-key": page.name,
        "ubi-attempt": page.attempt or "",
        "ubi-failed": page.failed or "",
        "protocol": (page.received.protocol or "") if page.received is not None else "",
    }
    lines = [f"{name}: {' '.join(str(value).split())}\r\n" for name, value in found.items() if value != ""]
    return "".join(lines).encode("utf-8", "replace")


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


def _compress(arguments: dict[str, tuple[str, ...]]) -> members.Compress:
    asked = (arguments.pop("gzip", ()) or ("auto",))[-1]
    if asked not in ("auto", "isal", "zlib"):
        raise FilterError(f"has gzip={asked!r}", "give auto, isal or zlib")
    found = members.by_isal() if asked != "zlib" else None
    if found is None and asked == "isal":
        raise FilterError("wants isal, which is not installed", "install it: pip install 'scrapy-ubi[warc]'")
    return found or members.by_zlib


__all__ = ["LINES", "WARC", "WarcStore"]
