r"""The normal form of a URL: two spellings of one URL have one. It is compared, not fetched: URLs are fetched as found.

The idea is LARM's (Marschner, 2003): a stemming function for URLs. Rules of this module:

* `normal_form` never raises, whatever the text, and is idempotent: a normal form is its own.
* It is ASCII and begins with `http://` or `https://`, a host (after user name and password, if there are any) and `/`.
* Only what no server can tell apart, or none does, is taken for one: RFC 3986, sections 6.2.2 and 6.2.3, and what the
  WHATWG standard does to text on its way to being a URL. What some sites ignore (a final `index.html`, runs of
  slashes) stays apart, unless the lossy steps of `urls.steps` are asked for, which come after these.
* Nor is a URL taken for one that a client which repairs less could not fetch: the good one would then count as known.
  Browsers do read `http:///h/a`, `http:\\h\a` and `http://h%2eexample/` as URLs of a host; here they have no normal
  form, and a `\` in a path is `%5C`. No request has one: w3lib makes `/` of it, `%5C` before its version 2.5.

In this order, always 1 to 4, and of the rest the steps that are switched on (all, by default):

1. spaces and control characters around the URL dropped, tabs and line ends inside it; `\` escaped
2. `http://` or `https://` and a host without escapes must come first
3. the WHATWG parser (can_ada: docs/decisions/0002-can-ada.md; where it cannot be had, `whatwg`): scheme and host in
   lower case; default port dropped; IDNA; IPv4 and IPv6 addresses in their usual form; an empty path made `/`; dot
   segments resolved; what is no URL character (space, control, non-ASCII, quotes ...) escaped as UTF-8
4. the host must be one that DNS or an IP address can be: labels of letters, digits, `-`, `_`
5. `fragment`: fragment dropped (an empty one always)
6. `host-dot`: final dot of the host dropped
7. `escapes`: escapes of unreserved characters decoded, all others in upper case, a `%` that begins none escaped
8. `unsafe`: the characters that the WHATWG parser lets pass but RFC 3986 does not allow are escaped
9. `empty-query`: an empty query dropped
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from functools import lru_cache

from scrapy_ubi.urls import whatwg

try:
    import can_ada
except ImportError:  # it is not built for every Python
    parse_url: Callable[[str], object] = whatwg.parse
else:
    parse_url = can_ada.parse

SAFE = ("fragment", "host-dot", "escapes", "unsafe", "empty-query")  # in the order in which they are taken
_ALL = frozenset(SAFE)
PATH_ESCAPES = "path-escapes"  # a step of `urls.canonical`: what it has to do before the others is done here

LONGEST_HOST = 253  # characters: RFC 1035, section 2.3.4, less the root's length byte and final dot

# Most URLs are in normal form already, and one match can tell. What it accepts must be what the steps leave alone: a
# test compares the two. So it knows no ports, no punycode, no numeric last label and no long hosts, and a `/.` anywhere
# is looked at by the steps. Escapes are in capitals, and none of an unreserved character. A fragment is cut off for it
# first. Where only what stands before the path is unusual, its form is known from another URL of the same site, most
# often (`_site_form`). What the parser makes of a URL is looked at once more: often only its dots were unusual.
USUAL_HOST = r"(?:(?!xn--)[a-z0-9_-]{1,60}\.){0,3}(?!xn--)[a-z][a-z0-9_-]{0,59}"
_KEPT = r"%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCDF])"
_IN_PATH, _IN_QUERY = r"[A-Za-z0-9._~!$&'()*+,;=:@/-]", r"[A-Za-z0-9._~!$&()*+,;=:@/?-]"
_TAIL = rf"/{_IN_PATH}*(?:{_KEPT}{_IN_PATH}*)*(?:\?(?:{_IN_QUERY}|{_KEPT}){_IN_QUERY}*(?:{_KEPT}{_IN_QUERY}*)*)?"
USUAL = re.compile(rf"https?://{USUAL_HOST}{_TAIL}")
_usual = USUAL.fullmatch
SITE = r"(?i:https?)://[^/?#\\\x00-\x20\x7f]{1,270}+"  # of a URL, however its host is written
SITES_KEPT = 2048  # whose form is remembered: 2 MB at most
_usual_tail = re.compile(rf"({SITE})({_TAIL})").fullmatch

_AROUND = "".join(map(chr, range(0x21)))
_INSIDE = str.maketrans({"\t": None, "\n": None, "\r": None, "\\": "%5C"})
_absolute = re.compile(r"https?://(?:[^/?#]*@)?[^/?#@%]+(?=[/?#]|\Z)", re.IGNORECASE).match

_HOST = r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*|\[[0-9a-f:.]+\]"
_host = re.compile(_HOST).fullmatch
_authority = re.compile(
    rf"(?P<scheme>https?://)(?P<user>[^/@]*@)?(?P<host>{_HOST})(?P<dot>\.?)(?P<port>:[0-9]+)?(?=/)"
).match

_DOTS = {".": 1, "..": 2}  # it has decoded or resolved those that are escaped
_UNRESERVED = string.ascii_letters + string.digits + "-._~"  # RFC 3986, section 2.3
_DIGIT = r"([0-9A-Fa-f]|%3[0-9]|%[46][1-6])"
_again = re.compile(rf"%[0-9A-Fa-f]{{2}}|%{_DIGIT}{_DIGIT}").sub
_split = re.compile("[?#]").split
_to_escape = re.compile(r"%(?:[0-9A-Fa-f]{2})?|[][\\^`{|}]")


def _escapes(decode: bool, unsafe: bool) -> dict[str, str]:
    """What becomes of every escape in every spelling, and of every character that may have to be escaped."""
    digits = string.hexdigits
    table = {f"%{high}{low}": f"%{high}{low}" for high in digits for low in digits}
    if decode:
        for escape in table:
            character = chr(int(escape[1:], 16))
            table[escape] = character if character in _UNRESERVED else escape.upper()
    table["%"] = "%25" if decode else "%"  # were it left, what follows and is decoded could make an escape of it
    return table | {character: f"%{ord(character):02X}" if unsafe else character for character in "[]\\^`{|}"}


_ESCAPES = {(decode, unsafe): _escapes(decode, unsafe) for decode in (False, True) for unsafe in (False, True)}


def normal_form(url: str) -> str | None:
    """The normal form of an absolute http or https URL, None for anything else."""
    cut = url[: url.index("#")] if "#" in url and url.isascii() else url
    return cut if _usual(cut) and "/." not in cut else by_steps(url)


def is_usual(url: str) -> bool:
    """Whether one look tells that a URL is in normal form, by any of the steps."""
    return _usual(url) is not None and "/." not in url


def by_steps(url: str, steps: frozenset[str] = _ALL, look: bool = True) -> str | None:
    """`normal_form` without its short cut, and of `SAFE` with those `steps` only; with `PATH_ESCAPES` among them, what
    that needs before. `look`: whether one look at what the parser gives may save them.
    """
    if look and (parts := _usual_tail(url)) is not None and "/." not in parts[2]:
        site = _site_form(parts[1], steps)
        return None if site is None else site + parts[2]
    text = url.strip(_AROUND)
    if "\\" in text or not text.isprintable():  # tabs and line ends are not printable
        text = text.translate(_INSIDE)
    if "%" in text and PATH_ESCAPES in steps:
        text = reread(text)
    parsed = _parsed(text)
    if parsed is None:
        return None
    parsed, _, fragment = parsed.partition("#")
    if "fragment" in steps:
        fragment = ""
    if look and not fragment and _usual(parsed) and "/." not in parsed:
        return parsed
    return _by_parts(parsed, fragment, steps)


@lru_cache(SITES_KEPT)
def _site_form(site: str, steps: frozenset[str]) -> str | None:
    """What stands before the path in the form of a URL of this site; None where such have none."""
    form = by_steps(f"{site}/", steps, look=False)
    return None if form is None else form[:-1]


def _by_parts(parsed: str, fragment: str, steps: frozenset[str]) -> str | None:
    """What `by_steps` makes of a URL as the parser gives it, and of its fragment, where that is kept."""
    match = _authority(parsed)
    if match is None:
        return None
    scheme, user, host, dot, port = match.groups(default="")
    if len(host) > LONGEST_HOST:
        return None
    table = _ESCAPES["escapes" in steps, "unsafe" in steps]
    rest = parsed[match.end() :]
    if "/." in rest:
        rest = without_dots(rest)
    rest = _escaped(rest, table)
    if "empty-query" in steps:
        rest = _without_empty_query(rest)
    if "host-dot" in steps:
        dot = ""
    form = f"{scheme}{_escaped(user, table)}{host}{dot}{port}{rest}"
    return f"{form}#{_escaped(fragment, table)}" if fragment else form


def reread(url: str) -> str:
    """A URL with the escapes in its path that come to be one when those of hexadecimal digits are decoded: of
    `/%%32%46` w3lib makes `/%2F`, which it makes of `/%2F`, too."""
    end = len(_split(url, 1)[0])
    start = url.find("/", url.find("://") + 3, end)
    return f"{url[:start]}{_again(_read, url[start:end])}{url[end:]}" if start >= 0 else url


def _read(match: re.Match[str]) -> str:
    """An escape as it is; a `%` and two digits, escaped or not, as an escape."""
    return match[0] if match[1] is None else "%" + "".join(map(_digit, match.groups()))


def _digit(text: str) -> str:
    return text if len(text) == 1 else chr(int(text[1:], 16))


def _parsed(text: str) -> str | None:
    if not _absolute(text):
        return None
    try:
        return str(parse_url(text))
    except (ValueError, TypeError):  # no URL; TypeError: a lone surrogate, which UTF-8 cannot hold
        return None


def _escaped(text: str, table: dict[str, str]) -> str:
    return _to_escape.sub(lambda match: table[match[0]], text) if text else ""


def without_dots(rest: str) -> str:
    """`rest` (path and query) with the dot segments resolved that the parser has left: Ada 3 passes over all of a path
    in which a segment such as `.x` comes first (`/a/.x/../b`)."""
    path, question, query = rest.partition("?")
    kept: list[str] = []
    *before, last = path.split("/")[1:]
    for segment in (*before, last):
        dots = _DOTS.get(segment)
        if dots is None:
            kept.append(segment)
        elif dots == 2 and kept:
            kept.pop()
    if last in _DOTS:
        kept.append("")
    return "".join(["/", "/".join(kept), question, query])


def _without_empty_query(rest: str) -> str:
    """`rest` is path and query."""
    return rest[:-1] if rest.find("?") == len(rest) - 1 else rest


def is_host(text: str) -> bool:
    """Whether a text could stand as the host of a normal form."""
    return len(text) <= LONGEST_HOST and _host(text) is not None


def with_host(normal: str, choose: Callable[[str], str]) -> str:
    """A normal form with the host that `choose` gives for its host."""
    match = _authority(normal)
    assert match is not None, normal
    host = choose(match["host"])
    # A final dot goes, too: an address would lose it when it is parsed again.
    return normal if host == match["host"] else f"{normal[: match.start('host')]}{host}{normal[match.end('dot') :]}"


def host_and_port(normal: str) -> tuple[str, str]:
    """Host and `:port` (or '') of a normal form."""
    match = _authority(normal)
    assert match is not None, normal
    return match["host"], match["port"] or ""
