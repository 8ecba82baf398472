"""The links of a page: found by a modern HTML parser, joined to its address, and judged. Knows nothing of Scrapy.

What is found, and under which URL, is what Scrapy's own link extractor finds (docs/reference/link-extractor.md lists
the exceptions): the short ways here are taken only where the long way would come to the same answer.
"""

from __future__ import annotations
