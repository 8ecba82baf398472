"""The store `duplicates`: of each page what it is compared by, so that copies are found across hosts, too.

Rules of this module:

* UBI_DUPLICATES brings the store along. Named in UBI_STORES alone it only keeps: nothing is judged while crawling.
* What the judge has found is written as it is; else the page is read in the thread that writes.
* When the agent starts again, its records are read back, in the disk's thread: they are those of pages that are done.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import ClassVar, NamedTuple

from scrapy.http import Response
from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.requests.judged import Judged
from scrapy_ubi.outputs.duplicates.duplicate_record import LONGEST, BadLine, Compared, line_of, read_line
from scrapy_ubi.outputs.duplicates.judge import MOST_PAGES, fingerprint, is_compared
from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.stores import Page, Store, choice
from scrapy_ubi.urls import partition_key

ENDING = "tsv"


class _Payload(NamedTuple):
    page: Page
    response: Response


class DuplicatesStore(Store):
    """`duplicates(near=yes)`: what pages are compared by."""

    name: ClassVar[str] = "duplicates"
    wants_pages: ClassVar[bool] = True

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        self._near = choice(arguments, "near", default=True)
        super().__init__(arguments, settings)

    def page(self, page: Page) -> _Payload | None:
        """A page that came whole; nothing of others."""
        response = page.response
        if response is None or page.kind != "ok" or not is_compared(page.request, response):
            return None
        return _Payload(page, response)

    def write(self, payload: _Payload, part: Part) -> None:
        """In the writer's thread."""
        page, response = payload
        judged = page.judged
        if judged is None:
            digest, words, sketch, why = fingerprint(response, self._near)
            if why == "unread":
                self.leave_unread(response.url)
            judged = Judged(digest, words, sketch)
        host = partition_key(page.url) or ""
        part.append(ENDING, line_of(Compared(host, page.url, response.status, judged)))


def known(out: Path) -> list[Compared]:
    """The pages that the records in these outputs are of, the last `MOST_PAGES`. Raises OSError."""
    found: deque[Compared] = deque(maxlen=MOST_PAGES)
    for path in sorted((out / DuplicatesStore.name).glob(f"*.{ENDING}")):
        with path.open("rb") as file:
            while line := file.readline(LONGEST):
                try:
                    found.append(read_line(line))
                except BadLine:
                    continue
    return list(found)
