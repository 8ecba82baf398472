"""Values of settings, read: a reader for each kind of row whose values can be judged by the row alone.

Rules of this module:

* A reader gives the checked value, or raises `UbiSettingError` with one sentence that names setting and remedy.
* The command line gives texts (`-s UBI_AGENT_CAPACITY=2`): numbers, flags and lists are read from them, too.
* The text of an address is never shown: it may hold a password.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.ground.untrusted.checks import NAME
from scrapy_ubi.policy.politeness.usage import PURPOSES
from scrapy_ubi.settings.declare import Kind, Setting
from scrapy_ubi.settings.loads_at_once import Loads, LoadsByHost, read_loads
from scrapy_ubi.settings.proxy_pool import ProxyPool, read_pool
from scrapy_ubi.settings.rates import RateTable, read_rates
from scrapy_ubi.settings.values import Duplicates, MaxBody, SitemapUse
from scrapy_ubi.urls.filters.filter_text import parse_calls
from scrapy_ubi.urls.listings.entries import start_of

Reader = Callable[[Setting, object], object]

NUMBERS: tuple[Kind, ...] = ("int", "float", "seconds")
# Goes into a header, in round brackets: printable ASCII, and nothing that would end them.
_CONTACT = re.compile(r"(?:https?://[^\s()<>@/?#]+|mailto:[^\s()<>@]+@)[!#-'*-;=?-~]*")
_DUPLICATES = re.compile(r"(exact|near)(?:\((?:([0-9]{1,3})(?:,(mark|unfollow|skip))?|(mark|unfollow|skip))\))?")
_BODY = re.compile(r"all\(([0-9]{1,10})\)")
MOST_BYTES = 2_000_000_000  # of a page
MOST_SITEMAP_URLS = 2_500_000_000  # of a host: 50,000 sitemaps of 50,000 URLs, by sitemaps.org
HIGHEST_PORT = 65_535
SHORTEST_SECRET, LONGEST_SECRET = 16, 1000  # characters
NEAR = 3  # words of a hundred, where no number is given
MOST_CHANGED = 20  # words of a hundred: beyond that pages with one frame are taken for each other
_TARGET = re.compile(r"(?:s3|gs|az)://[^\s/@]+(?:/\S*)?|file:///\S+")
_REDIS_KEY = re.compile(r"[!-~]{1,512}")
_LISTEN = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?):([0-9]{1,5})")
_SERVER = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([0-9.]{7,15})):([0-9]{1,5})")
_AUTO = re.compile(r"auto\(([0-9]{1,6})\)")
MOST_AT_ONCE = 100_000  # requests
_HTTPS = re.compile(r'https://[A-Za-z0-9.:\[\]-]{1,300}(?:/[^\x00-\x20"\\?#\x7f-\U0010ffff]{0,1000})?')
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_WORD = re.compile(r"[^\s,]{1,200}")
_ONE_REDIS = ("redis", "rediss", "unix")
_SEVERAL = ("redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel")  # their hosts the transport reads


def _wrong(row: Setting, value: object) -> UbiSettingError:
    return UbiSettingError(row.setting, f"is {value!r}", f"give {row.bounds}")


def _text(row: Setting, value: object) -> str:
    if not isinstance(value, str):
        # That of a Redis is never shown, it may hold a password: a comma behind it makes a tuple of it.
        shown = f"a {type(value).__name__}" if row.kind in ("url", "secret") else repr(value)
        raise UbiSettingError(row.setting, f"is {shown}", f"give {row.bounds} as a text")
    return value


def read_number(row: Setting, value: object) -> int | float:
    """An int or a float within the row's bounds."""
    wrong = _wrong(row, value)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise wrong
    try:
        number: int | float = float(value)
        if row.kind == "int":
            if not float(value).is_integer():
                raise wrong
            number = int(value)
    except (ValueError, OverflowError):
        raise wrong from None
    too_low = (row.above is not None and number <= row.above) or (row.low is not None and number < row.low)
    if not math.isfinite(number) or too_low or (row.high is not None and number > row.high):
        raise wrong
    return number


