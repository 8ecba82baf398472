"""Text from outside made fit for a terminal.

A URL or a name in Redis may hold an escape sequence that clears the screen, moves the cursor or turns text around. Such
characters are printed as their Python escape (`\\x1b`) instead.
"""

from __future__ import annotations

import unicodedata

ELLIPSIS = "…"


def plain(value: str | bytes, limit: int | None = None) -> str:
    """`value` in printable characters only, cut to `limit` columns.

    Controls, invisible and direction-changing characters, lone surrogates and combining marks become escapes; bytes
    that are no UTF-8 become `\\xNN`.
    """
    # Nothing beyond the limit can be shown, so a text of 50 MB costs no more than a short one.
    head = value if limit is None else value[: 4 * (limit + 1)]
    text = head.decode("utf-8", "backslashreplace") if isinstance(head, bytes) else head
    if not text.isascii() or not text.isprintable():
        text = "".join(_shown(character) for character in text)
    return text if limit is None else cut(text, limit)


def _shown(character: str) -> str:
    if character.isprintable() and not unicodedata.category(character).startswith("M"):
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def width(text: str) -> int:
    """Columns a terminal needs for a plain text: two for wide East Asian characters."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def cut(text: str, limit: int) -> str:
    """A plain text in at most `limit` columns (at least 1), an ellipsis for what is left off."""
    if width(text) <= limit:
        return text
    kept, used = [], 1
    for character in text:
        used += width(character)
        if used > limit:
            break
        kept.append(character)
    return "".join(kept) + ELLIPSIS


def cut_middle(text: str, limit: int) -> str:
    """A plain text in at most `limit` columns (at least 3), its beginning and its end kept: both tell names apart."""
    if width(text) <= limit:
        return text
    tail = ""
    for character in reversed(text):
        if width(tail) + width(character) > (limit - 1) // 2:
            break
        tail = character + tail
    return cut(text, limit - width(tail)) + tail
