"""URLs as text from outside: their normal form, the partition key that says which host they count for, their key.

A malformed URL is data, not an error: the answer is None. Nothing here imports Scrapy, and nothing is fetched.
"""

from __future__ import annotations

from scrapy_ubi.urls.host_rules import HostRules
from scrapy_ubi.urls.key import url_key
from scrapy_ubi.urls.normal import normal_form
from scrapy_ubi.urls.normaliser import Normaliser
from scrapy_ubi.urls.partition import Partition, partition_key

__all__ = ["HostRules", "Normaliser", "Partition", "normal_form", "partition_key", "url_key"]
