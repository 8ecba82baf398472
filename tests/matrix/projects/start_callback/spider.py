import scrapy


class StartCallback(scrapy.Spider):
    """The start page is read for its links, the same page as a link for its title. One URL starts twice."""

    name = "walk"

    async def start(self):
        for number in (0, 2):
            yield scrapy.Request(f"http://shop{number}.example/", callback=self.parse_links, dont_filter=True)
        yield scrapy.Request("http://shop0.example/", callback=self.parse_large, dont_filter=True)
        for word in ("one", "two"):
            yield scrapy.Request(
                "http://shop4.example/", callback=self.parse_word, cb_kwargs={"word": word}, dont_filter=True
            )

    def parse_links(self, response):
        yield {"start": response.url}
        for link in response.css("a.shop"):
            yield response.follow(link, callback=self.parse_shop)

    def parse_shop(self, response):
        yield {"shop": response.url}
        yield from response.follow_all(response.css("a.shop"), callback=self.parse_shop)

    def parse_large(self, response):
        yield {"large": response.css("a.large::attr(href)").get()}

    def parse_word(self, response, word):
        yield {"word": word, "of": response.url}
