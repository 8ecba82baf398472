import scrapy
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor


class HostsSpider(scrapy.Spider):
    """Wanders from host to host. Seeds may be the same for every agent: each is taken once in the whole cluster."""

    name = "hosts"
    start_urls = [f"http://{name}.example/" for name in ("alder", "birch", "cedar", "dune", "elm", "fjord")]
    links = LinkExtractor(canonicalize=False)

    def parse(self, response):
        if not isinstance(response, HtmlResponse):
            return
        yield {"url": response.url, "title": response.css("title::text").get()}
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url)
