"""Every UBI_* setting: read once, checked, frozen.

`SETTINGS` (settings_table) is the one table. Reading, checking, the list that `listing()` prints and the reference
in the docs all come from it; a test keeps the fields of `UbiSettings` and the rows alike. Rules:

* None, and an empty text for what is no number, mean "not set": the default holds;
* a value that does not hold raises `UbiSettingError` with one sentence that names the setting and the remedy;
* an unknown UBI_* name is an error too (a typing slip must not pass for a default), with the nearest known name;
* numbers given on the command line (`-s UBI_REPLICAS=100`) arrive as text and are read as numbers. Seconds are floats.
"""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings_table import PREFIX, SETTINGS, Setting, home
from scrapy_ubi.urls import HostRules, hosts, normaliser

__all__ = ["SETTINGS", "Setting", "UbiSettings", "default_crawl", "listing", "read_value", "refuse_unknown"]

# Crawl and agent names are parts of Redis keys and of directories: no braces (hash tags), slashes or spaces.
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_.:-]")
_CUT = 55  # characters of a name that is cut, beside "-" and 8 hex digits
# Goes into a header, in round brackets: printable ASCII, and nothing that would end them.
_CONTACT = re.compile(r"(?:https?://[^\s()<>@/?#]+|mailto:[^\s()<>@]+@)[!#-'*-;=?-~]*")
_WORD = re.compile(r"[^\s,]{1,200}")
_REDIS_SCHEMES = ("redis", "rediss", "unix")
FINGERPRINTER = "scrapy.utils.request.RequestFingerprinter"  # Scrapy's default
MOST_REPLICAS = 999_999  # of one agent: as many digits as a beat has for them


