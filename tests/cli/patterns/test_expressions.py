"""Expressions that hold, and what is said of those that do not, before they meet a page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.cli.patterns.expressions import (
    MOST_CHARACTERS,
    BadExpression,
    check_elements,
    compiled_css,
    compiled_regex,
    compiled_xpath,
)


@pytest.mark.parametrize(
    "text",
    [
        "//a[contains(., 'x:y(')]",
        "//p/text()",
        "child::node()/a",
        "//*/a/@href",
        "re:test(//a, 'b')",
        "//*[has-class('a', 'b')]",
        "set:distinct(//a)",
        "a and (b) or (c div (2)) mod (3)",
        "//section[position() = last()]//processing-instruction('x')",
        'concat("$x", "(")',
        "//größe",
    ],
)
def test_xpath_that_holds(text: str) -> None:
    compiled_xpath(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("//a[", "is no XPath (Invalid expression)"),
        ("//a[foo()]", "has the unknown function foo(): did you mean floor?"),
        ("//video[string-lenght(.) > 3]", "has the unknown function string-lenght(): did you mean string-length?"),
        ("//video[re:tset(., 'x')]", "has the unknown function tset(): did you mean test?"),
        ("//svg:g", "has the unknown prefix 'svg': there are re, set"),
        ("//a[. = $x]", "has a variable ($...), and none is known"),
        ("//a[contains(a)]", "is no XPath (Invalid number of arguments)"),
        (
            "//video[re:test(@class, '(')]",
            "is no regular expression (missing ), unterminated subpattern at position 0)",
        ),
        ("a\x00", "is no XPath ("),
        ("a" * (MOST_CHARACTERS + 1), "has 10001 characters, more than 10000"),
    ],
)
def test_xpath_that_does_not(text: str, said: str) -> None:
    with pytest.raises(BadExpression) as raised:
        compiled_xpath(text)
    assert str(raised.value).startswith(said)


@pytest.mark.parametrize(
    "text", ["a::attr(href)", "::text", "div:has(a)", "head > title", ".a.b, #c", "p:nth-child(2)"]
)
def test_css_that_holds(text: str) -> None:
    compiled_css(text)


@pytest.mark.parametrize("text", ["a >", "p:unknown", "a:nth-child(", "a::unknown", "", "a\x00[", "[a=b"])
def test_css_that_does_not(text: str) -> None:
    with pytest.raises(BadExpression, match=r"^is no CSS selector \("):
        compiled_css(text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("css", "a::attr(href)"), ("css", "p::text"), ("xpath", "//video/@src"), ("xpath", "//p/text()"),
     ("xpath", "count(//a)"), ("xpath", "string(//a)"), ("xpath", "//video/attribute::src")],
)  # fmt: skip
def test_what_gives_no_elements_is_no_part_of_a_page(kind: str, text: str) -> None:
    compiled = compiled_css(text) if kind == "css" else compiled_xpath(text)
    with pytest.raises(BadExpression, match="selects no elements"):
        check_elements(kind, text, compiled)


@pytest.mark.parametrize("text", ["//a[@href]", "//div[text() = 'x']", "//main | //nav", "//video"])
def test_what_gives_elements_is(text: str) -> None:
    check_elements("xpath", text, compiled_xpath(text))


@given(st.text("ab/[]()@:*.'\"$=|,-<>{}^\\?+\x00 é", max_size=20))
def test_any_text_is_an_expression_or_a_sentence(text: str) -> None:
    for compiled in (compiled_regex, compiled_css, compiled_xpath):
        try:
            compiled(text)
        except BadExpression as reason:
            assert "\n" not in str(reason)
