import scrapy


class Large(scrapy.Spider):
    name = "walk"
    start_urls = [f"http://shop{n}.example/large" for n in range(8)]

    def parse(self, response):
        title = response.css("h1::text").get()
        for row in response.css("tr.row"):
            yield {"title": title, "number": row.css("td::text").get()}
