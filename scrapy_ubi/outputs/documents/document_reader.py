"""Reads the text of documents for the stores of one agent: each document once, by one child."""

from __future__ import annotations

from weakref import ref

from scrapy.http import Response

from scrapy_ubi.outputs.documents.text_child import DocumentMarkdown, TextChild


class DocumentReader:
    """The child begins with the first document; `close` ends it. Asked in the writer's thread."""

    def __init__(self) -> None:
        self._child = TextChild()
        self._last: tuple[ref[Response], DocumentMarkdown] | None = None

    def read(self, response: Response, kind: str) -> DocumentMarkdown:
        """The text of a response that is a document of this kind; see `document_kind`."""
        if self._last is not None and self._last[0]() is response:
            return self._last[1]
        found = self._child.read(kind, response.body)
        self._last = ref(response), found
        return found

    def close(self) -> None:
        """End the child; by any thread."""
        self._child.close()
        self._child.end()
