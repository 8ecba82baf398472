import scrapy
from itemloaders.processors import MapCompose, TakeFirst
from scrapy.loader import ItemLoader
from shop.items import Price, Product


class ProductLoader(ItemLoader):
    default_item_class = Product
    default_output_processor = TakeFirst()
    price_in = MapCompose(float)


class Loaders(scrapy.Spider):
    name = "walk"
    start_urls = ["http://shop0.example/"]

    def parse(self, response):
        yield from response.follow_all(css="a.shop, a.list")
        yield from response.follow_all(css="a.product", callback=self.parse_product)

    def parse_product(self, response):
        loader = ProductLoader(response=response)
        loader.add_css("title", "h1::text")
        loader.add_css("price", ".price::text")
        item = loader.load_item()
        price = Price(item["price"], "EUR")
        detail = response.css("a.detail::attr(href)").get()
        yield response.follow(detail, self.parse_detail, meta={"item": item}, cb_kwargs={"price": price})

    def parse_detail(self, response, price):
        item = response.meta["item"]
        item["stock"] = int(response.css(".stock::text").get())
        item["currency"] = price.currency
        yield item
