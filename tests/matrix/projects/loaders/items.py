from dataclasses import dataclass

import scrapy


class Product(scrapy.Item):
    title = scrapy.Field()
    price = scrapy.Field()
    stock = scrapy.Field()
    currency = scrapy.Field()


@dataclass
class Price:
    amount: float
    currency: str
