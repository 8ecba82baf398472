"""`scrapy ubi map`: the URLs of a site, as its sitemaps, feeds and home page list them."""
