"""Heads of responses that break the grammar, made readable, as browsers read them.

Only what the parser has refused comes here. Lines that are no header fields (no colon, or a name that is none) are
left out, and so is a Transfer-Encoding after the first one; lines that continue the one before are joined to it; a
carriage return within a line is a space (RFC 9112, 2.2); `http/1.1` is HTTP/1.1. A Content-Length that is said twice
alike is said once; one that is no number is left out where no body follows, and else stays, for the parser to refuse.
Interim responses are left out, also those after which the parser expects nothing more (of HTTP/1.0, or with "close").
What comes after the head stays.
"""

from __future__ import annotations

import re

from scrapy_ubi.fast.http.load import Field

_END = re.compile(rb"\r?\n\r?\n")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:[ \t]*(.*)", re.DOTALL)
_INTERIM = re.compile(rb"[\r\n]*(?i:HTTP)/\d\.\d 1(?!01)\d\d(?=[ \r\n])")
# White space stays, as the parser and Scrapy's have it. A run of returns is looked at once, however long.
_fold = re.compile(rb"(?<!\r)\r*+\n(?=[ \t])").sub
_version = re.compile(rb"http/", re.IGNORECASE).match
_has_no_body = re.compile(rb"HTTP/\d\.\d (?:204|304)(?: |$)").match
_is_length = re.compile(rb"[0-9]{1,18}").fullmatch


def may_end(data: bytes) -> bool:
    """Whether a head may end within `data`."""
    return _END.search(data) is not None


def after_interim(data: bytes) -> bytes:
    """What has come, from the first head on that is not an interim response's, or has no end yet."""
    start = 0
    while (interim := _INTERIM.match(data, start)) and (end := _END.search(data, interim.end())):
        start = end.end()
    return data[start:].lstrip(b"\r\n")


def mend(data: bytes, bodyless: bool) -> bytes | None:
    """What has come, with a head that can be read. None while the head has no end. `bodyless`: no body will follow,
    whatever the status."""
    end = _END.search(data)
    if end is None:
        return None
    status, _, rest = data[: end.start()].partition(b"\n")
    status = status.rstrip(b"\r").replace(b"\r", b" ")
    if _version(status):
        status = b"HTTP/" + status[5:]
    lines = [line.rstrip(b"\r").replace(b"\r", b" ") for line in _fold(b"", rest).split(b"\n")]
    fields = [(field[1], field[2]) for line in lines if (field := _FIELD.fullmatch(line))]
    first = next((field for field in fields if field[0].lower() == b"transfer-encoding"), None)
    fields = [field for field in fields if field is first or field[0].lower() != b"transfer-encoding"]
    fields = _with_one_length(fields, bodyless or _has_no_body(status) is not None)
    return b"\r\n".join([status, *(b"%b: %b" % field for field in fields)]) + b"\r\n\r\n" + data[end.end() :]


def _with_one_length(fields: list[Field], bodyless: bool) -> list[Field]:
    """The fields with one Content-Length where all of them say the same (RFC 9110, 8.6)."""
    said = [value for name, value in fields if name.lower() == b"content-length"]
    lengths = {each.strip(b" \t") for value in said for each in value.split(b",")}
    if len(lengths) != 1 and not bodyless:
        return fields
    others = [field for field in fields if field[0].lower() != b"content-length"]
    if len(lengths) == 1:
        [length] = lengths
        if not bodyless or _is_length(length):
            others.append((b"Content-Length", length))
    return others
