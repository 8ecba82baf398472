"""A link extractor with the interface of Scrapy's, and its links, for a fraction of its CPU time.

`from scrapy_ubi import LinkExtractor` in place of `from scrapy.linkextractors import LinkExtractor`; it needs nothing
else of the add-on. Where it answers otherwise than Scrapy's is in docs/reference/link-extractor.md.

It derives from Scrapy's, which does the work whenever only Scrapy's can: XPath, XML, selectors that lexbor cannot read.
A page that the spider has had parsed (by `css` or `xpath`) is not parsed again where its tree will do
(`urls.links.tree`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar
from weakref import ReferenceType, WeakKeyDictionary, ref

from scrapy.http import HtmlResponse, TextResponse
from scrapy.link import Link
from scrapy.linkextractors.lxmlhtml import LxmlLinkExtractor
from scrapy.utils.misc import arg_to_iter, rel_has_nofollow
from scrapy.utils.response import get_base_url
from selectolax.lexbor import LexborHTMLParser, LexborNode
from w3lib.html import strip_html5_whitespace
from w3lib.url import canonicalize_url

from scrapy_ubi.adapter.extraction.parsed_ahead import parsed_ahead
from scrapy_ubi.adapter.scrapy_private.parsed_page import parsed_page
from scrapy_ubi.urls.links import tree
from scrapy_ubi.urls.links.allowed import Allowed, Patterns
from scrapy_ubi.urls.links.costly import is_costly
from scrapy_ubi.urls.links.joiner import Joiner, plain
from scrapy_ubi.urls.links.page import Attributes, LinkSources, Page, readable, written
from scrapy_ubi.urls.links.shared import shared
from scrapy_ubi.urls.links.usual import elements, urls, values_of

_HEAD = 16_384  # characters of a hostile page that are read for its robots
_SMALL = 400_000  # characters of a page that may be kept until the next one: parsed, some 5 MB, and 13 at worst
_LONGEST_BASE = 8_192  # characters: servers take no longer URL, and 4,096 of a page may be 49,000 of a base

# Characters of the texts of a page's links. What is in links within links counts for each of them: a page of 200 kB
# that is made for that would have gigabytes.
MOST_TEXT = 50_000_000

Node = TypeVar("Node")

# What Scrapy's extractor looks at for each page, and may be given another value at any time.
_RULES = frozenset(
    {"allow_res", "deny_res", "allow_domains", "deny_domains", "deny_extensions", "restrict_text", "canonicalize"}
)

_Names = str | Iterable[str]
_Regex = Any  # a str or pattern, or several of them, as Scrapy has it


class UbiLinkExtractor(LxmlLinkExtractor):
    """Scrapy's LinkExtractor, faster. All its arguments mean what they mean there; these, by keyword only, are more:

    - `obey_nofollow`: leave out links with `rel="nofollow"`, and all links of pages whose `<meta name="robots">` says
      `nofollow` or `none`.
    - `frames`: `src` of `frame` and `iframe`, too. - `canonical`: `href` of `<link rel="canonical">`, too.
    - `srcset`: every URL in `srcset` of `img` and `source`, too (`deny_extensions` leaves out most images).

    Raises ValueError for one of these four together with `restrict_xpaths`, or with a `restrict_css` that lexbor cannot
    read: then Scrapy's own extractor is used, which does not know them.
    """

    def __init__(
        self,
        allow: _Regex = (),
        deny: _Regex = (),
        allow_domains: _Names = (),
        deny_domains: _Names = (),
        restrict_xpaths: _Names = (),
        tags: _Names | None = ("a", "area"),
        attrs: _Names | None = ("href",),
        canonicalize: bool = False,
        unique: bool = True,
        process_value: Callable[[Any], Any] | None = None,
        deny_extensions: _Names | None = None,
        restrict_css: _Names = (),
        strip: bool = True,
        restrict_text: _Regex = None,
        deny_tags: _Names = (),
        deny_attrs: _Names = (),
        *,
        obey_nofollow: bool = False,
        frames: bool = False,
        canonical: bool = False,
        srcset: bool = False,
    ) -> None:
        restrict_xpaths = tuple(arg_to_iter(restrict_xpaths))
        names = [tuple(arg_to_iter(each)) for each in (tags, attrs, deny_tags, deny_attrs)]
        self._regions = tuple(arg_to_iter(restrict_css))
        super().__init__(
            allow, deny, allow_domains, deny_domains, restrict_xpaths, names[0], names[1], canonicalize, unique,
            process_value, deny_extensions, self._regions, strip, restrict_text, names[2], names[3],
        )  # fmt: skip
        more = {"obey_nofollow": obey_nofollow, "frames": frames, "canonical": canonical, "srcset": srcset}
        self._scrapys = bool(restrict_xpaths) or not readable(self._regions)
        if self._scrapys and any(more.values()):
            asked = ", ".join(name for name, value in more.items() if value)
            raise ValueError(f"{asked}: not with restrict_xpaths, nor with a restrict_css that lexbor cannot read")
        self._obey_nofollow = obey_nofollow
        self._places = LinkSources(*names, frames=frames, canonical=canonical, srcset=srcset)
        usual = (self._places.single or "") if unique and process_value is None else ""
        self._usual = usual  # the one attribute of links, where all can be had by it; else ""
        simple = not (self._regions or obey_nofollow or self._scrapys)
        self._off_tree = usual if simple and tree.can_read(self._places.tags, usual) else ""
        self._process = process_value
        self._unique = unique
        self._stripped: Callable[[str], str] = strip_html5_whitespace if strip else str
        self._prepare()

    def _prepare(self) -> None:
        self._allowed = Allowed(
            self.allow_res, self.deny_res, self.allow_domains, self.deny_domains, self.deny_extensions
        )
        self._texts: Patterns = self.restrict_text
        self._rarely = bool(self._texts) or self._obey_nofollow or self.canonicalize

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if "_allowed" in self.__dict__:  # else `__init__` is not through
            if name in _RULES:
                self._prepare()
            elif name == "restrict_xpaths":
                self._scrapys = True

    def extract_links(self, response: TextResponse) -> list[Link]:
        """The links of a page, in its order, as scrapy.link.Link. Whatever the bytes of an HTML page are, it raises
        nothing but what `process_value` raises."""
        if self._scrapys or not isinstance(response, HtmlResponse):
            return self._links_of_scrapys(response)
        if self._off_tree and (root := parsed_page(response)) is not None:
            first, rels = tree.elements(root, self._places.tags, self._off_tree)
            text_of = _reader(tree.text_of, len(first) * len(response.text))
            return self._links_in(first, rels, text_of, _joiner_of_parsed(response))
        text = response.text
        page = _parsed(response, text)
        if page is None:
            return self._links_of_costly(response)
        if self._obey_nofollow and page.forbids_following():
            return []
        joiner = Joiner(_base(response, text), response.url, response.encoding, self._process)
        if not self._regions:
            nodes = page.elements(self._places)
            return self._links(nodes, _reader(LexborNode.text_lexbor, len(nodes) * len(text)), joiner)
        links: list[Link] = []
        text_of = _reader(LexborNode.text_lexbor, MOST_TEXT + 1)
        # Of the same URL in a region and in one within it, either may be the one whose text is wanted.
        for node in page.regions(self._regions, outermost=self._unique and not self._texts):
            links += self._links(page.elements(self._places, node), text_of, joiner)
        return unique_links(links) if self._unique else links

    def extract_urls(self, response: TextResponse) -> list[str]:
        """The URLs of what `extract_links` returns, in less time: without texts, unless they are asked for."""
        usual = self._usual
        if not usual or self._rarely or self._regions or self._scrapys or not isinstance(response, HtmlResponse):
            return [link.url for link in self.extract_links(response)]
        if self._off_tree and (root := parsed_page(response)) is not None:
            values = tree.values_of(root, self._places.tags, usual)
            return list(urls(values, _joiner_of_parsed(response), self._allowed, self._stripped))
        text = response.text
        page = _parsed(response, text)
        if page is None:
            return [link.url for link in self._links_of_costly(response)]
        joiner = Joiner(_base(response, text), response.url, response.encoding)
        return list(urls(values_of(page.elements(self._places), usual), joiner, self._allowed, self._stripped))

    def allows(self, url: str) -> bool:
        """Whether an absolute URL passes what is said of URLs: `allow`, `deny`, their domains, `deny_extensions`."""
        return self._allowed.passes(url)

    def _links_of_scrapys(self, response: TextResponse) -> list[Link]:
        """The links that Scrapy's own finds; none where a page would make it raise: by a base that is no URL, or
        by JSON, which may be nested too deeply for any parser; nor with a base longer than any URL."""
        try:
            if len(get_base_url(response)) > _LONGEST_BASE:
                return []
            kind = response.selector.type
        except (ValueError, RecursionError):
            return []
        return super().extract_links(response) if kind in ("html", "xml") else []

    def _links_of_costly(self, response: HtmlResponse) -> list[Link]:
        """The links of a page that may take lexbor seconds or gigabytes: Scrapy's, less those not to be followed."""
        if self._obey_nofollow and Page(written(response.text[:_HEAD])).forbids_following():
            return []
        links = self._links_of_scrapys(response)
        return [link for link in links if not (self._obey_nofollow and link.nofollow)]

    def _links(self, nodes: list[LexborNode], text_of: Callable[[LexborNode], str], joiner: Joiner) -> list[Link]:
        """The links of these elements: the first of each URL (if `unique`), and of these what is allowed."""
        if not self._usual:
            return self._links_of_some(nodes, text_of, joiner)
        return self._links_in(*elements(nodes, self._usual), text_of, joiner)

    def _links_in(
        self, first: dict[str, Node], rels: dict[str, str | None], text_of: Callable[[Node], str], joiner: Joiner
    ) -> list[Link]:
        """The links, as `_links` gives them, of values of the usual attribute, each with its first element, and the
        `rel` of those that have one."""
        links = links_at(urls(first, joiner, self._allowed, self._stripped), first, rels, text_of)
        return self._finish(links) if self._rarely else links

    def _links_of_some(
        self, nodes: list[LexborNode], text_of: Callable[[LexborNode], str], joiner: Joiner
    ) -> list[Link]:
        """The links, as `_links` gives them, for extractors that want several attributes, every link however often, or
        a function of the user's."""
        links: list[Link] = []
        passes, join = self._allowed.passes, joiner.join
        seen: set[str] | None = set() if self._unique else None
        for node, value, attributes in self._values(nodes):
            url = join(value)
            if url is None:
                continue
            if seen is not None:
                if url in seen:
                    continue
                seen.add(url)
            if passes(url):
                rel = attributes.get("rel")
                links.append(Link(url, text_of(node), "", rel is not None and rel_has_nofollow(rel)))
        return self._finish(links) if self._rarely else links

    def _values(self, nodes: list[LexborNode]) -> Iterator[tuple[LexborNode, str, Attributes]]:
        """What may be a link, with the element that it is in. A value that is there again is left out where its URL
        would be, too."""
        known: set[str] | None = set() if self._unique and self._process is None else None
        single = self._places.single
        for node in nodes:
            attributes = node.attributes
            if single is None:
                values: Iterable[str] = self._places.values((node.tag or "").lower(), attributes)
            elif single in attributes:
                values = (attributes[single] or "",)
            else:
                continue
            for value in values:
                if known is not None:
                    if value in known:
                        continue
                    known.add(value)
                yield node, self._stripped(value), attributes

    def _finish(self, links: list[Link]) -> list[Link]:
        """What is asked of few extractors, of links that are allowed by their URLs."""
        if self._texts:
            links = [link for link in links if any(pattern.search(link.text) for pattern in self._texts)]
        if self._obey_nofollow:
            links = [link for link in links if not link.nofollow]
        if not self.canonicalize:
            return links
        for link in links:
            link.url = canonicalize_url(link.url)
        return unique_links(links) if self._unique else links


