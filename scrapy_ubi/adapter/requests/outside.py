"""Seeds that come from outside, as requests: the fields of a seed, and what scrapy-redis's users push.

Rules of this module:

* A seed is taken whole or refused with one short reason. Its fields: `url`, or `request` (a JSON object: `url`, and
  what `codec` writes of a request), or `listed` (an element of UBI_SEED_LIST); `priority`, `force` and `id` besides,
  and the marks of a seed (`seed_marks`), which may stand in `request` as well.
* What `request` says is judged by the check that letters pass. A listed one is made by Scrapy's own classes, and has to
  hold no more than what could travel: no proxy that UBI_PROXIES does not name.
* A listed element is what scrapy-redis takes: a URL, or a JSON object with `url`, `method`, `meta`, whose other fields
  are form data. It is fetched however often it is pushed, as there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from scrapy import FormRequest, Request

from scrapy_ubi.adapter.requests.check import parse_object
from scrapy_ubi.adapter.requests.codec import Codec
from scrapy_ubi.adapter.requests.seed_marks import FIELDS, NO_MARKS, SeedMarks, read_marks
from scrapy_ubi.adapter.requests.untravelled import CodecError
from scrapy_ubi.ground.untrusted.checks import Malformed, is_text, is_whole
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.transport.contract import LISTED

PRIORITY = 1000  # of a seed that says none: links are seldom given more, so it is fetched before those of its host
MOST_PRIORITY = 10**9

_WAYS = ("url", "request", LISTED)
_FIELDS = frozenset({*_WAYS, "priority", "force", "id", *FIELDS})
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")
_FORCE = {"": False, "0": False, "false": False, "1": True, "true": True}


PARAMETERS = frozenset(
    ("callback", "headers", "body", "cookies", "encoding", "priority", "dont_filter", "errback", "flags", "cb_kwargs")
)
"""Parameters of a Request that are form data in what is listed, as any field there is but for URL, method and meta."""


class Seed(NamedTuple):
    """A seed that holds. `again`: it is to be fetched even where its URL is known; `odd`: fields of what was listed
    that have gone as form data, and were hardly meant to (`PARAMETERS`)."""

    request: Request
    again: bool
    odd: tuple[str, ...] = ()
    marks: SeedMarks = NO_MARKS


def why_no_seed(text: str) -> str:
    """Why this line that a person has written is no seed, neither a URL nor a request in JSON; "" where it may be one.
    What is allowed to travel is judged by the agents."""
    if text.startswith("{"):
        try:
            said = parse_object(text)
            read_marks(said)
            url = said.get("url")
        except Malformed as error:
            return f"no request in JSON ({error})"
        if not isinstance(url, str):
            return "a request in JSON without 'url'"
        text = url
    if re.search(r"\s[\w+.-]+://", text):
        return "several URLs; write one a line"
    try:
        parts = urlsplit(text.strip())
        good = parts.scheme.lower() in ("http", "https") and bool(parts.hostname) and not re.search(r"\s", parts.netloc)
    except ValueError:
        good = False
    return "" if good else "no absolute http or https URL"


def read_seed(fields: Mapping[str, str], codec: Codec) -> Seed:
    """The request of a seed with these fields. Raises `Malformed`."""
    for name in fields.keys() - _FIELDS:
        raise Malformed(f"unknown field {name[:40]!r}")
    ways = [way for way in _WAYS if way in fields]
    if len(ways) != 1:
        raise Malformed("it needs one of the fields 'url' and 'request'")
    force = _FORCE.get(fields.get("force", "").lower())
    if force is None:
        raise Malformed(f"force: {fields['force'][:40]!r} is neither 1 nor 0")
    priority = _priority(fields["priority"]) if "priority" in fields else None
    try:
        if ways == ["request"]:
            said = parse_object(fields["request"])
            marks = read_marks({**{name: said.pop(name) for name in FIELDS if name in said}, **fields})
            return Seed(_request(said, priority, codec), force, (), marks)
        marks = read_marks(fields)
        priority = PRIORITY if priority is None else priority
        if ways == [LISTED]:
            return _listed(fields[LISTED].strip(), priority, codec)._replace(marks=marks)
        return Seed(Request(fields["url"].strip(), priority=priority), force, (), marks)
    except Malformed:
        raise
    except CodecError as error:
        raise Malformed(str(error)) from None
    except (ValueError, TypeError, AttributeError) as error:  # Scrapy's own classes find fault with it
        raise Malformed(str(error)[:200]) from None


def _priority(text: str) -> int:
    if not _NUMBER.fullmatch(text) or abs(int(text)) > MOST_PRIORITY:
        raise Malformed(f"priority: {text[:40]!r} is no whole number of at most {MOST_PRIORITY}")
    return int(text)


def _request(said: dict[str, Any], priority: int | None, codec: Codec) -> Request:
    """The request that our JSON says; a priority in it counts where the seed has none of its own."""
    url, own = said.pop("url", None), said.pop("priority", PRIORITY)
    if not isinstance(url, str):
        raise Malformed("request: it has no 'url'")
    if not is_whole(own, -MOST_PRIORITY, MOST_PRIORITY):
        raise Malformed("request: its priority is no whole number")
    rest = json.dumps(said, separators=(",", ":")) if said else ""
    if (reason := codec.check(rest)) is not None:
        raise Malformed(f"request: {reason}")
    return codec.decode(Entry(0, url, 0, own if priority is None else priority, rest))


def _listed(text: str, priority: int, codec: Codec) -> Seed:
    said = parse_object(text) if text.startswith("{") else None
    odd = tuple(sorted(PARAMETERS & said.keys())) if said is not None else ()
    request = _of_object(said, priority) if said is not None else Request(text, priority=priority)
    if losses := codec.encode(request).losses:
        raise Malformed(f"{losses[0].what} cannot travel")
    return Seed(request, True, odd)


def _of_object(said: dict[str, Any], priority: int) -> Request:
    """A request of scrapy-redis's JSON."""
    url, method, meta = said.pop("url", None), said.pop("method", "GET"), said.pop("meta", {})
    if not isinstance(url, str):
        raise Malformed("it has no 'url'")
    if not is_text(method, 40) or not isinstance(meta, dict):
        raise Malformed("its method is no text, or its meta no object")
    form = {name: _form_value(value) for name, value in said.items()}
    return FormRequest(url, method=method.upper(), meta=meta, formdata=form, priority=priority)


def _form_value(value: object) -> str | list[str]:
    """What Scrapy takes for form data: texts; numbers become such."""
    if isinstance(value, list):
        return [_form_text(one) for one in value]
    return _form_text(value)


def _form_text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Malformed(f"form data is text or numbers, not {str(value)[:40]!r}")
    return str(value)
