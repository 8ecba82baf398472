"""A request as a value: as text and back, checked, its key, and the requests that are in flight."""
