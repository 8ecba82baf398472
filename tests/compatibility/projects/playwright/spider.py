import scrapy
from scrapy_playwright.page import PageMethod


class Walk(scrapy.Spider):
    name = "walk"

    async def start(self):
        yield scrapy.Request("http://shop0.example/", meta={"playwright": True})

    def parse(self, response):
        yield from response.follow_all(css="a.shop", meta={"playwright": True, "playwright_include_page": False})
        click = [PageMethod("click", "#stock")]
        for link in response.css("a.product")[:4]:
            yield response.follow(link, self.parse_product, meta={"playwright": True, "playwright_page_methods": click})

    def parse_product(self, response):
        yield {
            "title": response.css("h1::text").get(),
            "price": response.css(".price::text").get(),
            "stock": response.css("#stock::text").get(),
        }
        yield from response.follow_all(css="a.detail", callback=self.parse_detail)

    def parse_detail(self, response):
        yield {"title": response.css("h1::text").get(), "weight": response.css(".weight::text").get()}
