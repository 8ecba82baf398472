"""The documented examples of RCrawler (README and ContentScraper's page of github.com/salimk/Rcrawler), as rules: each
gives its fields, of pages built as theirs are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scrapy import Request
from scrapy.http import HtmlResponse

from scrapy_ubi.cli.patterns.pages_spider import PageItems
from scrapy_ubi.cli.patterns.rules_source import read_file

BLOG = """<html><head><title>blog</title></head><body><nav>menu</nav><h1>Athletics in Rome</h1>
<article><p>First.</p><p>Second.</p><script>track()</script></article></body></html>"""
FILM = """<html><head><title>The film</title></head><body><div><div id="titleCast"><table>
<tr><td><a><span class="itemprop">Ann Actor</span></a></td></tr>
<tr><td><a><span class="itemprop">Bob Actor</span></a></td></tr></table></div></div>
<span class="itemprop">a genre</span></body></html>"""
FORUM = """<html><head><title>Topic</title></head><body>
<div class="post">I agree.</div>
<div class="post"><div class="quoteheader"><a>Quote from: x</a></div><div class="quote">I agree.</div>I do not.</div>
</body></html>"""


def items(place: Path, rules: str, **pages: str) -> dict[str, Any]:
    """The item of each page, None where there is none; `a__b` is the path /a/b."""
    file = place / "rules.toml"
    file.write_text(rules)
    maker = PageItems(read_file(str(file)).rules())
    urls = {name: f"http://site.example/{name.replace('__', '/')}" for name in pages}
    return {name: maker.item(response(urls[name], page)) for name, page in pages.items()}


def response(url: str, page: str) -> HtmlResponse:
    return HtmlResponse(url, body=page, encoding="utf-8", request=Request(url))


def fields(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in ("url", "status", "depth", "accuracy")}


def test_one_element_per_pattern(tmp_path: Path) -> None:
    """ExtractXpathPat = c("//h1", "//article"), PatternsNames = c("Title", "Content"); and its note 1: a page without
    any of them is not collected."""
    rules = "[fields.Title]\nxpath = '//h1'\n[fields.Content]\nxpath = '//article'\n"
    found = items(tmp_path, rules, post=BLOG, menu="<ul><li>categories")
    assert fields(found["post"]) == {"Title": "Athletics in Rome", "Content": "First. Second."}
    assert found["menu"] is None


def test_many_per_pattern_of_pages_with_a_pattern_in_their_url(tmp_path: Path) -> None:
    """urlregexfilter = "/title/", ExtractXpathPat = c("//head/title", "//*/div[@id='titleCast']//span[@class=...]"),
    PatternsNames = c("title", "Cast"), ManyPerPattern = TRUE, MaxDepth = 1."""
    rules = """
        [crawl]
        max_depth = 1
        [collect]
        allow = "/title/"
        [fields.title]
        xpath = "//head/title"
        many = true
        [fields.Cast]
        xpath = "//*/div[@id='titleCast']//span[@class='itemprop']"
        many = true
    """
    found = items(tmp_path, rules, title__tt1=FILM, name__nm1=FILM)
    assert fields(found["title__tt1"]) == {"title": ["The film"], "Cast": ["Ann Actor", "Bob Actor"]}
    assert found["name__nm1"] is None


def test_what_is_excluded_from_what_was_extracted(tmp_path: Path) -> None:
    """CssPatterns = c("head > title", ".post"), ExcludeCSSPat = c(".quote", ".quoteheader"), PatternsName =
    c("Title", "Replys"), ManyPerPattern = TRUE."""
    rules = """
        [fields.Title]
        css = "head > title"
        [fields.Replys]
        css = ".post"
        exclude = [".quote", ".quoteheader"]
        many = true
    """
    found = items(tmp_path, rules, topic=FORUM)
    assert fields(found["topic"]) == {"Title": "Topic", "Replys": ["I agree.", "I do not."]}


def test_all_hyperlinks(tmp_path: Path) -> None:
    """ExtractPatterns = c("//*/a/@href"), PatternsNames = c("Links"), ManyPerPattern = TRUE."""
    found = items(tmp_path, "[fields.Links]\nxpath = '//*/a/@href'\nmany = true", page="<a href=/x>1<a href='y?z'>2")
    assert fields(found["page"]) == {"Links": ["/x", "y?z"]}


def test_pages_by_keywords(tmp_path: Path) -> None:
    """KeywordsFilter = c("casablanca", "master"), KeywordsAccuracy = 50."""
    rules = "[keywords]\nwords = ['casablanca', 'master']\naccuracy = 50\n[collect]\npage = ['accuracy']"
    one, both, often = "<p>A master", "<p>A master in Casablanca", f"<p>{'master, ' * 5}"
    found = items(tmp_path, rules, one=one, both=both, often=often)
    assert found == {"one": None, "both": {"accuracy": 50.0}, "often": {"accuracy": 50.0}}
