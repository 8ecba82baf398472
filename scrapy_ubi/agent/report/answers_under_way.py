"""The answers that are being made: a bounded piece in each turn of the loop, so that fetching, beats and mail go on
beside a question about a million hosts.

Rules of this module:

* Answers are made one after the other, in the order asked. In one turn at most `MOST_A_TURN` hosts or failures are
  looked at, and the one step more that passes it; not more than four answers are ended.
* What an agent of few hosts answers is ready at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Generator
from typing import Any

MOST_A_TURN = 1000  # hosts or failures looked at, some 2 ms
ENDED = MOST_A_TURN // 4  # an answer that is ended counts as so many

Answer = dict[str, Any]
Steps = Generator[int, None, Answer]  # makes an answer; gives how many hosts or failures each step has looked at
Later = Callable[[Callable[[], None]], object]  # calls a function in the next turn of the loop


def whole(steps: Steps) -> Answer:
    """The answer, made at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            answer: Answer = end.value
            return answer


class AnswersUnderWay:
    """Answers by the id of their question. `later` has the next piece made."""

    def __init__(self, later: Later) -> None:
        self._later = later
        self._steps: dict[str, Steps] = {}
        self._goes_on = False
        self._ready: dict[str, str] = {}

    def start_answer(self, number: str, steps: Steps) -> None:
        """Have this answer made."""
        self._steps[number] = steps

    def keep(self, asked: Container[str]) -> None:
        """The others are asked for no longer."""
        for number in [number for number in self._steps if number not in asked]:
            self._steps.pop(number).close()

    def work(self) -> None:
        """Make a piece now, and have the rest made later."""
        if not self._goes_on:
            self._turn()

    def ready(self) -> dict[str, str]:
        """Id -> JSON, of all that became ready since the last call."""
        ready, self._ready = self._ready, {}
        return ready

    def _turn(self) -> None:
        self._goes_on, left = False, MOST_A_TURN
        try:
            while self._steps and left > 0:
                left -= self._step(next(iter(self._steps)))
        finally:
            if self._steps:
                self._goes_on = True
                self._later(self._turn)

    def _step(self, number: str) -> int:
        """One step of this answer; one that fails is not gone on with."""
        looked, ended = ENDED, True
        try:
            looked, ended = next(self._steps[number]), False
        except StopIteration as end:
            self._ready[number] = json.dumps(end.value)
        finally:
            if ended:
                del self._steps[number]
        return looked
