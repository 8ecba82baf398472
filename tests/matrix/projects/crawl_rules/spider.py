from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class Rules(CrawlSpider):
    name = "walk"
    start_urls = ["http://shop0.example/"]
    rules = (
        Rule(LinkExtractor(restrict_css="a.shop")),
        Rule(LinkExtractor(allow=r"/list\?"), callback="parse_list", follow=True),
        Rule(LinkExtractor(allow=r"/p/\d*[02468]\b"), callback="parse_product", process_request="mark"),
    )

    def mark(self, request, response):
        return request.replace(meta={**request.meta, "found_on": response.css("h1::text").get()[:4]})

    def parse_list(self, response):
        yield {"list": response.css("h1::text").get(), "host": response.url.split("/")[2]}

    def parse_product(self, response):
        yield {"title": response.css("h1::text").get(), "found_on": response.meta["found_on"]}
