"""The text form of filters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.urls.filters.filter_text import Call, FilterError, parse_calls, write

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}(\.[A-Za-z_][a-z0-9_]{0,8}){0,2}", fullmatch=True)
KEYS = st.just("") | st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
CALLS = st.builds(
    Call,
    NAMES,
    st.dictionaries(KEYS, st.lists(st.text() | st.text(' ,;()="\\\n'), min_size=1, max_size=3).map(tuple), max_size=3),
)


@given(st.lists(CALLS, max_size=2))
def test_what_is_written_is_read(calls: list[Call]) -> None:
    assert parse_calls("; ".join(map(write, calls))) == calls
    assert parse_calls("\n".join(map(write, calls))) == calls


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("length(2048)", Call("length", {"": ("2048",)})),
        (" known_paths ", Call("known_paths", {})),
        ("known_paths()", Call("known_paths", {})),
        ("schemes( http ,https )", Call("schemes", {"": ("http", "https")})),
        ("extensions(-pdf,-zip)", Call("extensions", {"": ("-pdf", "-zip")})),
        (
            "scope(hosts=a.example, b.example, deny=x)",
            Call("scope", {"hosts": ("a.example", "b.example"), "deny": ("x",)}),
        ),
        ("scope(deny=a, hosts=b, deny=c)", Call("scope", {"deny": ("a", "c"), "hosts": ("b",)})),
        (
            r"scope(allow=^https?://a\.example/.*\.html$)",
            Call("scope", {"allow": (r"^https?://a\.example/.*\.html$",)}),
        ),
        (r'scope(allow="^/(a|b), ""c"" \d{1,2}$")', Call("scope", {"allow": (r'^/(a|b), "c" \d{1,2}$',)})),
        ('f("")', Call("f", {"": ("",)})),
        ("my.module.MyFilter (x)", Call("my.module.MyFilter", {"": ("x",)})),
    ],
)
def test_texts(text: str, call: Call) -> None:
    assert parse_calls(text) == [call]


def test_several_in_one_text() -> None:
    calls = parse_calls("length(5), schemes(http);depth(3)\n traps ")
    assert [call.name for call in calls] == ["length", "schemes", "depth", "traps"]
    assert parse_calls("") == parse_calls(" ; ") == []


@pytest.mark.parametrize(
    "text",
    ["length(", "length(5", "length(5 6)", "(5)", "length(5))", "f(a,)", "f(,a)", 'f("a)', "f(a=)", "f(a(b))", "é"],
)
def test_what_cannot_be_read_is_shown(text: str) -> None:
    with pytest.raises(FilterError, match="cannot be read at") as caught:
        parse_calls(text)
    assert "belongs there" in caught.value.remedy


@given(st.text() | st.text('abc(),;=" \\'))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        calls = parse_calls(text)
    except FilterError:
        return
    assert parse_calls("; ".join(map(write, calls))) == calls


def test_a_hundred_thousand_values_take_no_time_to_speak_of() -> None:
    values = tuple(f"d{number}.example" for number in range(100_000))  # quadratic time would be minutes
    assert parse_calls(write(Call("scope", {"domains": values}))) == [Call("scope", {"domains": values})]
