"""Loading a robots.txt: bounded in bytes, time and redirects, whatever the server sends.

Rules of this module:

* At most `MOST_BYTES` are read, and as many come out of a compressed body; what is behind is not loaded. Scrapy itself
  would drop the response instead.
* A body that drips is stopped when it has taken `UBI_ROBOTS_TIMEOUT` since its first bytes.
* Redirects are followed here, not by Scrapy's middleware: five of them, to any host (RFC 9309, section 2.3.1.2), and
  without the retries, the offsite filter and the limits that are meant for pages.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urljoin

from scrapy import Request
from scrapy.exceptions import StopDownload
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from scrapy_ubi.adapter.requests.decompress import can_unpack, unpack
from scrapy_ubi.adapter.requests.page_outcome import PrivateHost
from scrapy_ubi.policy.robots.text import MOST_BYTES

LOAD = "ubi_robots"  # meta key of a request for a robots.txt: its `RobotsLoad`
MOST_REDIRECTS = 5  # RFC 9309, section 2.3.1.2
PRIORITY = 1000  # as Scrapy's RobotsTxtMiddleware has it


class RobotsLoad:
    """One transfer of a robots.txt.

    `of_page`: a page of the queue waits for it, not a download that bypasses the scheduler; `redirected`: a redirect
    led here; `timeout`: seconds it may take; `host`: the partition key of what waits for it, "" for that of its URL.
    `received`: bytes so far; `cut`: it was stopped, as there were too many.
    """

    __slots__ = ("began", "cut", "host", "of_page", "received", "redirected", "timeout")

    def __init__(self, of_page: bool, redirected: bool, timeout: float, host: str = "") -> None:
        self.of_page = of_page
        self.redirected = redirected
        self.timeout = timeout
        self.host = host
        self.begin()

    def begin(self) -> None:
        """Nothing has come so far: also where a transfer that was aborted is done again."""
        self.began = 0.0
        self.received = 0
        self.cut = False


def load_of(request: Request) -> RobotsLoad | None:
    """The transfer that this request is for, None when it is for no robots.txt of ours."""
    load = request.meta.get(LOAD)
    return load if isinstance(load, RobotsLoad) else None


def request_for(url: str, load: RobotsLoad) -> Request:
    """The request of a transfer."""
    meta: dict[str, Any] = {
        LOAD: load,
        "dont_obey_robotstxt": True,
        "dont_redirect": True,
        "dont_retry": True,
        "allow_offsite": True,
        "download_timeout": load.timeout,
        "download_maxsize": 0,
        "download_warnsize": 0,
    }
    return Request(url, priority=PRIORITY, meta=meta, callback=NO_CALLBACK)


def count_bytes(data: bytes, request: Request) -> None:
    """A handler of Scrapy's signal `bytes_received`: stops what is too long or takes too long."""
    load = load_of(request)
    if load is None:
        return
    now = time.monotonic()
    load.began = load.began or now
    load.received += len(data)
    if load.received > MOST_BYTES:
        load.cut = True
        raise StopDownload(fail=False)
    if now - load.began > load.timeout:
        raise StopDownload(fail=True)


def unpacked(response: Response) -> Response:
    """The response without its compression, as far as is read. Innermost, so that no other code unpacks more."""
    encodings = [
        name.strip().lower()
        for value in response.headers.getlist("Content-Encoding")
        for name in value.decode("latin-1").split(",")
    ]
    if not encodings:
        return response
    headers = response.headers.copy()
    del headers["Content-Encoding"]
    # What cannot be unpacked is no text: its lines are left out, as those of any garbage.
    body = unpack(response.body, encodings, MOST_BYTES + 1) if can_unpack(encodings) else None
    return response.replace(headers=headers, body=b"" if body is None else body)


async def fetch(
    url: str,
    of_page: bool,
    timeout: float,
    download: Callable[[Request], Awaitable[Response]],
    follows: Callable[[str, str], bool] = lambda url, target: True,
    host: str = "",
) -> tuple[Response | None, int]:
    """The response that a robots.txt ends in, None after too many redirects, or one that is not followed; and how many
    were. `follows(url, target)`: whether a redirect may lead there; `host`: under whose permit it is loaded, where its
    URL does not say that.

    Raises what `download` raises.
    """
    hops = 0
    while True:
        try:
            response = await download(request_for(url, RobotsLoad(of_page, hops > 0, timeout, "" if hops else host)))
        except PrivateHost:
            if not hops:
                raise
            return None, hops
        target = _target(response)
        if target is None:
            return response, hops
        if hops == MOST_REDIRECTS or not follows(url, target):
            return None, hops
        url, hops = target, hops + 1


def _target(response: Response) -> str | None:
    """Where a response redirects to, None when it does not, or to nowhere that could be asked."""
    location = response.headers.get("Location")
    if response.status not in (301, 302, 303, 307, 308) or not location:
        return None
    try:
        url = Request(urljoin(response.url, location.decode("utf-8", "replace"))).url
    except ValueError:
        return None
    return url if url.startswith(("http://", "https://")) else None
