"""What hosts are owed: rests of those that fail, Retry-After, uses of pages, signed requests."""
