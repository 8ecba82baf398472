import os
import shutil

DOWNLOAD_HANDLERS = {
    "http": "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler",
    "https": "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler",
}
PLAYWRIGHT_LAUNCH_OPTIONS = {
    "executable_path": shutil.which("chromium"),
    "proxy": {"server": os.environ["http_proxy"]},
    "args": ["--no-sandbox", "--disable-gpu"],
}
PLAYWRIGHT_ABORT_REQUEST = lambda request: request.resource_type == "image"  # noqa: E731
ADDONS = {"scrapy_poet.Addon": 300}
SCRAPY_POET_DISCOVER = ["shop.pages"]
SPIDERMON_ENABLED = True
EXTENSIONS = {"spidermon.contrib.scrapy.extensions.Spidermon": 500}
SPIDERMON_SPIDER_CLOSE_MONITORS = ("shop.monitors.Close",)
ITEM_PIPELINES = {"spidermon.contrib.scrapy.pipelines.ItemValidationPipeline": 800}
SPIDERMON_VALIDATION_SCHEMAS = [
    {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title", "url"]}
]
