"""Every UBI_* setting, declared once: its type, default, sentence and bounds, in the order of the reference.

`declare` says what a declaration may hold. Reading, checks, what all agents must agree on, what can be changed while a
crawl runs, and the tests of docs/reference/settings.md go by these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scrapy_ubi.settings.crawl_caps import NO_CAPS, CrawlCaps
from scrapy_ubi.settings.declare import derived, derived_of, made_of, rules_of, seconds, setting, settings_of
from scrapy_ubi.settings.host_limits import HostLimitsTable
from scrapy_ubi.settings.loads_at_once import ONE_AT_A_TIME, Loads, LoadsByHost
from scrapy_ubi.settings.proxy_pool import NO_POOL, ProxyPool
from scrapy_ubi.settings.rates import NO_RATES, RateTable
from scrapy_ubi.settings.values import NO_RECRAWL, NO_SITEMAPS, WHOLE, Duplicates, MaxBody, RecrawlUse, SitemapUse
from scrapy_ubi.urls import HostRules
from scrapy_ubi.urls.host_shards import NO_SHARDS, HostShards

REPLICAS = 200  # golden: agents of one crawl must agree on it


# fmt: off - so that a declaration is read at one glance
@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)  # `UbiSettings` has these: each takes a while
class Declarations:
    """All settings of one agent. Times in seconds."""

    # -- On or off

    enabled: bool = setting(
        True,
        "Whether the add-on does anything; False leaves the crawl to plain Scrapy, to compare the two.",
        group="On or off",
    )
    preset: Literal["one_site", "broad", "archive", "service", "development"] | None = setting(
        None,
        "Values of many settings by one name, for a kind of crawl; what is set besides wins.",
        "preset",
        group="Presets",
    )

    # -- Who crawls together

    redis_url: str | None = setting(
        None,
        "The Redis or Valkey that carries the agents' mail; without it the crawl is a complete one of one agent.",
        "url",
        group="Who crawls together",
    )
    redis_credentials: str = setting(
        "",
        "The dotted path of a function that gives user and password of the Redis, for each new connection.",
        "function",
    )
    redis_wait: float = setting(
        10.0,
        "How long a starting agent waits for a Redis that is away, in seconds; one that has joined waits as long as"
        " it takes.",
        low=0,
        high=86_400,
    )
    crawl: str = setting(
        made_of(
            "`<BOT_NAME>:<spider>`, and `:` with 8 digits for the spider's arguments if it has any", "scrapybot:spider"
        ),
        "The name of the crawl: all agents that give it crawl together.",
        "name",
    )
    mail_slots: int = setting(
        1,
        "Over how many hash slots of a Redis Cluster the mail is spread; 1: all of it is in the crawl's slot.",
        low=1,
        high=256,
        agree="mail",
    )
    mixed_agents: bool = setting(
        False,
        "Agents whose spiders were started with other arguments, or are of other classes, may share a crawl.",
    )
    secret: str = setting(
        "",
        "What all agents of a crawl, and the commands that change it, sign with: anything else in Redis is refused.",
        "secret",
    )
    agent_id: str | None = setting(
        made_of("made once, kept in the agent's directory"),
        "The identifier of this agent; it alone decides which hosts the agent owns.",
        "name",
    )
    capacity: float = setting(
        1.0,
        "How much of the web this agent takes, relative to the others: 2 owns twice the hosts of 1.",
        above=0,
        high=1000,
        longer_name="agent_capacity",
    )
    partition: Literal["host", "domain"] = setting(
        "host",
        "What is owned as one and fetched one at a time: a host, all hosts of a registered domain, or what a "
        "function of a request names as its host.",
        "partition",
        agree="ownership",
    )
    host_shards: HostShards = setting(
        NO_SHARDS,
        "Giant hosts, each cut into so many shards, which agents own and fetch side by side; delays are as many "
        "times as long, so that the site feels the same rate, unless it is 'fast'.",
        "shards",
        agree="ownership",
        shown="None",
    )
    replication: int = setting(
        1,
        "How many successors keep a copy of a host: as many agents may be lost at once without losing a URL.",
        low=0,
        high=8,
        agree="ownership",
    )

    # -- URLs from outside

    serve: bool = setting(
        False,
        "The crawl waits for URLs from outside (`scrapy ubi seed`) when nothing is left to fetch, and does not end.",
        group="URLs from outside",
        agree="end",
    )
    seed_list: str = setting(
        "",
        "The key of a Redis list, set or sorted set of start URLs, as scrapy-redis has it, that the agents take; "
        "with `UBI_SERVE`.",
        "redis_key",
    )
    again: Literal["always", "never"] = setting(
        "always",
        "What a start after the end of the crawl does: 'always' begins a new one, 'never' says that it is finished,"
        " and ends.",
    )

    # -- Which URLs are one

    normalise: str = setting(
        "scrapy",
        "Which URLs count as one: a preset of steps that make the normal form, by which URLs are compared and not "
        "fetched.",
        "steps",
        group="Which URLs are one",
        agree="urls",
    )
    host_rules: HostRules | None = setting(
        None,
        "Which host names are names of one host: rules for beginnings, ends and whole names, or the path of a file "
        "of them as LARM reads it.",
        "rules",
        agree="urls",
    )

    # -- The agent's disk and memory

    dir: Path = setting(
        made_of(
            "`JOBDIR` if set, else `.ubi/<crawl>` in the project's root (a second process on the machine takes "
            "`.ubi/<crawl>/1`)",
            Path(".ubi/scrapybot:spider"),
        ),
        "The agent's own directory, where its identifier and its part of the frontier live.",
        "path",
        group="The agent's disk and memory",
    )
    memory_mb: int = setting(
        256,
        "Megabytes for all caches of the agent together; the table of known URLs is beside that, a mapped file of "
        "about 10 bytes a URL.",
        low=32,
        high=1_000_000,
    )
    seen: Literal["exact", "bloom"] = setting(
        "exact",
        "How known URLs are remembered: exactly, or as by a Bloom filter, in half the bytes, which takes a new URL "
        "for a known one at times, so that it is never fetched.",
    )
    store_engine: Literal["auto", "rocksdb", "sqlite"] = setting(
        "auto",
        "What keeps the agent's directory: RocksDB, SQLite, or the one that has written it, RocksDB where nothing is "
        "there yet and it can be imported.",
    )

    # -- Who is alive

    failure_timeout: float = seconds(
        15.0,
        "An agent whose beat has not changed for so long is dead to the others, and its hosts go to their next agents.",
        group="Who is alive",
        above=0,
        high=7200,
    )
    lease_timeout: float = seconds(
        made_of("two thirds of `UBI_FAILURE_TIMEOUT`", rule=lambda own: own.failure_timeout * 2 / 3),
        "An agent whose last acknowledged beat is older starts no fetch; more than a heartbeat, less than the "
        "failure timeout.",
        above=0,
        high=3600,
    )
    heartbeat_interval: float = seconds(
        made_of(
            "a fifteenth of `UBI_FAILURE_TIMEOUT`, at most 1",
            rule=lambda own: min(1.0, max(0.01, own.failure_timeout / 15)),
        ),
        "Time between two beats of an agent.",
        low=0.01,
        high=3600,
    )
    start_wait: float | None = seconds(
        made_of("`UBI_LEASE_TIMEOUT` and a little, 11.25 with the default settings"),
        "How long Redis must have lost nothing before an agent that finds no other at work fetches; 0: not at all.",
        low=0,
        high=7200,
    )
    leave_timeout: float = seconds(
        60.0,
        "How long an agent that leaves tries to hand on all it holds; what is left stays on its disk.",
        low=0,
        high=86_400,
    )

    # -- Whose bot it is

    bot_page: str | None = setting(
        None,
        "The address of a page that explains the bot to webmasters; the User-Agent names it.",
        "contact",
        group="Whose bot it is",
    )
    bot_key: Path | None = setting(
        None,
        "The file of the bot's private key (Ed25519; PEM or JWK): every request is signed with it (Web Bot Auth).",
        "file",
    )
    bot_agent: str = setting(
        "",
        "Where servers find the public key, named with each signed request: the origin that serves the directory, "
        "or the whole address of the key set.",
        "https",
    )

    # -- What pages are for

    usage: tuple[str, ...] = setting(
        (),
        "What pages are used for: those whose site does not want that (`Content-Usage`, `Content-Signal`) are left "
        "out; 'note' leaves none out. Either notes in `meta` what sites say.",
        "usage",
        group="What pages are for",
    )
    nofollow: bool = setting(
        False, 'Whether the links of pages are left out that say `nofollow` (`X-Robots-Tag`, `<meta name="robots">`).'
    )

    # -- How much in parallel

    concurrency: Loads | None = setting(
        made_of("`CONCURRENT_REQUESTS` where that is set, else `'auto(500)'`"),
        "Requests under way at once, of all hosts; auto(n): as many as this agent bears, up to n, while hosts wait.",
        "concurrency",
        group="How much in parallel",
    )
    dns_servers: tuple[str, ...] = setting(
        (),
        "DNS servers that are asked by c-ares, many names at once; 'system': those of the system; none: by Scrapy.",
        "name_servers",
    )

    # -- Politeness

    host_delay: float = seconds(
        made_of("`DOWNLOAD_DELAY`", 0.0),
        "Politeness: time between the end of a load from a host and the start of the next, in the whole cluster.",
        group="Politeness",
        low=0,
        high=86_400,
        live="host",
    )
    host_concurrency: LoadsByHost = setting(
        ONE_AT_A_TIME,
        "Politeness: loads of a host at once, in the whole cluster; auto(n): from 1 up to n, as the host bears them.",
        "host_loads",
        shown="1",
    )
    rates: RateTable = setting(
        NO_RATES,
        "Politeness: rates that the group keeps in any window, of hosts, shards, proxies, and of requests that name "
        "them in `meta['ubi_rate']`.",
        "rates",
        shown="{}",
        agree="mail",
    )
    proxy_pool: ProxyPool = setting(
        NO_POOL,
        "A pool of proxies, by a file or a function: a host keeps to one until that fails, or the host bans it.",
        "proxies",
        shown="None",
    )
    delay_factor: float = setting(
        0.0,
        "Politeness: the delay of a host is so many times its last response time, where that is longer; 0: it is not.",
        low=0,
        high=1000,
        live="crawl",
    )
    max_delay: float = seconds(
        60.0,
        "The longest delay that a response time (UBI_DELAY_FACTOR) or a Crawl-delay of robots.txt makes; 0: neither "
        "counts.",
        low=0,
        high=86_400,
        live="crawl",
    )
    polite_by_ip: bool = setting(
        False,
        "Whether hosts on one IP address, as far as one agent owns them, are loaded from as if they were one.",
    )
    max_retry_after: float = seconds(
        600.0,
        "How long a host that answers 429 or 503 with Retry-After is left alone, at most; 0: the header is ignored.",
        low=0,
        high=86_400,
        live="crawl",
    )
    foreign_downloads: Literal["polite", "refuse", "allow"] = setting(
        "polite",
        "What to do with downloads that bypass the scheduler (media files) and whose host another agent owns.",
    )

    # -- Hosts that do not answer

    host_failures: int = setting(
        5,
        "Time-outs and connection errors in a row that exclude a host for a while; 0: none do.",
        group="Hosts that do not answer",
        low=0,
        high=1_000_000,
        live="crawl",
    )
    host_pause: float = seconds(
        60.0,
        "How long a host is excluded at first; each time that it still does not answer, twice as long, up to an hour.",
        low=0,
        high=86_400,
        live="crawl",
    )
    host_tries: int = setting(
        3,
        "How often a host is excluded, or asks in a row to come back later, before it is given up.",
        low=0,
        high=1000,
        live="crawl",
    )

    # -- robots.txt

    robots_ttl: float = seconds(
        86400.0,
        "How long a robots.txt that was read is obeyed before it is fetched again.",
        group="robots.txt",
        low=1,
        high=31_536_000,
        live="crawl",
    )
    robots_timeout: float = seconds(
        15.0,
        "How long the load of a robots.txt may take; DOWNLOAD_TIMEOUT where that is less.",
        above=0,
        high=3600,
        live="crawl",
    )
    robots_give_up: float = seconds(
        120.0,
        "How long a robots.txt that cannot be read is tried, the host's pages waiting, before they fail.",
        low=0,
        high=31_536_000,
        live="crawl",
    )
    sitemaps: SitemapUse = setting(
        NO_SITEMAPS,
        "Whether the pages that the sitemaps of a host list are crawled: before links, or in their place.",
        "sitemaps",
        shown='"no"',
        live="crawl",
    )

    # -- Which links are followed

    links_of: tuple[object, ...] = setting(
        ("html",),
        "Of which documents `links(response)` of a UbiSpider gives the links: HTML, headers, feeds, sitemaps, PDF, ...",
        "handlers",
        group="Which links are followed",
        shown='["html"]',
    )
    filters: tuple[object, ...] = setting(
        (),
        "The filters that links have to pass, in their order.",
        "filters",
        shown="[]",
        live="crawl",
    )
    filter_log: Path | None = setting(
        None,
        "The file to which every link that a filter refuses is written, with the page that it was found on.",
        "file",
    )
    private_hosts: Literal["refuse", "allow"] = setting(
        "refuse",
        "What to do with links of public pages that lead to loopback, private and link-local addresses.",
    )

    # -- In which order

    score: tuple[object, ...] = setting(
        (),
        "The scorers of links, whose sum is added to the priority of a link where it is found.",
        "scorers",
        group="In which order",
        shown="[]",
    )
    rank: object = setting(
        None,
        "What orders the queue of a host after each iteration: 'backlinks', 'opic', 'keywords(...)', or your own.",
        "ranker",
    )
    host_iterate: bool = setting(
        False,
        "Whether a host waits, after the pages of an iteration were taken, until all of them have ended (DLC).",
    )
    host_load_take: int = setting(1, "Pages in an iteration of a host (LT).", low=1, high=1_000_000)

    # -- How much of a host

    host_limits: HostLimitsTable | None = setting(
        None,
        "How much of a host: pages, bytes, depth, seconds, and more; of all hosts, of domains, of single hosts.",
        "host_limits",
        group="How much of a host",
        live="host",
    )
    max_load_seconds: float = seconds(
        0.0,
        "The longest that the load of a page may take (TLLmax); 0: as long as DOWNLOAD_TIMEOUT says.",
        low=0,
        high=86_400,
        live="crawl",
    )

    # -- How much in all

    crawl_limits: CrawlCaps = setting(
        NO_CAPS,
        "How much of all: pages, bytes, seconds, URLs known, depth; and the free disk below which an agent pauses.",
        "crawl_limits",
        group="How much in all",
        shown="no limit",
        live="crawl",
    )

    # -- Visited again

    recrawl: RecrawlUse = setting(
        NO_RECRAWL,
        "By which rule pages are visited again, and how often at most; none: each is visited once.",
        "recrawl",
        group="Visited again",
        agree="visits",
        shown="''",
    )

    # -- How pages are fetched

    fast: bool = setting(
        True,
        "Whether pages are fetched by a lean HTTP/1.1 handler in place of Scrapy's, where nothing asks for that.",
        group="How pages are fetched",
    )
    lean: bool = setting(
        True,
        "Whether what Scrapy does for a page is done in fewer calls: one task, fewer looks at signals and stats.",
    )

    browser: Literal["off", "auto", "always"] = setting(
        "off",
        "Whether pages that scripts make are shown by a browser (scrapy-playwright): of hosts where a few pages were "
        "compared, or always.",
        live="host",
    )

    # -- What is kept of a page

    max_body: MaxBody = setting(
        WHOLE,
        "Bytes of an HTML page that are loaded and kept: of a larger one only the beginning; 0 keeps all; all(n): of "
        "everything that callbacks get.",
        "body",
        group="What is kept of a page",
        shown="0",
        live="crawl",
    )

    # -- Outputs

    stores: tuple[object, ...] = setting(
        (),
        "What is kept of the pages, in files of the agent's directory: 'items', 'larm', 'graph', or your own.",
        "stores",
        group="Outputs",
        shown="[]",
    )
    duplicates: Duplicates | None = setting(
        None,
        "Which pages are compared with others of their host: copies byte for byte, or those of nearly the same words; "
        "and what is done with one: marked, not followed (unfollow), or not handed to its callback (skip).",
        "duplicates",
    )
    observers: tuple[object, ...] = setting(
        (),
        "What looks at pages besides, by dotted paths: your own subclasses of `scrapy_ubi.PageObserver`.",
        "observers",
        shown="[]",
    )
    ship: str | None = setting(
        None,
        "Where sealed files of UBI_STORES are sent while the crawl runs: 's3://bucket/prefix', or 'file:///directory'.",
        "target",
    )
    replay: tuple[str, ...] = setting(
        (),
        "WARC files that answer the spider's requests in place of the network: paths, or globs.",
        "files",
        shown="[]",
    )
    shared_feeds: bool = setting(False, "Whether an agent may start with a feed whose name another agent has, too.")

    # -- Seen from outside

    web: str | None = setting(
        None,
        "Where the agent shows its crawl to browsers, as `scrapy ubi web` does; without it, nowhere.",
        "listen",
        group="Seen from outside",
    )
    web_token_file: Path | None = setting(
        None,
        "The file with the token that changes by the page need; without it, the page changes nothing.",
        "file",
    )
    metrics: str | None = setting(
        None,
        "Where the agent answers Prometheus, and probes, by HTTP: /metrics, /live and /ready; without it, nowhere.",
        "listen",
    )

    # -- Errors

    error_burst: int = setting(
        0,
        "So many unanticipated errors within a minute stop the agent; 0: none do, as with Scrapy.",
        group="Errors",
        low=0,
        high=1_000_000,
        live="crawl",
    )

    # -- What travels with a request

    codecs: Mapping[str, object] | None = setting(
        None,
        "Codecs by the key of meta: each makes plain data of a value that cannot travel as it is, and takes it back.",
        "codecs",
        group="What travels with a request",
    )
    proxies: tuple[str, ...] = setting(
        (),
        "The hosts of proxies that requests from other agents may go through (meta['proxy']); ['*']: any.",
        "words",
        shown="[]",
    )
    max_letter_bytes: int = setting(
        1000000,
        "The longest letter that is sent or accepted; a request that would not fit cannot leave the agent.",
        low=16_384,
        high=256_000_000,
        agree="mail",
    )

    # -- Derived: no settings of their own. Code may give others; people choose what they are made of.

    replicas: int = derived("200", lambda own: REPLICAS)  # points on the ring of an agent of capacity 1
    flush_interval: float = derived(  # between two times that what was found is written and sent, and mail is read
        "0.2 s; less where `UBI_HEARTBEAT_INTERVAL` is below 0.5 s",
        lambda own: max(0.01, min(0.2, 0.4 * own.heartbeat_interval, (own.failure_timeout - own.lease_timeout) / 4)),
    )
    resend_timeout: float = derived(  # until a letter that is not acknowledged is sent again
        "25 times the time between two flushes, 5 s; and 25 round trips to Redis", lambda own: 25 * own.flush_interval
    )
    stall_timeout: float = derived(  # until an agent whose event loop does not turn stops its own beats
        "4 times `UBI_FAILURE_TIMEOUT`, at least 60 s", lambda own: max(60.0, 4 * own.failure_timeout)
    )
    handoff_timeout: float = derived(  # until a new owner fetches without what the former one knows of a host
        "4 times `UBI_FAILURE_TIMEOUT`, at least 60 s", lambda own: max(60.0, 4 * own.failure_timeout)
    )
    ship_timeout: float = derived(  # until an agent that has ended gives up to send its last files
        "10 times `UBI_LEAVE_TIMEOUT`", lambda own: 10 * own.leave_timeout
    )
    window: int = derived(
        "8; up to 32 where Redis is far", lambda own: 8
    )  # letters of a lane that wait for their acknowledgement
    letter_records: int = derived("500", lambda own: 500)  # in one letter, at most
    flush_records: int = derived(  # that wait, and make an exchange come early; a flush takes all there is
        "4 for each MB of `UBI_MEMORY_MB`", lambda own: _share(own, 1000)
    )
    outbox_records: int = derived(  # that wait in the outbox before the agent stops fetching
        "800 for each MB of `UBI_MEMORY_MB`", lambda own: _share(own, 200_000)
    )
    suppressed_keys: int = derived(  # of foreign URLs that are remembered as known to their owners
        "4,000 for each MB of `UBI_MEMORY_MB`", lambda own: _share(own, 1_000_000)
    )
    store_mb: int = derived(  # MB of outputs that may wait to be written
        "a quarter of `UBI_MEMORY_MB`, at least 16", lambda own: max(16, own.memory_mb // 4)
    )


def _share(own: Declarations, usual: int) -> int:
    """As many as are usual with the default of UBI_MEMORY_MB, more or less by the memory there is."""
    return min(100_000_000, usual * own.memory_mb // 256)


# fmt: on
SETTINGS = settings_of(Declarations)
DERIVED = derived_of(Declarations)  # name -> of what it is made
RULES = rules_of(Declarations)

# Settings that are none any more: a start with one of them is refused with what is to be done instead.
_TIMES = "remove it, it follows from UBI_FAILURE_TIMEOUT"
_MEMORY = "remove it, it follows from UBI_MEMORY_MB"
_FLUSHES = "remove it, it follows from UBI_HEARTBEAT_INTERVAL"
_FIXED = "remove it, it is the same for all crawls"

# Settings that are now a limit in a table of limits: they are still read, and the table's own value wins.
FORMER: Mapping[str, tuple[str, str]] = {
    **{f"UBI_CRAWL_MAX_{name.upper()}": ("UBI_CRAWL_LIMITS", name) for name in ("pages", "known", "depth", "seconds")},
    **{
        f"UBI_HOST_MAX_{name.upper()}": ("UBI_HOST_LIMITS", name)
        for name in ("pages", "known", "depth", "seconds", "iterations")
    },
    "UBI_HOST_STABLE_ITERATIONS": ("UBI_HOST_LIMITS", "stable"),
}

GONE: Mapping[str, str] = {
    "UBI_DUPLICATES_ACTION": "write it into UBI_DUPLICATES, for example 'near(3, skip)'",
    "UBI_ERROR_BURST_SECONDS": "remove it, UBI_ERROR_BURST counts the errors of a minute",
    "UBI_ERROR_LOG": "remove it, the file is errors.log in UBI_DIR",
    "UBI_FLUSH_INTERVAL": _FLUSHES,
    "UBI_FLUSH_RECORDS": _MEMORY,
    "UBI_HANDOFF_TIMEOUT": _TIMES,
    "UBI_HOST_COOKIES": "remove it, cookies always go with their host; COOKIES_ENABLED = False keeps none",
    "UBI_LETTER_RECORDS": _FIXED,
    "UBI_LINK_SCHEMES": "name Scrapy's handler of the scheme in DOWNLOAD_HANDLERS, for example "
    "{'ftp': 'scrapy.core.downloader.handlers.ftp.FTPDownloadHandler'}",
    "UBI_MAX_BODY_TYPES": "write UBI_MAX_BODY = 'all(1000000)' to cut everything, and a number to cut HTML",
    "UBI_MAX_CRAWL_DELAY": "use UBI_MAX_DELAY, which holds for every delay that is found out",
    "UBI_MAX_URL_LENGTH": "use Scrapy's URLLENGTH_LIMIT, beyond 4,096 characters it holds for all URLs",
    "UBI_OUTBOX_RECORDS": _MEMORY,
    "UBI_RECRAWL_CALL": "write it into UBI_RECRAWL, for example 'every(1d, call=always)'",
    "UBI_RECRAWL_ROUNDS": "write it into UBI_RECRAWL, for example 'every(1d, rounds=5)'",
    "UBI_REPLICAS": "remove it, and use UBI_AGENT_CAPACITY to give an agent more hosts or less",
    "UBI_RESEND_TIMEOUT": _FLUSHES,
    "UBI_RETRY_AFTER_TIMES": "use UBI_HOST_TRIES, which counts both",
    "UBI_SCORES": "name the file in UBI_SCORE, for example ['file(scores.gz)']",
    "UBI_SHIP_SECONDS": "give the store its seconds, for example UBI_STORES = ['items(seconds=60)']",
    "UBI_SHIP_TIMEOUT": "remove it, it is ten times UBI_LEAVE_TIMEOUT",
    "UBI_STALL_TIMEOUT": _TIMES,
    "UBI_STORE_MB": _MEMORY,
    "UBI_SUPPRESSED_KEYS": _MEMORY,
    "UBI_WINDOW": _FIXED,
}
