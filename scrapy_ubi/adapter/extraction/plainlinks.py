"""Plain links: all links of a page as one object, where an ordinary spider makes a request of each.

A *plain link* is a GET with the default headers. What is said of it (callback, errback, meta, cb_kwargs, priority,
headers) is said once for all links of the object. A `Request` is made only of what is fetched.

`PlainLinks` is what spiders yield; `bulk_enqueue` is how they are taken; `expand_middleware` makes ordinary requests of
them where something wants to see each.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler

logger = logging.getLogger("scrapy_ubi")

NO_SCHEDULER = "there is no scheduler of scrapy_ubi's"  # why plain links become requests
EXPANDED = "ubi/plain_links/expanded"
URL_OF_NO_PAGE = "http://plain-links.invalid/"  # RFC 2606

Method = Callable[..., Any] | str


@dataclass(slots=True, eq=False, init=False)
class PlainLinks:
    """Links for a spider to yield.

    `urls`: absolute URLs; each counts once. What is no URL is dropped and counted, as it comes from a page. `callback`
    and `errback`: methods of the spider, or their names; without, the spider's default. `cb_kwargs`, `meta`, `priority`
    and `headers` as a Request has them, for all links alike. `referer`: let Scrapy's RefererMiddleware say where a link
    was found. `link_texts`: a text for each of `urls`, which becomes `link_text` in the meta of its request; `anchors`:
    the same, but for UBI_SCORE only: it does not travel, and costs nothing where that is not set.

    Raises TypeError for `urls` that is one text and for a `priority` that is no whole number, ValueError for
    `link_texts` or `anchors` of another length.
    """

    urls: list[Any]
    callback: Method | None
    errback: Method | None
    cb_kwargs: Mapping[str, Any]
    meta: Mapping[str, Any]
    priority: int
    headers: Mapping[str, Any]
    referer: bool
    link_texts: list[str] = field(repr=False)
    anchors: list[str] = field(repr=False)

    def __init__(
        self,
        urls: Iterable[str],
        callback: Method | None = None,
        errback: Method | None = None,
        cb_kwargs: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        priority: int = 0,
        headers: Mapping[str, Any] | None = None,
        referer: bool = False,
        link_texts: Iterable[str] | None = None,
        anchors: Iterable[str] | None = None,
    ) -> None:
        if isinstance(urls, str | bytes):
            raise TypeError("PlainLinks takes a list of URLs, not one text")
        if not isinstance(priority, int):
            raise TypeError(f"PlainLinks: priority is {priority!r}: give a whole number")
        listed = list(urls)
        if link_texts is None and anchors is None:
            self.urls, self.link_texts, self.anchors = _distinct(listed), [], []
        else:
            self.urls, texts = _distinct_with(listed, link_texts=link_texts, anchors=anchors)
            self.link_texts, self.anchors = texts
        self.callback = callback
        self.errback = errback
        self.cb_kwargs = cb_kwargs or {}
        self.meta = meta or {}
        self.headers = headers or {}
        self.priority = priority
        self.referer = referer

    def __len__(self) -> int:
        return len(self.urls)

    def __repr__(self) -> str:
        shown = ", ".join(f"{url!s:.200}" for url in self.urls[:3])
        return f"<PlainLinks {len(self.urls)}: {shown}{', ...' if len(self.urls) > 3 else ''}>"

    def request(self, spider: Spider, url: Any, text: str | None = None) -> Request | None:
        """The ordinary request for one of the URLs; None when that is no URL. Raises ValueError for a callback that is
        no method of the spider's."""
        callback, errback = self.methods(spider)
        meta = {**self.meta, "link_text": text} if self.link_texts else dict(self.meta)
        try:
            return Request(
                url,
                callback=callback,
                errback=errback,
                headers=dict(self.headers),
                meta=meta,
                cb_kwargs=dict(self.cb_kwargs),
                priority=self.priority,
            )
        except (ValueError, TypeError):
            if url is URL_OF_NO_PAGE:
                raise  # what is wrong was said by the spider
            return None

    def template(self, spider: Spider) -> Request:
        """A request with all that the links have in common. Raises ValueError or TypeError for what a Request would
        not take."""
        request = self.request(spider, URL_OF_NO_PAGE)
        assert request is not None
        return request

    def requests(self, spider: Spider) -> Iterator[Request | None]:
        """The ordinary requests for all of them; None for what is no URL."""
        self.template(spider)
        for url, text in zip_longest(self.urls, self.link_texts):
            yield self.request(spider, url, text)

    def methods(self, spider: Spider) -> tuple[Callable[..., Any] | None, Callable[..., Any] | None]:
        """Callback and errback. Raises ValueError for what is no method of the spider's."""
        return find_method(spider, self.callback, "callback"), find_method(spider, self.errback, "errback")


def _distinct(listed: list[Any]) -> list[Any]:
    """Each URL once, where it is first. What cannot be told apart is no URL either, and stays."""
    try:
        return list(dict.fromkeys(listed))
    except TypeError:  # one of them has no hash
        return listed


def _distinct_with(listed: list[Any], **given: Iterable[str] | None) -> tuple[list[Any], list[list[str]]]:
    """Each URL once, where it is first, and the given texts of these."""
    texts = [list(each or ()) for each in given.values()]
    for (name, said), each in zip(given.items(), texts, strict=True):
        if said is not None and len(each) != len(listed):
            raise ValueError(f"PlainLinks: {len(listed)} urls, but {len(each)} {name}")
    first: dict[Any, int] = {}
    try:
        for number, url in enumerate(listed):
            first.setdefault(url, number)
    except TypeError:
        return listed, texts
    return list(first), [[each[number] for number in first.values()] if each else [] for each in texts]


def find_method(spider: Spider, method: Method | None, kind: str) -> Callable[..., Any] | None:
    """The spider's method of that name, or what was given instead of a name."""
    if not isinstance(method, str):
        if method is None or callable(method):
            return method
        raise ValueError(f"PlainLinks: {kind} is {method!r}: give a method of {type(spider).__name__}, or its name")
    found = getattr(spider, method, None)
    if not callable(found):
        raise ValueError(f"PlainLinks: {kind} is {method!r}, which is no method of {type(spider).__name__}")
    return found  # type: ignore[no-any-return]


def count_expanded(crawler: Crawler, links: PlainLinks, why: str) -> None:
    """Count links that become ordinary requests, and say so once."""
    if not crawler.stats.get_value(EXPANDED):
        logger.info("Plain links become ordinary requests: %s. (Shown once; %s counts.)", why, EXPANDED)
    crawler.stats.inc_value(EXPANDED, len(links))


def expanded(crawler: Crawler, links: PlainLinks, why: str) -> Iterator[Request]:
    """The ordinary requests for these links; they are counted, and so is what is no URL."""
    count_expanded(crawler, links, why)
    for request in links.requests(spider_of(crawler)):
        if request is not None:
            yield request
        else:
            crawler.stats.inc_value("ubi/scheduler/dropped/malformed")


def spider_of(crawler: Crawler) -> Spider:
    """The spider of a crawl that has begun."""
    assert crawler.spider is not None
    return crawler.spider
