"""Ordinary projects with the plug-ins that people use, beside plain Scrapy: `make compatibility`."""
