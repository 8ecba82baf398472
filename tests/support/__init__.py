"""What tests share: servers, the demo web, crawl processes."""
