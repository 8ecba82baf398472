"""A page as Markdown: headings, tables, code, absolute links, what it says of itself; hostile pages are refused."""

from __future__ import annotations

import re

import pytest
from scrapy.http import HtmlResponse, TextResponse

from scrapy_ubi.outputs.markdown.page_facts import read_date
from scrapy_ubi.outputs.markdown.page_markdown import MOST_BYTES, PageMarkdown, markdown_of

pytest.importorskip("html_to_markdown")
URL = "http://a.example/docs/page.html"


def read(body: str, url: str = URL, *, whole: bool = False) -> PageMarkdown:
    headers = {"Content-Type": "text/html; charset=utf-8"}
    return markdown_of(HtmlResponse(url, body=body.encode(), headers=headers), whole=whole)


def test_a_page_of_documentation() -> None:
    page = """<html lang=en-GB><head><title>Wheels &amp; axles</title><link rel=canonical href="/docs/wheels">
    <meta property="article:published_time" content="2026-03-01T10:00:00+01:00"></head><body>
    <nav><a href=/>Home</a></nav><main><h1>Wheels<a class=headerlink href="#wheels">¶</a></h1>
    <p>A wheel turns, see <a href="../axle.html#top" title="Axles">axles</a> and <a href="javascript:x()">this</a>.</p>
    <h2>Code</h2><div class="highlight-python"><div class=highlight><pre>def turn():
    return "*"</pre></div></div>
    <table><tr><th>name</th><th>n</th></tr><tr><td>front|left</td><td>1</td></tr></table>
    <ul><li>one<ul><li>two</li></ul></li></ul><img src="w.png" alt="A wheel"><img src="data:image/png;base64,AA" alt=x>
    </main></body></html>"""
    found = read(page)
    assert found.facts == ("Wheels & axles", "en-GB", "2026-03-01T10:00:00+01:00", "http://a.example/docs/wheels")
    assert found.heading == "Wheels" and found.refused == ""
    assert found.markdown.startswith("# Wheels\n\nA wheel turns, see [axles](http://a.example/axle.html#top) and ")
    assert '```python\ndef turn():\n    return "*"\n```' in found.markdown
    assert re.search(r"\| name +\| n +\|\n\|[ :-]+\|[ :-]+\|\n\| front\\\|left +\| 1 +\|", found.markdown)
    assert "- one\n  - two" in found.markdown and "![" not in found.markdown
    assert "Home" not in found.markdown and "javascript" not in found.markdown and "data:" not in found.markdown
    whole = read(page, whole=True).markdown
    assert "[Home](http://a.example/)" in whole and "![A wheel](http://a.example/docs/w.png)" in whole
    assert "data:" not in whole


def test_links_are_joined_to_the_base_that_a_page_names() -> None:
    assert "(http://b.example/x/y)" in read('<base href="http://b.example/x/"><p><a href=y>text of a link</a>').markdown


def test_text_that_looks_like_markdown_is_text() -> None:
    found = read("<p># no heading</p><p>1. no list</p><pre>```\ncode</pre>").markdown
    assert "\\# no heading" in found and "1\\. no list" in found and "````\n```\ncode" in found


@pytest.mark.parametrize("text", ["شارع طويل في المدينة القديمة", "古い町の長い通り", "רחוב ארוך בעיר העתיקה"])
def test_text_of_any_script_stays(text: str) -> None:
    assert text in read(f"<html dir=rtl><body><p>{text}</p>").markdown


def test_plain_text_stays_as_it_is() -> None:
    response = TextResponse(URL, body=b"One\r\n\r\nTwo  \n", headers={"Content-Type": "text/plain"})
    assert markdown_of(response).markdown == "One\n\nTwo  \n"


@pytest.mark.parametrize("kind", ["text/markdown", "Text/Markdown; charset=utf-8; variant=GFM", "text/x-markdown"])
def test_markdown_stays_as_it_is_and_has_its_first_heading_as_title(kind: str) -> None:
    text = "---\nlang: de\n---\n\n# Räder #\n\n| a | b |\n\nA [link](x.md) and `# no heading`.\n"
    response = TextResponse(URL, body=text.encode(), headers={"Content-Type": kind})
    found = markdown_of(response)
    assert (found.markdown, found.facts.title, found.refused) == (text, "Räder", "")


def test_the_charset_that_is_said_counts_where_there_is_such_a_one() -> None:
    said = {"Content-Type": "text/markdown; charset=iso-8859-15"}
    assert markdown_of(TextResponse(URL, body="5 €".encode("iso-8859-15"), headers=said)).markdown == "5 €\n"
    unknown = {"Content-Type": "text/markdown; charset=none-of-these"}
    assert markdown_of(TextResponse(URL, body="5 €".encode(), headers=unknown)).markdown == "5 €\n"


@pytest.mark.parametrize("kind", ["text/plain", "text/markdown"])
def test_what_says_to_be_text_and_is_none_is_refused(kind: str) -> None:
    assert markdown_of(TextResponse(URL, body=bytes(range(256)), headers={"Content-Type": kind})).refused == "binary"


@pytest.mark.parametrize(
    ("said", "date"),
    [
        ("2026-03-01", "2026-03-01"),
        ("2026-03-01 10:00", "2026-03-01T10:00"),
        ("2026-03-01T10:00:00Z etc", "2026-03-01T10:00:00Z"),
        ("2026-13-01", ""),
        ("1 March 2026", ""),
        ("20260301", ""),
    ],
)
def test_dates_are_taken_where_they_are_iso_8601(said: str, date: str) -> None:
    assert read_date(said) == date


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<div>" * 60_000, "costly"),
        ("<p>x</p>" * 110_000, "elements"),
        ("<p>" + "x" * (MOST_BYTES + 1), "bytes"),
        ("<select>" + "<option>" * 300_000, None),
    ],
)
def test_pages_that_would_take_long_are_refused_with_a_reason(body: str, reason: str | None) -> None:
    found = read(body)
    assert found.refused == (reason or found.refused)


@pytest.mark.parametrize(
    "body",
    [
        "", "<", "<html>", "<body></body>", "\x00\x01", "<p>\ud800".encode("utf-8", "replace").decode(),
        "<blockquote>" * 500 + "x", "<ul><li>" * 400 + "x", "<table><tr><td>" * 300 + "x", "<b>" * 400 + "x",
        "<table><tr><td colspan=999999999 rowspan=999999999>x</table>", "<pre>" * 300, "<a href=http://[>x</a>",
    ],
)  # fmt: skip
def test_malformed_pages_have_an_answer(body: str) -> None:
    found = read(body)
    assert found.markdown.count("x") <= 2 and len(found.markdown) < 100_000
