"""Which classes are items and named tuples."""

from __future__ import annotations

from scrapy_ubi.adapter.requests.item_classes import is_item_class, is_named_tuple


def test_what_is_no_class_of_these_is_none() -> None:
    class Odd(tuple):  # type: ignore[type-arg]
        _fields = "ab"

    assert not any(is_item_class(value) for value in (int, "Book", None, object()))
    assert not any(is_named_tuple(value) for value in (tuple, Odd, "Pair"))
