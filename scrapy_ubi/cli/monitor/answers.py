"""What agents answer to a question about their frontiers, as it lies in Redis; judged before it is believed.

An answer is taken whole or not at all: `read_answer` gives it, or the reason why it is unreadable. What a newer agent
says beyond what is known here is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from scrapy_ubi.agent.report.host_answers import MOST_ROWS
from scrapy_ubi.agent.report.queries import HISTORY
from scrapy_ubi.agent.report.timeline import MOST_EVENTS, read_row
from scrapy_ubi.ground.untrusted.checks import (
    MOST_COUNT,
    Malformed,
    is_count,
    is_list,
    is_mapping,
    is_number,
    is_text,
    is_whole,
    json_object,
)

Answer = dict[str, Any]
Check = Callable[[Any], bool]

MAX_ANSWER = 8_000_000  # bytes; an agent's rows are at most a megabyte, and its reasons little
LONGEST = 100_000  # characters of a text; URLs are the longest
MOST_REASONS = 1000

_is_text: Check = partial(is_text, most=LONGEST)
_is_count: Check = partial(is_count, below=MOST_COUNT)
_is_whole: Check = partial(is_whole, least=1 - MOST_COUNT, most=MOST_COUNT - 1)
_is_time: Check = partial(is_number, below=1e15)
_is_reasons: Check = partial(is_mapping, most=MOST_REASONS, each=_is_count)


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _is_moment(value: Any) -> bool:
    """Whether this is a row of a timeline that holds."""
    try:
        return isinstance(value, dict) and bool(read_row(value))
    except Malformed:
        return False


_HOST: Mapping[str, Check] = {
    "host": _is_text,
    "state": _is_text,
    "role": _is_text,
    "queued": _is_count,
    "done": _is_count,
    "failed": _is_count,
    "next": _or_none(_is_time),
    "error": _is_text,
}
_ENTRY: Mapping[str, Check] = {"url": _is_text, "key": _is_text, "depth": _is_whole, "priority": _is_whole}
_FAILURE: Mapping[str, Check] = {**_ENTRY, "reason": _is_text, "when": _is_time}


def _list_of(checks: Mapping[str, Check]) -> Check:
    """A check: whether a value is a list of objects with these names, and no other."""

    def holds(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and value.keys() == checks.keys()
            and all(check(value[name]) for name, check in checks.items())
        )

    return partial(is_list, most=MOST_ROWS, each=holds)


_ONE_HOST: Mapping[str, Check] = {
    **_HOST,
    "learned": _is_text,
    "loads": _is_text,
    "delay": _is_time,
    "notes": partial(is_mapping, most=MOST_REASONS, each=lambda value: True),
    "queue": _list_of(_ENTRY),
    "in_flight": _list_of(_ENTRY),
    "failures": _list_of(_FAILURE),
}
# Older agents lack these; what is said in their place.
_LATER: Mapping[str, Mapping[str, tuple[Check, object]]] = {
    "hosts": {
        "learned": (_is_text, ""),
        "loads": (_is_text, ""),
        "delay": (_is_time, None),
        "needs": (_is_time, None),
        "complete": (_is_text, ""),
        "bytes": (_is_count, 0),
    }
}
_FAILED: Mapping[str, Check] = {
    "url": _is_text,
    "host": _is_text,
    "key": _is_text,
    "reason": _is_text,
    "when": _is_time,
    "depth": _is_whole,
    "priority": _is_whole,
}
_ROWS: Mapping[str, Mapping[str, Check]] = {"hosts": _HOST, "host": _ONE_HOST, "failed": _FAILED}
_NEEDED: Mapping[str, Mapping[str, Check]] = {
    "hosts": {"total": _is_count, "cut": lambda value: isinstance(value, bool)},
    "host": {"total": _is_count, "cut": lambda value: isinstance(value, bool)},
    "failed": {"total": _is_count, "cut": lambda value: isinstance(value, bool), "reasons": _is_reasons},
    "url": {"where": _is_text, "role": _is_text},
    "history": {"step": _is_time, "events": partial(is_list, most=MOST_EVENTS, each=_is_moment)},
    "requeue": {"requeued": _is_count, "unfit": _is_count, "more": lambda value: isinstance(value, bool)},
}
_OPTIONAL: Mapping[str, Check] = {
    "state": _is_text,
    "reason": _is_text,
    "status": _or_none(_is_count),
    "to": _is_text,
    "when": _is_time,
    "depth": _or_none(_is_whole),
    "priority": _or_none(_is_whole),
    "before": _or_none(_is_count),
    "queued": _is_count,
    "visits": _is_count,
    "visited": _is_count,
    "due": _is_count,
    "changes": _is_count,
}


def read_answer(agent: str, ask: str, raw: bytes) -> Answer | str:
    """The answer of `agent` to a question of this kind, or the reason why it is unreadable."""
    if len(raw) > MAX_ANSWER:
        return f"{len(raw)} bytes, more than {MAX_ANSWER}"
    try:
        data = json_object(raw)
        if isinstance(refused := data.get("refused"), str):
            return f"it refused the question: {refused[:200]}"
        if data.get("agent") != agent or data.get("ask") != ask:
            return "another agent's answer, or one to another question"
        return _checked(ask, data)
    except Malformed as reason:
        return str(reason)


def _checked(ask: str, data: Mapping[str, Any]) -> Answer:
    answer = _held(data, _NEEDED[ask])
    if ask == "url":
        answer |= _held(data, {name: check for name, check in _OPTIONAL.items() if name in data})
    if ask in _ROWS or ask == HISTORY:
        rows = data.get("rows")
        if not isinstance(rows, list) or len(rows) > MOST_ROWS:
            raise Malformed("rows are no list, or too many")
        answer["rows"] = rows if ask == HISTORY else [_row(row, ask) for row in rows]
    if ask == HISTORY and not all(_is_moment(row) for row in answer["rows"]):
        raise Malformed("a row is no moment of a timeline")
    return answer


def _row(data: Any, ask: str) -> Answer:
    later = _LATER.get(ask, {})
    row = _held(data, _ROWS[ask])
    return row | {
        name: _held(data, {name: check})[name] if name in data else lacking for name, (check, lacking) in later.items()
    }


def _held(data: Any, checks: Mapping[str, Check]) -> Answer:
    if not isinstance(data, dict):
        raise Malformed("a row is not an object")
    for name, check in checks.items():
        if name not in data or not check(data[name]):
            raise Malformed(f"{name} is missing or not what it should be")
    return {name: data[name] for name in checks}
