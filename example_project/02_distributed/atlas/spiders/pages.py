import scrapy
from scrapy.linkextractors import LinkExtractor


class PagesSpider(scrapy.Spider):
    """Follows every link, and notes the title and the one fact of each page."""

    name = "pages"
    start_urls = ["http://alder.example/"]
    links = LinkExtractor()

    def parse(self, response):
        yield {
            "url": response.url,
            "title": response.css("title::text").get(),
            "fact": int(response.css("p.fact::text").get()),
        }
        for link in self.links.extract_links(response):
            yield response.follow(link)
