"""Which part of the web a crawl is about: hosts, domains, a file of domains, the seeds' own hosts, expressions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from scrapy_ubi.urls.filters.base import Link, SuiteFilter, host_of, one, only
from scrapy_ubi.urls.filters.filter_text import Arguments, FilterError
from scrapy_ubi.urls.filters.names import NameSet, host_name, read_names
from scrapy_ubi.urls.normal import normal_form
from scrapy_ubi.urls.partition import partition_key

HOSTS_KEPT = 1 << 14  # hosts whose verdict is remembered: about 3 MB

STAY = ("host", "domain")
YES = {"yes": True, "no": False}


class Scope(SuiteFilter):
    """`scope(hosts=..., domains=..., file=..., stay=..., allow=..., deny=..., redirects=yes)`.

    A link passes when its host is wanted and its URL is.

    * `hosts`: these hosts, on any port; `domains`: these and all below them; `file`: a file of such domains;
      `stay=host` or `stay=domain`: the host, or the registered domain, of the page that links to it or of a seed met so
      far. It is wanted by any one of those; with none of them every host is. A name with a minus before it
      (`domains=-ads.example`) is never wanted.
    * `allow`, `deny`: regular expressions, searched for in the normal form. With some to allow, one must be found; none
      to deny may.
    * `redirects=yes`: where redirects lead to is judged, too.
    """

    def __init__(
        self,
        hosts: Sequence[str] = (),
        domains: Sequence[str] = (),
        file: str = "",
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        stay: str = "",
        redirects: bool = False,
    ) -> None:
        if stay and stay not in STAY:
            raise FilterError(f"has stay={stay}", "give stay=host or stay=domain")
        if not any((hosts, domains, file, allow, deny, stay)):
            raise FilterError("has nothing that it would refuse", "give hosts, domains, file, stay, allow or deny")
        self.hosts, self.unwanted_hosts = _named("hosts", hosts)
        self.domains, self.unwanted_domains = _named("domains", domains)
        self.file = file
        self.stay = stay
        self.redirects = redirects
        self.allow = tuple(allow)
        self.deny = tuple(deny)
        self._sets = [NameSet(self.domains)] if self.domains else []
        if file:
            self._sets.append(read_names(Path(file)))
        self._unwanted = NameSet(self.unwanted_domains)
        self._allow = [_compiled("allow", text).search for text in allow]
        self._deny = [_compiled("deny", text).search for text in deny]
        self._choosy = bool(self.hosts or self._sets or stay)
        self._by_host = bool(self._choosy or self.unwanted_hosts or self.unwanted_domains)
        self._verdict = lru_cache(HOSTS_KEPT)(self._judge)
        self._where = lru_cache(HOSTS_KEPT)(_domain_of if stay == "domain" else str)
        self._seeds: set[str] = set()
        self._page = ("", "")  # the last page asked about, and where it is

    @classmethod
    def parse(cls, arguments: Arguments) -> Scope:
        only(arguments, "hosts", "domains", "file", "allow", "deny", "stay", "redirects")
        redirects = one(arguments, "redirects", "no")
        if redirects not in YES:
            raise FilterError(f"has redirects={redirects}", "give redirects=yes or redirects=no")
        return cls(
            hosts=arguments.get("hosts", ()),
            domains=arguments.get("domains", ()),
            file=one(arguments, "file", ""),
            allow=arguments.get("allow", ()),
            deny=arguments.get("deny", ()),
            stay=one(arguments, "stay", ""),
            redirects=YES[redirects],
        )

    def arguments(self) -> Arguments:
        given = {
            "hosts": (*self.hosts, *(f"-{name}" for name in self.unwanted_hosts)),
            "domains": (*self.domains, *(f"-{name}" for name in self.unwanted_domains)),
            "file": (self.file,) if self.file else (),
            "allow": self.allow,
            "deny": self.deny,
            "stay": (self.stay,) if self.stay else (),
            "redirects": ("yes",) if self.redirects else (),
        }
        return {key: values for key, values in given.items() if values}

    def seed(self, link: Link) -> None:
        if self.stay and link.normal:
            self._seeds.add(self._where(host_of(link.normal)))

    def know_seeds_of(self, former: Scope) -> None:
        """Take over the seeds that this one has met, where they are compared in the same way."""
        if self.stay == former.stay:
            self._seeds |= former._seeds

    def refuses(self, link: Link) -> str:
        normal = link.normal
        if self._by_host:
            host = host_of(normal)
            wanted = self._verdict(host)
            if wanted is False or (wanted is None and not self._stays(host, link.page)):
                return "host"
        for search in self._deny:
            if search(normal):
                return "deny"
        for search in self._allow:
            if search(normal):
                return ""
        return "allow" if self._allow else ""

    def _judge(self, host: str) -> bool | None:
        """Whether a host is wanted; None where that depends on the page."""
        if host in self.unwanted_hosts or host in self._unwanted:
            return False
        if not self._choosy or host in self.hosts or any(host in names for names in self._sets):
            return True
        return None if self.stay else False

    def _stays(self, host: str, page: str) -> bool:
        if not page and not self._seeds:
            return True  # there is nothing to compare with
        where = self._where(host)
        if page and page != self._page[0]:
            self._page = (page, self._where(host_of(normal_form(page) or "")))
        return bool(page and where == self._page[1]) or where in self._seeds


def _domain_of(host: str) -> str:
    """The registered domain; the host itself where it has none."""
    return (partition_key(f"http://{host}/", "domain") or host) if host else host


def _named(key: str, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names wanted and unwanted, in normal form, each once."""
    wanted: dict[str, None] = {}
    unwanted: dict[str, None] = {}
    for text in names:
        name = host_name(text.removeprefix("-"))
        if name is None:
            raise FilterError(f"has {key}={text}", "give host names without scheme, port and path")
        (unwanted if text.startswith("-") else wanted)[name] = None
    return tuple(wanted), tuple(unwanted)


def _compiled(key: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise FilterError(f"has {key}={text!r}", f"it is no regular expression of Python ({error})") from None
