import scrapy
from shop.browser import PageMethod


class Browsed(scrapy.Spider):
    name = "walk"
    start_urls = ["http://shop0.example/"]

    def parse(self, response):
        yield from response.follow_all(css="a.shop, a.list")
        yield from response.follow_all(css="a.product", callback=self.parse_product)

    def parse_product(self, response):
        yield response.follow(
            response.css("a.detail::attr(href)").get(),
            callback=self.parse_detail,
            meta={"playwright": True, "playwright_page_methods": [PageMethod("click", "#stock")]},
        )

    def parse_detail(self, response):
        clicked = [f"{one.method} {one.args[0]}" for one in response.meta.get("playwright_page_methods", ())]
        yield {"title": response.css("h1::text").get(), "clicked": clicked}
