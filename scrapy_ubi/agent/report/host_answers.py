"""What an agent answers about its hosts: the rows of many (`hosts`), and all that is to be said of one (`host`).

Rules of this module:

* The hosts of a question are those whose names have its `search` in them, or those alone that are `complete`, in its
  order, from its place `after` on: so no page of a million hosts costs more than the first.
* Hosts are gone through in pieces, between which the crawl goes on: what it does meanwhile may be in the answer or not.
* The cookies among a host's notes are left out: they are somebody's keys.
"""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from scrapy_ubi.agent.hosts.complete_hosts import ALL, is_complete
from scrapy_ubi.agent.hosts.host_notes import ended_by, error_of
from scrapy_ubi.agent.hosts.learned_forms import LEARNED
from scrapy_ubi.agent.report.answers_under_way import Answer, Steps
from scrapy_ubi.ground.clock import unix
from scrapy_ubi.policy.browser.host_judgement import SECTION as BROWSER
from scrapy_ubi.policy.browser.host_judgement import shown_judgement
from scrapy_ubi.protocol.host import Entry, Failure, HostState
from scrapy_ubi.urls import learned
from scrapy_ubi.urls.host_shards import MARK, host_of_key

if TYPE_CHECKING:
    from scrapy_ubi.agent.report.queries import Question, Source

OWNER, COPY = "owner", "copy"
HIDDEN = ("cookies",)  # sections of notes that are not shown
MOST_REASON = 200  # characters of a reason shown
MOST_ROWS = 1000
LOOKED = 10_000  # waiting entries of a host looked at
NEWEST = 20  # failures of one host shown
PIECE = 250  # hosts or failures of a step
ROW = 20  # hosts looked at cost as much as one row


# -- many


def hosts(question: Question, source: Source) -> Steps:
    """`total` of those found, and the rows of the first."""
    # Reading every failure may take a second, so only an order that needs them all has them read.
    failed = (yield from _failed_at(source)) if question.sort == "failed" else Counter[str]()
    order, least = _ORDERS[question.sort], place(question.after)
    cut: list[HostState] = []  # all of them, so that their sum is the host's
    first: list[tuple[float, str, HostState]] = []
    total = 0
    for piece in _pieces(source.frontier.states()):
        states = _meant(question, source, piece)
        whole = [state for state in states if MARK not in state.host]
        cut += [state for state in states if MARK in state.host]
        total += len(whole)
        ranked = [(order(state, failed[state.host], source), state.host, state) for state in whole]
        first += [one for one in ranked if one[:2] > least]
        first = heapq.nsmallest(question.limit, first, key=lambda one: one[:2])
        yield len(piece)
    rows = yield from _rows([*cut, *(state for _, _, state in first)][:MOST_ROWS], source)
    return {"total": total, "rows": rows}


def _pieces(states: list[HostState]) -> Iterator[list[HostState]]:
    return (states[at : at + PIECE] for at in range(0, len(states), PIECE))


def _meant(question: Question, source: Source, states: list[HostState]) -> list[HostState]:
    if question.complete:
        states = [state for state in states if MARK in state.host or complete(state, source.role(state))]
    if question.search:
        states = [state for state in states if question.search in host_of_key(state.host)]
    return states if question.copies else [state for state in states if source.role(state) != COPY]


def _failed_at(source: Source) -> Generator[int, None, Counter[str]]:
    """How many failures each host has."""
    counts = Counter[str]()
    failures = source.frontier.failures()
    while piece := [failure.host for failure in islice(failures, PIECE)]:
        counts.update(piece)
        yield len(piece)
    return counts


def _rows(states: list[HostState], source: Source) -> Generator[int, None, list[Answer]]:
    rows: list[Answer] = []
    for state in states:
        rows.append(row(state, source))
        yield ROW
    return rows


def place(after: str) -> tuple[float, str]:
    """The place in an order that `after` names: a number and a host. The beginning for none. Raises ValueError."""
    if not after:
        return -math.inf, ""
    number, _, host = after.partition(" ")
    return float(number), host


_ORDERS: Mapping[str, Callable[[HostState, int, Source], float]] = {
    "queued": lambda state, failed, source: -state.waiting,
    "slowest": lambda state, failed, source: -needed(state, source) if state.waiting else 0.0,
    "done": lambda state, failed, source: -state.done_count,
    "failed": lambda state, failed, source: -failed,
    "next": lambda state, failed, source: max(0.0, state.next_at - source.now) if state.waiting else math.inf,
    "host": lambda state, failed, source: 0,
}


def needed(state: HostState, source: Source) -> float:
    """Seconds that what waits of this host takes: its queue by its delay and its loads, and its present pause."""
    return round(source.needs(state, source.frontier.delay, source.now).needs(), 3)


