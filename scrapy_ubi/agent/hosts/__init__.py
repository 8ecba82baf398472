"""What an agent keeps of hosts and of the whole crawl: notes, limits, learned forms of URLs."""
