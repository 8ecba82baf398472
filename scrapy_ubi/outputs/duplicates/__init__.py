"""Pages that are copies of others, byte for byte or nearly: told apart while crawling, and grouped afterwards."""
