"""The parent's end of the child that reads the text of documents; and which responses are such documents.

Rules of this module:

* `read` blocks for as long as a document may take: it is called in the writer's thread, never in the loop.
* What the child answers is data of the web, and is checked.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from weakref import ref

from scrapy.http import Response

from scrapy_ubi.ground.untrusted.checks import Malformed, is_text, json_object
from scrapy_ubi.urls.filters.filter_text import FilterError
from scrapy_ubi.urls.links.handlers.pdf_child import MOST_BYTES, ChildGone, DocumentChild

WORKER = Path(__file__).with_name("text_worker.py")
COMMAND = (sys.executable, "-P", str(WORKER))
SECONDS = 9.0  # for a document, by the clock: then the child is killed. It ends itself after 8
MOST_TEXT = 1_100_000  # characters
EXTENSIONS = ("pdf", "docx", "xlsx", "pptx")
_LETTERS = {"pdf": b"p", "docx": b"d", "xlsx": b"x", "pptx": b"s"}
_REASONS = frozenset(("time", "memory", "malformed", "encrypted", "text", "bytes"))
_OFFICE = "application/vnd.openxmlformats-officedocument."
_TYPES = {
    "application/pdf": "pdf",
    "application/x-pdf": "pdf",
    f"{_OFFICE}wordprocessingml.document": "docx",
    f"{_OFFICE}spreadsheetml.sheet": "xlsx",
    f"{_OFFICE}presentationml.presentation": "pptx",
}
_BEGINNINGS = {"pdf": b"%PDF-", "docx": b"PK\x03\x04", "xlsx": b"PK\x03\x04", "pptx": b"PK\x03\x04"}
_HEAD = 1024  # bytes in which a document begins


class DocumentMarkdown(NamedTuple):
    """`text` is Markdown. `cut`: why there may be more of it; `refused`: why there is none. Reasons are one word."""

    title: str = ""
    language: str = ""
    date: str = ""
    text: str = ""
    cut: str = ""
    refused: str = ""


def check_pypdf() -> None:
    """Raise FilterError where pypdf is not installed."""
    if find_spec("pypdf") is None:
        raise FilterError("reads PDF by pypdf, which is not installed", "install it: pip install 'scrapy-ubi[pdf]'")


def document_kind(response: Response) -> str:
    """Which of `EXTENSIONS` a response is, by its type (or its path, where that says nothing) and its beginning; '' for
    none."""
    said = dict.get(response.headers, b"Content-Type")
    mime = said[-1].decode("latin-1").partition(";")[0].strip().lower() if said else ""
    kind = _TYPES.get(mime, "")
    if not kind and mime in ("", "application/octet-stream", "binary/octet-stream", "application/download"):
        ending = urlsplit(response.url).path.rpartition(".")[2].lower()
        kind = ending if ending in EXTENSIONS else ""
    return kind if kind and _BEGINNINGS[kind] in response.body[:_HEAD] else ""


class TextChild(DocumentChild):
    """The child that reads the text of documents."""

    def __init__(self, command: Sequence[str] = COMMAND, seconds: float = SECONDS) -> None:
        super().__init__(command, seconds)

    def read(self, kind: str, body: bytes) -> DocumentMarkdown:
        """The text of a document of that kind. Nothing is raised."""
        if len(body) > MOST_BYTES:
            return DocumentMarkdown(refused="bytes")
        try:
            return _checked(self.ask(_LETTERS[kind] + body))
        except ChildGone as gone:
            self.end()
            return DocumentMarkdown(refused=str(gone.args[0]))


class DocumentReader:
    """Reads documents for the stores of one agent, each once, by one child: it begins with the first document, and
    `close` ends it. Asked in the writer's thread."""

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


def _checked(frame: bytes) -> DocumentMarkdown:
    """The answer of a child, as it should be. Raises ChildGone."""
    try:
        said = json_object(frame)
    except Malformed:
        raise ChildGone("died") from None
    texts = [said.get(name) for name in ("title", "language", "date", "text")]
    reasons = [said.get(name) or "" for name in ("cut", "refused")]
    if not all(is_text(text, MOST_TEXT) for text in texts):
        raise ChildGone("died")
    if not all(reason == "" or reason in _REASONS for reason in reasons):
        raise ChildGone("died")
    return DocumentMarkdown(*map(str, (*texts, *reasons)))
