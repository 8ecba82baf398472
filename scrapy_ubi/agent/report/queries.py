"""Questions that people ask about the frontier of one agent, and their answers: of a living agent's, and of one on the
disk of an agent that has stopped.

Rules of this module:

* No I/O: what an answer needs is in a `Source`. Answering only reads, but for `requeue`.
* A question is data from outside: `Question.parse` takes it whole or not at all, and says why.
* Answers are bounded, in rows (`MOST_ROWS`) and bytes (`MOST_BYTES`): each agent gives the first rows in the wanted
  order, and says how many there are in all. Of a host that is cut all shards answer; the one who asks adds them up.
* Nothing looks at every URL: an answer is linear in the hosts or in the failures kept, and at most `LOOKED` entries of
  one host are looked at. What is linear is made in steps (`answers_under_way`), but for `requeue`.
"""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, NamedTuple

from scrapy_ubi.agent.hosts.host_concurrency import SINGLE_PAGES
from scrapy_ubi.agent.hosts.rated_hosts import NO_RATES, NoRates
from scrapy_ubi.agent.profile.remaining import SlowHost
from scrapy_ubi.agent.report import host_answers
from scrapy_ubi.agent.report.answers_under_way import Answer, Steps, whole
from scrapy_ubi.agent.report.host_answers import LOOKED, MOST_REASON, MOST_ROWS, PIECE, place
from scrapy_ubi.ground.untrusted.checks import KEY, NAME, Malformed, fits, is_number, is_text, is_whole, json_object
from scrapy_ubi.protocol.frontier_contract import Frontier
from scrapy_ubi.protocol.host import Entry, Failure, HostState
from scrapy_ubi.urls.host_shards import host_of_key
from scrapy_ubi.urls.key import seed_key

HISTORY = "history"  # answered from the timeline, by `timeline_answer`
ASKS = ("hosts", "host", "url", "failed", "requeue", HISTORY)
SORTS = ("queued", "slowest", "done", "failed", "next", "host")
MOST_BYTES = 1_000_000  # of the rows of an answer
LONGEST_TEXT = 200_000  # characters of a question; a URL may have 65,536, and JSON may write one in six
MOST_REQUEUED = 5000  # by one question: the crawl goes on between two


class BadQuestion(Malformed):
    """This is no question; the text says why."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `agent`: of this one only ("": of all). `expires`: unix seconds after which no command waits for
    an answer. `hosts` has `sort`, `limit`, `copies`, `search` (a part of the name), `complete` (those alone, and shards
    of all) and `after` (a place in that order, see `host_answers.place`); `host` has `host`, and the `limit` of what is
    shown of its queue; `url` has `host` and `key` (16 hex digits); `failed` and `requeue` choose by `reason`, `host`,
    and `url` with `key` (all that are given have to hold); `requeue` chooses everything with `everything` only, and of
    all this what failed `before` (unix seconds; 0: whenever). With `outputs_of` it is about pages whose outputs that
    agent has, in place of failures.
    `history` has `limit`, and looks back `span` seconds (0: to the beginning).
    """

    ask: str
    expires: float
    agent: str = ""
    sort: str = "queued"
    limit: int = 20
    copies: bool = False
    host: str = ""
    key: str = ""
    url: str = ""
    reason: str = ""
    everything: bool = False
    before: float = 0.0
    outputs_of: str = ""
    search: str = ""
    after: str = ""
    span: float = 0.0
    complete: bool = False

    def text(self) -> str:
        """As JSON: what is not at its default."""
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        least = {field.name: field.default for field in fields(self)}
        return json.dumps({name: value for name, value in said.items() if value != least[name]}, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Question:
        """The question in this text. Raises BadQuestion."""
        if len(text) > LONGEST_TEXT:
            raise BadQuestion(f"longer than {LONGEST_TEXT} characters")
        try:
            data = json_object(text)
        except Malformed as reason:
            raise BadQuestion(str(reason)) from None
        for name, value in data.items():
            check = _CHECKS.get(name)
            if check is None:
                raise BadQuestion(f"unknown field {name[:40]!r}")
            if not check(value):
                raise BadQuestion(f"{name} may not be {str(value)[:40]!r}")
        missing = {"ask", "expires"} - data.keys()
        if missing:
            raise BadQuestion(f"lacks {min(missing)}")
        question = cls(**data)
        if question.ask in ("url", "host") and not (question.host and (question.key or question.ask == "host")):
            raise BadQuestion("lacks host or key")
        chooses = question.chooses or bool(question.outputs_of)
        if question.ask == "requeue" and question.everything == chooses:
            raise BadQuestion("chooses nothing, or both everything and something")
        return question

    @property
    def chooses(self) -> bool:
        """Whether it chooses among the failures."""
        return bool(self.reason or self.host or self.url or self.key)

    def wants(self, failure: Failure) -> bool:
        """Whether a failure is among the chosen. A reason stands for all that begin with it and a slash, too."""
        if (
            self.host and self.host not in (failure.host, host_of_key(failure.host))
        ) or 0 < self.before <= failure.when:
            return False
        if self.reason and failure.reason != self.reason and not failure.reason.startswith(f"{self.reason}/"):
            return False
        if not (self.url or self.key):
            return True
        return failure.entry.url == self.url or f"{failure.entry.key:016x}" == self.key


LATEST = 2**53  # unix seconds: beyond any date


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "ask": lambda value: value in ASKS,
    "expires": lambda value: is_number(value, LATEST),
    "agent": lambda value: fits(value, NAME),
    "sort": lambda value: value in SORTS,
    "limit": lambda value: is_whole(value, 1, MOST_ROWS),
    "copies": lambda value: isinstance(value, bool),
    "host": lambda value: is_text(value, 300),
    "key": lambda value: fits(value, KEY),
    "url": lambda value: is_text(value, 65_536),
    "reason": lambda value: is_text(value, MOST_REASON),
    "everything": lambda value: isinstance(value, bool),
    "before": lambda value: is_number(value, LATEST),
    "outputs_of": lambda value: fits(value, NAME),
    "search": lambda value: is_text(value, 300),
    "after": lambda value: is_text(value, 400) and _is_place(value),
    "complete": lambda value: isinstance(value, bool),
    "span": lambda value: is_number(value, LATEST),
}


