ADDONS = {"scrapy_poet.Addon": 300}
SCRAPY_POET_DISCOVER = ["shop.pages"]
