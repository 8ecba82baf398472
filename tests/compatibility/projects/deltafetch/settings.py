SPIDER_MIDDLEWARES = {"scrapy_deltafetch.DeltaFetch": 100}
DELTAFETCH_ENABLED = True
