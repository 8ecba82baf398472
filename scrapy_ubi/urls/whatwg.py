"""URLs as the WHATWG standard reads them: what stands in for can_ada, which is not built for every Python.

Rules of this module:

* Of an absolute http or https URL `parse` gives what `str(can_ada.parse(url))` does, as far as normal forms are
  concerned (`urls.normal`): a test compares both, and decision 0118 says on how many URLs they were compared. It takes
  ten to forty times as long; most URLs are in normal form already and never come here.
* Names of hosts are mapped by UTS 46 as the standard says (not transitional, no rules of STD 3, joiners and directions
  of text checked), by `idna`, which Scrapy's own dependencies bring. What can_ada takes for a letter of them, and its
  direction, stands in `host_letters.txt`: it knows an older Unicode than `idna`, and each Python another one.
* A label that no name of DNS could hold is no host: punycode takes time by the square of its length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache, lru_cache
from ipaddress import AddressValueError, IPv6Address
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize
from urllib.parse import quote

import idna

TABLE = Path(__file__).with_name("host_letters.txt")
LONGEST_LABEL = 253  # characters, before it is written as ASCII, which makes no label shorter

_AROUND = "".join(map(chr, range(0x21)))
_INSIDE = str.maketrans(dict.fromkeys("\t\n\r"))
_split = re.compile(r"(https?):[/\\]*([^/\\?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.IGNORECASE | re.DOTALL).fullmatch
_host_and_port = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]+)(?::([0-9]*))?").fullmatch
_FORBIDDEN = re.compile(r"[\x00-\x20#/:<>?@\[\\\]^|%\x7f]").search
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_DOT = re.compile(r"\.|%2e", re.IGNORECASE).fullmatch
_DOTS = re.compile(r"(?:\.|%2e){2}", re.IGNORECASE).fullmatch
_number = re.compile(r"0[xX]([0-9A-Fa-f]*)|0([0-7]+)|(0|[1-9][0-9]*)").fullmatch
_numeric = re.compile(r"0[xX][0-9A-Fa-f]*|[0-9]+").fullmatch

# What stays as it is, beside letters, digits and `_.-~`, which `quote` never escapes.
_IN_FRAGMENT = "!#$%&'()*+,/:;=?@[\\]^{|}"
_IN_QUERY = "!$%&()*+,/:;=?@[\\]^`{|}"
_IN_PATH = "!$%&'()*+,/:;=@[\\]|"
_IN_USER = "!$%&'()*+,"


def parse(url: str) -> str:
    """The URL as the standard writes it. Raises ValueError where it is no absolute http or https URL."""
    url.encode()  # a lone surrogate is of no URL
    match = _split(url.strip(_AROUND).translate(_INSIDE))
    if match is None:
        raise ValueError(f"{url!r} is no http or https URL")
    scheme, authority, path, query, fragment = match.groups(default="")
    scheme = scheme.lower()
    user, at, place = authority.rpartition("@")
    found = _host_and_port(place)
    if found is None:
        raise ValueError(f"{place!r} is no host")
    host, port = found.groups(default="")
    parts = [scheme, "://", _user(user) if at else "", _host(host), _port(port, scheme), _path(path)]
    if query:
        parts += ["?", quote(query[1:], _IN_QUERY)]
    if fragment:
        parts += ["#", quote(fragment[1:], _IN_FRAGMENT)]
    return "".join(parts)


def _user(text: str) -> str:
    name, _, password = text.partition(":")
    name, password = quote(name, _IN_USER), quote(password, _IN_USER)
    if not name and not password:
        return ""
    return f"{name}:{password}@" if password else f"{name}@"


def _port(text: str, scheme: str) -> str:
    if not text:
        return ""
    digits = text.lstrip("0") or "0"
    if len(digits) > 5 or int(digits) > 65535:
        raise ValueError(f"{text[:20]!r} is no port")
    return "" if digits == _DEFAULT_PORTS[scheme] else f":{digits}"


def _path(text: str) -> str:
    segments: list[str] = []
    last = ""
    for last in re.split(r"[/\\]", text)[1:]:
        if _DOTS(last):
            del segments[-1:]
        elif not _DOT(last):
            segments.append(last)
    if _DOT(last) or _DOTS(last):
        segments.append("")
    return quote("/" + "/".join(segments), _IN_PATH)


# -- hosts


def _host(text: str) -> str:
    if text.startswith("["):
        return _ipv6(text[1:-1])
    if "%" in text:
        raise ValueError(f"{text!r} has an escape")  # of which normal forms know nothing
    domain = _domain(text)
    if not domain or _FORBIDDEN(domain):
        raise ValueError(f"{text!r} is no host")
    labels = domain.split(".")
    if not labels[-1] and len(labels) > 1:
        labels.pop()
    return _ipv4(labels) if _numeric(labels[-1]) else domain


def _domain(text: str) -> str:
    """The name as ASCII. Raises ValueError (of which `idna` raises kinds)."""
    if text.isascii():
        mapped = text.lower()
        if "xn--" not in mapped:
            return mapped
    else:
        mapped = _mapped(text)
    return ".".join(map(_label, mapped.split(".")))


def _mapped(text: str) -> str:
    """A name as UTS 46 maps it, of any length (`idna` takes 1,024 characters). Raises ValueError."""
    return normalize("NFC", "".join(map(_mapped_letter, text)))


@lru_cache(4096)
def _mapped_letter(character: str) -> str:
    if character.isascii():
        return character.lower()
    letters = _letters()
    if letters.kind(character) == "none":
        raise ValueError(f"{character!r} is no letter of a host")
    mapped = letters.mapped.get(character)
    return idna.uts46_remap(character, std3_rules=False, transitional=False) if mapped is None else mapped


def _label(label: str) -> str:
    if len(label) > LONGEST_LABEL:
        raise ValueError("a label is too long")
    if label.startswith("xn--"):
        decoded = label[4:].encode("ascii").decode("punycode")
        if not decoded or _mapped(decoded) != decoded:
            raise ValueError(f"{label!r} is no punycode of a label")
        _check(decoded)
        return label
    if label.isascii():
        return label
    _check(label)
    return "xn--" + label.encode("punycode").decode("ascii")


def _check(label: str) -> None:
    """Refuse a label that is not ASCII and not valid. Raises ValueError."""
    if label[0] in _letters().marks:
        raise ValueError(f"{label!r} begins with a mark")
    for at, character in enumerate(label):
        if character in "\u200c\u200d":
            if not idna.valid_contextj(label, at):
                raise ValueError(f"{label!r} has a joiner where none may be")
            return  # as can_ada does: nothing behind it is looked at
    _check_directions(label)


def _check_directions(label: str) -> None:
    """RFC 5893, section 2, of a label with letters that are read from the right, as far as can_ada goes by it: it may
    begin with a digit or sign, or with a letter that is read from the left if only its last one is not. Raises
    ValueError.
    """
    kinds = [_letters().kind(character) for character in label]
    if not {"R", "AN"}.intersection(kinds):
        return
    while kinds[-1] == "NSM":
        kinds.pop()
    if not kinds[0]:
        bad = bool({"R", "AN", "unknown"}.intersection(kinds[:-1]))
    else:
        bad = (
            bool({"", "unknown"}.intersection(kinds))
            or kinds[-1] not in ("R", "AN", "EN")
            or {"AN", "EN"} <= set(kinds)
        )
    if bad:
        raise ValueError(f"{label!r} is read from both sides")


class _Letters(NamedTuple):
    """The table: where ranges of one kind begin, their kinds; what is mapped; what begins no label."""

    starts: list[int]
    kinds: list[str]
    mapped: dict[str, str]
    marks: frozenset[str]

    def kind(self, character: str) -> str:
        """What a character is in the name of a host, as the table calls it; '' for what is read from the left."""
        return self.kinds[bisect_right(self.starts, ord(character)) - 1]


_ASCII = {0x30: "EN", 0x3A: "N", 0x41: "", 0x5B: "N", 0x61: "", 0x7B: "N", 0x80: ""}


@cache
def _letters() -> _Letters:
    """Read when the first host needs it."""
    lines = [line.split() for line in TABLE.read_text("ascii").splitlines() if not line.startswith("#")]
    table = {name: words for name, *words in lines}
    pairs = _pairs(table.pop("mapped"), ":")
    mapped = {chr(int(one, 16)): bytes.fromhex(other).decode("utf-16-be") for one, _, other in pairs}
    marks = {chr(point) for first, last in _ranges(table.pop("mark")) for point in range(first, last + 1)}
    ends: dict[int, str] = {0: "N"}
    begins = dict(_ASCII)
    for kind, words in table.items():
        for first, last in _ranges(words):
            begins[first] = kind
            ends[last + 1] = ""
    starts = {**ends, **begins}  # where one range ends another may begin
    order = sorted(starts)
    return _Letters(order, [starts[start] for start in order], mapped, frozenset(marks))


def _pairs(words: list[str], sign: str) -> list[tuple[str, str, str]]:
    return [word.partition(sign) for word in words]


def _ranges(words: list[str]) -> list[tuple[int, int]]:
    return [(int(first, 16), int(last or first, 16)) for first, _, last in _pairs(words, "-")]


def _ipv4(labels: list[str]) -> str:
    if len(labels) > 4:
        raise ValueError("too many parts")
    *first, last = map(_part, labels)
    if any(part > 255 for part in first) or last >= 256 ** (4 - len(first)):
        raise ValueError("a part is too large")
    number = last + sum(part << 8 * (3 - index) for index, part in enumerate(first))
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def _part(text: str) -> int:
    match = _number(text)
    if match is None or len(text) > LONGEST_LABEL:
        raise ValueError(f"{text!r} is no number")
    hexadecimal, octal, decimal = match.groups()
    if decimal:
        return int(decimal)
    return int(octal, 8) if octal else int(hexadecimal or "0", 16)


def _ipv6(text: str) -> str:
    if "%" in text or "/" in text:
        raise ValueError(f"{text!r} is no address")
    try:
        number = int(IPv6Address(text))
    except AddressValueError as error:
        raise ValueError(f"{text!r} is no address") from error
    pieces = [number >> shift & 0xFFFF for shift in range(112, -16, -16)]
    start, length = _zeros(pieces)
    if length < 2:
        return f"[{':'.join(f'{piece:x}' for piece in pieces)}]"
    before, after = pieces[:start], pieces[start + length :]
    return f"[{':'.join(f'{piece:x}' for piece in before)}::{':'.join(f'{piece:x}' for piece in after)}]"


def _zeros(pieces: list[int]) -> tuple[int, int]:
    """Where the first of the longest runs of zeros begins, and how long it is."""
    best = (0, 0)
    at = 0
    while at < len(pieces):
        end = at
        while end < len(pieces) and not pieces[end]:
            end += 1
        if end - at > best[1]:
            best = (at, end - at)
        at = end + 1
    return best
