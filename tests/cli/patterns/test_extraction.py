"""Fields, read off a page: texts, HTML, many, what is excluded; and that no page is an error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parsel import Selector

from scrapy_ubi.cli.patterns.expressions import compiled_css, compiled_xpath
from scrapy_ubi.cli.patterns.extraction import FAULTS, MOST_CHARACTERS, MOST_VALUES, has_value, read_field
from scrapy_ubi.cli.patterns.page_rules import FieldRule

PAGE = """
<html><head><title>The  title</title></head><body>
<h1>A <b>he</b>ading</h1>
<div class="post">One<div class="quote">quoted <span class="post">within</span></div>two<!-- no --> <i>three</i></div>
<div class="post">Four<script>var x;</script><br>five <a href="/6">six</a></div>
<p class="price">12</p>
</body></html>
"""


def read(page: str, *, css: str = "", xpath: str = "", exclude: str = "", **more: Any) -> Any:
    compiled = compiled_css if css else compiled_xpath
    excluded = (compiled(exclude),) if exclude else ()
    rule = FieldRule("field", (compiled(css or xpath),), exclude=excluded, **more)
    return read_field(rule, Selector(page).root)


def test_a_text_is_what_a_reader_sees() -> None:
    assert read(PAGE, css="h1") == "A heading"
    assert read(PAGE, css="title") == "The title"
    assert read(PAGE, css=".post", many=True)[-1] == "Four five six"
    assert read("<p>a<td>b</td><b>c</b>d<p>e", css="body") == "ab cd e" or read("<p>a</p><p>b</p>", css="body") == "a b"
    assert read("<textarea>x</textarea>y<wbr>z", css="body").endswith("yz")


def test_what_is_excluded_is_as_if_it_were_not_there() -> None:
    assert read(PAGE, css=".post", many=True, exclude=".quote") == ["One two three", "Four five six"]
    assert read(PAGE, xpath="//a/@href", exclude="//div") is None
    assert read(PAGE, xpath="//div[@class='post']/text()", many=True, exclude="//div[@class='quote']")[:2] == [
        "One",
        "two",
    ]
    assert read(PAGE, css=".post", exclude=".post") is None


def test_html_is_that_of_the_element_without_what_is_excluded() -> None:
    html = read(PAGE, css=".post", text=False, exclude=".quote")
    assert html == '<div class="post">Onetwo<!-- no --> <i>three</i></div>'
    assert read(PAGE, css="h1", text=False) == "<h1>A <b>he</b>ading</h1>"


def test_values_that_are_no_elements() -> None:
    assert read(PAGE, css="a::attr(href)") == "/6"
    assert read(PAGE, css="p::text", many=True) == ["12"]
    assert read(PAGE, xpath="count(//div)") == 3
    assert read(PAGE, xpath="number(//p) div 8") == 1.5
    assert read(PAGE, xpath="number(//h1)") is None
    assert read(PAGE, xpath="boolean(//h2)") is False
    assert read(PAGE, xpath="string(//p)", many=True) == ["12"]


def test_nothing_found_is_none_or_an_empty_list_and_the_first_pattern_that_finds_something_counts() -> None:
    assert read(PAGE, css="h2") is None and read(PAGE, css="h2", many=True) == []
    assert not has_value(None) and not has_value("") and not has_value([]) and has_value(0) and has_value(False)
    rule = FieldRule("a", (compiled_css("h2"), compiled_css("h1"), compiled_css("title")))
    assert read_field(rule, Selector(PAGE).root) == "A heading"


def test_what_is_read_is_bounded() -> None:
    assert len(read(f"<p>{'word ' * 200_000}", css="p")) == MOST_CHARACTERS
    assert len(read(f"<p title='{'x' * 200_000}'>", css="p::attr(title)")) == MOST_CHARACTERS
    assert len(read(f"<p>{'<i>x</i>' * 50_000}", css="p", text=False)) == MOST_CHARACTERS
    assert len(read("<p>x</p>" * 3000, css="p", many=True)) == MOST_VALUES


def test_a_deep_page_is_read() -> None:
    assert read("<div>" * 50_000 + "x", css="body").endswith("x") or read("<div>" * 50_000 + "x", css="body") == ""


PATTERNS = [("css", "p"), ("css", "a::attr(href)"), ("xpath", "//*"), ("xpath", "//text()"), ("xpath", "count(//*)")]
pieces = st.sampled_from(
    ["<p>", "</p>", "<b>", "</b>", "<a href='x'>", "<script>", "</script>", "<!--", "-->", "<table><td>", "&#0;",
     "\x01", "\x00", "<?php ?>", "<svg><p:x y:z=1>", "text", " ", "é", "<![CDATA[", "</body>", "<template><p>",
     "<p class='q'>"]
)  # fmt: skip


@given(st.lists(pieces, max_size=30), st.booleans(), st.booleans(), st.booleans())
def test_no_page_is_an_error(parts: list[str], many: bool, text: bool, exclude: bool) -> None:
    for kind, pattern in PATTERNS:
        out = (".q" if kind == "css" else "//p[@class='q']") if exclude else ""
        value = read("".join(parts), many=many, text=text, exclude=out, **{kind: pattern})
        assert isinstance(value, list) == many


@given(st.lists(pieces, max_size=30))
def test_excluding_nothing_changes_nothing_and_excluding_all_leaves_nothing(parts: list[str]) -> None:
    page = "".join(parts)
    for text in (True, False):
        assert read(page, css="p", many=True, text=text) == read(page, css="p", many=True, text=text, exclude="video")
        assert read(page, css="p", many=True, text=text, exclude="html") == []


def test_what_cannot_be_evaluated_on_a_page_is_one_of_the_named_faults() -> None:
    assert read(PAGE, xpath="//comment()", many=True, text=False) == ["<!-- no -->"]
    rule = FieldRule("field", (compiled_xpath("//div[re:test(., string(@title))]"),))
    with pytest.raises(FAULTS):
        read_field(rule, Selector("<div title='('>x").root)
