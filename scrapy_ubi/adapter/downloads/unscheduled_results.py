"""What becomes of downloads beside the scheduler: files, images, and what a spider awaits by `engine.download_async`.

Their page is done whether they come or not, and they are not requested again: so each failure is counted. Rules of this
module:

* A download is one call of `engine.download_async`, with all its retries and redirects: what counts is its end.
* It has failed where it ended in an error, or in a status of 300 or more: media pipelines keep nothing of such a
  response. A robots.txt is none.
* Each failure has a reason, a word as those of pages (`requests.page_outcome`): in the stats, and with its host in
  the report.
* Where any failed, one line says so at the end of the log: a warning where this package has refused or ended some.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from scrapy import Request
from scrapy.http import Response

from scrapy_ubi.adapter.downloads.gate import Withdrawn
from scrapy_ubi.adapter.downloads.unscheduled import ForeignHost, is_robots
from scrapy_ubi.adapter.requests.page_outcome import reason_of
from scrapy_ubi.adapter.robots.fetch import load_of
from scrapy_ubi.adapter.scrapy_private.engine import Download

logger = logging.getLogger("scrapy_ubi")

OURS: dict[type[Exception], str] = {ForeignHost: "refused", Withdrawn: "ended"}  # why we make none
MOST_REASONS = 100  # counted by name here; they come from the web, and from other people's code
MOST_NAMED = 5  # in the line at the end: this package's own first


class UnscheduledResults:
    """The downloads beside the scheduler of one agent. `count` adds one to the stat of a name, `note` tells the report
    of something at a host, `host_of` gives the host of a URL."""

    def __init__(
        self,
        count: Callable[[str], object],
        note: Callable[[str, str], object],
        host_of: Callable[[str], str | None],
    ) -> None:
        self._count = count
        self._note = note
        self._host_of = host_of
        self._loaded = 0
        self._failed: Counter[str] = Counter()

    async def make(self, request: Request, download: Download) -> Response:
        """Make a download, by awaiting `download(request)`. Raises what that raises."""
        if load_of(request) is not None or is_robots(request):
            return await download(request)
        try:
            response = await download(request)
        except Exception as error:
            self._has_failed(request, OURS.get(type(error)) or reason_of(error))
            raise
        if response.status >= 300:
            self._has_failed(request, f"http/{response.status}")
        else:
            self._loaded += 1
            self._count("ubi/downloads/loaded")
        return response

    def _has_failed(self, request: Request, reason: str) -> None:
        known = reason in self._failed or reason in OURS.values() or len(self._failed) < MOST_REASONS
        reason = reason if known else "other"
        self._failed[reason] += 1
        self._count(f"ubi/downloads/failed/{reason}")
        self._note(f"download/{reason}", self._host_of(request.url) or "")

    def close(self) -> None:
        """Say how many have failed, where any has."""
        if not self._failed:
            return
        failed, ours = self._failed.total(), OURS.values()
        named = sorted(self._failed.items(), key=lambda item: (item[0] not in ours, -item[1]))
        logger.log(
            logging.WARNING if named[0][0] in ours else logging.INFO,
            "Of %d downloads beside the queue (files, images) %d failed, and their items lack them: %s. "
            "'scrapy ubi report' names their hosts.",
            failed + self._loaded,
            failed,
            ", ".join(f"{reason} {number}" for reason, number in named[:MOST_NAMED])
            + (", ..." if len(named) > MOST_NAMED else ""),
        )
