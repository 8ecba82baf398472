FEEDS = {"rows-%(ubi_agent)s.csv": {"format": "csv", "fields": ["title", "price"]}}
