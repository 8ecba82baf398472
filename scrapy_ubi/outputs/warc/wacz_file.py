"""WACZ 1.1.1: WARC files, their index and a list of pages in one ZIP file, as ReplayWeb.page opens it.

Rules of this module:

* Files go through in pieces: WARC files are stored as they are, never unpacked again; the index is sorted by stretches
  (`cdxj.in_order`). Memory does not grow with the archive.
* The CDXJ beside a WARC file gives its lines; a file without one is walked through. A line that does not hold is
  counted, and left out.
* Pages are the HTML responses with status 200, each URL once, in the order of keys.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from scrapy_ubi.outputs.warc import cdxj
from scrapy_ubi.outputs.warc.foreign import MOST_HEAD, BrokenRecord, ForeignRecord, http_message, walk
from scrapy_ubi.outputs.warc.warc_collector import index_of

VERSION = "1.1.1"
PIECE = 1 << 20
LINES = 3000  # of the index, that are compressed together
MOST_LINE = 1 << 16
HTML = ("text/html", "application/xhtml+xml")


@dataclass(slots=True)
class WaczTally:
    """What went into a file; `broken`: lines and records that did not hold."""

    files: int = 0
    records: int = 0
    pages: int = 0
    broken: int = 0


class Wacz:
    """One WACZ file of some WARC files, whose names differ. `place`: a directory for what is sorted; `told(done,
    total)` is called with bytes."""

    def __init__(self, paths: list[Path], place: Path, told: Callable[[int, int], None]) -> None:
        self._paths = paths
        self._place = place
        self._told = told
        self._total = sum(path.stat().st_size for path in paths)
        self._done = 0
        self._resources: list[dict[str, Any]] = []
        self._when = time.gmtime()
        self.tally = WaczTally(len(paths))

    def write(self, file: IO[bytes]) -> WaczTally:
        """Write the file. Raises OSError."""
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            for path in self._paths:
                with path.open("rb") as data:
                    self._put(archive, f"archive/{path.name}", iter(lambda: data.read(PIECE), b""), tells=True)
            lines = self._place / "lines"
            with lines.open("wb") as out:
                for path in self._paths:
                    out.writelines(self._lines(path))
            (self._place / "pages").write_bytes(self._pages_head())
            self._put(archive, "indexes/index.cdx.gz", self._index(lines))
            self._put(archive, "indexes/index.idx", _pieces(self._place / "idx"))
            self._put(archive, "pages/pages.jsonl", _pieces(self._place / "pages"), zipfile.ZIP_DEFLATED)
            package = self._package()
            self._put(archive, "datapackage.json", iter([package]))
            said = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(package).hexdigest()}"}
            self._put(archive, "datapackage-digest.json", iter([_json(said)]))
        self._told(self._total, self._total)
        return self.tally

    def _put(
        self, archive: zipfile.ZipFile, name: str, pieces: Iterator[bytes], how: int = zipfile.ZIP_STORED,
        tells: bool = False,
    ) -> None:  # fmt: skip
        state, size = hashlib.sha256(), 0
        info = zipfile.ZipInfo(name, self._when[:6])
        info.compress_type = how
        with archive.open(info, "w", force_zip64=True) as out:
            for piece in pieces:
                out.write(piece)
                state.update(piece)
                size += len(piece)
                if tells:
                    self._done += len(piece)
                    self._told(min(self._done, self._total - 1), self._total)
        named = {"name": name.rpartition("/")[2].lower(), "path": name}
        self._resources.append({**named, "hash": f"sha256:{state.hexdigest()}", "bytes": size})

    def _lines(self, path: Path) -> Iterator[bytes]:
        if not index_of(path).exists():
            for record in walk(path, MOST_HEAD, self._broken):
                if record.kind in ("response", "revisit") and (line := self._line_of(record, path.name)):
                    yield line
            return
        with index_of(path).open("rb") as file:
            while line := file.readline(MOST_LINE):
                if _fields(line) is not None:
                    yield line
                else:
                    self._broken()

    def _line_of(self, record: ForeignRecord, name: str) -> bytes | None:
        try:
            message = http_message(record.block)
            mime = next((value for name, value in message.headers if name.lower() == b"content-type"), b"")
            kind = cdxj.REVISIT if record.kind == "revisit" else mime.decode("latin-1")
            return cdxj.line(
                record.url, record.fields.get("warc-date", ""), int(message.line[1]), kind,
                record.fields.get("warc-payload-digest", ""), record.length, record.offset, name,
            )  # fmt: skip
        except (BrokenRecord, ValueError):
            self._broken()
            return None

    def _index(self, lines: Path) -> Iterator[bytes]:
        """The index in gzip members of some lines each; its own index and the pages are written on the way."""
        offset, held, last = 0, list[bytes](), ""
        meta = _json({"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"})
        with (self._place / "idx").open("wb") as idx, (self._place / "pages").open("ab") as pages:
            idx.write(b"!meta 0 " + meta + b"\n")

            def member() -> bytes:
                data = gzip.compress(b"".join(held), mtime=0)
                key = b" ".join(held[0].split(b" ", 2)[:2])
                digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
                said = {"offset": offset, "length": len(data), "digest": digest, "filename": "index.cdx.gz"}
                idx.write(key + b" " + _json(said) + b"\n")
                held.clear()
                return data

            for line in cdxj.in_order(lines):
                held.append(line)
                self.tally.records += 1
                last = self._page(line, last, pages)
                if len(held) == LINES:
                    yield (data := member())
                    offset += len(data)
            if held:
                yield member()

    def _page(self, line: bytes, last: str, pages: IO[bytes]) -> str:
        fields = _fields(line) or {}
        url = str(fields.get("url"))
        if fields.get("mime") not in HTML or fields.get("status") != "200" or url == last:
            return last
        stamp = line.split(b" ", 2)[1].decode()
        when = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[8:10]}:{stamp[10:12]}:{stamp[12:14]}Z"
        pages.write(_json({"id": uuid4().hex, "url": url, "ts": when, "title": url}) + b"\n")
        self.tally.pages += 1
        return url

    @staticmethod
    def _pages_head() -> bytes:
        return _json({"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}) + b"\n"

    def _package(self) -> bytes:
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", self._when)
        return json.dumps(
            {
                "profile": "data-package", "resources": self._resources, "created": created, "wacz_version": VERSION,
                "software": f"scrapy-ubi {version('scrapy-ubi')}",
            }, indent=2,
        ).encode()  # fmt: skip

    def _broken(self) -> None:
        self.tally.broken += 1


def _fields(line: bytes) -> dict[str, Any] | None:
    """What a line of a CDXJ says; None where it does not hold."""
    try:
        _, stamp, text = line.decode().split(" ", 2)
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_whole = line.endswith(b"\n") and len(stamp) == 14 and stamp.isdigit() and isinstance(fields, dict)
    return fields if is_whole and isinstance(fields.get("url"), str) else None


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(PIECE), b"")


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()
