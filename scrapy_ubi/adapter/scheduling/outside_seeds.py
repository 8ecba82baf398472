"""Seeds from outside come in: the agent that owns their host takes them, as it takes what start() yields.

Rules of this module:

* No filter judges them, and they may name private hosts, as those of start(): who writes to the Redis of a crawl names
  them (docs/how-to/secure-redis.md). Their callback is `parse`, unless they name another one of the spider's.
* A seed is the same request as a link to its page, and as a bare seed of start(): it is known when one of these is. One
  that is forced has a key of its own, made of its id, so that it is fetched once, however often it is read.
* A seed may bring limits of its host, which hold at once, also where its URL is known; a scope, and a label
  (`seed_marks`): where hosts have limits.
* Every seed has its answer: nothing here raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scrapy import Request, Spider
from scrapy.spiders import CrawlSpider, CSVFeedSpider, XMLFeedSpider

from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.adapter.requests.check import NONCE
from scrapy_ubi.adapter.requests.codec import depth_of
from scrapy_ubi.adapter.requests.identity import Place
from scrapy_ubi.adapter.requests.outside import Seed, read_seed
from scrapy_ubi.adapter.requests.seed_marks import NO_MARKS
from scrapy_ubi.adapter.scheduling.link_decision import LinkDecision
from scrapy_ubi.agent.mail.seed_inbox import KNOWN, REFUSED, SeedOutcome
from scrapy_ubi.agent.work.link_verdict import Verdict
from scrapy_ubi.ground.untrusted.checks import Malformed

FORCED = "outside."  # what the nonces of forced seeds begin with; the id follows

FORM_DATA = (
    "An element of UBI_SEED_LIST has the field {0!r}: it goes to the site as form data, as all fields there do but for "
    "url, method and meta. Where the {0} of the request was meant, write it into the stream of seeds, in the field "
    "'request' (docs/how-to/wait-for-urls.md)."
)
_NO_PARSE = "the spider has no parse(): name one of its callbacks, in the field 'request'"
_NO_LIMITS = "it brings limits, a scope or a label: the crawl takes these with UBI_HOST_LIMITS, which may be {}"
_NO_HOST = "no http or https URL"


def has_parse(spider: Spider) -> bool:
    """Whether requests without a callback have one: a `parse` of the spider's own, or of those of Scrapy's spiders that
    parse by themselves."""
    own = getattr(spider.parse, "__func__", None) is not Spider.parse
    return own or isinstance(spider, CrawlSpider | CSVFeedSpider | XMLFeedSpider)


class OutsideSeeds:
    """Takes seeds for one scheduler, by `take` (a request, and that it is a seed). `parses`: the spider has a callback
    for those that name none."""

    def __init__(self, decision: LinkDecision, take: Callable[[Request, bool], Verdict], parses: bool) -> None:
        self._decision = decision
        self._take = take
        self._parses = parses
        self._notices = Notices()

    def take_seed(self, number: str, fields: Mapping[str, str]) -> SeedOutcome:
        """Take the seed of this id, and say what becomes of it."""
        try:
            return self._judge(number, fields)
        except Malformed as error:
            return SeedOutcome(REFUSED, str(error))

    def _judge(self, number: str, fields: Mapping[str, str]) -> SeedOutcome:
        seed = read_seed(fields, self._decision.codec)
        return self._taken(number, seed)._replace(url=seed.request.url)

    def _taken(self, number: str, seed: Seed) -> SeedOutcome:
        decision = self._decision
        request = seed.request
        if request.callback is None and not self._parses:
            return SeedOutcome(REFUSED, _NO_PARSE)
        place = decision.keys.place(request)
        if place is None:
            return SeedOutcome(REFUSED, _NO_HOST)
        if seed.marks != NO_MARKS and decision.node.limits.idle:
            return SeedOutcome(REFUSED, _NO_LIMITS)
        agent = decision.node.agent
        if (owner := agent.keeping.owner(place.host)) != agent.me:
            return SeedOutcome(owner=owner)
        request.meta.update(seed.marks.meta)
        self._bring(seed, place)
        outcome = self._outcome(number, seed, place)
        self._bring(seed, place)  # the host may have been met only now
        return outcome

    def _bring(self, seed: Seed, place: Place) -> None:
        state = self._decision.node.frontier.find(place.host)
        if seed.marks.limits is not None and state is not None:
            self._decision.node.limits.bring(state, seed.marks.limits)

    def _outcome(self, number: str, seed: Seed, place: Place) -> SeedOutcome:
        """Take a seed of an own host."""
        decision, request = self._decision, seed.request
        for name in seed.odd:
            self._notices.once(name, FORM_DATA.format(name))
        if seed.again:
            request.dont_filter = True
            request.meta[NONCE] = f"{FORCED}{number}"
        elif decision.is_seed(place.host, decision.keys.key(request, place), depth_of(request), request):
            return SeedOutcome(KNOWN)
        verdict = self._take(request, True)
        if verdict.is_taken:
            return SeedOutcome()
        return SeedOutcome(KNOWN) if verdict is Verdict.KNOWN else SeedOutcome(REFUSED, verdict.reason)
