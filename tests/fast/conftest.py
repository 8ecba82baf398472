"""The one task of a page is for one version of Scrapy: with the others its tests have nothing to ask."""

from __future__ import annotations

import scrapy

OF_ONE_TASK = ["test_calls.py", "test_compared.py", "test_one_task.py", "test_path.py", "test_pieces.py",
               "test_second_core.py", "test_spider_chain.py", "test_spider_output.py"]  # fmt: skip

collect_ignore = [] if scrapy.version_info[:2] == (2, 19) else OF_ONE_TASK
