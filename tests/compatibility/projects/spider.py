import scrapy


class Walk(scrapy.Spider):
    name = "walk"
    start_urls = ["http://shop0.example/"]

    def parse(self, response):
        yield from response.follow_all(css="a.shop")
        yield from response.follow_all(css="a.product", callback=self.parse_product)

    def parse_product(self, response):
        yield {"title": response.css("h1::text").get(), "url": response.url}
        yield from response.follow_all(css="a.detail, a.flaky", callback=self.parse_detail)

    def parse_detail(self, response):
        yield {"title": response.css("h1::text").get(), "url": response.url}
