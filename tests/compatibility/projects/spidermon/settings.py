SPIDERMON_ENABLED = True
EXTENSIONS = {"spidermon.contrib.scrapy.extensions.Spidermon": 500}
SPIDERMON_SPIDER_CLOSE_MONITORS = ("shop.monitors.Close",)
ITEM_PIPELINES = {"spidermon.contrib.scrapy.pipelines.ItemValidationPipeline": 800}
SPIDERMON_VALIDATION_SCHEMAS = [
    {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title", "url"]}
]
