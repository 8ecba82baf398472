"""When a host and the crawl are ended."""

from __future__ import annotations

from scrapy_ubi.settings_table.row import Setting

ROWS: tuple[Setting, ...] = (
    Setting(
        "host_max_pages",
        "int",
        0,
        "Pages of a host that are done before it is ended (PLmax); 0: any number.",
        low=0,
        high=1_000_000_000_000,
    ),
    Setting(
        "host_max_known",
        "int",
        0,
        "URLs of a host that are known before new ones of it are dropped (TTmax); 0: any number.",
        low=0,
        high=1_000_000_000_000,
    ),
    Setting(
        "host_max_depth",
        "int",
        0,
        "How many links deeper than the first page of a host its pages may be; 0: any number.",
        low=0,
        high=1_000_000,
    ),
    Setting(
        "host_max_seconds",
        "seconds",
        0.0,
        "Time after the first load of a host at which it is ended (TDLmax); 0: never.",
        low=0,
        high=315_360_000,
    ),
    Setting(
        "host_max_iterations",
        "int",
        0,
        "Iterations of a host, of UBI_HOST_LOAD_TAKE pages each, before it is ended (Imax); 0: any number.",
        low=0,
        high=1_000_000_000_000,
    ),
    Setting(
        "host_stable_iterations",
        "int",
        0,
        "Iterations in a row without a new URL of the host before it is ended (TSTmax); 0: any number.",
        low=0,
        high=1_000_000,
    ),
    Setting(
        "host_load_take",
        "int",
        1,
        "Pages in an iteration of a host (LT).",
        low=1,
        high=1_000_000,
    ),
    Setting(
        "max_load_seconds",
        "seconds",
        0.0,
        "The longest that the load of a page may take (TLLmax); 0: as long as DOWNLOAD_TIMEOUT says.",
        low=0,
        high=86_400,
    ),
    Setting(
        "crawl_max_pages",
        "int",
        0,
        "Pages that all agents together load before the crawl ends; 0: any number.",
        low=0,
        high=1_000_000_000_000_000,
    ),
    Setting(
        "crawl_max_known",
        "int",
        0,
        "URLs known to all agents together before new ones are dropped; 0: any number.",
        low=0,
        high=1_000_000_000_000_000,
    ),
    Setting(
        "crawl_max_depth",
        "int",
        0,
        "How many links from the seeds pages may be; 0: any number.",
        low=0,
        high=1_000_000,
    ),
    Setting(
        "crawl_max_seconds",
        "seconds",
        0.0,
        "How long the crawl may run before it ends; 0: any time.",
        low=0,
        high=315_360_000,
    ),
)
