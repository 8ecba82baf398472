"""Which classes are items, models, dicts and named tuples."""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict

import pydantic
import pytest

from scrapy_ubi.adapter.requests.item_classes import is_dict_class, is_item_class, is_model_class, is_named_tuple


def test_what_is_no_class_of_these_is_none() -> None:
    class Odd(tuple):  # type: ignore[type-arg]
        _fields = "ab"

    assert not any(is_item_class(value) for value in (int, "Book", None, object()))
    assert not any(is_named_tuple(value) for value in (tuple, Odd, "Pair"))


def test_no_class_is_a_model_where_nobody_has_imported_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    class Model(pydantic.BaseModel):
        name: str

    assert is_model_class(Model) and not any(map(is_model_class, (pydantic.BaseModel, int, "Model", Model(name=""))))
    monkeypatch.delitem(sys.modules, "pydantic")
    assert not is_model_class(Model)


def test_classes_of_dicts_are_those_that_hold_only_pairs() -> None:
    class Row(dict):  # type: ignore[type-arg]
        pass

    class Ordered(OrderedDict):  # type: ignore[type-arg]
        pass

    assert is_dict_class(Row)
    assert not any(map(is_dict_class, (dict, Ordered, OrderedDict, defaultdict, int, Row(), "Row")))
