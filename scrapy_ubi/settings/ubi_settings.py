"""The settings of one agent: read once out of Scrapy's, checked, frozen.

What there is to set stands in `declarations`. Rules of this module:

* None, and an empty text for what is no number, mean "not set": the default holds;
* a value that does not hold raises `UbiSettingError` with one sentence that names the setting and the remedy;
* a default stands once, in its declaration; one that is not a constant there is made here, of Scrapy's settings;
* an unknown UBI_* name is an error too (a typing slip must not pass for a default), with the nearest known name;
* numbers given on the command line (`-s UBI_AGENT_CAPACITY=2`) arrive as text and are read as numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.ground.crawl_names import bot_name, default_crawl
from scrapy_ubi.ground.untrusted.meant_names import ask_meant
from scrapy_ubi.settings import home, url_readers
from scrapy_ubi.settings.crawl_caps import CrawlCaps, read_caps
from scrapy_ubi.settings.declarations import FORMER, GONE, RULES, SETTINGS, Declarations
from scrapy_ubi.settings.declare import PREFIX, Kind, Setting
from scrapy_ubi.settings.host_limits import HostLimitsTable, Limits, read_limits
from scrapy_ubi.settings.presets import given, read_preset
from scrapy_ubi.settings.readers import NUMBERS, READERS, Reader, read_number
from scrapy_ubi.settings.relations import check_relations, of_iterations
from scrapy_ubi.urls.host_keys import HostOf, host_keys
from scrapy_ubi.urls.normaliser import Normaliser, parse_steps

REPLAY = "replay"  # what the name of a replay and its directory end with
USUAL_URL, MOST_URL = 4096, 65_536  # characters of a URL that is kept: usually, and at most
FINGERPRINTER = "scrapy.utils.request.RequestFingerprinter"  # Scrapy's default


@dataclass(frozen=True, slots=True)
class UbiSettings(Declarations):
    """All settings of one agent, checked. See `declarations` for what each is."""

    # No settings of their own: the function that UBI_PARTITION names, if it does, "" else; the user chose the directory
    # (UBI_DIR or JOBDIR), and by JOBDIR; who tells requests apart; hosts at once in iterations; the longest URL kept.
    named_by: str = ""
    dir_given: bool = False
    dir_is_jobdir: bool = False
    fingerprinter: str = FINGERPRINTER
    hosts_at_once: int = 1
    max_url_length: int = USUAL_URL

    def __post_init__(self) -> None:
        for name, rule in RULES:
            if getattr(self, name) is None:
                object.__setattr__(self, name, rule(self))
        check_relations(self)

    @property
    def fingerprints(self) -> bool:
        """Whether a fingerprinter that is not Scrapy's own tells requests apart."""
        return self.fingerprinter != FINGERPRINTER

    def normaliser(self) -> Normaliser:
        """Make what gives the normal form of URLs."""
        return Normaliser(parse_steps(self.normalise), self.host_rules)

    def host_of(self) -> HostOf:
        """What tells the partition key of any URL, None for what is none of http."""
        return host_keys(self.partition, self.host_rules, self.host_shards, self.normaliser().function)

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
        values = {row.name: read_value(row, given(settings, row.setting)) for row in SETTINGS}
        _add_former(values, settings)
        if values["partition"] not in url_readers.PARTITIONS:
            values["named_by"], values["partition"] = values["partition"], "host"
        if values["crawl"] is None:
            values["crawl"] = default_crawl(str(bot or bot_name(settings)), spider, arguments)
        dir_given = values["dir"] is not None or bool(settings.get("JOBDIR"))
        is_jobdir = values["dir"] is None and dir_given
        if values["dir"] is None:
            values["dir"] = Path(str(settings.get("JOBDIR") or home.directory(str(values["crawl"]))))
        if values["replay"]:  # beside the crawl that wrote the files, whose directory knows all pages already
            values["crawl"] = default_crawl(str(values["crawl"]), REPLAY)
            usual = home.directory(str(values["crawl"]))
            values["dir"] = Path(str(values["dir"])) / REPLAY if dir_given else Path(usual)
        if values["host_delay"] is None:
            values["host_delay"] = _download_delay(settings.get("DOWNLOAD_DELAY"))
        fingerprinter = _class_name(settings.get("REQUEST_FINGERPRINTER_CLASS") or FINGERPRINTER)
        values |= of_iterations(values, settings)
        values["max_url_length"] = longest_url(settings)
        return cls(
            dir_given=dir_given, dir_is_jobdir=is_jobdir, fingerprinter=fingerprinter, **cast("dict[str, Any]", values)
        )