@dataclass(frozen=True, slots=True)
class UbiSettings:
    """All settings of one agent, checked. Times in seconds. See `SETTINGS` for what each is."""

    enabled: bool = True
    redis_url: str | None = field(default=None, repr=False)  # may hold a password
    redis_wait: float = 10.0
    crawl: str = "scrapybot:spider"
    mixed_agents: bool = False
    agent_id: str | None = None
    capacity: float = 1.0
    replicas: int = 200
    partition: Literal["host", "domain"] = "host"
    normalise: str = "scrapy"  # the one name of the composition (urls.normaliser.name_of)
    host_rules: HostRules | None = None
    dir: Path = Path(".ubi/scrapybot:spider")
    memory_mb: int = 256
    seen: Literal["exact", "bloom"] = "exact"
    replication: int = 1
    heartbeat_interval: float = 1.0
    lease_timeout: float = 10.0
    start_wait: float | None = None
    failure_timeout: float = 15.0
    stall_timeout: float = 60.0
    host_delay: float = 0.0
    delay_factor: float = 0.0
    max_delay: float = 60.0
    polite_by_ip: bool = False
    max_retry_after: float = 600.0
    retry_after_times: int = 3
    host_failures: int = 5
    host_pause: float = 60.0
    host_tries: int = 3
    flush_interval: float = 0.2
    flush_records: int = 1000
    handoff_timeout: float = 60.0
    leave_timeout: float = 60.0
    resend_timeout: float = 5.0
    window: int = 8
    letter_records: int = 500
    outbox_records: int = 200_000
    suppressed_keys: int = 1_000_000
    max_letter_bytes: int = 1_000_000
    max_url_length: int = 4096
    host_max_pages: int = 0
    host_max_known: int = 0
    host_max_depth: int = 0
    host_max_seconds: float = 0.0
    host_max_iterations: int = 0
    host_stable_iterations: int = 0
    host_load_take: int = 1
    max_load_seconds: float = 0.0
    crawl_max_pages: int = 0
    crawl_max_known: int = 0
    crawl_max_depth: int = 0
    crawl_max_seconds: float = 0.0
    bot_page: str | None = None
    max_body: int = 0
    max_body_types: Literal["html", "all"] = "html"
    error_log: Path | None = None
    error_burst: int = 50
    error_burst_seconds: float = 60.0
    fast: bool = False
    lean: bool = True
    filters: tuple[object, ...] = ()  # as given: the chain is made of them where it is needed (urls.filters)
    filter_log: Path | None = None
    stores: tuple[object, ...] = ()  # as given: they are made where they are needed (outputs.stores)
    store_mb: int = 64
    host_cookies: bool = True
    foreign_downloads: Literal["polite", "refuse", "allow"] = "polite"
    shared_feeds: bool = False
    private_hosts: Literal["refuse", "allow"] = "refuse"
    link_schemes: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    robots_ttl: float = 86_400.0
    robots_timeout: float = 15.0
    robots_give_up: float = 120.0
    max_crawl_delay: float = 60.0
    sitemaps: int = 0
    # No settings of their own: the user chose the directory (UBI_DIR or JOBDIR); who tells requests apart.
    dir_given: bool = False
    fingerprinter: str = FINGERPRINTER

    def __post_init__(self) -> None:
        _check_relations(self)

    @property
    def fingerprints(self) -> bool:
        """Whether a fingerprinter that is not Scrapy's own tells requests apart."""
        return self.fingerprinter != FINGERPRINTER

    @property
    def ring_replicas(self) -> int:
        """Points of this agent on the ring: `round(UBI_REPLICAS * capacity)`, at least one."""
        return max(1, round(self.replicas * self.capacity))

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
        if values["crawl"] is None:
            values["crawl"] = default_crawl(str(bot or bot_name(settings)), spider, arguments)
        given = values["dir"] is not None or bool(settings.get("JOBDIR"))
        if values["dir"] is None:
            values["dir"] = Path(str(settings.get("JOBDIR") or home.directory(str(values["crawl"]))))
        if values["host_delay"] is None:
            values["host_delay"] = _download_delay(settings.get("DOWNLOAD_DELAY"))
        fingerprinter = _class_name(settings.get("REQUEST_FINGERPRINTER_CLASS") or FINGERPRINTER)
        return cls(dir_given=given, fingerprinter=fingerprinter, **cast("dict[str, Any]", values))


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
    if _NAME.fullmatch(wanted):
        return wanted
    mark = blake2b(wanted.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{_NOT_IN_NAME.sub('_', wanted)[:_CUT]}-{mark}"


def refuse_unknown(names: Iterable[str]) -> None:
    """Raise `UbiSettingError` for the first UBI_* name that is no setting."""
    known = [row.setting for row in SETTINGS]
    for name in names:
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
            remedy = f"did you mean {near[0]}" if near else f"the known ones are {', '.join(known)}"
            raise UbiSettingError(name, "is not a setting of scrapy_ubi", remedy)


def read_value(row: Setting, value: object) -> object:
    """The checked value of one setting; its default when `value` is None, or an empty text for what is no number."""
    if value is None or (value == "" and row.kind not in ("int", "float", "seconds")):
        return row.default
    if row.kind in ("int", "float", "seconds"):
        return _read_number(row, value)
    if row.kind == "flag":
        return _read_flag(row, value)
    if row.kind == "steps":
        return _read_steps(row, value)
    if row.kind == "rules":
        return _read_rules(row, value)
    if row.kind == "words":
        return _read_words(row, value)
    if row.kind in ("filters", "stores") and isinstance(value, str | list | tuple):
        return (value,) if isinstance(value, str) else tuple(value)
    if row.kind in ("path", "file") and isinstance(value, str | Path):
        return _read_path(row, value)
    if not isinstance(value, str):
        # That of a Redis is never shown, it may hold a password: a comma behind it makes a tuple of it.
        shown = f"a {type(value).__name__}" if row.kind == "url" else repr(value)
        raise UbiSettingError(row.setting, f"is {shown}", f"give {row.bounds} as a text")
    if row.kind == "choice":
        if value not in row.choices:
            raise UbiSettingError(row.setting, f"is {value!r}", f"give {row.bounds}")
        return value
    if row.kind == "contact":
        if not _CONTACT.fullmatch(value):
            raise UbiSettingError(row.setting, f"is {value!r}", f"give {row.bounds}")
        return value
    return _read_name(row, value) if row.kind == "name" else _read_url(row, value)


def flag(settings: Mapping[Any, Any], name: str) -> bool:
    """The flag of this name, for what has its place in Scrapy's settings before anything is read. A malformed value
    is the default here: the start is refused because of it elsewhere."""
    row = next(row for row in SETTINGS if row.name == name)
    try:
        return bool(read_value(row, settings.get(row.setting)))
    except UbiSettingError:
        return bool(row.default)


def _read_number(row: Setting, value: object) -> int | float:
    """An int or a float within the row's bounds."""
    wrong = UbiSettingError(row.setting, f"is {value!r}", f"give {row.bounds}")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise wrong
    try:
        number: int | float = float(value)
        if row.kind == "int":
            if not float(value).is_integer():
                raise wrong
            number = int(value)
    except (ValueError, OverflowError):
        raise wrong from None
    too_low = (row.above is not None and number <= row.above) or (row.low is not None and number < row.low)
    if not math.isfinite(number) or too_low or (row.high is not None and number > row.high):
        raise wrong
    return number


def _read_flag(row: Setting, value: object) -> bool:
    """A bool, or what Scrapy takes for one: 0 and 1, and on the command line their texts and those of the bools."""
    known = {"0": False, "1": True, "false": False, "true": True}
    if not isinstance(value, bool | int | str) or str(value).lower() not in known:
        raise UbiSettingError(row.setting, f"is {value!r}", f"give {row.bounds}")
    return known[str(value).lower()]


def _read_name(row: Setting, value: str) -> str:
    """A crawl or agent name: part of Redis keys, of a space separated beat and of a directory."""
    # "." and ".." are directories; "-" alone stands for "none" in a beat.
    if not _NAME.fullmatch(value) or not value.strip(".-"):
        raise UbiSettingError(row.setting, f"is {value!r}", f"give {row.bounds}")
    return value


def _read_path(row: Setting, value: str | Path) -> Path:
    """A path that can be one: the system takes neither a NUL nor what cannot be encoded."""
    try:
        holds = b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        holds = False
    if not holds:
        raise UbiSettingError(row.setting, f"is {str(value)!r}, which is no path", f"give {row.bounds}")
    return Path(value)


def _read_words(row: Setting, value: object) -> tuple[str, ...]:
    """Texts, in a list or, as on the command line, in one text with commas between them; in small letters."""
    words = value.split(",") if isinstance(value, str) else value
    if isinstance(words, list | tuple | set) and all(isinstance(word, str) for word in words):
        read = tuple(word.strip().lower() for word in words)
        if all(_WORD.fullmatch(word) for word in read):
            return read
    raise UbiSettingError(row.setting, f"is {value!r}", f"give {row.bounds}")


def _read_steps(row: Setting, value: object) -> str:
    """A composition of the normal form, by its one name."""
    if not isinstance(value, str | list | tuple):
        raise UbiSettingError(row.setting, f"is {value!r}", f"give {row.bounds}")
    try:
        return normaliser.name_of(normaliser.parse(value))
    except ValueError as error:
        known = ", ".join(normaliser.STEPS)
        raise UbiSettingError(
            row.setting, f"is {value!r}: {error}", f"give {row.bounds}; the steps are {known}"
        ) from None


def _read_rules(row: Setting, value: object) -> HostRules | None:
    """Rules for hosts, from a list or from a file."""
    where = f" in {str(value)!r}" if isinstance(value, str | Path) else ""
    try:
        if isinstance(value, str | Path):
            return hosts.read_properties(_read_path(row, value).read_text(encoding="utf-8"))
        if isinstance(value, list | tuple) and all(isinstance(rule, str) for rule in value):
            return hosts.read_rules(value)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise UbiSettingError(row.setting, f"cannot be read{where} ({reason})", f"give {row.bounds}") from None
    except ValueError as error:
        raise UbiSettingError(row.setting, f"does not hold{where}: {error}", f"write {hosts.GRAMMAR}") from None
    raise UbiSettingError(row.setting, f"is {value!r}", f"give {row.bounds}")


def _read_url(row: Setting, value: str) -> str:
    """The address of a Redis. Its text is never shown: it may hold a password."""
    wrong = UbiSettingError(
        row.setting,
        "is not the address of a Redis",
        "give something like redis://localhost:6379/0, rediss:// or unix://",
    )
    try:
        parts = urlsplit(value)
        port_holds = parts.port is None or parts.port > 0
    except ValueError:
        raise wrong from None
    place = parts.path if parts.scheme == "unix" else parts.hostname
    if parts.scheme not in _REDIS_SCHEMES or not place or not port_holds:
        raise wrong
    return value


def _download_delay(value: object) -> float:
    """Scrapy's DOWNLOAD_DELAY as a number; UBI_HOST_DELAY takes it when not set."""
    row = next(row for row in SETTINGS if row.name == "host_delay")
    try:
        return float(cast("float", _read_number(row, value if value is not None else 0.0)))
    except UbiSettingError as error:
        raise UbiSettingError("DOWNLOAD_DELAY", f"is {value!r}", error.remedy) from None


def _check_relations(settings: UbiSettings) -> None:
    """heartbeat < lease < failure: an agent stops fetching before the others can take its hosts (DESIGN 2.2)."""
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
