"""What makes two requests the same one: the key of a request, and the partition key of its host.

Rules of this module:

* The key is made of method, normal form of the URL (by UBI_NORMALISE), body and *nonce* (`urls.url_key`). Nearly all
  requests have no nonce: the same page is fetched once in the whole cluster, whichever agent finds it.
* By default, whatever Scrapy's fingerprint takes for one has one key. A URL that is to be taken as it is (meta
  `verbatim_url`) is not compared by its normal form, as there.
* A request to be fetched anyway (`dont_filter`) has a nonce, in its meta: the spider middleware gives it to what
  callbacks yield. Retries and redirects are copies and keep it; what a seed leads to has one of its own. A seed that is
  to be fetched anyway has one that every agent makes the same (`adapter.scheduling.seeds`): it is taken once in the
  whole cluster, and so is a link to its page. Its key is made of that link's key and the nonce (`seed_key`).
* What reaches the scheduler past the spider middleware (an extension or a pipeline that calls `engine.crawl`) gets a
  nonce here, a new one each time, whatever its meta says: it may be a copy of a seed, of a retry, of a redirect. What
  stands in place of a response is none of these: a retry keeps its nonce.
* A redirect that returns to a URL of its own chain (a site that sets a cookie on the way) is a step on, not a
  duplicate: its nonce says which step. It is the same for every agent, so seeds that dance like that are still taken
  once.
* A request that is taken in again, requeued or wrongly joined, has a nonce of `agent.keys`.

Keys by a fingerprinter of the user's (`FingerprintKeys`): REQUEST_FINGERPRINTER_CLASS decides which requests are the
same one. With Scrapy's own class the keys are those of `RequestKeys`, which take for one whatever it takes for one, and
cost a twentieth. Any other class (scrapy-poet's, scrapy-zyte-api's, one of the project's) is asked for each request.

* The key is 64 bits of the fingerprint and of the nonce. Where the request belongs is decided by its URL, as always.
* A request that was taken in again (`agent.keys.again_nonce`) has the key that its URL and its nonce make: another
  agent or a command that takes it in has no fingerprinter.
* All agents must ask the same class, so its name is among the settings that agents compare; and it must give the same
  bytes in every process.
* One that raises, or gives no bytes, loses no request: its URL decides then, which is counted, and said once.
* The normal form joins nothing, so nothing of it is counted as joined, and nothing is learned of it.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.request import RequestFingerprinterProtocol
from w3lib.url import canonicalize_url

from scrapy_ubi.adapter.requests.check import ASKED, HOST, NONCE, parse_object
from scrapy_ubi.adapter.requests.named_hosts import BadHost, HostNames
from scrapy_ubi.adapter.requests.values import unpack
from scrapy_ubi.agent.keys import AGAIN
from scrapy_ubi.protocol.host import Entry
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls import normal_form, url_key
from scrapy_ubi.urls.canonical import canonical_form
from scrapy_ubi.urls.host_keys import host_keys
from scrapy_ubi.urls.key import SEED, seed_key
from scrapy_ubi.urls.normal import SITES_KEPT

logger = logging.getLogger("scrapy_ubi")

FINGERPRINT_ERRORS = "ubi/fingerprint_errors"  # stat

# The dupe filter that filters nothing (Scrapy's shell sets it): every request is fetched, but for seeds.
NO_FILTER = ("scrapy.dupefilters.BaseDupeFilter", BaseDupeFilter)


# What of a request's meta its key and its host are made of. The rest may be of classes that are known to a codec only.
_KEY_META = (NONCE, HOST, ASKED, "verbatim_url", "redirect_times", "redirect_urls")


def _as_it_is(normal: str) -> str:
    return normal


def _is_canonical(url: str) -> bool:
    """Whether Scrapy's fingerprint of this URL, taken as it is, is that of other spellings of it, too."""
    try:
        return canonicalize_url(url) == url
    except ValueError:  # it is no URL to w3lib
        return False


class Site(NamedTuple):
    """What stands before the paths of URLs, in a Request and in a normal form, and the name of the host."""

    url: str
    normal: str
    name: str


@lru_cache(SITES_KEPT)
def site_of(text: str, form_of: Callable[[str], str | None]) -> Site | None:
    """What this, which stands before a path, is written as; None where such URLs have no normal form."""
    try:
        url = Request(f"{text}/").url
        normal = form_of(url)
    except ValueError:
        return None
    if normal is None or not url.endswith("/"):
        return None
    return Site(url[:-1], normal[:-1], urlsplit(url).hostname or "")


