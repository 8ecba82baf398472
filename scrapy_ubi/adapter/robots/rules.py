"""From the bytes of a robots.txt to what is known of it: the parser of ROBOTSTXT_PARSER, the delay, what travels; and
for which requests it holds, their *authority*: scheme, host and port.

Rules of this module:

* Protego is given the text as `text` puts it together. Where even that would make too much of it (thousands of agents
  times thousands of rules), the parser holds for the one user agent that asked.
* Any other parser is given the bytes as they came, as Scrapy gives them; its rules travel only when they are short.
* A parser that raises has said nothing: all is allowed, no delay.
* Two requests have one authority just when one robots.txt holds for both (RFC 9309, section 2.3).
* A request to an API gateway that names the host it is for (`meta["ubi_host"]`, UBI_PARTITION) most often carries the
  URL that is really asked for, as an argument of its own: then the robots.txt of that URL holds for it. Where none is
  found, that of its own URL does, as in Scrapy: rules are of paths, and no other is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import ParseResult, parse_qsl, urlparse

from scrapy import Request
from scrapy.robotstxt import ProtegoRobotParser, RobotParser
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_ubi.adapter.requests.check import ASKED, HOST
from scrapy_ubi.adapter.robots.cache import Known
from scrapy_ubi.adapter.scrapy_private.versions import crawl_delay
from scrapy_ubi.policy.robots import text, usage_rules
from scrapy_ubi.policy.robots.record import MOST_RULES, RobotsRecord, digest
from scrapy_ubi.urls import normal_form

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


MOST_DELAY = 1e6  # s of a Crawl-delay that are remembered


class Parsers:
    """Makes parsers of the class that ROBOTSTXT_PARSER names. `broken` counts one that raised. `usage`: whether
    rules about the use of pages are read, too."""

    def __init__(self, crawler: Crawler, broken: Callable[[], None]) -> None:
        self.usage = bool(crawler.settings.get("UBI_USAGE"))
        self._crawler = crawler
        self._class: type[RobotParser] = load_object(crawler.settings.get("ROBOTSTXT_PARSER"))
        self._is_protego = self._class is ProtegoRobotParser
        self._broken = broken
        build_from_crawler(self._class, crawler, b"")  # raises when what the parser needs is not installed

    def read(self, body: bytes, agent: str, now: float) -> tuple[Known, list[str]]:
        """What is known now of a robots.txt, and the sitemaps that it names. `body` as `text.beginning` has left it."""
        robots = text.take_apart(text.decode(body))
        whole: str | None = None
        if self._is_protego:
            whole, reduced = text.put_together(robots), text.reduce(robots, agent)
            made_of, travelling = (reduced if whole is None else whole).encode(), text.shorten(reduced)
        else:
            travelling, made_of = text.decode(body), body
        parser = self._make(made_of)
        record = RobotsRecord(
            fetched=now,
            rules=travelling if len(travelling) <= MOST_RULES else None,
            agent=digest(agent) if self._is_protego and robots.groups else "",
            delay=self._delay(parser, agent),
            usage=usage_rules.read(text.decode(body), agent) if self.usage else "",
        )
        only_for = digest(agent) if self._is_protego and whole is None else None
        return Known(record, parser, only_for, len(made_of)), robots.sitemaps

    def restore(self, record: RobotsRecord) -> Known:
        """What is known of a robots.txt whose rules have travelled."""
        rules = record.rules or ""
        made_of = (text.lengthen(rules) if self._is_protego else rules).encode("utf-8", "ignore")
        return Known(record, self._make(made_of) if made_of else None, record.agent or None, len(made_of))

    def allows(self, known: Known, url: str, agent: str) -> bool:
        """Whether this URL may be fetched, by the rules that are known: as it is spelled, and in its normal form, since
        to a server `/x/../private` is `/private`.
        """
        if known.parser is None:
            return True
        asked = text.asked_as(agent) if self._is_protego else agent
        normal = normal_form(url)
        spellings = (url,) if normal is None or normal == url else (url, normal)
        try:
            return all(known.parser.allowed(spelling, asked) for spelling in spellings)
        except Exception:  # noqa: BLE001 - a parser of somebody else, and a text from the web
            self._broken()
            return True

    def _make(self, body: bytes) -> RobotParser | None:
        try:
            return build_from_crawler(self._class, self._crawler, body)
        except Exception:  # noqa: BLE001 - as above
            self._broken()
            return None

    def _delay(self, parser: RobotParser | None, agent: str) -> float:
        try:
            asked = text.asked_as(agent) if self._is_protego else agent
            delay = None if parser is None else crawl_delay(parser, asked)
            seconds = 0.0 if delay is None else float(delay)
        except Exception:  # noqa: BLE001 - as above
            self._broken()
            return 0.0
        return min(seconds, MOST_DELAY) if seconds > 0 else 0.0  # not for one that is no number


MOST_QUERY = 16_384  # characters of arguments that are looked through
DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def authority_of(request: Request) -> str | None:
    """Scheme, host and port, None for what has no robots.txt."""
    return _authority(urlparse_cached(request))


def _authority(parts: ParseResult) -> str | None:
    if parts.scheme not in DEFAULT_PORTS or not parts.netloc:
        return None
    place = parts.netloc.rpartition("@")[2].lower()
    return f"{parts.scheme}://{place.removesuffix(DEFAULT_PORTS[parts.scheme])}"


def asked_for(request: Request) -> tuple[str | None, str]:
    """The authority whose robots.txt holds for a request, None where none does, and the URL that is looked up there."""
    name = request.meta.get(HOST) or request.meta.get(ASKED)
    if isinstance(name, str):
        for _, value in parse_qsl(urlparse_cached(request).query[:MOST_QUERY]):
            try:
                parts = urlparse(value)
                authority = _authority(parts)
            except ValueError:
                continue
            if authority is not None and (parts.hostname or "") == urlparse(f"//{name}").hostname:
                return authority, value
    return authority_of(request), request.url