def _read_flag(row: Setting, value: object) -> bool:
    """A bool, or what Scrapy takes for one: 0 and 1, and on the command line their texts and those of the bools."""
    known = {"0": False, "1": True, "false": False, "true": True}
    if not isinstance(value, bool | int | str) or str(value).lower() not in known:
        raise _wrong(row, value)
    return known[str(value).lower()]


def _read_name(row: Setting, value: object) -> str:
    """A crawl or agent name: part of Redis keys, of a space separated beat and of a directory."""
    name = _text(row, value)
    # "." and ".." are directories; "-" alone stands for "none" in a beat.
    if not NAME.fullmatch(name) or not name.strip(".-"):
        raise _wrong(row, name)
    return name


def read_path(row: Setting, value: object) -> Path:
    """A path that can be one: the system takes neither a NUL nor what cannot be encoded."""
    if not isinstance(value, Path):
        value = _text(row, value)
    try:
        holds = b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        holds = False
    if not holds:
        raise UbiSettingError(row.setting, f"is {str(value)!r}, which is no path", f"give {row.bounds}")
    return Path(value)


def _read_words(row: Setting, value: object) -> tuple[str, ...]:
    """Texts, in a list or, as on the command line, in one text with commas between them; in small letters."""
    words = value.split(",") if isinstance(value, str) else value
    if isinstance(words, list | tuple | set) and all(isinstance(word, str) for word in words):
        read = tuple(word.strip().lower() for word in words)
        if all(_WORD.fullmatch(word) for word in read):
            return read
    raise _wrong(row, value)


def _read_url(row: Setting, value: object) -> str:
    """The address of a Redis. Its text is never shown: it may hold a password."""
    wrong = UbiSettingError(
        row.setting,
        "is not the address of a Redis",
        "give something like redis://localhost:6379/0, rediss://, unix://, redis+cluster:// or redis+sentinel://",
    )
    url = _text(row, value)
    if url.partition("://")[0].lower() in _SEVERAL and url.partition("://")[2].strip("/"):
        return url
    try:
        parts = urlsplit(url)
        port_holds = parts.port is None or parts.port > 0
    except ValueError:
        raise wrong from None
    place = parts.path if parts.scheme == "unix" else parts.hostname
    if parts.scheme not in _ONE_REDIS or not place or not port_holds:
        raise wrong
    return url


def _read_filters(row: Setting, value: object) -> tuple[object, ...]:
    """Filters, scorers or stores, as given: one, or several."""
    return tuple(value) if isinstance(value, list | tuple) else (_text(row, value),)


def _read_observers(row: Setting, value: object) -> tuple[object, ...]:
    """Observers, as given: in a list or, as on the command line, in one text with commas between them."""
    entries = [word.strip() for word in value.split(",") if word.strip()] if isinstance(value, str) else value
    if not isinstance(entries, list | tuple):
        raise _wrong(row, value)
    return tuple(entries)


def _read_ranker(row: Setting, value: object) -> object:
    """A ranker, as given: a text, or a name and its arguments."""
    return value if isinstance(value, tuple) else _text(row, value)


def _read_handlers(row: Setting, value: object) -> tuple[object, ...]:
    """Handlers, as given: in a list or, as on the command line, in one text with commas between them."""
    entries = [word.strip() for word in value.split(",")] if isinstance(value, str) else value
    if not isinstance(entries, list | tuple) or not entries or "" in entries:
        raise _wrong(row, value)
    return tuple(entries)


def _read_files(row: Setting, value: object) -> tuple[str, ...]:
    """Paths and globs, in a list or, as on the command line, in one text with commas between them."""
    paths = value.split(",") if isinstance(value, str) else [value] if isinstance(value, Path) else value
    if not isinstance(paths, list | tuple):
        raise _wrong(row, value)
    return tuple(str(read_path(row, path.strip() if isinstance(path, str) else path)) for path in paths)


