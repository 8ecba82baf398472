ITEM_PIPELINES = {"scrapy_redis.pipelines.RedisPipeline": 300}
