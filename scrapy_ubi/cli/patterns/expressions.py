"""XPath, CSS and regular expressions of rules: compiled once, and judged before anything is fetched.

Rules of this module:

* What does not hold raises BadExpression, with a reason of one line. libxml2 finds most mistakes in a function or a
  prefix only when it comes to them on a page, so they are looked for here, in the text.
* CSS becomes XPath, with parsel's `::text` and `::attr(name)`. XPath has parsel's prefixes `re` and `set` and its
  function `has-class`, as in Scrapy.
"""

from __future__ import annotations

import re
from typing import Any

from cssselect import SelectorError
from lxml import etree
from parsel.csstranslator import HTMLTranslator

from scrapy_ubi.cli.patterns.rules_error import nearest

MOST_CHARACTERS = 10_000  # of one expression

_NAMESPACES = {"re": "http://exslt.org/regular-expressions", "set": "http://exslt.org/sets"}
_NODE_TESTS = frozenset(("node", "text", "comment", "processing-instruction"))
_OPERATORS = frozenset(("and", "or", "div", "mod"))
_FUNCTIONS = frozenset(
    "last position count id local-name namespace-uri name string concat starts-with contains substring-before "
    "substring-after substring string-length normalize-space translate boolean not true false lang number sum floor "
    "ceiling round has-class".split()
)
_PREFIXED = {
    "re": frozenset(("test", "match", "replace")),
    "set": frozenset(("difference", "distinct", "has-same-node", "intersection", "leading", "trailing")),
}
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_NAME = r"[^\W\d][\w.-]*"
_CALL = re.compile(rf"(?<![\w.:-])(?:({_NAME}):)?({_NAME})\s*\(")
_PREFIX = re.compile(rf"(?<![\w.:-])({_NAME}):(?=[^\W\d]|\*)")
_AXIS = re.compile(rf"{_NAME}\s*::\s*")
_VALUE = re.compile(r"(?:/|^|::)\s*(?:@|attribute::)[^/\[]*$|\btext\(\s*\)\s*$")
_REGEX = re.compile(r"re:(?:test|match|replace)\([^'\"(]*,\s*(\"[^\"]*\"|'[^']*')")  # the second argument
_translator = HTMLTranslator()

# Some of what pages have: what an expression does on it shows more than its syntax.
_PROBE = etree.fromstring(
    '<html lang="en"><head><title>a</title></head><body><div id="a" class="a b"><h1>a</h1><p>b <a href="/c" title="d">'
    "c</a></p><ul><li>1</li><li>2</li></ul><img src='e'/><span>f</span></div></body></html>"
)


class BadExpression(ValueError):
    """An expression that does not hold; the message says why."""


def compiled_regex(text: str) -> re.Pattern[str]:
    """A regular expression of Python. Raises BadExpression."""
    _check_length(text)
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadExpression(f"is no regular expression ({_in_one_line(error)})") from None


def compiled_css(text: str) -> etree.XPath:
    """A CSS selector, as a compiled XPath. Raises BadExpression."""
    _check_length(text)
    try:
        path = _translator.css_to_xpath(text)
        return etree.XPath(path, namespaces=_NAMESPACES)
    except (SelectorError, etree.XPathError, ValueError, TypeError, RecursionError) as error:
        raise BadExpression(f"is no CSS selector ({_in_one_line(error)})") from None


def compiled_xpath(text: str) -> etree.XPath:
    """An XPath, compiled. Raises BadExpression."""
    _check_length(text)
    try:
        expression = etree.XPath(text, namespaces=_NAMESPACES)
    except (etree.XPathError, ValueError, RecursionError) as error:
        raise BadExpression(f"is no XPath ({_in_one_line(error)})") from None
    _check_names(text)
    try:
        expression(_PROBE)
    except (etree.XPathError, ValueError, TypeError, re.error) as error:
        raise BadExpression(f"is no XPath ({_in_one_line(error)})") from None
    return expression


def check_elements(kind: str, text: str, expression: etree.XPath) -> None:
    """Raise BadExpression for an expression that gives texts, attributes or numbers in place of elements."""
    found: Any = expression(_PROBE)
    gives_texts = bool(_VALUE.search(text)) if kind == "xpath" else "::" in text
    if gives_texts or not isinstance(found, list) or any(isinstance(one, str) for one in found):
        raise BadExpression("selects no elements")


def _check_length(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise BadExpression(f"has {len(text)} characters, more than {MOST_CHARACTERS}")


def _check_names(text: str) -> None:
    """Functions, prefixes and variables that are not known."""
    for literal in _REGEX.findall(text):
        compiled_regex(literal[1:-1])
    bare = _AXIS.sub("", _QUOTED.sub('""', text))
    if "$" in bare:
        raise BadExpression("has a variable ($...), and none is known")
    for prefix in _PREFIX.findall(bare):
        if prefix not in _NAMESPACES:
            raise BadExpression(f"has the unknown prefix {prefix!r}: {nearest(prefix, _NAMESPACES)}".rstrip("."))
    for prefix, name in _CALL.findall(bare):
        known = _PREFIXED[prefix] if prefix else _FUNCTIONS
        if name not in known and (prefix or name not in _NODE_TESTS | _OPERATORS):
            raise BadExpression(f"has the unknown function {name}(): {nearest(name, sorted(known))}".rstrip("."))


def _in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
