import scrapy
from scrapy_poet import DynamicDeps
from shop.pages import DetailPage, Product, ProductPage


class Walk(scrapy.Spider):
    name = "walk"
    start_urls = ["http://shop0.example/"]

    def parse(self, response):
        yield from response.follow_all(css="a.shop")
        yield from response.follow_all(css="a.product", callback=self.parse_product)

    async def parse_product(self, response, product: Product, page: ProductPage):
        yield product
        yield response.follow(page.detail, self.parse_detail, meta={"inject": [DetailPage]})
        # The same URL for another page object: it is fetched a second time.
        yield response.follow(page.url, self.parse_name, dont_filter=False, meta={"page_params": {"name": True}})

    async def parse_detail(self, response, deps: DynamicDeps):
        yield await deps[DetailPage].to_item()

    async def parse_name(self, response, page: ProductPage):
        yield {"name": page.name}
