from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.urls.links.page import candidates


@pytest.mark.parametrize(
    ("srcset", "urls"),
    [
        ("", []),
        (" , ,", []),
        ("a.png", ["a.png"]),
        ("a.png 1x, b.png 2x", ["a.png", "b.png"]),
        ("a.png, b.png", ["a.png", "b.png"]),
        ("a.png,b.png 2x", ["a.png,b.png"]),  # the comma has no space behind it: it belongs to the URL
        ("a.png?x=1,2 100w,\n b.png", ["a.png?x=1,2", "b.png"]),
        ("a x(1,2) 3w, b", ["a", "b"]),
        ("a x(1, b", ["a"]),
        ("data:,x 1x, y", ["data:,x", "y"]),
        ("a\xa0b.png 1x,\fc\u3000d.png\t2x", ["a\xa0b.png", "c\u3000d.png"]),  # only ASCII's white space separates
    ],
)
def test_candidates(srcset: str, urls: list[str]) -> None:
    assert candidates(srcset) == urls


@given(st.text(st.sampled_from("ab,() \t1x"), max_size=30) | st.text(max_size=30))
def test_any_text_has_an_answer(srcset: str) -> None:
    assert all(url and not url.endswith(",") for url in candidates(srcset))
