"""The main content of a page: found, and freed of what stands around it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from scrapy_ubi.outputs.markdown.main_content import main_content, whole_page

TEXT = "The harbour was quiet in the morning, and the boats lay still at the pier until noon. " * 4
MORE = "Nobody had expected that the council would vote against the plan a second time. " * 3
AROUND = "<nav><a href=/>Home</a><a href=/b>Boats</a></nav>"
TEASERS = "".join(f"<div><a href=/{n}>Another story about something else number {n}</a></div>" for n in range(9))


def content(page: str) -> str:
    node = main_content(LexborHTMLParser(page))
    return " ".join(node.text(separator=" ").split()) if node is not None else ""


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    "page",
    [
        f"<body>{AROUND}<main><p>{TEXT}<p>{MORE}</main><footer>Imprint</footer>",
        f"<body>{AROUND}<div role=main><p>{TEXT}<p>{MORE}</div><div class=footer>Imprint</div>",
        f"<body>{AROUND}<div><div class=post-content><p>{TEXT}<p>{MORE}</div><div>{TEASERS}</div></div>",
        f"<body>{AROUND}<div><div><p>{TEXT}</p><p>{MORE}</p></div><div>{TEASERS}</div></div>Imprint",
        f"<body>{AROUND}<table><tr><td>{TEASERS}</td><td><p>{TEXT}</p><p>{MORE}</p></td></tr></table>",
        f"<body><article><p>{TEXT}<p>{MORE}<div class=share-buttons>Share this</div></article><aside>{TEASERS}</aside>",
        f"<body><article><p>{TEXT}<p>{MORE}<section><h2>Related stories</h2>{TEASERS}</section></article>",
        f"<body><div itemprop=articleBody><p>{TEXT}<p>{MORE}</div><div><p>{TEXT}</div>",
    ],
)
def test_what_stands_around_the_content_is_left_out(page: str) -> None:
    assert content(page) == words(f"{TEXT} {MORE}")


def test_a_page_of_links_alone_keeps_them() -> None:
    assert "number 3" in content(f"<body>{AROUND}<main><h1>Index</h1>{TEASERS}</main>")


def test_posts_of_a_forum_are_kept_all() -> None:
    posts = "".join(f"<div class=post-body><p>Post {n}. {TEXT}</div>" for n in range(5))
    found = content(f"<body>{AROUND}<div id=thread>{posts}</div>")
    assert all(f"Post {n}." in found for n in range(5))


def test_a_name_is_no_reason_to_lose_most_of_a_page() -> None:
    assert content(f"<body><div class=sidebar-layout><p>{TEXT}<p>{MORE}</div>") == words(f"{TEXT} {MORE}")


def test_short_texts_of_chinese_have_the_weight_of_long_ones() -> None:
    text = "港口在早晨很安静，船只停靠在码头直到中午。" * 2
    assert content(f"<body>{AROUND}<div><div><p>{text}</p></div><div>{TEASERS}</div></div>") == text


def test_the_whole_page_is_without_what_nobody_sees() -> None:
    page = f"<body>{AROUND}<p>{TEXT}<script>no()</script><style>p{{}}</style><p hidden>unseen</p>"
    node = whole_page(LexborHTMLParser(page))
    assert node is not None
    found = node.text(separator=" ")
    assert "Boats" in found and "harbour" in found and "no()" not in found and "unseen" not in found


TAGS = (
    "div",
    "p",
    "a",
    "ul",
    "li",
    "article",
    "main",
    "table",
    "td",
    "nav",
    "object",
    "template",
    "svg",
    "button",
    "b",
)
NAMES = ("", "share", "comments", "post-content", "hidden", "x")


@given(
    st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(NAMES), st.booleans(), st.text(max_size=20)), max_size=60)
)
@settings(max_examples=200, deadline=None)
def test_any_nesting_has_an_answer(parts: list[tuple[str, str, bool, str]]) -> None:
    page = "".join(f'<{tag} class="{name}">{text}' if opens else f"{text}</{tag}>" for tag, name, opens, text in parts)
    content(page)
    whole_page(LexborHTMLParser(page))
