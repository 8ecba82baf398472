"""XML from the web, read without making a tree of it.

Rules of this module:

* No entity is replaced, no DTD loaded, nothing fetched; libxml2's own limits hold (`huge_tree` off). What is broken is
  read as far as the parser gets (`recover`), and `LinksCut` says so behind it.
* A bare `&`, as many sites write it into their URLs, stands for itself: the parser would leave out what follows it, and
  the URL would be another one. Not behind the first CDATA section, where it is written so, nor in UTF-16.
* Elements deeper than `MOST_DEPTH`, and bytes beyond a bound, end the reading: `LinksCut` says so.
* The text of an element is kept only where it may be a link, and not beyond the length that a URL may have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from lxml import etree

from scrapy_ubi.urls.links.handlers.bounds import MOST_DEPTH, MOST_URL, LinksCut, Unreadable
from scrapy_ubi.urls.links.handlers.unpacked import chunks

_SPACE = " \t\r\n"
_FATAL = 3  # level of libxml2's errors
_bare = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});)")
_begun = re.compile(rb"[&<][^;>]{0,10}\Z")  # what may go on in the next chunk

Found = TypeVar("Found")


class XmlReader(Generic[Found]):
    """Finds something in the elements of a document: subclass it, and append to `found`."""

    texts: frozenset[str] = frozenset()  # local names of elements whose text is wanted
    roots: frozenset[str] = frozenset()  # those of the root of such documents

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.path: list[str] = []  # local names, from the root
        self._text: list[str] | None = None
        self._length = 0
        self.is_one = False  # whether it is such a document, by its root

    def begins(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins: its local name, which is also the last of `path`."""

    def ends(self, name: str, text: str) -> None:
        """Hear that an element with a name among `texts` ends, and what text is in it."""

    # -- what lxml calls

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = local(tag)
        if len(self.path) >= MOST_DEPTH:
            raise LinksCut("depth")
        if not self.path:
            self.is_one = name in self.roots
        self.path.append(name)
        self._text = [] if name in self.texts else None
        self._length = 0
        self.begins(name, attributes)

    def data(self, text: str) -> None:
        if self._text is not None and self._length <= MOST_URL:
            self._length += len(text)
            self._text.append(text[: MOST_URL + 1])

    def end(self, tag: str) -> None:
        name = local(tag)
        if self._text is not None and name in self.texts:
            self.ends(name, "".join(self._text).strip(_SPACE))
        self._text = None
        self.left(name)
        if self.path:
            self.path.pop()

    def left(self, name: str) -> None:
        """An element has ended, whatever its name."""

    def close(self) -> None:
        """lxml asks for it at the end."""


def values(body: bytes, reader: XmlReader[Found], most: int) -> Iterator[Found | None]:
    """Yield what a reader finds in the first `most` bytes, and None where the loop may have its turn. Raises LinksCut,
    Unreadable."""
    parser = etree.XMLParser(
        target=reader, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True
    )
    cut: LinksCut | None = None
    try:
        for chunk in _escaped(chunks(body, most)):
            parser.feed(chunk)
            yield from reader.found
            reader.found.clear()
            yield None
        parser.close()
        if any(error.level >= _FATAL for error in parser.feed_error_log):
            cut = LinksCut("malformed")
    except LinksCut as error:
        cut = error
    except (etree.LxmlError, UnicodeError, ValueError, LookupError):
        cut = LinksCut("malformed")  # what came before it counts
    yield from reader.found
    if not reader.is_one:
        raise Unreadable("malformed")
    if cut is not None:
        raise cut


def _escaped(parts: Iterable[bytes]) -> Iterator[bytes]:
    """These parts of a document, with each bare `&` as a reference to it."""
    rest = b""
    is_plain = True
    cut: LinksCut | None = None
    try:
        for part in parts:
            part = rest + part
            rest = b""
            is_plain = is_plain and b"<![CDATA[" not in part and b"\0" not in part
            if is_plain and (begun := _begun.search(part, max(0, len(part) - 12))) is not None:
                part, rest = part[: begun.start()], part[begun.start() :]
            yield _bare.sub(b"&amp;", part) if is_plain else part
    except LinksCut as error:
        cut = error
    if rest:
        yield _bare.sub(b"&amp;", rest) if is_plain else rest
    if cut is not None:
        raise cut


def local(tag: str) -> str:
    """The name of an element or attribute without its namespace."""
    return tag.rpartition("}")[2]
