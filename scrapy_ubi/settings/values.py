"""Values of settings that are more than a number or a text."""

from __future__ import annotations

from typing import Literal, NamedTuple


class MaxBody(NamedTuple):
    """How many bytes of a page are kept, 0: all; and whether of everything that callbacks get, or of HTML only."""

    size: int = 0
    of_all: bool = False

    def __str__(self) -> str:
        return f"all({self.size})" if self.of_all else str(self.size)


WHOLE = MaxBody()


class Duplicates(NamedTuple):
    """Which pages count as duplicates, those where `near` words of a hundred differ (0: copies only), and what is done
    with them."""

    near: int = 0
    action: Literal["mark", "unfollow", "skip"] = "mark"
