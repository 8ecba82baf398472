import scrapy


class Errors(scrapy.Spider):
    name = "walk"
    start_urls = ["http://shop0.example/"]
    handle_httpstatus_list = [410]

    def parse(self, response):
        yield from response.follow_all(css="a.shop, a.list")
        yield from response.follow_all(css="a.product", callback=self.parse_product)

    def parse_product(self, response):
        title = response.css("h1::text").get()
        yield from response.follow_all(css="a.flaky", callback=self.parse_other, errback=self.failed)
        yield from response.follow_all(css="a.gone", callback=self.parse_other, errback=self.failed)
        yield from response.follow_all(css="a.file", callback=self.parse_other, errback=self.failed)
        yield from response.follow_all(css="a.old", callback=self.parse_moved, cb_kwargs={"title": title})

    def parse_other(self, response):
        yield {"status": response.status, "at": response.url.split("?")[0]}

    def parse_moved(self, response, title):
        yield {"moved": title, "here": response.css("h1::text").get()}

    def failed(self, failure):
        yield {"failed": failure.value.response.status, "at": failure.request.url}