def _is_place(text: str) -> bool:
    try:
        return not math.isnan(place(text)[0])
    except ValueError:
        return False


def by_delay(state: HostState, usual: float, now: float) -> SlowHost:
    """What a host needs by its delay alone, as far as nothing else is known of an agent that has stopped."""
    return SlowHost(state.host, state.waiting, max(usual, state.pause))


class Source(NamedTuple):
    """What an answer is made of, of the agent named `agent`.

    `blocked_reason` says what keeps a host from being fetched, as `HostNotes.blocked_reason` does.
    `role` says OWNER or COPY of a host state, "" where that is not known; `held` whether an own host may not be
    fetched yet, as it is still being handed over; `sent` names the agent to which an entry with this key is on its way,
    "" if none; `requeue` takes a failed entry in again, under a new key, and says whether it could; `now` is the
    frontier's clock, in seconds; `loads` says how many loads of a host may be open at once, "" for one; `needs`
    what a host needs yet, given the delay of all hosts and the time; `rates` for which rate it waits.
    """

    agent: str
    frontier: Frontier
    now: float
    role: Callable[[HostState], str]
    held: Callable[[HostState], bool]
    blocked_reason: Callable[[HostState], str]
    sent: Callable[[str, int], str]
    requeue: Callable[[Failure], bool]
    loads: Callable[[str], str] = SINGLE_PAGES.shown
    needs: Callable[[HostState, float, float], SlowHost] = by_delay
    rates: NoRates = NO_RATES


Maker = Callable[[Question, Source], Steps]


def steps(question: Question, source: Source) -> Steps:
    """Makes the answer of one agent, fit for JSON."""
    made = yield from _ANSWERS[question.ask](question, source)
    return {"agent": source.agent, "ask": question.ask, **made}


def answer(question: Question, source: Source) -> Answer:
    """The answer, made at once: of an agent that has stopped."""
    return whole(steps(question, source))


# -- url


def _url(question: Question, source: Source) -> Answer:
    key = int(question.key, 16)
    found = _request(question, source, key)
    return found if found["where"] != "unknown" else _request(question, source, seed_key(key))


def _request(question: Question, source: Source, key: int) -> Answer:
    state = source.frontier.find(question.host)
    failure = next((one for one in source.frontier.failures(question.host) if one.entry.key == key), None)
    found: Answer = {"where": "unknown", "role": source.role(state) if state is not None else ""}
    if failure is not None:
        found |= {"where": "failed", "reason": failure.reason[:MOST_REASON], "when": failure.when}
        found |= {"depth": failure.entry.depth, "priority": failure.entry.priority}
    elif state is not None and (visited := state.visits.out.get(key)) is not None:
        found |= {"where": "in flight", "depth": visited.entry.depth, "priority": visited.entry.priority}
        found |= _visits(state, key)
    elif state is not None and key in state.out:
        found |= {"where": "in flight", "depth": state.out[key].depth, "priority": state.out[key].priority}
    elif state is not None and state.is_done(key):
        found |= {"where": "done", "status": source.frontier.status_of(state, key)} | _visits(state, key)
    elif state is not None and state.is_known(key):
        shown = host_answers.shown_state(state, found["role"], source)
        found |= {"where": "queued", "state": shown, "queued": state.waiting} | _place(state, key)
    elif receiver := source.sent(question.host, key):
        found |= {"where": "sent", "to": receiver}
    return found


