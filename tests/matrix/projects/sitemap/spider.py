from scrapy.spiders import SitemapSpider


class Mapped(SitemapSpider):
    name = "walk"
    sitemap_urls = [f"http://shop{n}.example/sitemap.xml" for n in range(8)]
    sitemap_rules = [("/p/", "parse_product"), ("/detail/", "parse_detail")]

    def parse_product(self, response):
        yield {"title": response.css("h1::text").get(), "price": response.css(".price::text").get()}

    def parse_detail(self, response):
        yield {"title": response.css("h1::text").get(), "stock": response.css(".stock::text").get()}
