import scrapy


class FilteredStart(scrapy.Spider):
    """Start requests that the filter sees: a link back to one is a duplicate, whatever its callback."""

    name = "walk"

    async def start(self):
        for number in (0, 5):
            yield scrapy.Request(f"http://shop{number}.example/", callback=self.parse_links)

    def parse_links(self, response):
        yield {"start": response.url}
        for link in response.css("a.shop"):
            yield response.follow(link, callback=self.parse_shop)

    def parse_shop(self, response):
        yield {"shop": response.url}
        yield from response.follow_all(response.css("a.shop"), callback=self.parse_shop)
