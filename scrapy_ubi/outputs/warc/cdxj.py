"""CDXJ: a line for each response of a WARC file, by which a page is found in it; and its key, a SURT.

Rules of this module:

* A line is `<key> <time> {"url", "mime", "status", "digest", "length", "offset", "filename"}`, numbers as texts, as
  pywb and its tools write it. Lines of a sealed file are sorted by bytes.
* Sorting changes no length: a file may be sorted again, or not yet, whatever happens (P9).
* The key is that of the `surt` package for URLs as Scrapy writes them: names of the host turned round, without "www.",
  in lower case, arguments sorted, without sessions.
"""

from __future__ import annotations

import heapq
import json
import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from scrapy_ubi.outputs.warc.members import WarcRecord

MOST = 1 << 26  # bytes of lines that are sorted in memory
PORTS = {"http": 80, "https": 443}
REVISIT = "warc/revisit"

_www = re.compile(r"www\d*\.")
_aspx = (
    re.compile(r"^(.*/)(\((?:[a-z]\([0-9a-z]{24}\))+\)/)([^?]+\.aspx.*)$", re.I),
    re.compile(r"^(.*/)(\([0-9a-z]{24}\)/)([^?]+\.aspx.*)$", re.I),
)
_session = re.compile(
    r"(?i)(?:(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}|cfid=[^&]+&cftoken=[^&]+)(?:&|$)"
)
_mime = re.compile(r"[\w.+-]+/[\w.+-]+")
# No escapes, ports, users, capitals in the host, letters beyond ASCII, nor the parentheses of ASP.NET's sessions.
_usual = re.compile(
    r"https?://(?:www\d*+\.)?+([a-z0-9.-]++)(/[!\"$&'*-;=@-~]*+)?+(?:\?([!-\"$&-~]*+))?+(?:#[!-~]*+)?+"
).fullmatch
_quoted = json.encoder.encode_basestring_ascii
_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in "#%")


def key(url: str) -> str:
    """The SURT of a URL."""
    found = _usual(url)
    return _short_key(*found.groups()) if found is not None else _key(url)


def _short_key(host: str, path: str | None, query: str | None) -> str:
    """That of a URL without escapes, port and user."""
    path = path.lower().rstrip("/") if path else ""
    name = ",".join(host.split(".")[::-1])
    query = _query(query) if query else ""
    return f"{name}){path or '/'}?{query}" if query else f"{name}){path or '/'}"


def _key(url: str) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = host[www.end() :] if (www := _www.match(host)) else host
    name = ",".join(reversed(host.split(".")))
    port = parts.port
    if port is not None and port != PORTS.get(parts.scheme):
        name += f":{port}"
    path = _plain(parts.path or "/").lower()
    for pattern in _aspx:
        path = pattern.sub(r"\1\3", path)
    path = path.rstrip("/") if path.endswith("/") and len(path) > 1 else path
    query = _query(_plain(parts.query)) if parts.query else ""
    return f"{name}){path or '/'}" + (f"?{query}" if query else "")


def _plain(text: str) -> str:
    """Without escapes, but for what needs them."""
    if "%" not in text and text.isascii():
        return text
    data = text.encode("utf-8", "replace")
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return quote_from_bytes(data, safe=_SAFE)


def _query(query: str) -> str:
    query = _session.sub("", query).lower() if "id=" in query.lower() else query.lower()
    return "&".join("=".join(pair) for pair in sorted(part.split("=", 1) for part in query.split("&")))


def line(url: str, when: str, status: int, mime: str, digest: str, length: int, offset: int, filename: str) -> bytes:
    """A line; `when` is the record's WARC-Date."""
    found = _mime.match(mime)
    mime = _quoted(found[0].lower() if found else "unk")
    stamp = f"{when[:4]}{when[5:7]}{when[8:10]}{when[11:13]}{when[14:16]}{when[17:19]}"
    text = (
        f'{key(url)} {stamp} {{"url": {_quoted(url)}, "mime": {mime}, '
        f'"status": "{status}", "digest": {_quoted(digest)}, "length": "{length}", "offset": "{offset}", '
        f'"filename": {_quoted(filename)}}}\n'
    )
    return text.encode()


def line_of(record: WarcRecord, offset: int, filename: str) -> bytes | None:
    """The line of a record that lies at that offset of a file; None where it has none."""
    if record.kind not in ("response", "revisit"):
        return None
    lines = record.http_head.split(b"\r\n")
    status = lines[0].split(b" ")[1:2]
    mimes = (one[13:] for one in lines if one[:13].lower() == b"content-type:")
    mime = REVISIT if record.kind == "revisit" else next(mimes, b"").decode("latin-1").strip()
    fields = record.fields
    return line(
        fields["WARC-Target-URI"], fields["WARC-Date"], int(status[0]) if status else 0, mime,
        fields.get("WARC-Payload-Digest", ""), record.length, offset, filename,
    )  # fmt: skip


def sort(path: Path) -> None:
    """Sort a file of lines, if it is not sorted. Raises OSError."""
    if not path.exists() or is_sorted(path):
        return
    beside = path.with_name(f".{path.name}.sorted")
    with beside.open("wb") as file:
        file.writelines(in_order(path))
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def is_sorted(path: Path) -> bool:
    """Raises OSError."""
    with path.open("rb") as lines:
        return all(one <= other for one, other in pairwise(lines))


def in_order(path: Path) -> Iterator[bytes]:
    """The lines of a file, sorted: by stretches that fit into memory. Raises OSError."""
    size, runs = path.stat().st_size, list[Path]()
    place = path.with_name(f".{path.name}.run")
    with path.open("rb") as file:
        if size <= MOST:
            yield from sorted(file)
            return
        while lines := file.readlines(MOST):
            run = place.with_name(f"{place.name}{len(runs)}")
            with run.open("wb") as out:
                out.writelines(sorted(lines))
            runs.append(run)
    opened = [run.open("rb") for run in runs]
    try:
        yield from heapq.merge(*opened)
    finally:
        for stream, run in zip(opened, runs, strict=True):
            stream.close()
            run.unlink()
