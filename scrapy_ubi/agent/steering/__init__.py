"""What people change while a crawl runs: its live settings, a pause, and the wish that it ends when it is empty."""
