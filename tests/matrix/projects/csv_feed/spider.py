import scrapy
from scrapy.spiders import CSVFeedSpider


class Rows(CSVFeedSpider):
    name = "walk"
    start_urls = [f"http://shop{n}.example/feed.csv" for n in range(8)]

    def parse_row(self, response, row):
        yield scrapy.Request(row["url"], callback=self.parse_product, cb_kwargs={"number": row["id"]})

    def parse_product(self, response, number):
        yield {"number": number, "title": response.css("h1::text").get()}
