"""The store of items: JSON lines, as a feed of plain Scrapy writes them.

Rules of this module:

* An item is serialised when its last pipeline has passed it, by Scrapy's own exporter, with FEED_EXPORT_FIELDS and
  FEED_EXPORT_ENCODING as a feed has them. (An encoding that does not hold ASCII as it is becomes UTF-8.)
* An item that cannot be serialised is one error in the log, as with a feed.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any, ClassVar

from scrapy.exporters import JsonLinesItemExporter
from scrapy.settings import BaseSettings

from scrapy_ubi.outputs.part_writer import Part
from scrapy_ubi.outputs.stores import Page, Store

LINES = "jsonl"


class ItemsStore(Store):
    """`items`: each page's items, one a line."""

    name: ClassVar[str] = "items"
    wants_items: ClassVar[bool] = True
    any_encoding: ClassVar[bool] = True  # whether FEED_EXPORT_ENCODING may be another one than UTF-8

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: BaseSettings) -> None:
        super().__init__(arguments, settings)
        self._file = BytesIO()
        encoding = settings.get("FEED_EXPORT_ENCODING") or None
        self._exporter = JsonLinesItemExporter(
            self._file,
            encoding=encoding and (_readable(str(encoding)) if self.any_encoding else "utf-8"),
            fields_to_export=settings.getdictorlist("FEED_EXPORT_FIELDS") or None,
        )

    def item(self, item: Any) -> bytes:
        """The line of an item."""
        file = self._file
        file.seek(0)
        file.truncate()
        self._exporter.export_item(item)
        return file.getvalue()

    def page(self, page: Page) -> bytes | None:
        """All lines of a page. A page that was visited again is kept without any, too: it has no items any more."""
        return page.items[self.name] if page.items[self.name] or page.visit > 1 else None

    def write(self, payload: bytes, part: Part) -> None:
        """One line after the other."""
        part.append(LINES, payload)


def _readable(encoding: str) -> str:
    try:
        return encoding if "{\n}".encode(encoding) == b"{\n}" else "utf-8"
    except LookupError:
        return encoding  # the exporter says so
