"""All that knows Scrapy: what it instantiates, a request's way through this agent, its transfer, its robots.txt,
its feeds, and every private name. Each sub-room imports those below it only (setup.cfg).
"""