class Place(NamedTuple):
    """Where a request belongs: `host` is its partition key, `normal` the normal form of its URL; `safe` that before the
    lossy steps, of which `steps` have changed it.
    """

    host: str
    normal: str
    safe: str
    steps: tuple[str, ...] = ()


class RequestKeys:
    """Keys under one agent's settings. `unfiltered`: all requests are to be fetched, however often they come."""

    def __init__(self, settings: UbiSettings, unfiltered: bool = False) -> None:
        self._unfiltered = unfiltered
        self._normaliser = settings.normaliser()
        self.normal_form = self._normaliser.function
        self._host_of = host_keys(settings.partition, settings.host_rules, settings.host_shards, _as_it_is)
        self._names = HostNames(settings)
        self.asks = self._names.asks  # whether UBI_PARTITION is a function, which is asked of each request
        by_name = settings.partition == "host" and settings.host_rules is None
        self.by_name = by_name and not settings.host_shards
        """Whether the partition key of a URL without a port is the name of its host."""
        self.lossy = bool(self._normaliser.changed)  # whether any step is

    @property
    def changed(self) -> Mapping[str, int]:
        """By lossy step of the normal form, how many URLs it has changed."""
        return self._normaliser.changed

    def place(self, request: Request) -> Place | None:
        """The request's host and normal form; None when it has none: not http(s), or malformed, or named wrongly."""
        try:
            return self.named_place(request)
        except BadHost:
            return None

    def named_place(self, request: Request) -> Place | None:
        """The request's host and normal form, as `place` gives them. Raises BadHost where it names its host wrongly."""
        place = self.place_of(request.url)
        if place is None or not (self.asks or HOST in request.meta):
            return place
        return place._replace(host=self._names.key(request, place.host, place.normal))

    def why_no_place(self, request: Request) -> str:
        """What is wrong with the host that a request names; empty where nothing is."""
        try:
            self.named_place(request)
        except BadHost as error:
            return str(error)
        return ""

    def named_host(self, entry: Entry) -> str | None:
        """The partition key of an entry whose text may name it; None where it has none."""
        return self._names.key_said(entry.request, entry.url, self.normal_form(entry.url) or entry.url)

    def place_of(self, url: str) -> Place | None:
        """The place of a URL."""
        if self.lossy:
            form = self._normaliser.judged(url)
            if form is None:
                return None
            safe, normal, steps = form
        else:
            found = self.normal_form(url)
            if found is None:
                return None
            safe, normal, steps = found, found, ()
        host = self._host_of(normal)
        return None if host is None else Place(host, normal, safe, steps)

    def key(self, request: Request, place: Place) -> int:
        """The key, 64 bits unsigned."""
        meta, normal = request.meta, place.normal
        nonce = str(meta.get(NONCE, ""))
        if request.dont_filter and self._returns(request, place):
            nonce = f"{nonce}/{meta.get('redirect_times', 0)}"
        if nonce and nonce.startswith(SEED):
            return seed_key(self.page_key(request, place), nonce)
        if "verbatim_url" in meta and meta["verbatim_url"] and not _is_canonical(request.url):
            normal = request.url
        return url_key(request.method, normal, request.body, nonce)

    @staticmethod
    def page_key(request: Request, place: Place) -> int:
        """The key that the request would have if it had no nonce."""
        verbatim = request.meta.get("verbatim_url") and not _is_canonical(request.url)
        return url_key(request.method, request.url if verbatim else place.normal, request.body)

    @property
    def plain(self) -> bool:
        """Whether one look at most links tells their normal form: by the preset `scrapy` or `safe`, and no synonyms."""
        return self.normal_form in (canonical_form, normal_form)

    def host_of(self, normal: str) -> str:
        """The partition key of a normal form."""
        host = self._host_of(normal)
        assert host is not None, normal
        return host

    @property
    def unfiltered(self) -> bool:
        """Whether all requests are to be fetched, however often they come."""
        return self._unfiltered

    @staticmethod
    def spelling(request: Request, place: Place) -> int:
        """The key that the request would have if no step were lossy, and it no nonce."""
        return url_key(request.method, place.safe, request.body)

    def wants_nonce(self, request: Request) -> bool:
        """Whether this request is to be fetched even if one like it was."""
        return request.dont_filter or self._unfiltered

    def mark(self, request: Request, seed: bool) -> bool:
        """Give a nonce to a request that wants one and has none; True when it got one."""
        if seed or not self.wants_nonce(request):
            return False
        meta = request.meta
        if any(mark in meta for mark in (NONCE, "retry_times", "redirect_times")):
            return False
        meta[NONCE] = secrets.token_hex(8)
        return True

    def rename(self, request: Request) -> None:
        """Give a new nonce to a request that wants one, whatever its meta says; take it from one that wants none."""
        if self.wants_nonce(request):
            request.meta[NONCE] = secrets.token_hex(8)
        else:
            request.meta.pop(NONCE, None)

    def again(self, entry: Entry, nonce: str) -> Entry | None:
        """The same request under a key of its own, with its retries before it again; None when the entry's text cannot
        be read.
        """
        try:
            fields = parse_object(entry.request) if entry.request else {}
            meta = {name: value for name, value in fields.get("meta", {}).items() if name != "retry_times"}
            fields["meta"] = {**meta, NONCE: nonce}
            fields.pop("retries", None)
            body = unpack(fields.get("body", ""))
            request = Request(
                entry.url,
                method=fields.get("method", "GET"),
                body=body,
                meta={name: unpack(fields["meta"][name], build=False) for name in _KEY_META if name in fields["meta"]},
                dont_filter=fields.get("dont_filter", False),
            )
        except (ValueError, TypeError, AttributeError):  # of another version, or damaged
            return None
        place = self.place(request)
        if place is None:
            return None
        text = json.dumps(fields, separators=(",", ":"))
        return entry._replace(key=self.key(request, place), request=text)

    def _returns(self, request: Request, place: Place) -> bool:
        urls = request.meta.get("redirect_urls")
        return isinstance(urls, list) and any(self.normal_form(str(url)) == place.normal for url in urls)