def replicas_for(replicas: int, capacity: float) -> int:
    """Points on the ring of an agent of this capacity where one of capacity 1 has `replicas`; at least one."""
    return max(1, round(replicas * capacity))


def longest_url(settings: Mapping[Any, Any]) -> int:
    """The longest URL that is kept, in characters: what URLLENGTH_LIMIT lets pass (0: any), `USUAL_URL` at least."""
    try:
        limit = int(settings.get("URLLENGTH_LIMIT", USUAL_URL))
    except (TypeError, ValueError):  # refused by Scrapy
        limit = USUAL_URL
    return min(max(limit, USUAL_URL), MOST_URL) if limit else MOST_URL


def _class_name(cls: object) -> str:
    """The dotted path of a class, which may be given by that or itself."""
    return cls if isinstance(cls, str) else f"{getattr(cls, '__module__', '')}.{getattr(cls, '__qualname__', cls)}"


def refuse_unknown(names: Iterable[str]) -> None:
    """Raise `UbiSettingError` for the first UBI_* name that is no setting, or none any more."""
    known = [row.setting for row in SETTINGS]
    for name in names:
        if name in GONE:
            raise UbiSettingError(name, "is no setting any more", GONE[name])
        if name.startswith(PREFIX) and name not in known and name not in FORMER:
            remedy = ask_meant(name, known) or "docs/reference/settings.md has them all"
            raise UbiSettingError(name, "is not a setting of scrapy_ubi", remedy)


def former_limits(settings: Mapping[Any, Any]) -> dict[str, dict[str, Any]]:
    """The limits that are given by their former names, by the setting that now has them: {"UBI_HOST_LIMITS": {"pages":
    5}}. A limit of 0 is none. Raises `UbiSettingError` for one that is no number."""
    found: dict[str, dict[str, Any]] = {}
    for name, (setting, limit) in FORMER.items():
        if (value := settings.get(name)) is None or value == "":
            continue
        read = read_caps if setting == "UBI_CRAWL_LIMITS" else read_limits
        try:
            amount = getattr(read({limit: value}), limit)
        except ValueError as error:
            raise UbiSettingError(name, f"does not hold: {error}", f"write a limit into {setting}") from None
        if amount:
            found.setdefault(setting, {})[limit] = amount
    return found


def _add_former(values: dict[str, Any], settings: Mapping[Any, Any]) -> None:
    """Put those limits into the tables read: below what the user wrote there, above what a preset says."""
    former = former_limits(settings)
    if amounts := former.get("UBI_CRAWL_LIMITS"):
        said = {name: amount for name, amount in values["crawl_limits"]._asdict().items() if amount}
        own = "UBI_CRAWL_LIMITS" in settings
        values["crawl_limits"] = CrawlCaps(**({**amounts, **said} if own else {**said, **amounts}))
    if amounts := former.get("UBI_HOST_LIMITS"):
        table, limits = values["host_limits"] or HostLimitsTable(), Limits(**amounts)
        own = "UBI_HOST_LIMITS" in settings
        values["host_limits"] = table._replace(others=table.others.over(limits) if own else limits.over(table.others))


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
        return read_value(row, given(settings, row.setting))
    except UbiSettingError:
        return row.default


_READERS: Mapping[Kind, Reader] = {**READERS, **url_readers.READERS, "preset": read_preset}


def _download_delay(value: object) -> float:
    """Scrapy's DOWNLOAD_DELAY as a number; UBI_HOST_DELAY takes it when not set."""
    row = next(row for row in SETTINGS if row.name == "host_delay")
    try:
        return float(read_number(row, value if value is not None else 0.0))
    except UbiSettingError as error:
        raise UbiSettingError("DOWNLOAD_DELAY", f"is {value!r}", error.remedy) from None
