"""Ordinary spiders: they know nothing of other agents."""

from __future__ import annotations

import time

import scrapy
from scrapy.linkextractors import LinkExtractor


class Walk(scrapy.Spider):
    """All pages that can be reached from `seeds` (URLs, comma separated)."""

    name = "walk"
    seeds = ""
    links = LinkExtractor()

    async def start(self):
        for url in filter(None, self.seeds.split(",")):
            yield scrapy.Request(url, dont_filter=True)

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url)


class Sleeper(Walk):
    """One whose callback once does something that takes `seconds`, at its `at`th page: nothing else runs meanwhile."""

    name = "sleeper"
    at = "20"
    seconds = "0"
    pages = 0

    def parse(self, response):
        self.pages += 1
        if self.pages == int(self.at):
            self.logger.info("sleeping")
            time.sleep(float(self.seconds))
            self.logger.info("awake")
        yield from super().parse(response)