class FingerprintKeys(RequestKeys):
    """Keys by `fingerprinter`. `count` adds one to the stat of a name."""

    def __init__(
        self,
        settings: UbiSettings,
        fingerprinter: RequestFingerprinterProtocol,
        count: Callable[[str], object],
        unfiltered: bool = False,
    ) -> None:
        super().__init__(settings, unfiltered)
        self._fingerprinter = fingerprinter
        self._count = count
        self.lossy = False
        self._said = False

    @property
    def changed(self) -> Mapping[str, int]:
        return {}

    @property
    def plain(self) -> bool:
        return False

    def key(self, request: Request, place: Place) -> int:
        nonce = str(request.meta.get(NONCE, ""))
        if nonce.startswith(AGAIN):
            return super().key(request, place)
        print_ = self._fingerprint(request)
        if print_ is None:
            return super().key(request, place)
        if request.dont_filter and self._is_back(request, print_):
            nonce = f"{nonce}/{request.meta.get('redirect_times', 0)}"
        if nonce and nonce.startswith(SEED):
            return seed_key(url_key("", "", print_), nonce)
        return url_key("", "", print_, nonce)

    def _fingerprint(self, request: Request) -> bytes | None:
        """The fingerprint; None where there is none."""
        try:
            found = self._fingerprinter.fingerprint(request)
            if isinstance(found, bytes | bytearray):
                return bytes(found)
            raise TypeError(f"the fingerprint is a {type(found).__name__}: bytes are wanted")
        except Exception as error:
            self._count(FINGERPRINT_ERRORS)
            if not self._said:
                self._said = True
                sentence = (
                    "REQUEST_FINGERPRINTER_CLASS gives no fingerprint of %.300s: such requests are told apart by "
                    "method, URL and body. (Shown once; %s counts.)"
                )
                logger.error(sentence, request, FINGERPRINT_ERRORS, exc_info=error)
            return None

    def _is_back(self, request: Request, print_: bytes) -> bool:
        """Whether this redirect leads back to a request of its own chain, which is a step on and no duplicate."""
        urls = request.meta.get("redirect_urls")
        return isinstance(urls, list) and any(self._was(request, url) == print_ for url in urls)

    def _was(self, request: Request, url: object) -> bytes | None:
        try:
            return self._fingerprint(request.replace(url=str(url)))
        except ValueError:  # what it came by, as another agent says, is no URL
            return None
