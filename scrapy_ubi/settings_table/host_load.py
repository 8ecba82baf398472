"""How hosts are spared: loads at once, delays, and when they are left alone or given up."""

from __future__ import annotations

from scrapy_ubi.settings_table.loads_at_once import ONE_AT_A_TIME
from scrapy_ubi.settings_table.row import Setting

ROWS: tuple[Setting, ...] = (
    Setting(
        "host_concurrency",
        "host_loads",
        ONE_AT_A_TIME,
        "Politeness: loads of a host at once, in the whole cluster; auto(n): from 1 up to n, as the host bears them.",
        default_text="1",
    ),
    Setting(
        "concurrency",
        "concurrency",
        None,
        "Requests under way at once, of all hosts; auto(n): as many as this agent bears, up to n, while hosts wait.",
        default_text="`CONCURRENT_REQUESTS` where that is set, else `'auto(500)'`",
    ),
    Setting(
        "dns_servers",
        "name_servers",
        (),
        "DNS servers that are asked by c-ares, many names at once; 'system': those of the system; none: by Scrapy.",
    ),
    Setting(
        "host_delay",
        "seconds",
        None,
        "Politeness: time between the end of a load from a host and the start of the next, in the whole cluster.",
        default_text="`DOWNLOAD_DELAY`",
        low=0,
        high=86_400,
        live="host",
    ),
    Setting(
        "delay_factor",
        "float",
        0.0,
        "Politeness: the delay of a host is so many times its last response time, where that is longer; 0: it is not.",
        low=0,
        high=1000,
        live="crawl",
    ),
    Setting(
        "max_delay",
        "seconds",
        60.0,
        "The longest delay that UBI_DELAY_FACTOR makes of a response time.",
        low=0,
        high=86_400,
        live="crawl",
    ),
    Setting(
        "polite_by_ip",
        "flag",
        False,
        "Whether hosts on one IP address, as far as one agent owns them, are loaded from as if they were one.",
    ),
    Setting(
        "max_retry_after",
        "seconds",
        600.0,
        "How long a host that answers 429 or 503 with Retry-After is left alone, at most; 0: the header is ignored.",
        low=0,
        high=86_400,
        live="crawl",
    ),
    Setting(
        "retry_after_times",
        "int",
        3,
        "How often in a row a host may ask to come back later; at the next time it is given up.",
        low=0,
        high=1_000_000,
        live="crawl",
    ),
    Setting(
        "host_failures",
        "int",
        5,
        "Time-outs and connection errors in a row that exclude a host for a while; 0: none do.",
        low=0,
        high=1_000_000,
        live="crawl",
    ),
    Setting(
        "host_pause",
        "seconds",
        60.0,
        "How long a host is excluded at first; each time that it still does not answer, twice as long, up to an hour.",
        low=0,
        high=86_400,
        live="crawl",
    ),
    Setting(
        "host_tries",
        "int",
        3,
        "How often a host is excluded before it is given up.",
        low=0,
        high=1000,
        live="crawl",
    ),
)
