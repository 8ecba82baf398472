"""Heads of responses that break the grammar, made readable, as browsers read them.

Only what the parser has refused comes here. Lines that are no header fields (no colon, or a name that is none) are
left out; lines that continue the one before are joined to it. The status line and everything after the head stay.
"""

from __future__ import annotations

import re

_END = re.compile(rb"\r?\n\r?\n")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:[ \t]*(.*)", re.DOTALL)


def may_end(data: bytes) -> bool:
    """Whether a head may end within `data`."""
    return _END.search(data) is not None


def mend(data: bytes) -> bytes | None:
    """What has come, with a head that can be read. None while the head has no end."""
    data = data.lstrip(b"\r\n")
    end = _END.search(data)
    if end is None:
        return None
    lines: list[bytes] = []
    status, *rest = data[: end.start()].split(b"\n")
    for line in rest:
        if line[:1] in (b" ", b"\t") and lines:
            lines[-1] = lines[-1].rstrip() + b" " + line.strip()
        else:
            lines.append(line.rstrip(b"\r"))
    fields = [b"%b: %b" % field.groups() for line in lines if (field := _FIELD.fullmatch(line))]
    return b"\r\n".join([status.rstrip(b"\r"), *fields]) + b"\r\n\r\n" + data[end.end() :]
