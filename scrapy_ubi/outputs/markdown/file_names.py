"""The file of a page in a tree that mirrors the site: `https://site.example/x/a.html` is `site.example/x/a.md`.

Rules of this module:

* A URL is data from outside. Whatever it has in it, the name is a relative path below the tree, of parts that every
  usual file system takes: no `..`, no control characters, none of `<>:"/\\|?*`, no blanks or dots at an end, none of
  the names that Windows keeps for devices; each part and the whole are of bounded length.
* The name of a URL is always the same. Two URLs may have one name, also where a disk takes `A` and `a` for one: who
  gives out names (`FileNames`) tells them apart by the letters of a digest.
* Files end in `.md` and directories never do, so none is in the way of the other.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b
from itertools import count
from urllib.parse import unquote_to_bytes, urlsplit

ENDING = ".md"
MOST_PART = 80  # bytes of UTF-8 of one part
MOST_PARTS = 12
MOST_PATH = 200  # bytes of the whole: Windows takes 260 with what is above it
_DIGEST = 10  # letters
_PAGES = re.compile(r"\.(?:x?html?|php|aspx?|jsp|md)\Z", re.IGNORECASE)
_bad = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]+')
_DEVICES = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|\Z)", re.IGNORECASE)


def file_name(url: str) -> str:
    """The relative path of the file of a URL, with `/` between its parts."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return f"_/{_digest(url)}{ENDING}"
    folders = [_part(_decoded(part)) for part in parts.path.split("/")[:-1] if part]
    last = _decoded(parts.path.rsplit("/", 1)[-1])
    last = _PAGES.sub("", last) or "index"
    if parts.query:
        last = f"{last}_{_decoded(parts.query)}"
    name = _part(last)
    site = _part(f"{host}_{port}" if port is not None else host)
    whole = "/".join([site, *map(_folder, folders), name])
    if len(folders) + 2 > MOST_PARTS or len(whole.encode()) > MOST_PATH - len(ENDING):
        return f"{site}/_long/{_digest(url)}{ENDING}"
    return whole + ENDING


def _decoded(text: str) -> str:
    """Without percent escapes, where these are UTF-8."""
    raw = unquote_to_bytes(text.encode("utf-8", "replace"))
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return text


def _part(text: str) -> str:
    """One part of a path, fit for file systems."""
    name = _bad.sub("_", unicodedata.normalize("NFC", text.encode("utf-8", "ignore").decode()))
    name = name.strip(" ").rstrip(". ")
    if name.startswith("."):
        name = f"_{name.lstrip('.')}"
    if not name or _DEVICES.match(name):
        name = f"_{name}"
    raw = name.encode()
    if len(raw) > MOST_PART:
        kept = raw[: MOST_PART - _DIGEST - 1].decode("utf-8", "ignore").rstrip(". ")
        name = f"{kept}~{_digest(text)}"
    return name


def _folder(part: str) -> str:
    return f"{part}_" if part.lower().endswith(ENDING) else part


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()[:_DIGEST]


class FileNames:
    """Gives each URL a file of its own. Some 100 bytes of memory a name."""

    def __init__(self) -> None:
        self._taken: set[bytes] = set()

    def give(self, url: str, page: str) -> str:
        """The relative path of the file of a page with this URL; `page` tells pages of one URL apart."""
        name = file_name(url)
        if self._take(name):
            return name
        stem = name.removesuffix(ENDING)
        for number in count():  # digests that meet: once in a lifetime
            again = f"{stem}~{_digest(f'{url} {page} {number}')}{ENDING}"
            if self._take(again):
                return again
        raise AssertionError("numbers do not end")

    def _take(self, name: str) -> bool:
        folded = unicodedata.normalize("NFKC", name.casefold()).casefold()
        mark = blake2b(folded.encode(), digest_size=12).digest()
        if mark in self._taken:
            return False
        self._taken.add(mark)
        return True
