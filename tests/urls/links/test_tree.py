"""Links off a tree that lxml has: the same values, whichever way they are read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from scrapy_ubi.urls.links import tree

Piece = tuple[str, str, str]

ATTRIBUTES = [
    "",
    ' href="/x"',
    " href=y",
    " HREF='/é'",
    ' href=""',
    " href",
    " name=n",
    " href=/x href=/2",
    " a:href=z",
]
TAGS = [
    "a",
    "A",
    "area",
    "AREA",
    "p",
    "b",
    "table",
    "map",
    "svg",
    "svg:a",
    "link",
    "/a",
    "/p",
    "/table",
    "!-- <a href=c> --",
]
PIECES = st.tuples(st.sampled_from(TAGS), st.sampled_from(ATTRIBUTES), st.sampled_from(["", "text", "&amp;"]))


@given(st.lists(PIECES, max_size=20), st.sampled_from([("a", "area"), ("a",), ("area", "map"), ("p",)]))
def test_values_are_those_of_the_elements_in_their_order(pieces: list[Piece], tags: tuple[str, ...]) -> None:
    root = html.document_fromstring("<body>" + "".join(f"<{tag}{attribute}>{text}" for tag, attribute, text in pieces))
    assert list(tree.values_of(root, tags, "href")) == list(tree.elements(root, tags, "href")[0])
    for element in root.iter():  # also below one of its elements
        assert list(tree.values_of(element, tags, "href")) == list(tree.elements(element, tags, "href")[0])
