import scrapy
from scrapy_playwright.page import PageMethod
from shop.pages import Product, ProductPage


class Walk(scrapy.Spider):
    name = "walk"
    start_urls = ["http://shop0.example/"]

    def parse(self, response):
        yield from response.follow_all(css="a.shop")
        for number, link in enumerate(response.css("a.product")):
            click = (
                {"playwright": True, "playwright_page_methods": [PageMethod("click", "#stock")]} if not number else {}
            )
            yield response.follow(link, self.parse_product, meta=click)

    async def parse_product(self, response, product: Product, page: ProductPage):
        stock = response.css("#stock::text").get()
        yield {"title": product.title, "url": response.url, "weight": product.weight, "stock": stock}
