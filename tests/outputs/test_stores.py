"""The text of UBI_STORES, and a store of the user's own."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from scrapy.settings import Settings

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.outputs.items import ItemsStore
from scrapy_ubi.outputs.larm import LarmStore
from scrapy_ubi.outputs.stores import Store, make


class Mine(Store):
    """A user's."""

    name: ClassVar[str] = "mine"

    def __init__(self, arguments: dict[str, tuple[str, ...]], settings: Settings) -> None:
        self.words = arguments.pop("", ())
        super().__init__(arguments, settings)


class Nameless(Store):
    """One without a name."""


def made(*entries: Any) -> list[Store]:
    return make(entries, Settings())


def test_stores_are_made_of_texts() -> None:
    items, larm = made("items(size=1e8, seconds=60), larm(pages=no)")
    assert isinstance(items, ItemsStore) and (items.size, items.seconds) == (1e8, 60)
    assert isinstance(larm, LarmStore) and larm.size == 1e9
    (mine,) = made(f"{__name__}.Mine(a, b)")
    assert isinstance(mine, Mine) and mine.words == ("a", "b")


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("itmes", "the stores are duplicates, graph, index, items, larm, markdown, stream, warc, webhook, and"),
        ("items(size=0)", "has size='0': give a number above 0"),
        ("items(sise=1)", "has the argument 'sise': leave it out"),
        ("items(3)", "has a value without a name: leave it out"),
        ("larm(pages=maybe)", "has pages='maybe': give yes or no"),
        ("items; items", "names the store 'items' again: name each once"),
        ("items(", "cannot be read at its end: give a store such as 'items'"),
        (3, "is no store: give texts such as 'items'"),
        ("no.such.Thing", "cannot be loaded"),
        (f"{__name__}.Nameless", "is no store: give a subclass of scrapy_ubi.outputs.stores.Store with a name"),
    ],
)
def test_what_is_malformed_is_a_sentence(entry: object, sentence: str) -> None:
    with pytest.raises(UbiSettingError) as caught:
        made(entry)
    assert "UBI_STORES" in str(caught.value) and sentence in str(caught.value)
