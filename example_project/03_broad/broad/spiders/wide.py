from scrapy.http import HtmlResponse

from broad.spiders.hosts import HostsSpider
from scrapy_ubi import UbiSpider


class WideSpider(UbiSpider):
    """Crawls what HostsSpider crawls, and hands over all links of a page as one object not a request for each."""

    name = "wide"
    start_urls = HostsSpider.start_urls

    def parse(self, response):
        if not isinstance(response, HtmlResponse):
            return
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield self.links(response)
