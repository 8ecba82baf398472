"""The empty dict that all hosts share which have nothing under way."""

from __future__ import annotations

from typing import Any, NoReturn


class _SharedEmptyDict(dict[int, Any]):
    """An empty dict that stays one, shared by all hosts that have nothing under way: most of them."""

    __slots__ = ()

    def __setitem__(self, key: int, value: object) -> NoReturn:
        raise TypeError("this dict is shared: give the host one of its own")


NONE = _SharedEmptyDict()
