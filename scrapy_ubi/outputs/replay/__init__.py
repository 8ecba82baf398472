"""Replay (UBI_REPLAY): the spider's requests are answered from WARC files, and nothing goes to the network."""
