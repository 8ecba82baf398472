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
