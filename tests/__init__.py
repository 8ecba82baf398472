"""Tests mirror the package: tests/protocol/test_ring.py tests scrapy_ubi/protocol/ring.py."""
