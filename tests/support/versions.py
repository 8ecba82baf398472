"""Marks of tests that are for some of the versions of Scrapy that this package supports (`make scrapy-versions`)."""

from __future__ import annotations

import pytest
import scrapy


def since(major: int, minor: int) -> pytest.MarkDecorator:
    """For tests of what Scrapy has since this version."""
    older = scrapy.version_info[:2] < (major, minor)
    return pytest.mark.skipif(older, reason=f"Scrapy has it since {major}.{minor}")
