"""The main content of a page of HTML: the element that holds it, without what stands around it and in between.

Rules of this module:

* What a page says of itself goes first: `itemprop="articleBody"`; elements named as `article-body` or `entry-content`
  are; `main`, `role="main"`, `article`. Where it says nothing, it is the smallest element that holds nearly all of the
  text that is no link.
* Left out is what is never content: navigation, footers, asides, dialogs, what is hidden; and what is named so
  (`share`, `related`, `comments`, ...) or has such a heading, as long as it is the smaller part of the page.
* Text is weighed: a character of Chinese, Japanese or Korean stands for three, and text in links for nothing.
* Every step looks at each element a bounded number of times: the cost is linear in the page. No element is looked at
  after one around it was taken out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

NEVER = frozenset(
    "script style noscript template iframe svg object embed canvas audio video map button dialog select textarea input "
    "datalist ins head title meta link".split()
)
_AROUND = frozenset(("nav", "footer", "aside"))
_ROLES = frozenset(
    "navigation banner contentinfo search complementary dialog alertdialog menu menubar alert toolbar".split()
)
_WHOLE = frozenset(("html", "body", "main", "article"))  # never taken out by their names
_BLOCKS = frozenset(
    "p div li dd dt td th pre blockquote h1 h2 h3 h4 h5 h6 section article figcaption summary details caption main "
    "body center form address fieldset table ul ol dl figure tr tbody thead header hgroup".split()
)
_CONTAINERS = frozenset("div section article main form center td fieldset header tr tbody table".split())
_OF_TABLES = frozenset("table thead tbody tr".split())
_LISTS = frozenset("ul ol dl div section".split())
_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())
_WEIGHTY = _HEADINGS | frozenset("pre td dd dt th".split())  # whose short texts have a weight
_ITSELF = 40  # characters of a block without which it has no weight
_NEARLY, _OF_MAIN = 0.85, 0.95  # of the weight, that an element within must have to stand for the one around it
_SMALLER = 0.4  # of the weight of a page: what has more is not left out for its name
_COMMENTS, _REST = 0.75, 800  # likewise for comments, where there is so much else
_CHIEF = 0.6  # of what all elements of a kind have, that one has for it to be the content
_TIGHTER = 0.8
_OF_LINKS = 0.6  # of the text of a list, with which it is one of links
_MANY_ARTICLES = 200
_wide = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_unseen = re.compile(r"display\s*:\s*none", re.IGNORECASE)
MOST_NAMES = 1000  # characters of an element's classes and id that are looked at

# What the names of an element, and the words of a heading, say of what is in it. Measured on pages of many sites:
# `benchmarks/main_text.py` tells whether a change of these lists is for the better.
_left_out = re.compile(
    r"(?<![a-z])(?:"
    r"shar(?:e\w*|es|ing)|social\w*|addthis\w*|follow-?(?:us|me)"
    r"|related\w*|recommend\w*|recirc\w*|outbrain|taboola|popular|trending|most-?(?:read|popular|viewed)|teasers?"
    r"|more-?(?:stories|news|from|on)|read-?(?:more|next|also|on)|up-?next|prev|next|prev-?next|linkback"
    r"|comment\w*|disqus\w*|respond|feedback|ratings?|polls?|captcha"
    r"|newsletter\w*|subscri\w*|sign-?up|log-?in|paywall\w*|donat\w*|cta"
    r"|promo\w*|advert\w*|ads?|adsbygoogle|sponsor\w*|anzeige|werbung|reklama"
    r"|side-?bar\w*|widgets?|popup|modal|alerts?|cookies?|consent|gdpr"
    r"|bread-?crumbs?|crumbs?|pagination|pager|paging|menus?|nav|nav-?bar|navigation|(?:top|foot)-?nav"
    r"|nav-?(?:header|footer)|footer|site-?header|masthead|toolbar|search-?(?:box|form|bar)?|skip-?link|header-?link"
    r"|jump-?to|edit-?(?:link|section|page)|toc|tableofcontents"
    r"|tags|tag-?list|byline|author-?(?:bio|box|info|card)|about-?author|saboxplugin\w*|(?:post|entry|article)-?meta"
    r"|dates?|timestamp|dateline|copyright|disclaimer|disclosure|citate"
    r"|sr-only|visually-?hidden|screen-?reader\w*|print-only|d-print-\w+"
    r"|carousel|galler(?:y|ies)\w*|slide-?show|credits?|(?:image|photo)-?credit"
    r"|(?<!block-)(?<!table-)caption\w*|(?:wp|image|img|photo|media|news|imageembed|figure_*)-?_*caption\w*"
    r")(?![a-z])",
    re.IGNORECASE,
)
_comments = re.compile(
    r"(?<![a-z])(?:comments(?:-?(?:area|container|section|list|wrapper))?|comment-?list|disqus\w*)(?![a-z])",
    re.IGNORECASE,
)
_body = re.compile(
    r"(?<![a-z])(?:(?:article|story|post|entry|news|blog|content)[-_]*(?:body|content|text|main|copy)\w*|body-?(?:copy|text)"
    r"|(?:rich)?text-?articlebody|mw-parser-output|markdown-body|single-?content|field-name-body)(?![a-z])",
    re.IGNORECASE,
)
_trailer = re.compile(
    r"(?:related|more (?:from|on|in|stories|news)\b|read (?:more|next|also)|you (?:may|might)|recommended|comments?\Z"
    r"|\d+ comments?|leave a|share this|top (?:videos?|stories|rated comments)|don.?t miss|join the conversation"
    r"|most (?:read|popular)|trending|latest (?:news|stories)|sign up|subscribe|about the author|also on"
    r"|what to read next)",
    re.IGNORECASE,
)


class _Element(NamedTuple):
    node: LexborNode
    tag: str
    id: int
    parent: int
    names: str  # its classes and its id


class _PageWeights:
    """The elements of a page that may be content, in the order of the document, and what each weighs."""

    def __init__(self, body: LexborNode, *, captions: bool) -> None:
        self.elements: list[_Element] = []
        self._own_text: dict[int, int] = {}
        self._own_links: dict[int, int] = {}
        never = NEVER if captions else NEVER | {"figcaption"}
        gone: set[int] = set()
        in_link: set[int] = set()
        tops: list[LexborNode] = []
        for node in body.traverse(include_text=True):
            tag = node.tag or ""
            up = node.parent
            parent = up.mem_id if up is not None else 0
            if parent in gone:
                gone.add(node.mem_id)
            elif tag == "-text":
                self._take_text((node.text_content or "").strip(), parent, in_link)
            elif tag[:1] not in ("-", ""):
                attributes = node.attributes
                if tag in never or (tag not in _WHOLE and _is_unseen(attributes)):
                    gone.add(node.mem_id)
                    tops.append(node)
                    continue
                if tag == "a" or parent in in_link:
                    in_link.add(node.mem_id)
                names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
                self.elements.append(_Element(node, tag, node.mem_id, parent, names))
        for top in tops:
            top.decompose()
        for one in reversed(self.elements):
            if one.tag not in _BLOCKS:  # what is in a line belongs to its block
                _add(self._own_text, one.parent, self._own_text.get(one.id, 0))
                _add(self._own_links, one.parent, self._own_links.get(one.id, 0))
        self._sum()

    def _take_text(self, text: str, parent: int, in_link: set[int]) -> None:
        if text:
            length = len(text) if text.isascii() else len(text) + 2 * len(_wide.findall(text))
            _add(self._own_text, parent, length)
            if parent in in_link:
                _add(self._own_links, parent, length)

    def _sum(self) -> None:
        self._weight: dict[int, float] = {}
        self._text: dict[int, int] = {}
        self._links: dict[int, int] = {}
        for one in reversed(self.elements):
            if one.tag in _BLOCKS:
                here, linked = self._own_text.get(one.id, 0), self._own_links.get(one.id, 0)
                plain = here - linked
                if plain >= _ITSELF or (plain and one.tag in _WEIGHTY):
                    self._weight[one.id] = self._weight.get(one.id, 0.0) + plain * plain / here
                _add(self._text, one.id, here)
                _add(self._links, one.id, linked)
            self._weight[one.parent] = self._weight.get(one.parent, 0.0) + self._weight.get(one.id, 0.0)
            _add(self._text, one.parent, self._text.get(one.id, 0))
            _add(self._links, one.parent, self._links.get(one.id, 0))

    def weight(self, element: int) -> float:
        """What the content in an element weighs."""
        return self._weight.get(element, 0.0)

    def text_length(self, element: int) -> int:
        """The length of the text in it."""
        return self._text.get(element, 0)

    def is_of_links(self, element: int) -> bool:
        """Whether most of its text is in links."""
        text = self.text_length(element)
        return text > 0 and self._links.get(element, 0) > _OF_LINKS * text

    def drop(self, unwanted: Callable[[_Element], bool]) -> None:
        """Take elements out of the tree, each with all that is in it."""
        gone: set[int] = set()
        tops: list[LexborNode] = []
        for one in self.elements:
            if one.parent in gone:
                gone.add(one.id)
            elif unwanted(one):
                gone.add(one.id)
                tops.append(one.node)
        if tops:
            self.elements = [one for one in self.elements if one.id not in gone]
            self._sum()
            for node in tops:
                node.decompose()


def _add(numbers: dict[int, int], element: int, number: int) -> None:
    if number:
        numbers[element] = numbers.get(element, 0) + number


def _is_unseen(attributes: dict[str, str | None]) -> bool:
    return bool(attributes) and (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or (attributes.get("role") or "").strip().lower() in _ROLES
        or _unseen.search(attributes.get("style") or "") is not None
    )


def main_content(tree: LexborHTMLParser) -> LexborNode | None:
    """The element with the content of a page; None where it has no body. What is no content leaves the tree."""
    body = tree.body
    if body is None:
        return None
    weights = _PageWeights(body, captions=False)
    _leave_out(weights, weights.weight(body.mem_id))
    own = _Element(body, "body", body.mem_id, 0, "")
    found, is_main = _said(own, weights)
    if found is None:
        found = _densest(own, weights, _NEARLY)
    elif is_main:
        found = _densest(found, weights, _OF_MAIN)
    _trim(found, weights, keep_links=is_main)
    return found.node


def whole_page(tree: LexborHTMLParser) -> LexborNode | None:
    """The body of a page, without what no reader sees; None where it has none."""
    body = tree.body
    if body is not None:
        gone: set[int] = set()
        tops: list[LexborNode] = []
        for node in body.traverse():
            up = node.parent
            if up is not None and up.mem_id in gone:
                gone.add(node.mem_id)
            elif node.tag in NEVER or (node.tag != "body" and "hidden" in node.attributes):
                gone.add(node.mem_id)
                tops.append(node)
        for top in tops:
            top.decompose()
    return body


def _leave_out(weights: _PageWeights, whole: float) -> None:
    """Drop what never is content by its tag or its names."""

    def unwanted(one: _Element) -> bool:
        if one.tag in _WHOLE:
            return False
        weight = weights.weight(one.id)
        if one.tag in _AROUND:
            return weight <= _SMALLER * whole
        if one.names == " ":
            return False
        if _is_comments(one.names) and weight <= _COMMENTS * whole and whole - weight >= _REST:
            return True
        return weight <= _SMALLER * whole and _is_left_out(one.names) and not _is_body(one.names)

    weights.drop(unwanted)


def _said(body: _Element, weights: _PageWeights) -> tuple[_Element | None, bool]:
    """The element that the page says is its content, None where it says none; and whether that is its `main`."""
    whole = weights.weight(body.id)
    marked = [one for one in weights.elements if (one.node.attributes.get("itemprop") or "") == "articleBody"]
    if found := _chief(marked, weights, 0.1 * whole):
        return found, False
    named = [one for one in weights.elements if one.tag in _CONTAINERS and _is_body(one.names)]
    if found := _chief(named, weights, 0.15 * whole):
        return found, False
    articles = [one for one in weights.elements if one.tag == "article"]
    mains = [one for one in weights.elements if one.tag == "main" or one.node.attributes.get("role") == "main"]
    best = max(mains, key=lambda one: weights.text_length(one.id), default=None)
    if best is not None and (
        weights.weight(best.id) >= 0.3 * whole or weights.text_length(best.id) >= 0.5 * weights.text_length(body.id)
    ):
        inside = list(_within(best.id, articles, weights))
        if len(inside) == 1 and weights.weight(inside[0].id) >= 0.5 * weights.weight(best.id):
            return inside[0], True
        return best, True
    if found := _chief(articles, weights, 0.3 * whole):
        return found, False
    headed = [one for one in articles[:_MANY_ARTICLES] if one.node.css_first("h1") is not None]
    if len(headed) == 1 and weights.weight(headed[0].id) > 0.1 * whole:
        return headed[0], False
    return None, False


def _within(element: int, some: list[_Element], weights: _PageWeights) -> Iterator[_Element]:
    """Those of `some` that are in an element."""
    wanted = {one.id for one in some}
    inside = {element}
    for one in weights.elements:
        if one.parent in inside:
            inside.add(one.id)
            if one.id in wanted:
                yield one


def _chief(some: list[_Element], weights: _PageWeights, least: float) -> _Element | None:
    """The one of these elements that has most of what all of them have, and `least` of it; None where none has. Of
    elements in each other the inner one, where it has nearly as much."""
    if not some:
        return None
    wanted = {one.id for one in some}
    covered: set[int] = set()
    outer: list[_Element] = []
    for one in weights.elements:
        if one.parent in covered:
            covered.add(one.id)
        elif one.id in wanted:
            covered.add(one.id)
            outer.append(one)
    best = max(outer, key=lambda one: weights.weight(one.id))
    weight = weights.weight(best.id)
    if weight <= 0 or weight < least or weight < _CHIEF * sum(weights.weight(one.id) for one in outer):
        return None
    inside = {best.id}
    for one in weights.elements:
        if one.parent in inside:
            inside.add(one.id)
            if one.id in wanted and weights.weight(one.id) >= _TIGHTER * weights.weight(best.id):
                best, inside = one, {one.id}
    return best


def _densest(top: _Element, weights: _PageWeights, nearly: float) -> _Element:
    """The smallest container in an element that has nearly all of its content. A part of a table is none, but a cell
    that has all of it: then the table is there for the layout."""
    best = kept = top
    inside = {top.id}
    for one in weights.elements:  # a container comes before what is in it
        if one.parent in inside:
            inside.add(one.id)
            if one.tag in _CONTAINERS and one.parent == best.id:
                weight = weights.weight(one.id)
                if weight > 0 and weight >= nearly * weights.weight(best.id):
                    best, inside = one, {one.id}
                    kept = kept if one.tag in _OF_TABLES else one
    return kept


def _trim(top: _Element, weights: _PageWeights, *, keep_links: bool) -> None:
    """Drop what stands in the content and is none: lists of links, and what has a heading such as `Related`."""
    whole = weights.weight(top.id)
    headed: set[int] = set()
    for one in weights.elements:
        if one.tag in _HEADINGS and _is_trailer(one.node.text(deep=True).strip()):
            headed |= {one.parent, one.id}
    inside = {top.id}

    def unwanted(one: _Element) -> bool:
        if one.parent not in inside:
            return False
        inside.add(one.id)
        weight = weights.weight(one.id)
        if one.id in headed and weight <= _SMALLER * whole:
            return True
        return not keep_links and one.tag in _LISTS and weight < 0.2 * whole and weights.is_of_links(one.id)

    weights.drop(unwanted)


def _is_left_out(names: str) -> bool:
    """Whether an element of these names stands around the content."""
    return _left_out.search(names, 0, MOST_NAMES) is not None


def _is_comments(names: str) -> bool:
    """Whether it has what readers have written."""
    return _comments.search(names, 0, MOST_NAMES) is not None


def _is_body(names: str) -> bool:
    """Whether it has the content itself."""
    return _body.search(names, 0, MOST_NAMES) is not None


def _is_trailer(heading: str) -> bool:
    """Whether what is under such a heading leads to other pages."""
    return _trailer.match(heading[:60]) is not None
