import scrapy


class OneShop(scrapy.Spider):
    name = "walk"

    def __init__(self, shop="0", *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.shop = shop
        self.allowed_domains = [f"shop{shop}.example"]
        self.start_urls = [f"http://shop{shop}.example/"]

    def parse(self, response):
        yield {"title": response.css("h1::text").get(), "shop": self.shop}
        yield from response.follow_all(css="a.shop, a.list, a.product")
