"""Ordinary Scrapy projects, with and without the add-on: the items must be the same."""