def _read_choice(row: Setting, value: object) -> str:
    """One of the row's choices."""
    choice = _text(row, value)
    if choice not in row.choices:
        raise _wrong(row, choice)
    return choice


def _read_contact(row: Setting, value: object) -> str:
    """An address for people."""
    contact = _text(row, value)
    if not _CONTACT.fullmatch(contact):
        raise _wrong(row, contact)
    return contact


def _read_duplicates(row: Setting, value: object) -> Duplicates:
    """Which duplicates of pages are meant, and what is done with them: "exact", "near(3)", "near(3, skip)"."""
    found = _DUPLICATES.fullmatch("".join(_text(row, value).split()))
    if found is None or (found[1] == "exact" and found[2]):
        raise _wrong(row, value)
    near = 0 if found[1] == "exact" else int(found[2] or NEAR)
    if near not in range(1, MOST_CHANGED + 1) and found[1] == "near":
        raise _wrong(row, value)
    return Duplicates(near, cast("Any", found[3] or found[4] or "mark"))


def _read_body(row: Setting, value: object) -> MaxBody:
    """How many bytes of a page are kept: a number for HTML, "all(number)" for everything."""
    found = _BODY.fullmatch(value.strip()) if isinstance(value, str) else None
    size = read_number(row._replace(kind="int", low=0, high=MOST_BYTES), found[1] if found else value)
    return MaxBody(int(size), found is not None)


def _read_sitemaps(row: Setting, value: object) -> SitemapUse:
    """What is done with sitemaps: a mode, which may have a number of URLs and a date; a number alone is of `first`."""
    if isinstance(value, int | str) and not isinstance(value, bool) and str(value).strip().isdecimal():
        value = f"first({value})" if int(value) else "no"
    try:
        (call,) = parse_calls(_text(row, value))
    except ValueError:
        raise _wrong(row, value) from None
    most, since = call.arguments.get("", ("0",)), call.arguments.get("since", ("",))
    mode = call.name
    known = set(call.arguments) <= {"", "since"} and len(most) == len(since) == 1 and most[0].isdecimal()
    if not known or (mode == "no" and call.arguments) or (since[0] and start_of(since[0]) is None):
        raise _wrong(row, value)
    if mode not in ("no", "first", "only") or int(most[0]) > MOST_SITEMAP_URLS:
        raise _wrong(row, value)
    return SitemapUse(cast(Literal["no", "first", "only"], mode), int(most[0]), since[0])


def _read_codecs(row: Setting, value: object) -> Mapping[str, object]:
    """Codecs by key of meta, as given; on the command line as JSON."""
    try:
        named = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        raise _wrong(row, value) from None
    if not isinstance(named, Mapping) or not all(isinstance(key, str) and key for key in named):
        raise _wrong(row, value)
    for key, codec in named.items():
        if codec is None or (callable(getattr(codec, "decode", None)) and not isinstance(codec, str | bytes)):
            continue
        if not isinstance(codec, str) or not _DOTTED.fullmatch(codec):
            raise UbiSettingError(row.setting, f"has {codec!r:.200} for {key!r}", f"give {row.bounds}")
    return dict(named)


def _read_host_loads(row: Setting, value: object) -> LoadsByHost:
    """Loads at once, by host."""
    try:
        return read_loads(value)
    except ValueError:
        raise _wrong(row, value) from None


def _read_rates(row: Setting, value: object) -> RateTable:
    """Rates, by name."""
    try:
        return read_rates(value)
    except ValueError as error:
        raise UbiSettingError(row.setting, f"does not hold: {error}", f"give {row.bounds}") from None


def _read_proxies(row: Setting, value: object) -> ProxyPool:
    """A pool of proxies."""
    try:
        return read_pool(value)
    except ValueError as error:
        raise UbiSettingError(row.setting, f"does not hold: {error}", f"give {row.bounds}") from None


