from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class LinkedStart(CrawlSpider):
    """Each shop links to all others, so the rule's callback is to see the start page as well."""

    name = "walk"
    start_urls = ["http://shop0.example/", "http://shop3.example/"]
    rules = (Rule(LinkExtractor(restrict_css="a.shop"), callback="parse_shop", follow=True),)

    def parse_shop(self, response):
        yield {"shop": response.css("h1::text").get(), "text": response.meta["link_text"]}

    def parse_start_url(self, response):
        yield {"start": response.css("h1::text").get()}
