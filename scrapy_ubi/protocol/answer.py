"""Answers: what a receiver says became of the letters of a lane, as text and back.

Rules of this module:

* An answer is as long as a transport takes it; what it has no room for is said when the letters before are answered.
* What arrives is data from outside: `read_answer` takes it whole or raises `Malformed` with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import inf
from typing import Any, NamedTuple

from scrapy_ubi.ground.untrusted.checks import HOST, NAME, Malformed, match

ANSWER_SIZE = 40  # characters of an answer without outcomes, at most
OUTCOME_SIZE = 60  # and of one outcome beside names: its number, up to three times
QUOTED = 3  # what a name takes beside its characters


class Outcome(NamedTuple):
    """What became of a letter: hosts refused (-> the owner in the receiver's view) and offers whose state is wanted."""

    refused: Mapping[str, str]
    want: tuple[str, ...]


def text(outcomes: Mapping[int, Outcome | None], most: float = inf) -> str:
    """JSON, as it stands in the sender's acks hash: what became of the letters with these numbers; of the first ones
    where all would take more than `most` characters. None: not decided yet, and left out.
    """
    decided = _fitting(sorted((seq, o) for seq, o in outcomes.items() if o is not None), most)
    answer: dict[str, Any] = {"acked": [seq for seq, _ in decided]}
    if refused := {str(seq): dict(o.refused) for seq, o in decided if o.refused}:
        answer["refused"] = refused
    if want := {str(seq): list(o.want) for seq, o in decided if o.want}:
        answer["want"] = want
    return json.dumps(answer, separators=(",", ":"))


def _fitting(decided: list[tuple[int, Outcome]], most: float) -> list[tuple[int, Outcome]]:
    """As many of these outcomes as an answer of so many characters says; one in any case."""
    left = most - ANSWER_SIZE
    for count, (_, outcome) in enumerate(decided):
        left -= OUTCOME_SIZE + sum(map(len, outcome.want)) + QUOTED * len(outcome.want)
        left -= sum(len(host) + len(owner) + 2 * QUOTED for host, owner in outcome.refused.items())
        if left < 0 and count:
            return decided[:count]
    return decided


def read_answer(text: str) -> dict[int, Outcome]:
    """The outcomes in an acks text: sequence number -> outcome. Raises Malformed."""
    try:
        answer = json.loads(text)
        refused, want = answer.get("refused", {}), answer.get("want", {})
        outcomes = {}
        for seq in answer["acked"]:
            if type(seq) is not int or seq < 0:  # `is_count` in place: it is asked for every letter
                raise Malformed("a sequence number is not a number")
            owners = refused.get(str(seq), {})
            hosts = {match(HOST, h): "" if owner == "" else match(NAME, owner) for h, owner in owners.items()}
            outcomes[seq] = Outcome(hosts, tuple(match(HOST, h) for h in want.get(str(seq), ())))
    except Malformed:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Malformed(f"not an answer: {error}") from error
    return outcomes
