"""Is this text, which came from outside, a request of this spider? Everything a letter says of a request is read here.

Rules of this module:

* The text is refused whole, with one short reason, at the first thing that does not hold; nothing is repaired.
* Only known fields, of the right type; only names of callbacks that the spider has; header names and values that cannot
  break out of their line; no metadata that only middlewares make. Values are read by `values` and never built.
* What Scrapy itself takes without harm is accepted: cookies as exporters write them, None and 0 where they mean "none".
* The sender of a request asks the same check before it leaves (`refused`): a receiver would only set it aside.
* Reasons quote at most 40 characters of the data.

Who can write to the Redis can make the agents fetch URLs, with headers, cookies and proxies of their choice, and hand
the pages to the spider's callbacks: that is what mail is. It cannot make them import, call or read anything else; but
where scrapy-playwright loads pages, what a page does in the browser is part of a request, and may write files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from scrapy_ubi.adapter.requests.known_classes import is_request_class, is_state_name
from scrapy_ubi.adapter.requests.scalars import encoded_data
from scrapy_ubi.adapter.requests.untravelled import LONGEST_SHOWN, LOST, NEEDED
from scrapy_ubi.adapter.requests.values import ItemClasses, unpack
from scrapy_ubi.ground.untrusted.checks import is_count, is_text, json_object, strict_json
from scrapy_ubi.urls.host_keys import named_key

NONCE = "ubi_nonce"  # meta key: makes the key of a request that is meant to be fetched again its own
HOST = "ubi_host"  # meta key: the host that the request is for, where that is not the URL's
REQUISITE = "ubi_requisite"  # meta key: of what a page needs to be shown (`scheduling.page_requisites`); its mark
BROUGHT = "ubi_cookies"  # meta key: cookies of the host that who fetches this may lack (`scheduling.sessions`)
ASKED = "ubi_host_asked"  # meta key: the same, as the function of UBI_PARTITION says it

# In the place of a callback's name. No method can have these names.
NO_CALLBACK_NAME = "<none>"
LOST_NAME = "<lost>"

# Scrapy's own subclasses of Request, by name; others are made of a text only where they are the project's.
READY_MADE = ("FormRequest", "JsonRequest", "XmlRpcRequest")

# Meta that the middlewares make while a request is fetched: it is made again, so it neither travels nor is accepted.
DERIVED_META = frozenset(
    {"depth", "download_latency", "cached_response", "cache_timestamp", "_dont_cache", "_scheme_proxy"}
)

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")  # RFC 9110, 5.6.2
_FORBIDDEN_IN_HEADER = re.compile(r"[\r\n\0]")  # RFC 9110, 5.5: they would end the field
_PROXY_SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
_COOKIE_PARTS = ("name", "value", "path", "domain")  # what Scrapy makes text of; it looks at `secure`, and no further


# Texts that held are remembered: the requests that one page yields mostly have one text. A megabyte or two.
TEXTS_KEPT, LONGEST_KEPT = 1024, 1000


class RequestCheck:
    """The check for one spider: `callbacks` holds the names of its callbacks, `items` its item classes. `held`: texts
    that were seen to hold.
    """

    def __init__(self, callbacks: Container[str], items: ItemClasses) -> None:
        self._callbacks = callbacks
        self._items = items
        self.held: set[str] = set()

    def __call__(self, text: str) -> str | None:
        """None when `text` holds, else the reason why not. Never raises."""
        if not text or text in self.held:
            return None
        reason = self._reason(text)
        if reason is None:
            self._remember(text)
        return reason

    def refused(self, text: str, fields: Mapping[str, Any]) -> list[tuple[str, str | None]]:
        """What would be refused of `fields`, which `text` says: fields by name, with the key where that is one of a
        field's many. Without these the rest holds. `text` is not read: it was just written.
        """
        found: list[tuple[str, str | None]] = []
        for name, value in fields.items():
            if self._field_reason(name, value) is None:
                continue
            if name in _KEYED:
                found += [(name, key) for key, one in value.items() if self._field_reason(name, {key: one}) is not None]
            else:
                found.append((name, None))
        if not found:
            self._remember(text)
        return found

    def _remember(self, text: str) -> None:
        """Keep a text that has held, within bounds: the same one need not be checked again."""
        if len(text) <= LONGEST_KEPT:
            if len(self.held) >= TEXTS_KEPT:
                self.held.clear()
            self.held.add(text)

    def _reason(self, text: str) -> str | None:
        """Why a request as text does not hold; None where it does."""
        try:
            fields = parse_object(text)
        except ValueError as error:
            return str(error)
        reasons = (self._field_reason(name, value) for name, value in fields.items())
        return next((reason for reason in reasons if reason is not None), None)

    def _field_reason(self, name: str, value: Any) -> str | None:
        check = _CHECKS.get(name)
        if check is None:
            return f"unknown field {name[:40]!r}"
        try:
            reason = check(self, value)
        except ValueError as error:
            return str(error)
        return f"{name}: {reason}" if reason is not None else None

    # What each field has to be. Each returns None or a reason, or raises `ValueError` with one.

    def _check_class(self, value: Any) -> str | None:
        if value in READY_MADE or (isinstance(value, str) and is_request_class(self._items.get(value))):
            return None
        return f"{str(value)[:40]!r} is no class of requests"

    def _check_method(self, value: Any) -> str | None:
        holds = isinstance(value, str) and _TOKEN.fullmatch(value) and value == value.upper()
        return None if holds else "not an HTTP method"

    def _check_body(self, value: Any) -> str | None:
        return None if isinstance(unpack(value), str | bytes) else "neither text nor bytes"

    def _check_headers(self, value: Any) -> str | None:
        if not isinstance(value, dict):
            return "not an object"
        for name, values in value.items():
            if not _TOKEN.fullmatch(name):
                return f"{name[:40]!r} is no header name"
            for one in values if isinstance(values, list) else [values]:
                text = unpack(one)
                text = text.decode("latin-1") if isinstance(text, bytes) else text
                if not isinstance(text, str) or _FORBIDDEN_IN_HEADER.search(text):
                    return f"the value of {name[:40]!r} is no header value"
        return None

    def _check_cookies(self, value: Any) -> str | None:
        cookies = unpack(value)
        if isinstance(cookies, dict):
            simple = all(_is_cookie_text(one) for pair in cookies.items() for one in pair)
        else:
            simple = isinstance(cookies, list | tuple) and all(
                isinstance(cookie, dict) and all(_is_cookie_text(cookie.get(part)) for part in _COOKIE_PARTS)
                for cookie in cookies
            )
        return None if simple else "neither names and values nor a list of such"

    def _check_meta(self, value: Any) -> str | None:
        if not isinstance(value, dict):
            return "not an object"
        for key, packed in value.items():
            one = unpack(encoded_data(packed), self._items, build=False)
            if is_derived(key, one) or not META_CHECKS.get(key, _anything)(one):
                return f"{key[:40]!r} may not be {str(one)[:40]!r}"
        return None

    def _check_cb_kwargs(self, value: Any) -> str | None:
        if not isinstance(value, dict):
            return "not an object"
        for packed in value.values():
            unpack(packed, self._items, build=False)
        return None

    def _check_state(self, value: Any) -> str | None:
        if not isinstance(value, dict) or not all(map(is_state_name, value)):
            return "not what a request may have of its own"
        return self._check_cb_kwargs(value)

    def _check_callback(self, value: Any) -> str | None:
        if isinstance(value, dict):
            return self._check_partial(value)
        if isinstance(value, str) and (value in (NO_CALLBACK_NAME, LOST_NAME) or value in self._callbacks):
            return None
        return f"{str(value)[:40]!r} is no callback of the spider"

    def _check_partial(self, value: dict[str, Any]) -> str | None:
        """A method with arguments of its own."""
        method, args, kwargs = value.get("method"), value.get("args", []), value.get("kwargs", {})
        if not isinstance(method, str) or method not in self._callbacks:
            return f"{str(method)[:40]!r} is no callback of the spider"
        if not value.keys() <= {"method", "args", "kwargs"} or not isinstance(args, list):
            return "no partial of a method"
        unpack(args, self._items, build=False)
        keywords = unpack(kwargs, self._items, build=False)
        holds = isinstance(keywords, dict) and all(isinstance(name, str) for name in keywords)
        return None if holds else "no partial of a method"

    def _check_encoding(self, value: Any) -> str | None:
        try:
            holds = isinstance(value, str) and len(value) <= 40 and isinstance("a".encode(value), bytes)
        except (LookupError, ValueError):
            holds = False
        return None if holds else "unknown"

    def _check_flags(self, value: Any) -> str | None:
        holds = isinstance(value, list) and all(flag is None or isinstance(flag, _SCALARS) for flag in value)
        return None if holds else "not a list of texts and numbers"

    def _check_retries(self, value: Any) -> str | None:
        return None if is_count(value) else "not a count"

    def _check_lost(self, value: Any) -> str | None:
        holds = isinstance(value, list) and len(value) == 2 and all(isinstance(one, str) for one in value)
        return None if holds and value[0] in NEEDED and is_text(value[1], LONGEST_SHOWN) else "not what is lost"

    def _check_truth(self, value: Any) -> str | None:
        return None if isinstance(value, bool) else "neither true nor false"


_CHECKS: dict[str, Callable[[RequestCheck, Any], str | None]] = {
    "class": RequestCheck._check_class,
    "state": RequestCheck._check_state,
    "method": RequestCheck._check_method,
    "body": RequestCheck._check_body,
    "headers": RequestCheck._check_headers,
    "cookies": RequestCheck._check_cookies,
    "meta": RequestCheck._check_meta,
    "cb_kwargs": RequestCheck._check_cb_kwargs,
    "callback": RequestCheck._check_callback,
    "errback": RequestCheck._check_callback,
    "encoding": RequestCheck._check_encoding,
    "flags": RequestCheck._check_flags,
    "dont_filter": RequestCheck._check_truth,
    "reset": RequestCheck._check_truth,
    "retries": RequestCheck._check_retries,
    LOST: RequestCheck._check_lost,
}


_KEYED = ("headers", "meta", "cb_kwargs")  # one value says nothing of the others
_SCALARS = str | int | float  # a truth value is an int


MOST_FURTHER = 1_000_000  # steps that a seed may lead further than others: its depth is at least minus that

# The JSON object in a text. Raises `ValueError`.
parse_object = partial(json_object, read=strict_json, deep="nested too deeply")


def is_derived(key: str, value: object) -> bool:
    """Whether this in meta is made again where a request is fetched. A negative depth is the spider's own: a seed may
    have one, to lead further than others. Scrapy adds to it.
    """
    return key in DERIVED_META and not (key == "depth" and _is_own_depth(value))


def _is_own_depth(value: object) -> bool:
    return type(value) is int and -MOST_FURTHER <= value < 0


def _anything(_: object) -> bool:
    return True


def _is_count_or_none(value: object) -> bool:
    return value is None or is_count(value)


def _is_host_or_none(value: object) -> bool:
    return value is None or named_key(value, "host", None) is not None


def _is_cookie_text(value: object) -> bool:
    return value is None or isinstance(value, _SCALARS | bytes)


def _is_slot(value: object) -> bool:
    """A key of the downloader's slots. No float: one that is not equal to itself would be a slot for each request."""
    parts = value if isinstance(value, tuple) else (value,)
    return len(parts) <= 16 and all(one is None or isinstance(one, int) or is_text(one, 256) for one in parts)


def _is_timeout(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and 0 <= value < 1e6)


def _is_text_list(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def _is_proxy(value: object) -> bool:
    """A proxy chosen by the spider may travel; from outside it has at least to be one."""
    if value is None or value == "":  # by none, whatever the environment says
        return True
    if not isinstance(value, str) or not value.isprintable() or " " in value:
        return False
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        return parts.scheme in _PROXY_SCHEMES and bool(parts.hostname)
    except ValueError:
        return False


# Meta that Scrapy or this package reads while a request is on its way through them: a wrong type would raise there.
META_CHECKS: dict[str, Callable[[object], bool]] = {
    NONCE: lambda value: is_text(value, 256),
    HOST: _is_host_or_none,
    ASKED: _is_host_or_none,
    "depth": _is_own_depth,
    "proxy": _is_proxy,
    "_auth_proxy": _is_proxy,
    "retry_times": _is_count_or_none,
    "redirect_times": _is_count_or_none,
    "redirect_ttl": _is_count_or_none,
    "redirect_urls": _is_text_list,
    "download_slot": _is_slot,
    "download_timeout": _is_timeout,
    "handle_httpstatus_list": lambda value: isinstance(value, list | tuple | set | frozenset | dict),
}
