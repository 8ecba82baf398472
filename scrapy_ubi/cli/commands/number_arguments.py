"""Numbers on the command line: what `argparse` calls for them, and the sentence where one does not hold.

Rules of this module: a number has bounds, and the sentence names them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

Number = TypeVar("Number", int, float)

MOST_WAIT = 86_400  # s


def within(low: float, high: float, kind: Callable[[str], Number], what: str) -> Callable[[str], Number]:
    """Reads a number from `low` to `high` by `kind`; `what` it is, for people."""

    def read(text: str) -> Number:
        try:
            number = kind(text)
        except ValueError:
            number = None
        if number is None or not low <= number <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is no {what} from {low} to {high}")
        return number

    return read


def whole(low: int, high: int) -> Callable[[str], int]:
    """Reads a whole number from `low` to `high`."""
    return within(low, high, int, "whole number")


seconds = within(0, MOST_WAIT, float, "number of seconds")
"""Reads how long to wait (s)."""