def _visits(state: HostState, key: int) -> Answer:
    """How often a page was visited, and when it is visited again; empty where it is visited once."""
    row = state.visit_row(key)
    if row is None:
        return {}
    return {"visits": row.generation, "visited": row.last, "due": row.due, "changes": row.changes}


def _place(state: HostState, key: int) -> Answer:
    """Depth and priority of a waiting entry, and how many of its host come before it; where that is cheap to say."""
    waiting: list[Entry] = []
    whole = True
    for number, entry in enumerate(state.undone()):
        if number >= LOOKED:
            whole = False
            break
        if entry.key not in state.out and entry.key not in state.closing:
            waiting.append(entry)
    at = next((index for index, entry in enumerate(waiting) if entry.key == key), None)
    if at is None:
        return {"depth": None, "priority": None, "before": None}
    mine = waiting[at]
    rank = (-mine.priority, mine.depth, at)
    before = sum((-one.priority, one.depth, index) < rank for index, one in enumerate(waiting)) if whole else None
    return {"depth": mine.depth, "priority": mine.priority, "before": before}


# -- failed and requeue


def _failed(question: Question, source: Source) -> Steps:
    reasons = Counter[str]()
    newest: list[Failure] = []
    failures = _failures(question.host, source.frontier)
    while piece := [*islice(failures, PIECE)]:
        chosen = [failure for failure in piece if question.wants(failure)]
        reasons.update(failure.reason for failure in chosen)
        newest = heapq.nlargest(question.limit, newest + chosen, key=lambda one: (one.when, one.entry.url))
        yield len(piece)
    rows = [
        {
            "url": failure.entry.url,
            "host": failure.host,
            "key": f"{failure.entry.key:016x}",
            "reason": failure.reason[:MOST_REASON],
            "when": failure.when,
            "depth": failure.entry.depth,
            "priority": failure.entry.priority,
        }
        for failure in newest
    ]
    by_reason = dict(reasons.most_common(100))
    return _bounded({"total": sum(reasons.values()), "reasons": by_reason}, rows)


def _failures(host: str, frontier: Frontier) -> Iterator[Failure]:
    """The failures of a host, "" for all; of one that is not known, and may be cut into shards, all are gone
    through."""
    return frontier.failures(host if host and frontier.find(host) is not None else None)


def _requeue(question: Question, source: Source) -> Answer:
    frontier, lost = source.frontier, question.outputs_of
    found = frontier.pages_kept_by(lost) if lost else _failures(question.host, frontier)
    chosen = (one for one in found if question.wants(one))
    now = [*islice(chosen, MOST_REQUEUED)]
    more = next(chosen, None) is not None
    requeued = 0
    for failure in now:
        if source.requeue(failure):
            frontier.forget_elsewhere(lost, failure) if lost else frontier.forgive(failure)
            requeued += 1
    return {"requeued": requeued, "unfit": len(now) - requeued, "more": more}


def _bounded(made: Answer, rows: list[Answer]) -> Answer:
    """The answer with as many of its rows as fit."""
    kept, size = [], 0
    for row in rows:
        size += len(json.dumps(row))
        if size > MOST_BYTES:
            break
        kept.append(row)
    return {**made, "cut": len(kept) < len(rows), "rows": kept}


def _bounded_rows(of: Maker) -> Maker:
    """The same answer, bounded."""

    def bounded(question: Question, source: Source) -> Steps:
        made = yield from of(question, source)
        return _bounded(made, made.pop("rows"))

    return bounded


def _at_once(of: Callable[[Question, Source], Answer]) -> Maker:
    """One that has no steps."""

    def made(question: Question, source: Source) -> Steps:
        yield from ()
        return of(question, source)

    return made


_ANSWERS: Mapping[str, Maker] = {
    "hosts": _bounded_rows(host_answers.hosts),
    "host": _bounded_rows(host_answers.host),
    "url": _at_once(_url),
    "failed": _failed,
    "requeue": _at_once(_requeue),
}
