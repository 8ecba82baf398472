"""Several agents of one crawl on this machine: their processes, their restarts, and a Valkey for them."""
