"""Politeness: how long a host is left alone between two loads, and what is done about one that does not answer."""
