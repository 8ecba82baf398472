"""Rules that decide by what they are given: politeness, robots.txt, the order of a queue, when a page is visited
again. No clock, no network, no Scrapy.
"""
