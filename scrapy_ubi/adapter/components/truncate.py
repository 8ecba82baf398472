"""Truncation (UBI_MAX_BODY): of a larger page only the beginning is loaded, unpacked and kept.

Rules of this module:

* Only pages of the queue are cut: what the spider's callbacks get. What bypasses the scheduler (media of the file
  pipelines, robots.txt, a spider's own `download_async`) comes whole.
* Where UBI_MAX_BODY is a number, only what Scrapy makes an `HtmlResponse` of is cut: half a page of HTML is still a
  page, half a JSON document, feed, sitemap or picture is none.
* A sitemap that the suite follows may be as large as sitemaps.org says, and no larger, whatever its type.
* A transfer is stopped as soon as the page is longer than what is kept of it; a compressed page is unpacked as far as
  is kept. So neither a page nor a bomb of any size costs more than UBI_MAX_BODY and a little.
* Nothing is cut silently: the response has the flag `truncated`, its meta `ubi_truncated`; a stat, a counter of the
  report and a warning once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import StopDownload
from scrapy.http import Headers, HtmlResponse, Response, TextResponse
from scrapy.responsetypes import responsetypes
from scrapy.settings import SETTINGS_PRIORITIES

from scrapy_ubi.adapter.components.find_scheduler import scheduler_of
from scrapy_ubi.adapter.components.scheduler import UbiScheduler
from scrapy_ubi.adapter.requests.decompress import can_unpack, unpack
from scrapy_ubi.adapter.robots.sitemaps import Mark
from scrapy_ubi.urls.links.handlers.sitemap import MOST_BYTES

if TYPE_CHECKING:
    from scrapy_ubi.settings import UbiSettings

FLAG = "truncated"  # of a response that was cut
META = "ubi_truncated"  # meta key: the Content-Length that the host had announced, None where it had not
OWN_LIMIT = "ubi_max_body"  # meta key: UBI_MAX_BODY of this request; 0: whole
_TELLING = ("Content-Type", "Content-Disposition")  # headers by which Scrapy tells types apart
HEAD = 5000  # bytes at the beginning of a body by which Scrapy tells types apart

# Next to Scrapy's HttpCompressionMiddleware (590), which then finds nothing to unpack; within redirects (600), whose
# responses it need not look at, and without MetaRefreshMiddleware (580), which reads bodies.
PRIORITY = 595


class _Seen:
    """What was seen of one transfer under way. `judged`: whether it is cut has been decided."""

    __slots__ = ("head", "headers", "judged", "lifted", "most", "received", "stopped")

    def __init__(self, most: int, headers: Headers, lifted: bool) -> None:
        self.most = most
        self.headers = headers
        self.lifted = lifted
        self.received = 0
        self.head = b""
        self.judged = self.stopped = False


class UbiBodyMiddleware:
    """Cuts the bodies of large pages."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        settings = crawler.settings
        self._most_scrapy = settings.getint("DOWNLOAD_MAXSIZE")
        self._large = settings.getint("DOWNLOAD_WARNSIZE")
        self._may_lift = settings.getpriority("DOWNLOAD_MAXSIZE") == SETTINGS_PRIORITIES["default"]
        self._loads: WeakKeyDictionary[Request, _Seen] = WeakKeyDictionary()
        crawler.signals.connect(self._headers_received, signals.headers_received)
        crawler.signals.connect(self._bytes_received, signals.bytes_received)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> UbiBodyMiddleware:
        return cls(crawler)

    # The transfer

    def _headers_received(self, headers: Headers, request: Request, body_length: object) -> None:
        most = self._limit(request)
        if not most:
            self._loads.pop(request, None)
            return
        before = self._loads.get(request)
        load = self._loads[request] = _Seen(most, headers, before is not None and before.lifted)
        # Scrapy refuses what is announced as larger than DOWNLOAD_MAXSIZE, 1 GiB unless the user has set it.
        if self._may_lift and type(body_length) is int and body_length > self._most_scrapy:
            self._lift(load, request)

    def _lift(self, load: _Seen, request: Request) -> None:
        """Have a page be loaded that Scrapy would refuse, if it will be cut. No redirect, whose meta its target gets
        before it is taken back here."""
        if "download_maxsize" in request.meta or b"Location" in load.headers:
            return
        if self._is_cut(request, load.headers, request.url):
            request.meta["download_maxsize"] = 0
            load.lifted = True

    def _bytes_received(self, data: bytes, request: Request) -> None:
        load = self._loads.get(request)
        if load is None or load.judged:
            return
        load.received += len(data)
        if len(load.head) < HEAD:
            load.head += data[:HEAD]
        if load.received > _on_the_wire(load.most):
            head = unpack(load.head, encodings, HEAD) if (encodings := self._packed(load.headers)) else load.head
            load.judged = True
            load.stopped = self._is_cut(request, load.headers, request.url, head)
            if load.stopped:
                raise StopDownload(fail=False)

    # The middleware

    def process_request(self, request: Request) -> None:
        request.meta.pop(META, None)  # spiders copy meta from page to page

    def process_exception(self, request: Request, exception: Exception) -> None:
        self._end(request)

    def process_response(self, request: Request, response: Response) -> Response:
        kept = self._kept(request, response)
        scheduler = self._scheduler()
        if 0 < self._large < len(kept.body) and scheduler is not None and scheduler.gate.hosts.is_page(request):
            scheduler.node.note("large", scheduler.gate.hosts.name_of(request))
        return kept

    def _kept(self, request: Request, response: Response) -> Response:
        """What is kept of a response: as it is, without its compression, or the beginning."""
        load = self._end(request)
        stopped, most = (load.stopped, load.most) if load is not None else (False, self._limit(request))
        if not most:
            return response
        if encodings := self._packed(response.headers):
            return self._unpacked(request, response, encodings, most, stopped)
        is_long = stopped or len(response.body) > most
        if is_long and self._is_cut(request, response.headers, response.url, response.body):
            return self._cut(request, response, most)
        return response

    def _end(self, request: Request) -> _Seen | None:
        """The transfer is over, and this is what was seen of it; None where nothing was looked at."""
        load = self._loads.pop(request, None)
        if load is not None and load.lifted:
            request.meta.pop("download_maxsize", None)
        return load

    def _unpacked(
        self, request: Request, response: Response, encodings: list[str], most: int, stopped: bool
    ) -> Response:
        """The response without its compression, cut where it is too long; as it is where Scrapy does it."""
        if b"Content-Type" in response.headers and not self._is_cut(request, response.headers, response.url):
            return response
        body = unpack(response.body, encodings, most + 1)
        if body is None:
            return response
        is_long = stopped or len(body) > most
        if is_long and not self._is_cut(request, response.headers, response.url, body):
            return response
        headers = response.headers.copy()
        del headers["Content-Encoding"]
        cls = responsetypes.from_args(headers=headers, url=response.url, body=body)
        kind: dict[str, Any] = {"encoding": None} if issubclass(cls, TextResponse) else {}
        response = response.replace(cls=cls, headers=headers, body=body, **kind)
        stats = self._crawler.stats  # as HttpCompressionMiddleware counts
        stats.inc_value("httpcompression/response_bytes", min(len(body), most))
        stats.inc_value("httpcompression/response_count")
        return self._cut(request, response, most) if is_long else response

    def _cut(self, request: Request, response: Response, most: int) -> Response:
        """The beginning of a response, marked."""
        announced = response.headers.get("Content-Length") or b""
        request.meta[META] = int(announced) if announced.isdigit() and len(announced) < 20 else None
        response = response.replace(body=response.body[:most], flags=[*response.flags, FLAG])
        self._crawler.stats.inc_value("ubi/body/truncated")
        if (scheduler := self._scheduler()) is not None:
            scheduler.node.note("truncated", scheduler.gate.hosts.name_of(request))
            larger = f"{response} is larger than {most} bytes"
            sentence = f"{larger}: only so many are kept. UBI_MAX_BODY = 0 keeps pages whole."
            scheduler.notices.once("truncated", sentence)
        return response

    # What is cut

    def _limit(self, request: Request) -> int:
        """How many bytes are kept of what this request loads; 0: all."""
        scheduler = self._scheduler()
        if scheduler is None or request.method == "HEAD" or not scheduler.gate.hosts.is_page(request):
            return 0
        if Mark.from_request(request) is not None:
            return MOST_BYTES
        own = request.meta.get(OWN_LIMIT)
        most: int = own if type(own) is int and own >= 0 else scheduler.settings.max_body.size
        refused_from = request.meta.get("download_maxsize", self._most_scrapy)
        # Where Scrapy is set to refuse pages of that size, it does.
        return most if not (type(refused_from) is int and 0 < refused_from <= most) else 0

    def _packed(self, headers: Headers) -> list[str]:
        """The encodings of a body, where it is to be unpacked here."""
        values = headers.getlist("Content-Encoding")
        if not values or self._crawler.get_downloader_middleware(HttpCompressionMiddleware) is None:
            return []
        names = [name.strip().lower() for value in values for name in value.decode("latin-1").split(",")]
        return names if can_unpack(names) else []

    def _is_cut(self, request: Request, headers: Headers, url: str, head: bytes | None = b"") -> bool:
        """Whether a page with these headers, beginning like this, is cut when it is too long."""
        settings = self._settings
        if settings is None or settings.max_body.of_all or Mark.from_request(request) is not None:
            return settings is not None
        telling = Headers({name: headers.getlist(name) for name in _TELLING if name in headers})
        return issubclass(responsetypes.from_args(headers=telling, url=url, body=head or b""), HtmlResponse)

    @property
    def _settings(self) -> UbiSettings | None:
        scheduler = self._scheduler()
        return None if scheduler is None else scheduler.settings

    def _scheduler(self) -> UbiScheduler | None:
        return scheduler_of(self._crawler)


def _on_the_wire(most: int) -> int:
    """In how many bytes a page of so many comes at most: packing makes what cannot be compressed a little larger."""
    return most + most // 64 + 4096
