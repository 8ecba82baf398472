import scrapy


class Walk(scrapy.Spider):
    name = "walk"
    start_urls = ["http://shop0.example/"]

    def parse(self, response):
        yield from response.follow_all(css="a.shop")
        yield from response.follow_all(css="a.product", callback=self.parse_product)

    def parse_product(self, response):
        files = [response.urljoin(url) for url in response.css("a.file::attr(href)").getall()]
        images = [response.urljoin(url) for url in response.css("img::attr(src)").getall()]
        yield {"title": response.css("h1::text").get(), "file_urls": files, "image_urls": images}
        yield from response.follow_all(css="a.detail, a.flaky", callback=self.parse_detail)

    def parse_detail(self, response):
        yield {"title": response.css("h1::text").get(), "url": response.url}
