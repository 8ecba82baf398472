import scrapy


class Lambdas(scrapy.Spider):
    name = "walk"
    start_urls = ["http://shop0.example/"]

    def parse(self, response):
        yield from response.follow_all(css="a.shop, a.list")
        yield from response.follow_all(css="a.product", callback=self.parse_product)

    def parse_product(self, response):
        title = response.css("h1::text").get()
        yield response.follow(
            response.css("a.detail::attr(href)").get(),
            callback=lambda detail: self.parse_detail(detail, title),
        )

    def parse_detail(self, response, title):
        yield {"title": title, "stock": response.css(".stock::text").get()}
