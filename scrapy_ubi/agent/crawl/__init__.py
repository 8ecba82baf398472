"""The crawl as one agent has it: its frontier and counts, the disk that keeps them, and why it cannot go on."""
