"""What people see of a crawl in a browser: the page."""
