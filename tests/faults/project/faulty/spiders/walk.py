"""Ordinary spiders: they know nothing of other agents."""

from __future__ import annotations

import time

import scrapy
from scrapy.linkextractors import LinkExtractor

from scrapy_ubi import UbiSpider


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


class Plain(UbiSpider):
    """The same, by plain links."""

    name = "plain"
    seeds = ""
    start = Walk.start

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield self.links(response)


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


class Tracer(Walk):
    """One whose requests carry where they come from; it begins with so many `forms`, too, sent to `host`."""

    name = "tracer"
    forms = "0"
    host = ""

    async def start(self):
        for number in range(int(self.forms)):
            yield scrapy.Request(
                f"http://{self.host}/echo?n={number}",
                self.answered,
                method="POST",
                body=f"form {number}",
                headers={"Content-Type": "text/plain"},
                meta={"mark": {"number": number}},
                cb_kwargs={"number": number},
                priority=number % 5,
            )
        for url in filter(None, self.seeds.split(",")):  # with dont_filter a link to it would be fetched once more
            yield scrapy.Request(url, meta={"trail": []})

    def answered(self, response, number):
        echo = response.json()
        yield {"url": response.url, "form": number, "mark": response.meta["mark"], **echo}

    def parse(self, response):
        trail = [*response.meta["trail"], response.url]
        yield {"url": response.url, "trail": trail, "depth": response.meta["depth"]}
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url, meta={"trail": trail})
