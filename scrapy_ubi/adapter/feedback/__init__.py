"""What the end of each load says of its host, and what Scrapy's own delays ask for (rules: `policy.politeness`)."""
