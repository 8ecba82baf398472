"""Canaries: the rules of a CrawlSpider."""

from __future__ import annotations

import inspect
from typing import Any

from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.link import Link
from scrapy.linkextractors import LinkExtractor as ScrapysExtractor
from scrapy.spiders import CrawlSpider, Rule
from scrapy.spiders.crawl import _identity_process_request

from scrapy_ubi.adapter.scrapy_private.spider_callbacks import RulesByPage

HOST = "http://h1.example"


def test_a_crawl_spiders_rules_are_asked_where_they_make_requests() -> None:
    class Told(RulesByPage):
        name = "told"
        rules = (Rule(ScrapysExtractor(), "found"), Rule(ScrapysExtractor(), process_request="own"))

        def own(self, request: Request, response: Response) -> Request:
            return request

        def found(self, response: Response) -> None:
            """A callback."""

        def links_of_rule(self, rule: int, links: list[Link], callback: Any, errback: Any) -> Any:
            return rule, [link.url for link in links], callback, errback

    spider = Told()
    page = HtmlResponse(f"{HOST}/", body=b"<a href=a>a</a>", encoding="utf-8")
    assert list(spider._requests_to_follow(page)) == [(0, [f"{HOST}/a"], spider._callback, spider._errback)]
    spider._rules.reverse()
    [request, (rule, links, _, _)] = spider._requests_to_follow(page)
    assert (request.url, request.meta["rule"], request.meta["link_text"]) == (f"{HOST}/a", 0, "a")
    assert (rule, links) == (1, []), "each link belongs to the first rule that finds it"
    assert "self._requests_to_follow(response)" in inspect.getsource(CrawlSpider.parse_with_rules)
    # The callback finds its rule by this, and the texts of links are where ours are.
    built = CrawlSpider._build_request(spider, 7, Link("http://a.example/", "text"))
    assert built.meta == {"rule": 7, "link_text": "text"} and built.callback == spider._callback
    assert 'meta["rule"]' in inspect.getsource(CrawlSpider._callback)
    assert Rule().process_request is _identity_process_request
