"""What tells the partition key of a URL under the settings of a crawl: made once, asked for every URL.

Rules of this module:

* Without shards that is `partition_key` itself, and costs nothing more.
* A request that names its host (`meta["ubi_host"]`, UBI_PARTITION) has the key of that name; with shards, its URL tells
  which one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from scrapy_ubi.urls.host_rules import HostRules
from scrapy_ubi.urls.host_shards import HostShards
from scrapy_ubi.urls.normal import USUAL_HOST
from scrapy_ubi.urls.partition import Partition, partition_key

HostOf = Callable[[str], str | None]

MOST_NAME = 253 + 6  # characters: of a name in the DNS, and a port
_usual_host = re.compile(USUAL_HOST).fullmatch
_NAME = re.compile(r"[A-Za-z0-9_.-]+(?::[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?")


def host_keys(partition: Partition, rules: HostRules | None, shards: HostShards, normal_form: HostOf) -> HostOf:
    """The partition key of any URL, None for what is none of http; `normal_form` is that by which URLs are compared."""
    whole = partial(partition_key, partition=partition, rules=rules)
    if not shards:
        return whole
    cut = shards.numbers
    shard = shards.key

    def of_url(url: str) -> str | None:
        host = whole(url)
        return host if host not in cut or host is None else shard(host, normal_form(url) or url)

    return of_url


def starts_of(key: str, host_of: HostOf) -> tuple[str, ...]:
    """What a URL in ASCII begins with that has this partition key whatever follows; nothing where that depends on what
    follows (a shard), or the key is no usual host."""
    if not _usual_host(key):
        return ()
    starts = (f"http://{key}/", f"https://{key}/")
    return starts if all(host_of(start) == key for start in starts) else ()


def named_key(name: object, partition: Partition, rules: HostRules | None) -> str | None:
    """The partition key, but for shards, of a request that names this as its host; None where it is no host name."""
    if not isinstance(name, str) or len(name) > MOST_NAME or not _NAME.fullmatch(name):
        return None
    return partition_key(f"http://{name}/", partition, rules)
