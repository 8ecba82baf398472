"""What a model reads: bounded, marked, nothing hidden in it, and every cut said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.web.problem import Problem
from scrapy_ubi.web.tools.answers import MOST_ANSWER, PAGE_TEXT, answer_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=15,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5))
def test_what_fits_is_given_whole_and_marked(document: dict[str, Any]) -> None:
    said = json.loads(answer_text(document, PAGE_TEXT))
    assert said == {"untrusted": PAGE_TEXT, "document": document}


@given(
    st.dictionaries(st.sampled_from("abc"), VALUES),
    st.lists(st.sampled_from(["x", "\u202e", "\U000e0041", "\ud800", '"}', "é"]), min_size=1, max_size=9),
    st.integers(1, 300),
    st.integers(1, 60),
)
def test_what_does_not_fit_is_cut_and_said(small: dict[str, Any], odd: list[str], rows: int, by: int) -> None:
    text = "".join(odd) * by
    document = {**small, "total": rows, "rows": [{"url": text, "n": number} for number in range(rows)]}
    answer = answer_text(document, PAGE_TEXT)
    said = json.loads(answer)
    assert len(answer) <= MOST_ANSWER and next(iter(said)) == "untrusted"
    assert not {*answer} & {"\u202e", "\U000e0041", "\ud800"}
    if "cut" not in said:
        assert said["document"] == document
        return
    shown = said["document"]["rows"]
    assert said["document"] | {"rows": []} == document | {"rows": []}
    assert len(shown) == rows or said["cut"]["rows"] == f"{len(shown)} of {rows} entries"
    assert all(text.startswith(row["url"]) for row in shown)


def test_one_long_text_is_cut_within_its_row() -> None:
    said = json.loads(answer_text({"agents": [{"name": "a", "why": "x" * 100_000}, {"name": "b"}]}, ""))
    assert said["cut"] == {"agents.0.why": "50,000 of 100,000 characters"}
    assert [row["name"] for row in said["document"]["agents"]] == ["a", "b"]


def test_an_object_of_many_names_is_cut_too() -> None:
    said = json.loads(answer_text({"missing": {f"agent-{number}": "x" * 100 for number in range(4_000)}}, ""))
    assert said["cut"] == {"missing": "500 of 4,000 entries"}


def test_what_cannot_be_cut_is_refused_with_a_sentence() -> None:
    with pytest.raises(Problem, match="ask for less"):
        answer_text({f"name-{number}": number for number in range(10_000)}, "")
