"""Web Bot Auth in Scrapy: every request is signed as the last thing before it leaves (`UBI_BOT_KEY`).

Rules of this module:

* It stands in the gate's place, and signs behind it: what has waited long is signed when it may go. So pages,
  robots.txt and all else that is downloaded are signed, whatever the download handler, and each redirect and retry
  again.
* The headers are on a request from the gate to the answer only: a request that is queued again, or goes to another
  agent, has none.
* A request that somebody else has signed stays as it is.
"""

from __future__ import annotations

import secrets
import time

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.httpobj import urlparse_cached

from scrapy_ubi.adapter.components.downloader_middleware import UbiDownloaderMiddleware
from scrapy_ubi.policy.politeness.bot_key import BotKey, read_key
from scrapy_ubi.policy.politeness.message_signatures import authority_of, request_headers
from scrapy_ubi.settings import UbiSettings

NAMES = (b"Signature-Agent", b"Signature-Input", b"Signature")
NONCE = 24  # bytes


def key_of(settings: BaseSettings, warn: bool = True) -> BotKey:
    """The key that the settings name. `warn`: of one that others may have. Raises UbiSettingError."""
    path = UbiSettings.from_scrapy(settings, "spider").bot_key
    assert path is not None, "asked for where there is a key only"
    return read_key(path, warn)


class SigningMiddleware(UbiDownloaderMiddleware):
    """The gate's place, where requests are signed."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._signing = key_of(
            crawler.settings, warn=False
        ).signing  # the add-on has read it, and said what is to be said
        self._ours = self._signing.keyid.encode("ascii")
        self._agent = UbiSettings.from_scrapy(crawler.settings, "spider").bot_agent

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SigningMiddleware:
        return cls(crawler)

    async def process_request(self, request: Request) -> Response | None:
        answer = await super().process_request(request)
        if answer is None:
            self._sign(request)
        return answer

    def process_response(self, request: Request, response: Response) -> Response:
        answered = super().process_response(request, response)
        self._forget(request)
        return answered

    def process_exception(self, request: Request, exception: Exception) -> None:
        super().process_exception(request, exception)
        self._forget(request)

    def _sign(self, request: Request) -> None:
        parts, headers = urlparse_cached(request), request.headers
        if parts.scheme not in ("http", "https") or self._is_anothers(request):
            return
        named = headers.get(b"Host")
        host = named.decode("latin-1") if named else parts.netloc
        try:
            signed = request_headers(
                self._signing,
                self._agent,
                authority_of(parts.scheme, host),
                int(time.time()),
                secrets.token_urlsafe(NONCE),
            )
        except UnicodeEncodeError:  # a Host that is no name: the handler says what is wrong with it
            return
        for name, value in signed.items():
            headers[name] = value
        self._crawler.stats.inc_value("ubi/bot_auth/signed")

    def _forget(self, request: Request) -> None:
        """Take our signature off again."""
        if b"Signature-Input" in request.headers and not self._is_anothers(request):
            for name in NAMES:
                request.headers.pop(name, None)

    def _is_anothers(self, request: Request) -> bool:
        said = request.headers.get(b"Signature-Input")
        return said is not None and self._ours not in said
