"""Every UBI_* setting: read once, checked, frozen.

`SETTINGS` (settings_table) is the one table. Reading, checking, the list that `listing()` prints and the reference
in the docs all come from it; a test keeps the fields of `UbiSettings` and the rows alike. Rules:

* None, and an empty text for what is no number, mean "not set": the default holds;
* a value that does not hold raises `UbiSettingError` with one sentence that names the setting and the remedy;
* a default stands once, in the table; one that is not a constant there (None) is made here, of Scrapy's settings;
* an unknown UBI_* name is an error too (a typing slip must not pass for a default), with the nearest known name;
* numbers given on the command line (`-s UBI_REPLICAS=100`) arrive as text and are read as numbers. Seconds are floats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.recrawl import read_recrawl
from scrapy_ubi.settings_table import PREFIX, SETTINGS, Kind, Setting, home
from scrapy_ubi.settings_table.iteration_settings import check_iterations, of_iterations
from scrapy_ubi.settings_table.loads_at_once import Loads, LoadsByHost
from scrapy_ubi.settings_table.readers import NUMBERS, READERS, Reader, read_number
from scrapy_ubi.settings_table.recrawl_rows import check_recrawl
from scrapy_ubi.untrusted.checks import NAME
from scrapy_ubi.untrusted.meant_names import ask_meant
from scrapy_ubi.urls import HostRules, setting_readers
from scrapy_ubi.urls.host_keys import HostOf, host_keys
from scrapy_ubi.urls.host_shards import HostShards
from scrapy_ubi.urls.normaliser import Normaliser, parse

__all__ = ["SETTINGS", "Setting", "UbiSettings", "default_crawl", "listing", "read_value", "refuse_unknown"]

# Crawl and agent names are parts of Redis keys and of directories: no braces (hash tags), slashes or spaces.
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_.:-]")
_CUT = 55  # characters of a name that is cut, beside "-" and 8 hex digits
REPLAY = "replay"  # what the name of a replay and its directory end with
FINGERPRINTER = "scrapy.utils.request.RequestFingerprinter"  # Scrapy's default
MOST_REPLICAS = 999_999  # of one agent: as many digits as a beat has for them


# The defaults of the table, by name. What is not in it is an AttributeError when this module is imported.
DEFAULT: Any = SimpleNamespace(**{row.name: row.default for row in SETTINGS})


@dataclass(frozen=True, slots=True)
class UbiSettings:
    """All settings of one agent, checked. Times in seconds. See `SETTINGS` for what each is."""

    enabled: bool = DEFAULT.enabled
    redis_url: str | None = field(default=DEFAULT.redis_url, repr=False)  # may hold a password
    redis_credentials: str = DEFAULT.redis_credentials
    redis_wait: float = DEFAULT.redis_wait
    crawl: str = "scrapybot:spider"  # this and `dir`, `host_delay`: the table has no constant
    mixed_agents: bool = DEFAULT.mixed_agents
    again: Literal["always", "never"] = DEFAULT.again
    serve: bool = DEFAULT.serve
    seed_list: str = DEFAULT.seed_list
    secret: str = field(default=DEFAULT.secret, repr=False)
    agent_id: str | None = DEFAULT.agent_id
    capacity: float = DEFAULT.capacity
    replicas: int = DEFAULT.replicas
    partition: Literal["host", "domain"] = DEFAULT.partition
    normalise: str = DEFAULT.normalise  # the one name of the composition (urls.normaliser.name_of)
    host_rules: HostRules | None = DEFAULT.host_rules
    host_shards: HostShards | None = DEFAULT.host_shards
    dir: Path = Path(".ubi/scrapybot:spider")
    memory_mb: int = DEFAULT.memory_mb
    seen: Literal["exact", "bloom"] = DEFAULT.seen
    store_engine: Literal["auto", "rocksdb", "sqlite"] = DEFAULT.store_engine
    replication: int = DEFAULT.replication
    heartbeat_interval: float = DEFAULT.heartbeat_interval
    lease_timeout: float = DEFAULT.lease_timeout
    start_wait: float | None = DEFAULT.start_wait
    failure_timeout: float = DEFAULT.failure_timeout
    stall_timeout: float = DEFAULT.stall_timeout
    host_concurrency: LoadsByHost = DEFAULT.host_concurrency
    concurrency: Loads | None = DEFAULT.concurrency  # None: CONCURRENT_REQUESTS, or found by the agent
    dns_servers: tuple[str, ...] = DEFAULT.dns_servers
    host_delay: float = 0.0
    delay_factor: float = DEFAULT.delay_factor
    max_delay: float = DEFAULT.max_delay
    polite_by_ip: bool = DEFAULT.polite_by_ip
    max_retry_after: float = DEFAULT.max_retry_after
    retry_after_times: int = DEFAULT.retry_after_times
    host_failures: int = DEFAULT.host_failures
    host_pause: float = DEFAULT.host_pause
    host_tries: int = DEFAULT.host_tries
    flush_interval: float = DEFAULT.flush_interval
    flush_records: int = DEFAULT.flush_records
    handoff_timeout: float = DEFAULT.handoff_timeout
    leave_timeout: float = DEFAULT.leave_timeout
    resend_timeout: float = DEFAULT.resend_timeout
    window: int = DEFAULT.window
    letter_records: int = DEFAULT.letter_records
    outbox_records: int = DEFAULT.outbox_records
    suppressed_keys: int = DEFAULT.suppressed_keys
    max_letter_bytes: int = DEFAULT.max_letter_bytes
    max_url_length: int = DEFAULT.max_url_length
    host_max_pages: int = DEFAULT.host_max_pages
    host_max_known: int = DEFAULT.host_max_known
    host_max_depth: int = DEFAULT.host_max_depth
    host_max_seconds: float = DEFAULT.host_max_seconds
    host_max_iterations: int = DEFAULT.host_max_iterations
    host_stable_iterations: int = DEFAULT.host_stable_iterations
    host_load_take: int = DEFAULT.host_load_take
    host_iterate: bool = DEFAULT.host_iterate
    max_load_seconds: float = DEFAULT.max_load_seconds
    crawl_max_pages: int = DEFAULT.crawl_max_pages
    crawl_max_known: int = DEFAULT.crawl_max_known
    crawl_max_depth: int = DEFAULT.crawl_max_depth
    crawl_max_seconds: float = DEFAULT.crawl_max_seconds
    recrawl: str = DEFAULT.recrawl  # the one text of the rule, which `recrawl.read_recrawl` makes
    recrawl_rounds: int | None = DEFAULT.recrawl_rounds
    recrawl_call: Literal["changed", "always"] = DEFAULT.recrawl_call
    bot_page: str | None = DEFAULT.bot_page
    bot_key: Path | None = DEFAULT.bot_key
    bot_agent: str = DEFAULT.bot_agent
    usage: tuple[str, ...] = DEFAULT.usage
    web: str | None = DEFAULT.web  # "host:port"
    web_token_file: Path | None = DEFAULT.web_token_file
    max_body: int = DEFAULT.max_body
    max_body_types: Literal["html", "all"] = DEFAULT.max_body_types
    error_log: Path | None = DEFAULT.error_log
    error_burst: int = DEFAULT.error_burst
    error_burst_seconds: float = DEFAULT.error_burst_seconds
    metrics: str | None = DEFAULT.metrics  # "host:port"
    fast: bool = DEFAULT.fast
    lean: bool = DEFAULT.lean
    filters: tuple[object, ...] = DEFAULT.filters  # as given: `urls.filters` makes the chain of them
    filter_log: Path | None = DEFAULT.filter_log
    links_of: tuple[object, ...] = DEFAULT.links_of  # as given: `links.handlers.handler_choice` makes them
    score: tuple[object, ...] = DEFAULT.score  # as given: `urls.scores` makes the chain of them
    scores: Path | None = DEFAULT.scores
    rank: object = DEFAULT.rank  # as given: `ranking` makes the ranker
    stores: tuple[object, ...] = DEFAULT.stores  # as given: `outputs.stores` makes them
    store_mb: int = DEFAULT.store_mb
    duplicates: str | None = DEFAULT.duplicates  # "exact" or "near(N)"
    duplicates_action: Literal["mark", "unfollow", "skip"] = DEFAULT.duplicates_action
    ship: str | None = DEFAULT.ship
    ship_seconds: float = DEFAULT.ship_seconds
    ship_timeout: float = DEFAULT.ship_timeout
    replay: tuple[str, ...] = DEFAULT.replay  # as given: paths and globs
    host_cookies: bool = DEFAULT.host_cookies
    foreign_downloads: Literal["polite", "refuse", "allow"] = DEFAULT.foreign_downloads
    shared_feeds: bool = DEFAULT.shared_feeds
    private_hosts: Literal["refuse", "allow"] = DEFAULT.private_hosts
    link_schemes: tuple[str, ...] = DEFAULT.link_schemes
    codecs: Mapping[str, object] | None = DEFAULT.codecs
    proxies: tuple[str, ...] = DEFAULT.proxies
    robots_ttl: float = DEFAULT.robots_ttl
    robots_timeout: float = DEFAULT.robots_timeout
    robots_give_up: float = DEFAULT.robots_give_up
    max_crawl_delay: float = DEFAULT.max_crawl_delay
    sitemaps: int = DEFAULT.sitemaps
    # No settings of their own: the function that UBI_PARTITION names, if it does, "" else; the user chose the directory
    # (UBI_DIR or JOBDIR), and by JOBDIR; who tells requests apart; hosts at once in iterations.
    named_by: str = ""
    dir_given: bool = False
    dir_is_jobdir: bool = False
    fingerprinter: str = FINGERPRINTER
    hosts_at_once: int = 1

    def __post_init__(self) -> None:
        _check_relations(self)

    @property
    def fingerprints(self) -> bool:
        """Whether a fingerprinter that is not Scrapy's own tells requests apart."""
        return self.fingerprinter != FINGERPRINTER

    def host_of(self) -> HostOf:
        """What tells the partition key of any URL, None for what is none of http."""
        form = Normaliser(parse(self.normalise), self.host_rules).function
        return host_keys(self.partition, self.host_rules, self.host_shards, form)

    @property
    def ring_replicas(self) -> int:
        """Points of this agent on the ring."""
        return replicas_for(self.replicas, self.capacity)

    @classmethod
    def from_scrapy(
        cls, settings: Mapping[Any, Any], spider: str = "", *, bot: str | None = None, arguments: str = ""
    ) -> UbiSettings:
        """Read the UBI_* names out of Scrapy's `settings` for the spider named `spider`, started with `arguments`
        (their short mark; empty: none).

        `bot` is BOT_NAME unless given. Raises `UbiSettingError` for the first thing that does not hold.
        """
        refuse_unknown(name for name in settings if isinstance(name, str))
        values = {row.name: read_value(row, settings.get(row.setting)) for row in SETTINGS}
        if values["partition"] not in setting_readers.PARTITIONS:
            values["named_by"], values["partition"] = values["partition"], DEFAULT.partition
        if values["crawl"] is None:
            values["crawl"] = default_crawl(str(bot or bot_name(settings)), spider, arguments)
        given = values["dir"] is not None or bool(settings.get("JOBDIR"))
        is_jobdir = values["dir"] is None and given
        if values["dir"] is None:
            values["dir"] = Path(str(settings.get("JOBDIR") or home.directory(str(values["crawl"]))))
        if values["replay"]:  # beside the crawl that wrote the files, whose directory knows all pages already
            values["crawl"] = default_crawl(str(values["crawl"]), REPLAY)
            values["dir"] = Path(str(values["dir"])) / REPLAY if given else Path(home.directory(str(values["crawl"])))
        if values["host_delay"] is None:
            values["host_delay"] = _download_delay(settings.get("DOWNLOAD_DELAY"))
        fingerprinter = _class_name(settings.get("REQUEST_FINGERPRINTER_CLASS") or FINGERPRINTER)
        values |= of_iterations(values, settings)
        return cls(
            dir_given=given, dir_is_jobdir=is_jobdir, fingerprinter=fingerprinter, **cast("dict[str, Any]", values)
        )