def delay(state: HostState, usual: float) -> float:
    """Seconds between two loads of a host: its own, or the usual ones where that is longer."""
    return round(max(usual, state.pause), 3)


def row(state: HostState, source: Source) -> Answer:
    """One host in a line."""
    role, failures = source.role(state), [*source.frontier.failures(state.host)]
    last = max(failures, key=lambda failure: failure.when, default=None)
    error = error_of(_notes(state)) or (last.reason if last is not None else "")
    return {
        "host": state.host,
        "state": shown_state(state, role, source),
        "role": role,
        "queued": state.waiting,
        "done": state.done_count,
        "failed": len(failures),
        "next": round(max(0.0, state.next_at - source.now), 3) if state.waiting else None,
        "error": error[:MOST_REASON],
        "learned": _learned(_notes(state)) if state.notes.text else "",
        "loads": source.loads(state.host) if role != COPY else "",
        "delay": delay(state, source.frontier.delay),
        "needs": needed(state, source) if state.waiting else 0.0,
        "complete": complete(state, role),
        "bytes": state.notes.total_spent,
    }


def _learned(notes: Mapping[str, Any]) -> str:
    """What was learned of a host: steps of the normal form, and whether a browser shows its pages."""
    found = learned.shown(notes.get(LEARNED)), shown_judgement(notes.get(BROWSER), unix())
    return "; ".join(filter(None, found))


def complete(state: HostState, role: str) -> str:
    """Why a host is complete, as its owner knows it: `all`, or what has ended it; empty where it is not."""
    if role == COPY or not is_complete(state):
        return ""
    return ended_by(_notes(state)) or ALL


def _notes(state: HostState) -> dict[str, Any]:
    notes: dict[str, Any] = json.loads(state.notes.text) if state.notes.text else {}
    return notes


_BLOCKED = {"health": "excluded"}  # LARM's word for a host that does not answer


def shown_state(state: HostState, role: str, source: Source) -> str:
    """`busy`, `ended` (`HostNotes.end_host`), `idle` (nothing waits), `held`, why it is left alone, the rate that it
    waits for, `resting`, `waiting`."""
    if state.out:
        return "busy"
    reason = source.blocked_reason(state)
    if reason == "ended":
        return reason
    if not state.waiting:
        return "idle"
    if role == OWNER and source.held(state):
        return "held"
    if reason:
        return _BLOCKED.get(reason, f"postponed: {reason}")
    if rate := source.rates.why(state.host, source.now):
        return f"rate: {rate}"
    return "resting" if source.frontier.rests(state) else "waiting"


# -- one


def host(question: Question, source: Source) -> Steps:
    """The rows of the host, or of each of its shards that are here, with what waits, what failed, and the notes."""
    found = source.frontier.find(question.host)
    states = [found] if found is not None else (yield from _shards(question.host, source.frontier.states()))
    rows: list[Answer] = []
    for state in states:
        if rows:
            yield LOOKED  # of what waits: no more than one row in a turn
        rows.append(row(state, source) | _detail(state, question.limit, source))
    return {"total": len(rows), "rows": rows}


def _shards(name: str, states: list[HostState]) -> Generator[int, None, list[HostState]]:
    found: list[HostState] = []
    for piece in _pieces(states):
        found += [one for one in piece if MARK in one.host and host_of_key(one.host) == name]
        yield len(piece)
    return sorted(found, key=lambda state: state.host)


def _detail(state: HostState, limit: int, source: Source) -> Answer:
    failures: list[Failure] = heapq.nlargest(NEWEST, source.frontier.failures(state.host), key=lambda one: one.when)
    return {
        "notes": {name: value for name, value in _notes(state).items() if name not in HIDDEN},
        "queue": [_entry(entry) for entry in _next(state, limit)],
        "in_flight": [_entry(entry) for entry in islice(state.out.values(), limit)],
        "failures": [{**_entry(one.entry), "reason": one.reason[:MOST_REASON], "when": one.when} for one in failures],
    }


def _next(state: HostState, limit: int) -> list[Entry]:
    """The first that wait, in the order in which they are fetched; of those looked at."""
    looked = enumerate(islice(state.undone(), LOOKED))
    waiting = ((at, one) for at, one in looked if one.key not in state.out and one.key not in state.closing)
    first = heapq.nsmallest(limit, waiting, key=lambda pair: (-pair[1].priority, pair[1].depth, pair[0]))
    return [entry for _, entry in first]


def _entry(entry: Entry) -> Answer:
    return {"url": entry.url, "key": f"{entry.key:016x}", "depth": entry.depth, "priority": entry.priority}
