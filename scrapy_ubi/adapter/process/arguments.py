"""The arguments a spider was started with (`scrapy crawl walk -a site=a`, `process.crawl(Walk, site="a")`): which crawl
they make, and how people see them.

Rules of this module:

* They are the arguments as they were given, not the spider's attributes: a spider may swallow or change those.
* Two sets of arguments that differ in anything are two crawls. Their order does not count. What the runner of a service
  adds, whose name begins with an underscore (Scrapyd's `_job`), does not count either: it differs for each process.
* The mark of a set is a slow digest of all values. It stands in names of crawls, which are seen by many, and a password
  among the arguments must not be found by trying words.
* An object that has no text of its own, the same in each process, counts as its type; `unfit` names such arguments.
* People see values cut, and in place of secrets, told by the names of the arguments, `***`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.scrapy_private.runs import start_arguments
from scrapy_ubi.errors import UbiRefused

MARK_BYTES = 8  # of a digest; a name takes the first half
ROUNDS = 20_000  # of the digest: about 10 ms for who starts, and for each word that is tried
MOST_SHOWN = 20  # arguments
LONGEST_SHOWN = 200  # characters of a value
HIDDEN = "***"

_WORD = (
    r"pass(?:w(?:or)?d|phrase|code)?|pwd|tokens?|secrets?|credentials?|cookies?|auth(?:ori[sz]ation|entication)?|"
    r"session(?:_?id)?|keys?"
)
_SECRET = re.compile(rf"(?:^|[^a-z])(?:{_WORD})(?:$|[^a-z])|(?:password|passwd|token|secret|apikey|auth)$")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_USER_INFO = re.compile(r"//[^/?#@\s]*@")
_PAIR = re.compile(r"([\w.-]+)=[^\s&;,]+")


@dataclass(frozen=True, slots=True)
class Arguments:
    """A set of arguments. `mark`: 16 hex digits, empty where there are none; `shown`: name -> value, for people;
    `unfit`: what is no text, number, list or dict, as `name (type)`."""

    mark: str = ""
    shown: Mapping[str, str] = field(default_factory=dict)
    unfit: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """The mark as it stands in the name of a crawl: 8 hex digits, empty where there are no arguments."""
        return self.mark[:8]

    def check(self) -> None:
        """Raise UbiRefused where a crawl cannot be named by them."""
        if self.unfit:
            raise UbiRefused(
                "The crawl cannot be named by the spider's arguments, as they hold what is no text, number, list or "
                f"dict ({', '.join(self.unfit[:3])}): set UBI_CRAWL to a name for it."
            )


_given: WeakKeyDictionary[Crawler, Arguments] = WeakKeyDictionary()


def note(settings: BaseSettings) -> None:
    """Remember the arguments of the crawl that is being started with these settings. Called by the add-on: later the
    crawler does not know them any more."""
    found = start_arguments(settings)
    if found is not None:
        crawler, positional, named = found
        _given[crawler] = arguments_of(positional, named)


def given(crawler: Crawler) -> Arguments:
    """The arguments that this crawler's spider was started with."""
    return _given.get(crawler, Arguments())


def arguments_of(positional: Sequence[Any], named: Mapping[str, Any]) -> Arguments:
    """The set of these arguments."""
    values = {f"*{place}": value for place, value in enumerate(positional)}
    values.update((name, value) for name, value in named.items() if not name.startswith("_"))
    if not values:
        return Arguments()
    unfit: list[str] = []
    texts = {name: _text(name, values[name], unfit) for name in sorted(values)}
    first = sorted(values)[:MOST_SHOWN]
    shown = {_fit(name): _fit(_shown(name, values[name], texts[name])) for name in first}
    return Arguments(_mark(texts), shown, tuple(unfit))


def _text(name: str, value: object, unfit: list[str]) -> str:
    """A text that tells this value from any other, the same in each process."""
    try:
        return json.dumps(value, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        unfit.append(f"{name} ({kind})")
        return f"<{kind}>"


def _mark(texts: Mapping[str, str]) -> str:
    whole = json.dumps(texts, sort_keys=True).encode()
    return hashlib.pbkdf2_hmac("sha256", whole, b"scrapy_ubi arguments", ROUNDS, MARK_BYTES).hex()


def _shown(name: str, value: object, text: str) -> str:
    if _is_secret(name):
        return HIDDEN
    if text.startswith("<"):
        return text
    masked = _masked(name, value)
    return masked if isinstance(masked, str) else json.dumps(masked, ensure_ascii=False)


def _fit(text: str) -> str:
    """Cut, and without the lone surrogates that Python makes of what is no UTF-8."""
    whole = text.encode("utf-8", "backslashreplace").decode()
    return whole if len(whole) <= LONGEST_SHOWN else whole[: LONGEST_SHOWN - 1] + "…"


def _masked(name: str, value: object) -> object:
    """The value without secrets."""
    if _is_secret(name):
        return HIDDEN
    if isinstance(value, dict):
        return {str(key): _masked(str(key), one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_masked("", one) for one in value]
    if isinstance(value, str):
        return _PAIR.sub(_masked_pair, _USER_INFO.sub(f"//{HIDDEN}@", value))
    return value


def _masked_pair(found: re.Match[str]) -> str:
    return f"{found[1]}={HIDDEN}" if _is_secret(found[1]) else found[0]


def _is_secret(name: str) -> bool:
    return _SECRET.search(_HUMP.sub("_", name).lower()) is not None
