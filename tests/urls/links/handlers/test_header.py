"""Links of the header of a response."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.urls.links.handlers import header
from tests.urls.links.handlers.given import fetched, found, read


def links(**fields: str) -> list[str]:
    return found(header.links, fetched(**fields))


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ('</next>; rel="next"', ["/next"]),
        ("</next>; rel=next", ["/next"]),
        ("</a>;rel=prev,</b>;rel=next", ["/a", "/b"]),
        ('</a,b;c>; rel="canonical"', ["/a,b;c"]),
        ('</a>; title="x, </b>; rel=next"; rel=alternate', ["/a"]),
        (r'</a>; title="a \" <"; rel="up x", </b>; rel=last', ["/a", "/b"]),
        ("< /a >; REL = NEXT ; media=x", ["/a"]),
        ('</a>; rel="preload"; as=style, </b>; rel="alternate stylesheet"', ["/b"]),
        ("</a>; rel=next; rel=preload", ["/a"]),
        ("</a>; rel=preload; rel=next", []),
        ("</a>", []),
        (", ,</a>; rel=next,, ", ["/a"]),
        ("nonsense, </a>; rel=next", []),
        ("</a; rel=next", []),
        ('</a>; rel="next', ["/a"]),
        ("</a>; rel", []),
        (";;;", []),
        ("", []),
    ],
)
def test_link(field: str, expected: list[str]) -> None:
    assert links(link=field) == expected


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("5; url=/next", ["/next"]),
        ("0;URL='http://a.example/x y'", ["http://a.example/x y"]),
        ('0, url = "/a"b', ["/a"]),
        ("3; /a", ["/a"]),
        ("3", []),
        ("", []),
    ],
)
def test_refresh(field: str, expected: list[str]) -> None:
    assert links(refresh=field) == expected


def test_all_fields_count_and_a_long_one_is_cut() -> None:
    assert links(link="</a>; rel=next", content_location="b", refresh="0; url=c") == ["/a", "b", "c"]
    values, cut = read(header.links, fetched(link="</a>; rel=next, " * 10_000))
    assert cut is not None and cut.reason == "bytes" and 4_000 < len(values) < 5_000


@given(st.text(alphabet="<>;,=\"'\\ \turl=next a/5", max_size=60))
def test_any_text_is_read(text: str) -> None:
    values = links(link=text, refresh=text, content_location=text)
    assert len(values) <= len(text) + 2


@given(st.text(alphabet="ab<>,;= ", max_size=8), st.text(alphabet='xy,;<> \\"', max_size=8))
def test_what_is_written_by_the_rules_is_read_back(target: str, title: str) -> None:
    target = target.replace(">", "").strip()
    quoted = title.replace("\\", "\\\\").replace('"', '\\"')
    assert links(link=f'<{target}>; title="{quoted}"; rel="next", </b>; rel=up') == [target, "/b"]