# The page that was parsed last, and of which response: the extractors of a spider's rules look at it in turn.
_last: tuple[ReferenceType[HtmlResponse] | None, Page | None] = (None, None)
# Those that spiders have asked for: while a callback waits, others have their turns, and parse their pages.
_asked: WeakKeyDictionary[HtmlResponse, Page] = WeakKeyDictionary()


def _parsed(response: HtmlResponse, text: str) -> Page | None:
    """A page, parsed. None if that may take seconds, or gigabytes."""
    global _last
    known, page = _last
    if known is not None and known() is response:
        return page
    if (asked := _asked.get(response)) is not None:
        return asked
    data = written(text)
    if parsed_ahead.wanted_by and (ahead := parsed_ahead.take(response, data)) is not None:
        page = ahead.page
    else:
        page = None if is_costly(data) else Page(data)
    # With no page left the allocator gives its memory back to the system, and asks for it again at the next one: a
    # third of the time that a page takes to parse.
    _last = (ref(response), page) if len(text) <= _SMALL else (None, None)
    if shared.wanted and page is not None:
        shared.keep(response, page, len(text))
    return page


def lexbor_page(response: HtmlResponse) -> LexborHTMLParser:
    """A page as lexbor reads it; its links are then read off the same tree. Raises ValueError for a page that may take
    seconds or gigabytes."""
    if (page := _asked.get(response)) is None:
        if (page := _parsed(response, response.text)) is None:
            raise ValueError(f"{response.url} may take lexbor seconds or gigabytes: ask by response.css instead")
        _asked[response] = page
    return page.tree


