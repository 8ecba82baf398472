"""What may be changed, by its path below `/api/`: the fields of the body, and the command that does it.

Rules of this module: a change is a command's, with its judgement and its refusals. None waits longer than `WAITS`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.requests.outside import MOST_PRIORITY, why_no_seed
from scrapy_ubi.cli.commands import drain, failed, seed, steer
from scrapy_ubi.cli.commands.query import QueryReport
from scrapy_ubi.cli.monitor.document import Document
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.web.parameters import MOST_NAMES, MOST_URLS, Field, Fields, flag, number, settings, text, texts
from scrapy_ubi.web.problem import bad
from scrapy_ubi.web.readings import MOST_NAME, of_command

WAITS = 10.0  # s until the agents have heard it

Run = Callable[[BaseSettings, argparse.Namespace], QueryReport]


class Verb(NamedTuple):
    """What one path does."""

    fields: Fields
    answer: Callable[[BaseSettings, argparse.Namespace], Document]


_HOST, _WAIT = Field(text(MOST_NAME)), Field(flag, True)


def _steered(what: str, run: Run, host: bool = True, **fields: Field) -> Verb:
    def answer(settings: BaseSettings, opts: argparse.Namespace) -> Document:
        opts.no_wait = not opts.wait
        return of_command(run, what=what, timeout=WAITS)(settings, opts)

    return Verb({**fields, **({"host": _HOST} if host else {}), "wait": _WAIT}, answer)


def _unset(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    if opts.all == bool(opts.names):
        raise bad("Give names, or all: one of them.")
    return steer.run_unset(settings, opts)


def _seed(settings: BaseSettings, opts: argparse.Namespace) -> QueryReport:
    wrong = [
        (number, why) for number, url in enumerate(opts.urls, 1) if url.strip() and (why := why_no_seed(url.strip()))
    ]
    if wrong:  # nothing of it is sent: it can be mended, and sent whole
        told = "; ".join(f"line {number}, {plain(opts.urls[number - 1], 80)!r}, is {why}" for number, why in wrong[:3])
        raise bad(f"{told}{f'; and {len(wrong) - 3} more' if len(wrong) > 3 else ''}: nothing was sent.")
    opts.url, opts.timeout = opts.urls, WAITS
    return seed.run(settings, opts)


_CHOICE: Mapping[str, Any] = {
    "reason": Field(text(MOST_NAME)),
    "host": _HOST,
    "url": Field(text()),
    "agent": Field(text(MOST_NAME)),
    "all": Field(flag, False),
}
_SEEDS: Fields = {
    "urls": Field(texts(MOST_URLS, empty=True), needed=True),
    "priority": Field(number(-MOST_PRIORITY, MOST_PRIORITY)),
    "force": Field(flag, False),
    "wait": Field(flag, False),
}

VERBS: Mapping[str, Verb] = {
    "token": Verb({}, lambda settings, opts: {}),  # changes nothing: whether the token holds
    "pause": _steered("pause", steer.run_pause),
    "resume": _steered("resume", steer.run_resume),
    "finish": _steered("finish", steer.run_finish, host=False),
    "set": _steered("set", steer.run_set, values=Field(settings, needed=True)),
    "unset": _steered("unset", _unset, names=Field(texts(MOST_NAMES), ()), all=Field(flag, False)),
    "drain": Verb(
        {"agent": Field(text(MOST_NAME), needed=True), "force": Field(flag, False)}, of_command(drain.run, no_wait=True)
    ),
    "requeue": Verb(_CHOICE, of_command(failed.requeue, outputs_of=None)),
    "seeds": Verb(_SEEDS, of_command(_seed, file=None)),
}
