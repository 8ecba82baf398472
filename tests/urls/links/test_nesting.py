"""How deep a page is whose tags nest, beside what the parser of the HTML standard makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_ubi.ground import later
from scrapy_ubi.urls.links import costly, nesting
from scrapy_ubi.urls.links.nesting import ends_in_values
from scrapy_ubi.urls.links.open_elements import RAW, VOID
from tests.urls.links.test_costly import TAGS, elements_of

later.load("numpy")

NAMES = (*TAGS, "form", "head", "html", "fieldset", "iframe", "label", "legend", "marquee", "rb", "rtc", "xmp", "my-x")
RAW_NAMES = [name.decode() for name in sorted(RAW)]
TEXTS = ("", "x", " a < b ", "<!-- x -->", "<!--<div>-->", "<script>'<div>'</script>", "<hr>", "<style>a>b{}</style>")
DRAWINGS = ("<svg></svg>", "<svg/>", "<SVG a='b'><g><path d=\"M0\"/></g><use></use></svg>", "<svg><text>x</text></svg>")
ATTRIBUTES = ("", " class='a'", ' title="a < b"', " hidden", " a=b/")


@st.composite
def _element(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    name = draw(st.sampled_from(NAMES))
    attributes = draw(st.sampled_from(ATTRIBUTES))
    if name.encode() in VOID:
        return f"<{name}{attributes}>"
    if name.encode() in RAW:
        return f"<{name}{attributes}>x</{name}>"
    return f"<{name}{attributes}>{''.join(draw(st.lists(inner, max_size=3)))}</{name}>"


NESTED = st.recursive(st.sampled_from((*TEXTS, *DRAWINGS)), _element, max_leaves=12)


def _is_told_rightly(page: str) -> bool:
    """Whether the page is sure, and if it is, what is told of it is no less than the parser makes of it."""
    found = nesting.nesting(page.encode())
    if found is None:
        return False
    depth, formatting = elements_of(page.encode())
    tags = page.count("<")
    assert depth <= 2 * found.depth + 3, page
    begun = sum(page.lower().count(f"<{name}") for name in ("b", "i", "font"))
    assert formatting <= 2 * begun + tags * found.formatting, page
    return True


@settings(deadline=None, max_examples=600)
@given(st.lists(NESTED, min_size=1, max_size=6).map("".join), st.sampled_from(["", "<!doctype html>"]))
def test_what_nests_is_never_deeper(unit: str, doctype: str) -> None:
    _is_told_rightly(doctype + unit * 20)


@settings(deadline=None, max_examples=600)
@given(st.lists(NESTED, min_size=1, max_size=4).map("".join), st.data())
def test_nor_is_what_nearly_nests(unit: str, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(unit)))
    end = data.draw(st.integers(begin, min(len(unit), begin + 9)))
    put = data.draw(st.sampled_from(["", "</div>", "<p>", "<svg>", "</svg>", "<!--", "-->", '"', "<select>", "</b>"]))
    _is_told_rightly((unit[:begin] + put + unit[end:]) * 20)


@pytest.mark.parametrize(
    ("page", "depth", "formatting"),
    [
        ("<div><p>x</p></div>", 2, 0),
        ("<!DOCTYPE html><html><body><ul><LI>x</li></UL><hr></body></html>", 4, 0),
        ("<p><b><i>x</i></b><u>y</u></p>", 3, 2),
        ("<p>a < b<!-- <div> --></p><div title='a < b'></div>", 1, 0),
        ("<script>if (a<b) x = '<div>';</script><title><div></title>", 1, 0),
        ("<p><svg a='b'><g><path d='M0'/></g></svg></p>", 4, 0),
        ("<select><optgroup><option>x</option></optgroup></select>", 3, 0),
        ("<div><div>", 2, 0),
    ],
)
def test_depth(page: str, depth: int, formatting: int) -> None:
    assert nesting.nesting(page.encode()) == nesting.Nesting(depth, formatting)


@pytest.mark.parametrize(
    "page",
    [
        "<div><p>x</div>",
        "</div>",
        "<div/></p>",
        "<div a='</div>'>",
        '<div a="><div></div>">',
        "<div a='<!-- '></div><div> -->'></div>",
        "<div a='<!--'> <div><div> --> '></div>",
        "<div><!--></div>-->",
        "<div><!--x--!></div>-->",
        "<div><!--</div>",
        "<div><?</div>",
        "<div></ </div>",
        "<script><!--<script></script><div></script>",
        "<script>",
        "<select><title></select><div></title></select>",
        "<select><div></div></select>",
        "<select><select></select></select>",
        "<g><svg></g><path></path></svg></g>",
        "<svg><p></p></svg>",
        "<svg><path d=x/></svg>",
        "<svg><path d=x/></path></svg>",
        "<svg><title>x</title></svg>",
        "<math></math>",
        "<template></template>",
        "<plaintext></plaintext>",
        "<div",
        "",
    ],
)
def test_not_sure(page: str) -> None:
    assert nesting.nesting(page.encode()) is None


@pytest.mark.parametrize(
    "page", ["<div class=a>" * 40 + "<p>x</p>" * 20_000 + "</div>" * 40, "<p><a href=x>y</a></p>" * 9_999]
)
def test_long_pages_that_nest_are_not_looked_at_tag_by_tag(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costly, "survey", lambda *_: pytest.fail("looked at tag by tag"))
    assert not costly.is_costly(page.encode())


def test_pages_that_nest_too_deep_are_costly() -> None:
    assert costly.is_costly(b"<div>" * 10_000 + b"</div>" * 10_000)


@given(st.lists(st.sampled_from([b"=", b'"', b"'", b" ", b">", b"a", b"\n", b" " * 70]), max_size=60).map(b"".join))
def test_which_ends_may_stand_in_a_value(page: bytes) -> None:
    text = np.frombuffer(page + b"  ", np.uint8)
    ends = np.flatnonzero(text == ord(">"))
    for mark in b"\"'":
        found = ends_in_values(page, text, ends, mark).tolist()
        assert found == [end for end in ends.tolist() if begins_value(page, page.rfind(bytes([mark]), 0, end))]


def begins_value(page: bytes, mark: int) -> bool:
    """Whether this quotation mark follows a `=`, as far as is looked back."""
    if mark < 0:
        return False
    behind = page[mark - 1 : mark]
    looked_at = page[max(0, mark - 64) : mark].rstrip(b" \t\n\r\f")
    return behind == b"=" or (behind <= b" " and looked_at[-1:] in (b"=", b""))
