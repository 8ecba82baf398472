"""Items are serialised as by a feed of plain Scrapy."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from io import BytesIO
from typing import Any

import pytest
import scrapy
from scrapy.exporters import JsonLinesItemExporter
from scrapy.settings import Settings

from scrapy_ubi.outputs.items import ItemsStore


class Book(scrapy.Item):
    """An item with a serializer."""

    title = scrapy.Field(serializer=str.upper)
    price = scrapy.Field()


@dataclass
class Shelf:
    """A dataclass."""

    name: str
    books: list[Any]


ITEMS = [
    {"title": "Café", "when": datetime.datetime(2026, 1, 2, 3, 4), "price": Decimal("1.5"), "set": {1}},
    Book(title="a", price=2),
    Shelf("s", [Book(title="b"), {"x": None}]),
]


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        ({"FEED_EXPORT_ENCODING": "utf-8"}, {"encoding": "utf-8"}),
        ({"FEED_EXPORT_ENCODING": "latin-1"}, {"encoding": "latin-1"}),
        ({"FEED_EXPORT_FIELDS": ["price", "title"]}, {"fields_to_export": ["price", "title"]}),
        ({"FEED_EXPORT_FIELDS": {"title": "Title"}}, {"fields_to_export": {"title": "Title"}}),
        ({"FEED_EXPORT_ENCODING": "utf-16"}, {"encoding": "utf-8"}),
    ],
)
def test_lines_are_those_of_a_feed(settings: dict[str, Any], options: dict[str, Any]) -> None:
    store = ItemsStore({}, Settings(settings))
    for item in ITEMS:
        file = BytesIO()
        JsonLinesItemExporter(file, **dict(options)).export_item(item)
        assert store.item(item) == file.getvalue()
