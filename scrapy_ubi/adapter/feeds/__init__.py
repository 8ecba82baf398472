"""Scrapy's feeds and pipelines, so that the items of a page are written before the page is done."""
