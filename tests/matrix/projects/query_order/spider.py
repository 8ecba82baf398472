import scrapy


class Products(scrapy.Spider):
    name = "walk"
    start_urls = ["http://shop0.example/"]

    def parse(self, response):
        yield from response.follow_all(css="a.shop, a.list")
        yield from response.follow_all(css="a.product", callback=self.parse_product)

    def parse_product(self, response):
        yield {"title": response.css("h1::text").get(), "price": response.css(".price::text").get()}
