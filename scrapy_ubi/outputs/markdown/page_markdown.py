"""A page as Markdown: its main content, or all of it, with what the page says of itself.

Rules of this module:

* HTML is read by lexbor, and written by html-to-markdown (`scrapy-ubi[markdown]`); it is imported with the first page.
* Plain text and Markdown stay as they are; what says to be one and has NUL characters is refused (`binary`).
* What is read is bounded: beyond `MOST_BYTES` or `MOST_TAGS`, or where parsing takes seconds (`is_costly`), a page is
  refused, with a reason. html-to-markdown bounds depth and tables itself, and takes time linear in its text.
* Links and addresses of images are absolute; images are of a whole page only, by their texts. What leads to
  no page (`javascript:`, `data:`) is left out; so are marks that lead to a heading itself.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from scrapy.http import HtmlResponse, TextResponse
from scrapy.utils.response import get_base_url
from selectolax.lexbor import LexborNode

from scrapy_ubi.outputs.markdown.main_content import main_content, whole_page
from scrapy_ubi.outputs.markdown.page_facts import MARKS, PageFacts, facts_of, first_heading
from scrapy_ubi.outputs.page_text import MARKDOWN, kind_of, markdown_title
from scrapy_ubi.urls.filters.filter_text import FilterError
from scrapy_ubi.urls.links.costly import is_costly
from scrapy_ubi.urls.links.page import Page, written

MODULE = "html_to_markdown"
MOST_BYTES = 4 << 20  # of a page
MOST_TAGS = 200_000  # of its tags: a second or two
MOST_CHARACTERS = 4_000_000  # of its Markdown
_SCHEMES = re.compile(r"\s*(?:javascript|data|vbscript|blob|about)\s*:", re.IGNORECASE)
_CODE = re.compile(
    r"(?<![\w-])(?:language|lang|highlight(?:-source)?|brush:|sourceCode|src)[- ]\s*([A-Za-z][\w+#.-]{0,30})"
)
_NO_CODE = frozenset("default none text plain plaintext notranslate wrapper block container source".split())
_CLASSES_ABOVE = 3  # elements around a `pre` that may say its language


class PageMarkdown(NamedTuple):
    """`markdown` of a page, with its facts; `heading`: its first h1. `refused`: in one word, why there is none."""

    facts: PageFacts
    heading: str
    markdown: str
    refused: str = ""


def check_installed() -> None:
    """Raise FilterError where html-to-markdown is not installed."""
    if find_spec(MODULE) is None:
        raise FilterError(
            "needs html-to-markdown, which is not installed", "install it: pip install 'scrapy-ubi[markdown]'"
        )


def markdown_of(response: TextResponse, *, whole: bool = False) -> PageMarkdown:
    """The Markdown of a response that `has_text`; `whole`: of all that it shows."""
    if len(response.body) > MOST_BYTES:
        return PageMarkdown(PageFacts(), "", "", "bytes")
    if not isinstance(response, HtmlResponse):
        text = response.text
        if "\x00" in text:
            return PageMarkdown(PageFacts(), "", "", "binary")
        title = markdown_title(text) if kind_of(response) in MARKDOWN else ""
        return PageMarkdown(PageFacts(title), title, tidy(text))
    page = written(response.text)
    if page.count(b"<") > MOST_TAGS:
        return PageMarkdown(PageFacts(), "", "", "elements")
    if is_costly(page):
        return PageMarkdown(PageFacts(), "", "", "costly")
    tree = Page(page).tree
    base = get_base_url(response)
    facts, heading = facts_of(tree, base), first_heading(tree)
    node = whole_page(tree) if whole else main_content(tree)
    if node is None:
        return PageMarkdown(facts, heading, "")
    _prepare(node)
    return PageMarkdown(facts, heading, _converted(node.html or "", base, pictures=whole))


def _prepare(top: LexborNode) -> None:
    """Make the element ready to be converted: languages of code, addresses that lead nowhere, marks of headings."""
    gone: list[LexborNode] = []
    for node in top.css("a,img,pre"):
        attributes = node.attributes
        if node.tag == "pre":
            language = _language_of(node)
            if language:
                node.attrs["class"] = f"language-{language}"
        elif node.tag == "img":
            if not (attributes.get("alt") or "").strip() or _SCHEMES.match(attributes.get("src") or "data:"):
                gone.append(node)
        elif _is_mark(node, attributes):
            gone.append(node)
            continue
        if "title" in attributes:
            del node.attrs["title"]
        if node.tag == "a" and _SCHEMES.match(attributes.get("href") or ""):
            del node.attrs["href"]
    for node in reversed(gone):  # what is in another one goes before it
        node.decompose()


def _is_mark(node: LexborNode, attributes: dict[str, str | None]) -> bool:
    """Whether a link is the mark of a heading that leads to itself."""
    href = attributes.get("href") or ""
    return href.startswith("#") and not node.text(deep=True).strip(MARKS) and node.css_first("img") is None


def _language_of(pre: LexborNode) -> str:
    """The language of code, as classes of it, of the code in it, or of what is around it say."""
    nodes: list[LexborNode] = [node for node in (pre.css_first("code"), pre) if node is not None]
    up = pre.parent
    for _ in range(_CLASSES_ABOVE):
        if up is None or up.tag != "div":
            break
        nodes.append(up)
        up = up.parent
    for node in nodes:
        names = (node.attributes.get("class") or "")[:500]
        for found in _CODE.findall(names):
            if found.lower() not in _NO_CODE:
                return str(found.lower())
        if said := (node.attributes.get("data-lang") or node.attributes.get("data-language")):
            return re.sub(r"[^\w+#.-]", "", said)[:30].lower()
    return ""


@cache
def _converter() -> Any:
    return import_module(MODULE)


def _converted(html: str, base: str, *, pictures: bool) -> str:
    library = _converter()
    options = library.ConversionOptions(
        preprocessing=library.PreprocessingOptions(enabled=False),
        extract_metadata=False,
        base_url=base,
        br_in_tables=True,
        bullets="-",
        skip_images=not pictures,
    )
    return tidy(library.convert(html.encode("utf-8", "ignore").decode(), options).content or "")


def tidy(markdown: str) -> str:
    """With line ends of one kind, no control characters, no blanks at the ends of lines, one line end at the end."""
    text = markdown.replace("\r\n", "\n").replace("\r", "\n")[:MOST_CHARACTERS]
    text = _controls.sub("", text)
    text = _blanks.sub("\n", text).strip("\n")
    return f"{_empty.sub(_two, text)}\n" if text.strip() else ""


_two = "\n\n\n"
_empty = re.compile(r"\n{4,}")
_blanks = re.compile(r"[ \t]+\n(?=[ \t]*\n)")
_controls = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
