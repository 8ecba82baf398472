r"""What Scrapy takes for one beside what the safe steps do: the steps of the preset `scrapy`.

Scrapy compares requests by w3lib's `canonicalize_url`. The law of this module, which a property test checks: what
`canonicalize_url` makes equal has one canonical form here. Rules of this module:

* Two steps, which come after the safe ones. `path-escapes`: in path and user, characters that may stand there as they
  are have no escapes (`%2C` is `,`), but for `%` `/` `;` `?`; a lone `;` at the end of the path is dropped, and dot
  segments before parameters (`/a/..;b`) are resolved. `arguments`: the query is a set of arguments, in the order of
  their texts, each `name=value`; empty ones are dropped, a space is `+`, and all is escaped but unreserved characters.
* w3lib is not called: keys of agents with different versions of it must be the same.
* Form and w3lib's text are mostly the same. They differ where the safe steps go further (ports, final dots, a stray
  `%`), in `[` `]` `|` of a path, which are escaped here, and in the order of arguments of which one name begins with
  the other.
* A `%` that begins no escape, but would when what follows is decoded (`%%32%46`), is read as that escape, as w3lib
  gives the same text for both (`normal.reread`).
* Idempotent, ASCII, never raises, as all normal forms.

One match tells of most URLs that they are canonical already, or but for the order of their arguments. What it accepts
must be what the steps leave alone: tests compare the two.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache

from scrapy_ubi.urls.normal import PATH_ESCAPES, SAFE, SITE, SITES_KEPT, USUAL_HOST, by_steps, is_usual, without_dots

ARGUMENTS = "arguments"
CANONICAL = (PATH_ESCAPES, ARGUMENTS)  # in the order in which they are taken

_STEPS = frozenset((*SAFE, PATH_ESCAPES))  # of which `by_steps` knows

# Never going back. A path without `;` and without escapes of what may stand in it; arguments with `=`, and without
# anything that is to be escaped, or is escaped and need not be.
_HOST = USUAL_HOST.replace("}", "}+")  # every count of it
_IN_PATH, _IN_ARGUMENT = r"[A-Za-z0-9._~!$&'()*+,:=@/-]", r"[A-Za-z0-9._~+-]"
_IN_FRAGMENT = r"[A-Za-z0-9._~!$&'()*+,;=:@/?-]"
_KEPT_IN_PATH = r"%(?:[0189A-F][0-9A-F]|2[0235F]|3[BCEF]|5[B-E]|60|7[BCDF])"
_KEPT_IN_ARGUMENT = r"%(?:[0189A-F][0-9A-F]|2[1-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCDF])"
_PATH = rf"{_IN_PATH}*+(?:{_KEPT_IN_PATH}{_IN_PATH}*+)*+"
_WORD = rf"{_IN_ARGUMENT}*+(?:{_KEPT_IN_ARGUMENT}{_IN_ARGUMENT}*+)*+"
_ARGUMENT = f"{_WORD}={_WORD}"
# Groups: all before the query; its first argument, its second, all others; the fragment. `/.` must not be in it.
_plain = re.compile(
    rf"(https?://{_HOST}/{_PATH})(?:\?({_ARGUMENT})(?:&({_ARGUMENT})((?:&{_ARGUMENT})++)?+)?+)?+"
    rf"(#{_IN_FRAGMENT}*+)?+"
).fullmatch
_are_plain = re.compile(rf"{_ARGUMENT}(?:&{_ARGUMENT})*+").fullmatch
_are_assigned = re.compile("[^&=]*+=[^&=]*+(?:&[^&=]*+=[^&=]*+)*+").fullmatch

# A link as most are written. Groups: what is canonical at its beginning; the host; the rest up to the fragment, if
# there is any: then the first is not the form of the link, which has to be asked for. A Request has the very text of
# what matches: neither an empty query nor an empty fragment. Where `/.` is in it the form has to be asked for, too.
_REST = rf"((?:[A-Za-z0-9._~!$&()*+,;=:@/%-]++|\?(?!#|\Z))++)?+(?:#(?:{_IN_FRAGMENT}|%)++)?+"
usual_parts = re.compile(rf"(https?://({_HOST})/{_PATH}(?:\?{_ARGUMENT})?+){_REST}").fullmatch
# The same of one whose host is written in another way (a port, an address, a user, capitals, letters beyond ASCII).
# Groups: what stands before the path, which a Request and the form may have otherwise; what is canonical after that;
# the rest.
odd_parts = re.compile(rf"({SITE})(/{_PATH}(?:\?{_ARGUMENT})?+){_REST}").fullmatch

_in_path = re.compile(r"%(?:2[146789A-Ca-c]|3[ADad]|40)").sub  # ! $ & ' ( ) * + , : = @
_in_user = re.compile(r"%2[146789A-Ca-c]").sub
_odd_in_word = re.compile(r"%(?:[0-9A-Fa-f]{2})?|[^A-Za-z0-9._~+-]").sub
_odd_in_words = re.compile(r"%(?:[0-9A-Fa-f]{2})?|[^A-Za-z0-9._~+&=-]").sub
_UNRESERVED = string.ascii_letters + string.digits + "-._~"
_ESCAPED_IN_WORDS = {
    code: f"%{code:02X}" for code in range(128) if chr(code) not in f"{string.ascii_letters}{string.digits}-._~+%&="
}
_ESCAPED = {code: f"%{code:02X}" for code in range(128) if chr(code) not in f"{_UNRESERVED}+%"}


def canonical_form(url: str) -> str | None:
    """The normal form by the steps that are safe and those of this module; None for what has none."""
    match = _plain(url)
    if match is None or "/." in url:
        return _of_odd_site(url)
    second = match[3]
    if second is None:
        return url if match[5] is None else url[: match.start(5)]
    if match.lastindex != 3:
        return _in_order(match)
    first = match[2]
    return url if first <= second else f"{match[1]}?{second}&{first}"


def _in_order(match: re.Match[str]) -> str:
    """Of what is plain, with more than two arguments or a fragment."""
    head, first, second, others, _ = match.groups(default="")
    return f"{head}?{'&'.join(sorted([first, *(second + others).split('&')]))}"


def _of_odd_site(url: str) -> str | None:
    """Of what is not plain: most often only what stands before its path, whose form is known from another URL."""
    parts = odd_parts(url)
    if parts is None or parts[3] is not None or "/." in parts[2]:
        return _by_steps(url)
    site = _site_form(parts[1])
    return None if site is None else site + parts[2]


@lru_cache(SITES_KEPT)
def _site_form(site: str) -> str | None:
    """What stands before the path in the form of a URL of this site; None where such have none."""
    form = _by_steps(f"{site}/")
    return None if form is None else form[:-1]


def _by_steps(url: str) -> str | None:
    cut = url[: url.index("#")] if "#" in url and url.isascii() else url
    form = cut if is_usual(cut) else by_steps(url, _STEPS)
    return None if form is None else canonical(form)


def canonical(form: str, of_path: bool = True, of_query: bool = True) -> str:
    """A normal form by the steps of this module as well, or by one of them."""
    cut = form.index("/", len("https://"))
    rest, hash_sign, fragment = form[cut:].partition("#")
    path, question, query = rest.partition("?")
    head = form[:cut]
    if of_path:
        path = path_escapes(path)
        head = _in_user(_decoded, head) if "%" in head else head
    if of_query and query:
        query = arguments(query)
        question = question if query else ""
    return f"{head}{path}{question}{query}{hash_sign}{fragment}"


def path_escapes(path: str) -> str:
    """A path without escapes that need not be, without an empty parameter at its end, and without dot segments before
    parameters. Parameters themselves stay as they are."""
    start = path.find(";", path.rfind("/"))
    if start < 0:
        return _in_path(_decoded, path) if "%" in path else path
    before = _in_path(_decoded, path[:start])
    parameters = path[start + 1 :]
    if "/." in before:
        before = without_dots(before)
    return f"{before};{parameters}" if parameters else before


def arguments(query: str) -> str:
    """The arguments of a query in the order of their texts, each `name=value` and escaped in one way."""
    if not _are_plain(query) and _are_assigned(query):  # escaped in another way: all words at once
        query = _odd_in_words(_spelled, query) if "%" in query else query.translate(_ESCAPED_IN_WORDS)
    if _are_plain(query):
        return "&".join(sorted(query.split("&"))) if "&" in query else query
    return "&".join(sorted(map(_argument, filter(None, query.split("&")))))


def _argument(text: str) -> str:
    name, _, value = text.partition("=")
    return f"{_word(name)}={_word(value)}"


def _word(text: str) -> str:
    return _odd_in_word(_spelled, text) if "%" in text else text.translate(_ESCAPED)


def _spelled(match: re.Match[str]) -> str:
    text = match[0]
    if len(text) == 1:
        return f"%{ord(text):02X}"
    character = chr(int(text[1:], 16))
    return "+" if character == " " else character if character in _UNRESERVED else text.upper()


def _decoded(match: re.Match[str]) -> str:
    return chr(int(match[0][1:], 16))