def _reader(read: Callable[[Node], str], most: int) -> Callable[[Node], str]:
    """What reads the texts of a page's links. `most`: characters that all of them may have together."""
    if most <= MOST_TEXT:
        return read
    left = MOST_TEXT

    def text_of(node: Node) -> str:
        nonlocal left
        if left <= 0:
            return ""
        text = read(node)
        left -= len(text)
        return text

    return text_of


def links_at(
    found: Mapping[str, str],
    first: Mapping[str, Node],
    rels: Mapping[str, str | None],
    text_of: Callable[[Node], str],
) -> list[Link]:
    """A link for each URL. `found`: the value that means it; `first`, `rels`: the first element and the `rel` of a
    value."""
    links: list[Link] = []
    new = Link.__new__  # to call __init__ would take half of the time of this loop
    for url, value in found.items():
        link = new(Link)
        link.url, link.text, link.fragment = url, text_of(first[value]), ""
        link.nofollow = value in rels and rel_has_nofollow(rels[value])
        links.append(link)
    return links


def unique_links(links: list[Link]) -> list[Link]:
    """The first of each URL."""
    first: dict[str, Link] = {}
    for link in links:
        first.setdefault(link.url, link)
    return list(first.values())


def _joiner_of_parsed(response: HtmlResponse) -> Joiner:
    """For a page that was parsed by Scrapy, which has found its base."""
    return Joiner(_said_base(response), response.url, response.encoding)


def _base(response: HtmlResponse, text: str) -> str:
    """What the links of a page are relative to, by Scrapy's rules: they are also those of `response.urljoin`."""
    if "<base" not in text[:4096].lower() and plain(response.url):
        return response.url  # as get_base_url would find, which takes as long as 20 links
    return _said_base(response)


def _said_base(response: HtmlResponse) -> str:
    """What a page says its links are relative to, if that may be: every one of them has its length."""
    try:
        base = get_base_url(response)
    except ValueError:
        return response.url
    return base if len(base) <= _LONGEST_BASE else response.url
