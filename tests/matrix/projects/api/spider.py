import scrapy
from scrapy.http import JsonRequest


class Api(scrapy.Spider):
    name = "walk"

    async def start(self):
        yield JsonRequest("http://api.example/search", data={"page": 0}, callback=self.parse)
        yield scrapy.Request("http://shop0.example/", callback=self.parse_shop)

    def parse(self, response):
        answer = response.json()
        yield from answer["found"]
        if answer["next"] is not None:
            yield JsonRequest("http://api.example/search", data={"page": answer["next"]}, callback=self.parse)

    def parse_shop(self, response):
        yield {"title": response.css("h1::text").get(), "at": response.url.split("/")[2]}
        yield from response.follow_all(css="a.shop, a.list", callback=self.parse_shop)
