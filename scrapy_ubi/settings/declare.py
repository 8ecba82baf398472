"""How a setting is declared: one line of `declarations` gives its name, type, default, bounds and sentence.

Rules of this module:

* A declaration is a field of a dataclass, so that mypy knows its type; all else of it is a `Setting`, in the field's
  metadata. `settings_of` gives the settings of a class in their order.
* The setting of a field is `UBI_` and its name in capitals (but `UBI_AGENT_CAPACITY` for `capacity`).
* What a value may be follows from the field's type: bool, int, float, one of a `Literal`, a path of a file. Where that
  is not enough, the declaration names a kind, for which `readers` has a reader.
* `bounds` says to people what the check compares with: `low` and `high` inclusive, `above` exclusive.
* A default that is no constant is `made_of` other things, and says of what. What is `derived` has a rule only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

PREFIX = "UBI_"
_KEY, _RULE, _TEXT = "setting", "rule", "text"  # of a field's metadata

Rule = Callable[[Any], object]

Kind = Literal[
    "name",
    "url",
    "path",
    "choice",
    "filters",
    "scorers",
    "ranker",
    "recrawl",
    "stores",
    "observers",
    "handlers",
    "duplicates",
    "file",
    "files",
    "steps",
    "rules",
    "partition",
    "shards",
    "host_loads",
    "host_limits",
    "crawl_limits",
    "name_servers",
    "concurrency",
    "rates",
    "proxies",
    "words",
    "usage",
    "flag",
    "contact",
    "https",
    "target",
    "redis_key",
    "secret",
    "function",
    "listen",
    "codecs",
    "body",
    "sitemaps",
    "preset",
    "int",
    "float",
    "seconds",
]
Agree = Literal["", "ownership", "urls", "mail", "visits", "end"]

# What values of a kind are, for people. Those of a choice are its choices; a number has limits besides.
_BOUNDS: Mapping[str, str] = {
    "name": "letters, digits and _ . : - only, at most 64 of them",
    "url": "a redis://, rediss:// or unix:// address",
    "path": "a directory",
    "flag": "True or False",
    "filters": "a list of filters",
    "scorers": "a list of scorers",
    "ranker": "the name of a ranker, with its arguments",
    "recrawl": "a rule: 'every(1d)', 'adaptive(1d, 1h, 30d)', 'budget(1000/h, 1h, 30d)', 'sitemap', 'new', "
    "'nutch' or 'stormcrawler'",
    "stores": "a list of stores",
    "observers": "a list of dotted paths of classes",
    "handlers": "a list of 'html', 'header', 'feed', 'sitemap', 'pdf', 'css', 'json', and dotted paths of your own",
    "duplicates": "'exact', 'near' or 'near(3)', or with what is done: 'near(3, skip)', 'exact(unfollow)'",
    "preset": "'one_site', 'broad', 'archive', 'service' or 'development'",
    "body": "a whole number of 0 to 2000000000, or 'all(1000000)'",
    "sitemaps": "'no', 'first', 'only', or these with a number of URLs and a date: 'first(10000, since=2026-11-01)'",
    "words": "a list of texts without spaces and commas",
    "usage": "'note', or a list of 'train-ai', 'ai-use', 'search'",
    "target": "an address: s3://, gs://, az:// with a bucket, or file:// with an absolute path",
    "redis_key": "the name of a key, without spaces, at most 512 characters, and none that begins with 'ubi:'",
    "secret": "a text of 16 to 1,000 characters, which is never shown",
    "function": "the dotted path of a function: 'project.secrets.redis_login'",
    "listen": "an address of this machine and a port: '127.0.0.1:9410', '0.0.0.0:9410', '[::1]:9410'; port 0: any",
    "name_servers": "a list of addresses of DNS servers, '192.0.2.1' or '192.0.2.1:5353', or 'system'",
    "concurrency": "a whole number of 1 to 100000, or 'auto(500)'",
    "rates": "a mapping of names to loads in a time: {'api.example': '40/m', 'proxy:gate.example:8000': '100/5s'}",
    "proxies": "a file of proxies, the dotted path of a function that returns some, or a mapping with 'proxies', and "
    "'statuses', 'pattern' and 'seconds' of a ban",
    "codecs": "a mapping of meta keys to codecs: {'price': 'project.codecs.PriceCodec'}; None: no codec",
    "https": "an https:// address, without a user, a query and spaces",
    "contact": "an address: http://, https:// or mailto:, without spaces and brackets",
    "file": "a file",
    "files": "a list of paths and globs",
    "steps": "'scrapy', 'safe', 'larm' or 'learned', with +step or -step after it, or a list of steps",
    "rules": "a list of rules, or the path of a file of them",
    "partition": "'host', 'domain' or the dotted path of a function of the project",
    "shards": "a mapping from hosts to numbers of shards, 2 to 1024: {'shop.example': 8}, or (8, 'fast')",
    "host_limits": "limits such as 'pages=500, bytes=2GB, depth=5, seconds=2h, delay=1', a mapping of host, .domain or "
    "'*' -> one of these, or the path of a file of them",
    "crawl_limits": "limits such as 'pages=100000, bytes=50GB, seconds=40h, known=1e6, depth=10, free=5GB'",
    "host_loads": "a whole number of 1 to 1000, 'auto(8)', or a mapping of host -> one of these ('*': all others)",
}
_UNITS: Mapping[str, str] = {"int": "a whole number", "float": "a number", "seconds": "a number of seconds"}


class Setting(NamedTuple):
    """What is known of one setting, beside the type of its field.

    `default` None means that the default is not a constant: `default_text` then says what it is. `low` and `high` are
    inclusive, `above` is exclusive. `live`: it can be changed while a crawl runs, for the crawl, or for a host as well.
    `agree`: all agents of a crawl must have the same, as it decides who owns a URL, which URLs are one, what may be
    sent, when pages are visited again, or when the crawl ends. `group`: the heading of the reference it stands under.
    """

    name: str
    kind: Kind
    default: object
    sentence: str
    default_text: str = ""
    low: float | None = None
    high: float | None = None
    above: float | None = None
    choices: tuple[str, ...] = ()
    longer_name: str = ""
    live: Literal["", "crawl", "host"] = ""
    prefix: str = PREFIX
    agree: Agree = ""
    group: str = ""

    @property
    def setting(self) -> str:
        """The name in settings.py: UBI_CAPACITY for `capacity`, but for a longer name."""
        return self.prefix + (self.longer_name or self.name).upper()

    @property
    def shown_default(self) -> str:
        """The default, for people."""
        return self.default_text or repr(self.default)

    @property
    def bounds(self) -> str:
        """What values may be, for people: 'seconds above 0', '0 to 8', one of the choices."""
        if self.choices:
            return " or ".join(repr(choice) for choice in self.choices)
        if (said := _BOUNDS.get(self.kind)) is not None:
            return said
        limits = (("above", self.above), ("of at least", self.low), ("of at most", self.high))
        said = " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)
        return f"{_UNITS[self.kind]} {said}".strip()


class Made(NamedTuple):
    """A default that is no constant: what it is made of, for people. `stand_in` is what settings made by hand have
    instead; `rule` makes it of the other settings."""

    text: str
    stand_in: object = None
    rule: Rule | None = None


def made_of(text: str, stand_in: object = None, rule: Rule | None = None) -> Made:
    """Declare a default that its rule, or else `from_scrapy`, makes of other things."""
    return Made(text, stand_in, rule)


def setting(default: object, sentence: str, kind: Kind | Literal[""] = "", *, shown: str = "", **more: Any) -> Any:
    """Declare a setting: the value of a field. `kind` where its type does not say what values may be; `shown`: the
    default for people; `more`: further fields of `Setting`. A `group` begins a heading: those that follow are in it,
    too."""
    field_default, constant, text, rule = default, default, shown, None
    if isinstance(default, Made):
        field_default, constant, text, rule = default.stand_in, None, default.text, default.rule
    row = Setting("", kind or "name", constant, sentence, text, **more)
    metadata = {_KEY: (row, bool(kind)), _RULE: rule}
    return dataclasses.field(default=field_default, repr=kind not in ("url", "secret"), metadata=metadata)


def seconds(default: object, sentence: str, **more: Any) -> Any:
    """Declare a setting that is a time in seconds."""
    return setting(default, sentence, "seconds", **more)


def derived(text: str, rule: Rule) -> Any:
    """Declare what is no setting, but made of them by a rule. `text` says of what, to people."""
    return dataclasses.field(default=None, metadata={_RULE: rule, _TEXT: text})


def derived_of(declarations: type) -> Mapping[str, str]:
    """What the fields of this dataclass derive: of what each is made."""
    return {field.name: field.metadata[_TEXT] for field in dataclasses.fields(declarations) if _TEXT in field.metadata}


def rules_of(declarations: type) -> tuple[tuple[str, Rule], ...]:
    """The rules of this dataclass, in the order in which they are to be followed."""
    fields = dataclasses.fields(declarations)
    return tuple((field.name, field.metadata[_RULE]) for field in fields if field.metadata.get(_RULE) is not None)


def settings_of(declarations: type) -> tuple[Setting, ...]:
    """The settings that the fields of this dataclass declare, in their order."""
    types, found, group = get_type_hints(declarations), list[Setting](), ""
    for field in dataclasses.fields(declarations):
        if _KEY not in field.metadata:
            continue
        row, has_kind = field.metadata[_KEY]
        group = row.group or group
        row = row._replace(name=field.name, group=group)
        found.append(row if has_kind else row._replace(**_kind_of(types[field.name])))
    return tuple(found)


def _kind_of(annotation: Any) -> dict[str, object]:
    """The kind of values of this type, and their choices."""
    if get_origin(annotation) is Literal:
        return {"kind": "choice", "choices": get_args(annotation)}
    kinds = {bool: "flag", int: "int", float: "float"}
    (wanted,) = [each for each in get_args(annotation) or (annotation,) if each is not type(None)]
    return {"kind": kinds[wanted]}
