"""A pytest plugin for Scrapy's own tests: the download handler of UBI_FAST is the default one. Used by run.py."""

from __future__ import annotations

from scrapy.settings import default_settings

OURS = "scrapy_ubi.fast.http.handler.UbiDownloadHandler"

default_settings.DOWNLOAD_HANDLERS_BASE.update(http=OURS, https=OURS)
