"""One request's way through this agent: in from callbacks and seeds, out to Scrapy, and what is counted of it."""
