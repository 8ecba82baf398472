"""Rules of a crawl without a project: where it starts, what it follows, what it collects, which fields an item has."""