def replicas_for(replicas: int, capacity: float) -> int:
    """Points on the ring of an agent of this capacity where one of capacity 1 has `replicas`; at least one."""
    return max(1, round(replicas * capacity))


def _class_name(cls: object) -> str:
    """The dotted path of a class, which may be given by that or itself."""
    return cls if isinstance(cls, str) else f"{getattr(cls, '__module__', '')}.{getattr(cls, '__qualname__', cls)}"


def bot_name(settings: Mapping[Any, Any]) -> str:
    """Scrapy's BOT_NAME."""
    return str(settings.get("BOT_NAME") or "scrapybot")


def is_of_bot(crawl: str, bot: str) -> bool:
    """Whether a crawl has the name that a spider of this bot's project gives it by default."""
    return crawl.startswith(_NOT_IN_NAME.sub("_", f"{bot}:")[:_CUT])


def default_crawl(bot: str, spider: str, arguments: str = "") -> str:
    """`<bot>:<spider>`, and `:<arguments>` where the spider has any. Where that is no name: characters replaced, cut to
    a name's length, and 8 hex digits that tell it from others that look alike then.
    """
    wanted = ":".join(part for part in (bot, spider, arguments) if part)
    if NAME.fullmatch(wanted):
        return wanted
    mark = blake2b(wanted.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{_NOT_IN_NAME.sub('_', wanted)[:_CUT]}-{mark}"


def refuse_unknown(names: Iterable[str]) -> None:
    """Raise `UbiSettingError` for the first UBI_* name that is no setting."""
    known = [row.setting for row in SETTINGS]
    for name in names:
        if name.startswith(PREFIX) and name not in known:
            remedy = ask_meant(name, known) or "docs/reference/settings.md has them all"
            raise UbiSettingError(name, "is not a setting of scrapy_ubi", remedy)


def read_value(row: Setting, value: object) -> object:
    """The checked value of one setting; its default when `value` is None, or an empty text for what is no number."""
    if value is None or (value == "" and row.kind not in NUMBERS):
        return row.default
    return _READERS[row.kind](row, value)


def early(settings: Mapping[Any, Any], name: str) -> Any:
    """The checked value of this name, for what has its place in Scrapy's settings before anything is read. A malformed
    value is the default here: the start is refused because of it elsewhere."""
    row = next(row for row in SETTINGS if row.name == name)
    try:
        return read_value(row, settings.get(row.setting))
    except UbiSettingError:
        return row.default


def _read_recrawl(row: Setting, value: object) -> str:
    """A rule, by its one text."""
    return str(read_recrawl(value) or "")


_READERS: Mapping[Kind, Reader] = {**READERS, **setting_readers.READERS, "recrawl": _read_recrawl}


def _download_delay(value: object) -> float:
    """Scrapy's DOWNLOAD_DELAY as a number; UBI_HOST_DELAY takes it when not set."""
    row = next(row for row in SETTINGS if row.name == "host_delay")
    try:
        return float(read_number(row, value if value is not None else 0.0))
    except UbiSettingError as error:
        raise UbiSettingError("DOWNLOAD_DELAY", f"is {value!r}", error.remedy) from None


def _check_relations(settings: UbiSettings) -> None:
    """heartbeat < lease < failure: an agent stops fetching before the others can take its hosts
    (docs/explanation/protocol.md#membership)."""
    beat, lease, failure = settings.heartbeat_interval, settings.lease_timeout, settings.failure_timeout
    if not lease < failure:
        raise UbiSettingError(
            "UBI_LEASE_TIMEOUT",
            f"is {lease:g} s and UBI_FAILURE_TIMEOUT is {failure:g} s",
            "make the lease shorter, so that an agent stops fetching before the others take its hosts",
        )
    if not beat < lease:
        raise UbiSettingError(
            "UBI_HEARTBEAT_INTERVAL",
            f"is {beat:g} s and UBI_LEASE_TIMEOUT is {lease:g} s",
            "make the heartbeat shorter, so that an agent can keep its lease",
        )
    if settings.redis_url is not None:
        _check_turns(settings)
    setting_readers.check_shards(settings.host_shards, settings.partition, settings.host_rules)
    setting_readers.check_hosts(
        settings.host_concurrency, settings.partition, settings.host_rules, by_ip=settings.polite_by_ip
    )
    check_recrawl(settings.recrawl, settings.recrawl_rounds, iterate=settings.host_iterate, sitemaps=settings.sitemaps)
    fingerprinter = settings.fingerprinter if settings.fingerprints else None
    check_iterations(settings.host_iterate, settings.max_load_seconds, settings.rank, fingerprinter)
    if settings.ring_replicas > MOST_REPLICAS:
        raise UbiSettingError(
            "UBI_REPLICAS",
            f"times UBI_AGENT_CAPACITY is {settings.ring_replicas}",
            f"make one of them smaller, an agent has at most {MOST_REPLICAS} replicas",
        )


def _check_turns(settings: UbiSettings) -> None:
    """An agent looks once in a flush interval whether its lease has ended: it has to cancel its loads before the others
    fetch. And one that seems stalled between two looks would not beat."""
    flush, most = settings.flush_interval, (settings.failure_timeout - settings.lease_timeout) / 2
    if flush > most:
        raise UbiSettingError(
            "UBI_FLUSH_INTERVAL",
            f"is {flush:g} s, UBI_LEASE_TIMEOUT {settings.lease_timeout:g} s and UBI_FAILURE_TIMEOUT "
            f"{settings.failure_timeout:g} s",
            f"make it at most {most:g} s, half of the time between the two, so that an agent ends its loads before the "
            "others take its hosts",
        )
    if settings.stall_timeout < 2 * flush:
        raise UbiSettingError(
            "UBI_STALL_TIMEOUT",
            f"is {settings.stall_timeout:g} s and UBI_FLUSH_INTERVAL is {flush:g} s",
            f"make it at least {2 * flush:g} s, or the agent does not beat",
        )


def listing() -> str:
    """All settings, one a paragraph, as plain text: name, default, values, sentence."""
    paragraphs = [
        f"{row.setting}\n    default: {row.shown_default}\n    values: {row.bounds}\n    {row.sentence}"
        for row in SETTINGS
    ]
    return "\n\n".join(paragraphs) + "\n"
