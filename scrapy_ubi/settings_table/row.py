"""What a row of the table of settings says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

PREFIX = "UBI_"

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
    "name_servers",
    "concurrency",
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
    "int",
    "float",
    "seconds",
]


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
    "duplicates": "'exact', 'near' or 'near(3)'",
    "words": "a list of texts without spaces and commas",
    "usage": "'note', or a list of 'train-ai', 'ai-use', 'search'",
    "target": "an address: s3://, gs://, az:// with a bucket, or file:// with an absolute path",
    "redis_key": "the name of a key, without spaces, at most 512 characters, and none that begins with 'ubi:'",
    "secret": "a text of 16 to 1,000 characters, which is never shown",
    "function": "the dotted path of a function: 'project.secrets.redis_login'",
    "listen": "an address of this machine and a port: '127.0.0.1:9410', '0.0.0.0:9410', '[::1]:9410'; port 0: any",
    "name_servers": "a list of addresses of DNS servers, '192.0.2.1' or '192.0.2.1:5353', or 'system'",
    "concurrency": "a whole number of 1 to 100000, or 'auto(500)'",
    "codecs": "a mapping of meta keys to codecs: {'price': 'project.codecs.PriceCodec'}; None: no codec",
    "https": "an https:// address, without a user, a query and spaces",
    "contact": "an address: http://, https:// or mailto:, without spaces and brackets",
    "file": "a file",
    "files": "a list of paths and globs",
    "steps": "'scrapy', 'safe', 'larm' or 'learned', with +step or -step after it, or a list of steps",
    "rules": "a list of rules, or the path of a file of them",
    "partition": "'host', 'domain' or the dotted path of a function of the project",
    "shards": "a mapping from hosts to numbers of shards, 2 to 1024: {'shop.example': 8}, or (8, 'fast')",
    "host_loads": "a whole number of 1 to 1000, 'auto(8)', or a mapping of host -> one of these ('*': all others)",
}
_UNITS: Mapping[str, str] = {"int": "a whole number", "float": "a number", "seconds": "a number of seconds"}


class Setting(NamedTuple):
    """One row of the table.

    `default` None means that the default is not a constant: `default_text` then says what it is. `low` and `high` are
    inclusive, `above` is exclusive. `live`: it can be changed while a crawl runs, for the crawl, or for a host as well.
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

    @property
    def setting(self) -> str:
        """The name in settings.py: UBI_REPLICAS for `replicas`."""
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
        limits = [
            f"above {self.above:g}" if self.above is not None else "",
            f"of at least {self.low:g}" if self.low is not None else "",
            f"of at most {self.high:g}" if self.high is not None else "",
        ]
        return " ".join([_UNITS[self.kind], " and ".join(limit for limit in limits if limit)]).strip()
