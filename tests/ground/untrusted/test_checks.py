"""The checks of foreign JSON: what each takes, what it refuses, and with which words."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.ground.untrusted import checks
from scrapy_ubi.ground.untrusted.checks import Fields, Malformed, exactly, json_object, match, strict_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def refusal(call: Any, *args: Any) -> str:
    with pytest.raises(Malformed) as caught:
        call(*args)
    return str(caught.value)


def test_an_object_is_read_of_text_and_of_bytes() -> None:
    assert json_object('{"a":1}') == json_object(b'{"a":1}') == {"a": 1}


@pytest.mark.parametrize("text", ["", "{", "nothing", '{"a":' + "1" * 5000 + "}", "\ufeff{}", b"\xff{}"])
def test_what_is_no_json_is_refused(text: str | bytes) -> None:
    assert refusal(json_object, text) == "not JSON"


@pytest.mark.parametrize("text", ["[]", "1", "null", '"a"', "true"])
def test_json_that_is_no_object_is_refused(text: str) -> None:
    assert refusal(json_object, text) == "not a JSON object"


def test_what_is_nested_too_deeply_is_refused_in_the_readers_words() -> None:
    deep = '{"a":' * 100_000
    assert refusal(json_object, deep) == "not JSON"
    assert refusal(json_object, deep, strict_json, "nested too deeply") == "nested too deeply"


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_strict_json_names_no_number_that_is_none(name: str) -> None:
    assert json_object(f'{{"a":{name}}}')
    assert refusal(json_object, f'{{"a":{name}}}', strict_json) == "not JSON"


@given(values)
def test_checks_answer_and_never_raise(value: object) -> None:
    is_text = checks.is_text(value, 3)
    assert is_text == (isinstance(value, str) and len(value) <= 3)
    assert checks.is_count(value) == (type(value) is int and value >= 0)
    assert checks.is_count(value, 7) == (type(value) is int and value in range(7))
    assert checks.is_whole(value, -1, 1) == (type(value) is int and value in (-1, 0, 1))
    assert checks.is_number(value, 1e9) == (type(value) in (int, float) and 0 <= value < 1e9)  # type: ignore[operator]
    assert checks.fits(value, checks.KEY) == (isinstance(value, str) and bool(re.fullmatch("[0-9a-f]{16}", value)))
    assert checks.is_list(value, 2, checks.is_count) == (
        isinstance(value, list) and len(value) <= 2 and all(type(one) is int and one >= 0 for one in value)
    )
    assert checks.is_mapping(value, 2, checks.is_count) == (
        isinstance(value, dict) and len(value) <= 2 and all(type(one) is int and one >= 0 for one in value.values())
    )


@pytest.mark.parametrize("value", [True, float("nan"), float("inf"), 10**400, -1, -0.5, "1", None])
def test_what_is_no_time(value: object) -> None:
    assert not checks.is_number(value, 2**53)


def test_a_pattern_holds_for_the_whole_text() -> None:
    assert match(checks.NAME, "a-1.b:c_d") == "a-1.b:c_d"
    assert refusal(match, checks.NAME, None) == "a field is missing"
    assert refusal(match, checks.NAME, "a b" * 20).startswith(repr(("a b" * 20)[:40]) + " does not look like ")
    assert refusal(match, checks.KEY, 7).startswith("'7' does not look like")
    assert refusal(match, checks.KEY, "0" * 16 + "\n").startswith("'0000")


def test_exactly_is_not_a_subclass() -> None:
    assert exactly(1, int) == 1
    assert refusal(exactly, True, int) == "True is not int"
    assert refusal(exactly, 1, str) == "1 is not str"


def test_fields_that_are_missing_have_their_defaults() -> None:
    empty = Fields({})
    assert (empty.text("a"), empty.text("a", "b"), empty.count("a"), empty.number("a")) == ("", "b", 0, 0.0)
    assert (empty.number("a", 1.0), empty.mapping("a", 1, "is wrong")) == (1.0, {})
    assert Fields({"a": ""}).text("a", "b") == "b"


@pytest.mark.parametrize(
    ("value", "text", "count", "number"),
    [
        (None, "a is not a text", "a is not a count", "a is not a number"),
        (True, "a is not a text", "a is not a count", "a is not a number"),
        (-1, "a is not a text", "a is not a count", "a is out of bounds"),
        (2**63, "a is not a text", "a is not a count", "a is out of bounds"),
        (float("nan"), "a is not a text", "a is not a count", "a is out of bounds"),
        ([], "a is not a text", "a is not a count", "a is not a number"),
    ],
)
def test_fields_that_do_not_hold_are_named(value: object, text: str, count: str, number: str) -> None:
    fields = Fields({"a": value})
    assert (refusal(fields.text, "a"), refusal(fields.count, "a"), refusal(fields.number, "a")) == (text, count, number)


def test_an_object_among_the_fields_is_bounded() -> None:
    fields = Fields(json.loads('{"a":{"b":1,"c":2},"d":[]}'))
    assert fields.mapping("a", 2, "is wrong") == {"b": 1, "c": 2}
    assert refusal(fields.mapping, "a", 1, "is wrong") == "a is wrong"
    assert refusal(fields.mapping, "d", 1, "is wrong") == "d is wrong"
