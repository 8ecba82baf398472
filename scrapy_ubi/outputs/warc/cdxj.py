"""CDXJ: a line for each response of a WARC file, by which a page is found in it; and its key, a SURT.

Rules of this module:

* A line is `<key> <time> {"url", "mime", "status", "digest", "length", "offset", "filename"}`, numbers as texts, as
  pywb and its tools write it. Lines of a sealed file are sorted by bytes.
* Sorting changes no length: a file may be sorted again, or not yet, whatever happens (P9).
* The key is that of the `surt` package: names of the host turned round, without "www.", in lower case, dots of the path
  resolved, arguments sorted, without sessions. `surt` itself asks DNS for hosts that look like addresses.
"""

from __future__ import annotations

import heapq
import json
import os
import re
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

from scrapy_ubi.outputs.warc.members import WarcRecord

MOST = 1 << 26  # bytes of lines that are sorted in memory
PORTS = {"http": 80, "https": 443}
REVISIT = "warc/revisit"

_www = re.compile(rb"www\d*\.")
_aspx = (
    re.compile(rb"^(.*/)(\((?:[a-z]\([0-9a-z]{24}\))+\)/)([^?]+\.aspx.*)$"),
    re.compile(rb"^(.*/)(\([0-9a-z]{24}\)/)([^?]+\.aspx.*)$"),
)
_sessions = tuple(
    re.compile(rb"(?i)^(.*)(?:" + named + rb")(?:&(.*))?$")
    for named in (
        rb"jsessionid=[0-9a-z]{32}", rb"phpsessid=[0-9a-z]{32}", rb"sid=[0-9a-z]{32}",
        rb"aspsessionid[a-z]{8}=[a-z]{24}", rb"cfid=[^&]+&cftoken=[^&]+",
    )
)  # fmt: skip
_protocols = re.compile(rb"^(https?://)+")
_parts = re.compile(rb"([a-zA-Z][a-zA-Z0-9+.-]*):(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.DOTALL).fullmatch
_ip = re.compile(rb"(?:0[0-7]*|[1-9][0-9]*)(?:\.[0-9]+){0,3}").fullmatch
_mime = re.compile(r"[\w.+-]+/[\w.+-]+")
# A host that cannot be an address, without final dots; no escapes, ports, users, capitals in the host, letters beyond
# ASCII, empty segments nor those of dots, nor the parentheses of ASP.NET's sessions.
_usual = re.compile(
    r"https?://(?:www\d*+\.)?+((?:[a-z0-9-]++\.)*+[a-z][a-z0-9-]*+)"
    r"((?:/(?!\.\.?(?:[/?#]|\Z))[!\"$&'*-.0-;=@-~]++)*+/?+)(?:\?([!-\"$&-~]*+))?+(?:#[!-~]*+)?+"
).fullmatch
_quoted = json.encoder.encode_basestring_ascii
_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in "#%")


def key(url: str) -> str:
    """The SURT of a URL."""
    found = _usual(url)
    return _short_key(*found.groups()) if found is not None else _key(url)


def _short_key(host: str, path: str, query: str | None) -> str:
    """Make that of a URL without escapes, port and user."""
    path = path.lower().removesuffix("/")
    name = ",".join(host.split(".")[::-1])
    query = _query(query.encode()).decode() if query else ""
    return f"{name}){path or '/'}?{query}" if query else f"{name}){path or '/'}"


def _key(url: str) -> str:
    """Make that of any URL, step by step as `surt` 0.3 does: what its GoogleURLCanonicalizer, then its
    IAURLCanonicalizer make of it."""
    data = re.sub(rb"[\n\r\t]", b"", url.encode("utf-8", "replace").strip())
    data = _protocols.sub(lambda found: found[1], data)
    found = _parts(data)
    if found is None:
        return data.decode("utf-8", "replace")
    scheme, authority, path, query = found.groups()
    host, port = _host_and_port((authority or b"").rpartition(b"@")[2], PORTS.get(scheme.lower().decode()))
    if not host and path:  # "http:////host/path"
        host, _, path = path.lstrip(b"/").partition(b"/")
        path = b"/" + path
    host = _host(host)
    path = _escaped(_without_dots(_unescaped(path))).lower()
    for pattern in _aspx:
        path = pattern.sub(rb"\1\3", path)
    path = path[:-1] if path.endswith(b"/") and len(path) > 1 else path
    query = _query(_escaped(_unescaped(query))) if query else b""
    name = b",".join(reversed(host[www.end() if (www := _www.match(host)) else 0 :].split(b".")))
    return (name + port + b")" + (path or b"/") + (b"?" + query if query else b"")).decode()


def _host_and_port(authority: bytes, usual: int | None) -> tuple[bytes, bytes]:
    """Part a host, without the brackets of an address, and `:port`, "" for the usual one."""
    authority = authority.rstrip(b":")
    host, mark, port = authority.rpartition(b":")
    if not mark or not port.isdigit() or (authority.startswith(b"[") and not host.endswith(b"]")):
        host, port = authority, b"0"
    number = int(port)
    return host.removeprefix(b"[").removesuffix(b"]").lower(), b":%d" % number if number not in (0, usual) else b""


def _host(host: bytes) -> bytes:
    host = _unescaped(host)
    if not host.isascii():
        with suppress(ValueError):
            host = host.decode("utf-8", "ignore").encode("idna")
    host = host.replace(b"..", b".").strip(b".")
    if host.isdigit():
        return socket.inet_ntoa(struct.pack(">L", int(host) & 0xFFFFFFFF)).encode()
    if _ip(host):
        with suppress(OSError):
            return socket.inet_ntoa(socket.inet_aton(host.decode())).encode()
    return _escaped(host).lower()


def _without_dots(path: bytes) -> bytes:
    """Take empty segments and those of one dot out, and of two dots the segment before as well; a final slash stays."""
    kept: list[bytes] = []
    for segment in path.split(b"/")[1:]:
        if segment == b".." and kept:
            kept.pop()
        elif segment != b".":
            kept.append(segment)
    if not kept:
        return b"/"
    return b"/" + b"".join([segment + b"/" for segment in kept[:-1] if segment]) + kept[-1]


def _unescaped(data: bytes) -> bytes:
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return data


def _escaped(data: bytes) -> bytes:
    return quote_from_bytes(data, safe=_SAFE).encode()


def _query(query: bytes) -> bytes:
    if b"id" in query.lower():
        for pattern in _sessions:
            query = pattern.sub(lambda found: found[1] + (found[2] or b""), query)
    return b"&".join(b"=".join(pair) for pair in sorted(part.split(b"=", 1) for part in query.lower().split(b"&")))


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
