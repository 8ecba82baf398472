import scrapy
from scrapy.http import FormRequest


class Member(scrapy.Spider):
    name = "walk"
    start_urls = ["http://member.example/login"]

    def parse(self, response):
        yield FormRequest.from_response(
            response, formdata={"user": "ada", "word": "secret", "token": "t-42"}, callback=self.after_login
        )

    def after_login(self, response):
        yield {"title": response.css("h1::text").get()}
        yield from response.follow_all(css="a.order", callback=self.parse_order)
        yield scrapy.Request("http://shop0.example/", callback=self.parse_shop)

    def parse_order(self, response):
        yield {"title": response.css("h1::text").get(), "sum": response.css(".sum::text").get()}

    def parse_shop(self, response):
        yield {"title": response.css("h1::text").get()}
        yield from response.follow_all(css="a.shop, a.list", callback=self.parse_shop)
