"""All values of a page at once: what Joiner and Allowed make of each alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scrapy.linkextractors import IGNORED_EXTENSIONS

from scrapy_ubi.urls.links.allowed import Allowed
from scrapy_ubi.urls.links.joiner import Joiner
from scrapy_ubi.urls.links.usual import long_way, urls
from tests.urls.links.pages import ADDRESS, BASES, HREFS, hrefs

IGNORED = {f".{each}" for each in IGNORED_EXTENSIONS}
RULES = [
    Allowed((), (), (), (), IGNORED),
    Allowed((), (), (), (), ()),
    Allowed((), (), (), (), {".html", ".tar.gz", "."}),
    Allowed((), (), (), (), {".b/c", ".PDF"}),
    Allowed([re.compile("x")], (), (), {"h.example"}, IGNORED),
]
NAMES = st.sampled_from(
    [*HREFS, "x.pdf", "/A.ZIP?b#c", "x.tar.gz#x", "//x.exe", "x?y.exe", "x.gz/", "http://h.zip", "x."]
)


def one_by_one(values: list[str], joiner: Joiner, allowed: Allowed) -> dict[str, str]:
    found: dict[str, str] = {}
    for value in values:
        url = joiner.join(value.strip())
        if url is not None and allowed.passes(url):
            found.setdefault(url, value)
    return found


@given(
    st.lists(NAMES | hrefs | st.text(max_size=20), unique=True, max_size=8),
    st.sampled_from(BASES),
    st.sampled_from(RULES),
)
@example(["x\ny", "a", "\n", "\nb.pdf", "c.pdf", "c.pdf\n", "/"], ADDRESS, RULES[0])
def test_as_one_by_one(values: list[str], base: str, allowed: Allowed) -> None:
    joiner = Joiner(base, base, "utf-8")
    found = urls(values, joiner, allowed, str.strip)
    assert list(found.items()) == list(one_by_one(values, joiner, allowed).items())


def test_usual_links_take_the_short_way() -> None:
    values = (
        "x-1.html#a", "/X?a=1&b=2", "https://h-2.example/x:y", "../x", "../../x/", "../", "/", "?a", "#a", "/a/b.c/",
    )  # fmt: skip
    assert long_way(values, "\n".join(values) + "\n", Joiner(ADDRESS, ADDRESS, "utf-8")) == {""}
    for value in (
        "a b",
        "é",
        "x/../y",
        "a//b",
        "mailto:x",
        "//h/x",
        "a;b",
        "#",
        "?",
        "..",
        "./x",
        "../.x",
        "HTTP://h/",
    ):
        assert value in long_way([value, "x"], f"{value}\nx\n", Joiner(ADDRESS, ADDRESS, "utf-8")), value


@pytest.mark.parametrize("unit", ["a/", "../", "a.zip?", ".zip", "/a.", "http://h/", "x y", ";", "\n"])
def test_one_long_value_takes_no_time_to_speak_of(unit: str) -> None:
    value = unit * (200_000 // len(unit))  # quadratic time would be hours
    joiner = Joiner(ADDRESS, ADDRESS, "utf-8")
    assert len(urls([value, "x"], joiner, RULES[0], str.strip)) in (1, 2)
