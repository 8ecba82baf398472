"""Which entries of the own inbox are with the caller: each is handed out once until it is consumed and deleted.

An id is *in hand* from being handed out until its deletion has succeeded. Ids given back wait in `leaving` for that, so
that a deletion that was lost with the connection is repeated, and the entry not handed out a second time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from scrapy_ubi.transport.contract import IN_HAND

_ID = re.compile(r"\d{1,20}-\d{1,20}")


class InHand:
    """Ids of inbox entries, see the module."""

    def __init__(self, most: int = IN_HAND) -> None:
        self._most = most
        self._held: dict[str, None] = {}
        self._leaving: dict[str, None] = {}

    @property
    def held(self) -> tuple[str, ...]:
        """Ids not to be handed out, oldest first. They include those leaving."""
        return tuple(self._held)

    @property
    def leaving(self) -> tuple[str, ...]:
        """Ids to be deleted."""
        return tuple(self._leaving)

    def room(self, wanted: int) -> int:
        """How many of `wanted` more letters may be handed out."""
        return max(0, min(wanted, self._most - (len(self._held) - len(self._leaving))))

    def hand_out(self, ids: Iterable[str]) -> None:
        """These are with the caller now."""
        self._held.update(dict.fromkeys(ids))

    def consume(self, ids: Iterable[str]) -> None:
        """The caller gives these back. Raises ValueError for what cannot be the id of an entry."""
        for one in ids:
            if not _ID.fullmatch(one):
                raise ValueError(f"{one!r} is no id of an inbox entry")
            self._held[one] = self._leaving[one] = None

    def deleted(self, ids: Iterable[str]) -> None:
        """Their deletion has succeeded."""
        for one in ids:
            self._held.pop(one, None)
            self._leaving.pop(one, None)
