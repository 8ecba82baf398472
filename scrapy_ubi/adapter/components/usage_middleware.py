"""What sites say of the use of their pages: noted in `meta`, and obeyed where the user says so (`UBI_USAGE`).

Rules of this module:

* It is not there where UBI_USAGE is not set. What robots.txt says is put into `meta` by `UbiRobotsMiddleware`, before.
* A page whose robots.txt refuses a purpose of the user's is not fetched; one whose headers do is dropped when it comes.
  Both fail with the reason `usage/<purpose>`.
* What bypasses the scheduler, as images do, is judged as pages are.
"""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Headers, Response

from scrapy_ubi.adapter.requests.page_outcome import UNWANTED
from scrapy_ubi.policy.politeness.usage import USAGE, Usage, combined, of_field, of_signal
from scrapy_ubi.settings import UbiSettings

PRIORITY = 101  # behind robots.txt (Scrapy has it at 100), outside redirects and retries
HEADERS = ((b"Content-Usage", of_field), (b"Content-Signal", of_signal))


class UbiUsageMiddleware:
    """Notes, and refuses for these `purposes`."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        wanted = UbiSettings.from_scrapy(crawler.settings, "spider").usage
        self._purposes = tuple(word for word in wanted if word != "note")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> UbiUsageMiddleware:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        self._judge(request)

    def process_response(self, request: Request, response: Response) -> Response:
        if said := of_headers(response.headers):
            request.meta[USAGE] = combined((request.meta.get(USAGE, {}), said))
            self._crawler.stats.inc_value("ubi/usage/headers")
            self._judge(request)
        return response

    def _judge(self, request: Request) -> None:
        """Raises IgnoreRequest where the site refuses a purpose."""
        said: Usage = request.meta.get(USAGE) or {}
        for purpose in self._purposes if said else ():
            if said.get(purpose) == "n":
                self._crawler.stats.inc_value(f"ubi/usage/refused/{purpose}")
                raise IgnoreRequest(f"{UNWANTED} {purpose}")


def of_headers(headers: Headers) -> Usage:
    """What the headers of a response say."""
    statements = []
    for name, reader in HEADERS:
        if values := headers.getlist(name):
            statements.append(reader(b", ".join(values).decode("latin-1")))
    return combined(statements) if statements else {}