def _read_target(row: Setting, value: object) -> str:
    """Where files are sent."""
    target = _text(row, value)
    if not _TARGET.fullmatch(target):
        raise _wrong(row, target)
    return target


def _read_listen(row: Setting, value: object) -> str:
    """Where to listen: host and port."""
    address = _text(row, value)
    found = _LISTEN.fullmatch(address)
    if found is None or int(found[2]) > HIGHEST_PORT:
        raise _wrong(row, address)
    return address


def _read_https(row: Setting, value: object) -> str:
    """An https address that can stand between quotes in a header."""
    address = _text(row, value)
    if not _HTTPS.fullmatch(address):
        raise _wrong(row, address)
    return address.removesuffix("/") if address.count("/") == 3 else address


def _read_redis_key(row: Setting, value: object) -> str:
    """The name of somebody else's key."""
    key = _text(row, value)
    if not _REDIS_KEY.fullmatch(key) or key.startswith("ubi:"):
        raise _wrong(row, key)
    return key


def _read_name_servers(row: Setting, value: object) -> tuple[str, ...]:
    """Addresses of servers, in a list or in one text with commas between them; or that the system's are meant."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise _wrong(row, value)
    found = tuple(each.strip() for each in given)
    if found == ("system",) or all(_is_server(each) for each in found):
        return found
    raise _wrong(row, value)


def _is_server(text: str) -> bool:
    host, port = text, "53"
    if (parts := _SERVER.fullmatch(text)) is not None:
        host, port = parts[1] or parts[2], parts[3]
    try:
        ip_address(host)
    except ValueError:
        return False
    return 0 < int(port) <= HIGHEST_PORT


def _read_concurrency(row: Setting, value: object) -> Loads:
    """How many requests at once: a number, or as many as are borne up to it."""
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    found = _AUTO.fullmatch(text)
    most = found[1] if found else text
    if not (most.isascii() and most.isdigit()) or not 1 <= int(most) <= MOST_AT_ONCE:
        raise _wrong(row, value)
    return Loads(int(most), auto=found is not None)


def _read_secret(row: Setting, value: object) -> str:
    """What is signed with. Neither it nor its length is shown."""
    secret = _text(row, value)
    if not SHORTEST_SECRET <= len(secret) <= LONGEST_SECRET:
        remedy = 'make one by python -c "import secrets; print(secrets.token_urlsafe(32))"'
        raise UbiSettingError(row.setting, f"is not {row.bounds}", remedy)
    return secret


def _read_usage(row: Setting, value: object) -> tuple[str, ...]:
    """Purposes that pages are used for."""
    read = _read_words(row, value)
    if not all(word in ("note", *PURPOSES) for word in read):
        raise _wrong(row, value)
    return read


def _read_function(row: Setting, value: object) -> str:
    """The dotted path of a function, "" for none; it is imported where it is used."""
    path = _text(row, value)
    if path and not _DOTTED.fullmatch(path):
        raise _wrong(row, path)
    return path


READERS: Mapping[Kind, Reader] = {
    **dict.fromkeys(NUMBERS, read_number),
    "flag": _read_flag,
    "words": _read_words,
    "usage": _read_usage,
    "filters": _read_filters,
    "scorers": _read_filters,
    "ranker": _read_ranker,
    "stores": _read_filters,
    "observers": _read_observers,
    "handlers": _read_handlers,
    "duplicates": _read_duplicates,
    "files": _read_files,
    "host_loads": _read_host_loads,
    "rates": _read_rates,
    "proxies": _read_proxies,
    "name_servers": _read_name_servers,
    "concurrency": _read_concurrency,
    "codecs": _read_codecs,
    "body": _read_body,
    "sitemaps": _read_sitemaps,
    "path": read_path,
    "file": read_path,
    "choice": _read_choice,
    "contact": _read_contact,
    "https": _read_https,
    "target": _read_target,
    "redis_key": _read_redis_key,
    "secret": _read_secret,
    "function": _read_function,
    "listen": _read_listen,
    "name": _read_name,
    "url": _read_url,
}
