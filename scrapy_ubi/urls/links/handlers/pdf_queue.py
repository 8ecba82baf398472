"""PDFs that wait for the one child that reads them: what the loop awaits.

Rules of this module:

* Nothing waits in the loop's thread: a thread of its own talks with the child. Thread and child begin with the first
  PDF.
* PDFs are read in their order. Beyond `MOST_WAITING` of them the next one is refused, so that what waits is bounded;
  Scrapy takes no further responses long before.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from scrapy_ubi.urls.links.handlers.pdf_child import PdfAnswer, PdfChild

MOST_WAITING = 1_000


class PdfQueue:
    """The PDFs of one crawl."""

    def __init__(self, child: PdfChild | None = None) -> None:
        self.child = child or PdfChild()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ubi-pdf")
        self._waiting = 0
        self._closed = False

    async def read(self, body: bytes) -> PdfAnswer:
        """The links of a PDF, when its turn has come. Raises nothing of its own."""
        if self._closed:
            return PdfAnswer(refused="closed")
        if self._waiting >= MOST_WAITING:
            return PdfAnswer(refused="queue")
        self._waiting += 1
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._thread, self.child.read, body)
        finally:
            self._waiting -= 1
        if not self._closed:
            self._thread.submit(self.child.prepare)
        return answer

    def close(self) -> None:
        """The crawl has ended: end the child. Returns at once; what still waits is refused."""
        if not self._closed:
            self._closed = True
            self.child.close()
            self._thread.submit(self.child.end)
            self._thread.shutdown(wait=False)
