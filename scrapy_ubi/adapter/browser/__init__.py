"""Pages that scripts make, shown by a browser (`UBI_BROWSER`): which, and how its loads go through the crawl."""
