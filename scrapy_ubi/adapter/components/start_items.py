"""Items that `start()` yields: once in the whole crawl, though every agent runs `start()`.

Rules of this module:

* An item is known by its class and content. So agents may yield the same items, or each its own; alike ones of one
  `start()` come all of them. What is no JSON cannot be told to be alike: it comes from each agent, and that is said.
* The agent that is the first to yield an item *holds* it, and those alike, by a word in Redis. The others keep theirs
  back.
* An item is *kept* when it has passed the pipelines, and what feeds and stores have of it outlasts the process. The
  holder says so, and no agent yields it again in this crawl, not after a restart either.
* `start()` is not over before all of its items are kept, here and at the others. Where a holder has been away for as
  long as an agent may be silent, the first agent to see that holds the item in its place, and yields its own. So an
  item may come twice if its holder was killed in between, and is not lost. A `start()` that never ends does not look:
  then only its holder yields the item again, when that is started again.
* While Redis is away items wait, and `start()` with them.
* An agent alone, without Redis, yields all of them, at each start, as Scrapy does.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Container
from functools import cache
from hashlib import blake2b
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler

from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.agent.mail.item_claims import ItemClaims
from scrapy_ubi.ground.untrusted.terminal_text import plain
from scrapy_ubi.transport.contract import MOST_START_ITEMS

LOOK_EVERY = 0.2  # s between two looks at what waits
LAST_LOOKS = 10  # of an agent that leaves
NAME = 100  # characters of a holder's name that are shown

HELD, KEPT = "held", "kept"
ELSEWHERE = "Items that start() yields come once in the crawl: {} of agent {} stands for the one of this agent."
ALIKE = "{} of start() is no JSON, so nothing can tell whether other agents yield the same: it comes from each of them."
MANY = "start() yields more than {:,} items: further ones come from each agent."


class StartItems:
    """The items of one agent's `start()`. `claims`: None where it is alone; `members`: who is in the crawl; `patience`:
    how long an agent may be away (s); `outlasts`: whether what was scraped so far outlasts the process."""

    def __init__(
        self,
        claims: ItemClaims | None,
        agent: str,
        members: Callable[[], Container[str]],
        patience: float,
        outlasts: Callable[[], bool],
        notices: Notices,
        count: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._claims = claims
        self._members = members
        self._patience = patience
        self._outlasts = outlasts
        self._notices = notices
        self._count = count
        self._clock = clock
        self._own_held = f"{HELD} {agent}"
        self._own_kept = f"{KEPT} {agent}"
        self._held: set[str] = set()  # by this agent, not kept yet
        self._back: dict[str, list[Any]] = {}  # items that others hold: kept back
        self._said: dict[str, str] = {}  # of these, last
        self._many = 0  # kept back
        self._away: dict[str, float] = {}  # holder that is not in the crawl -> since when
        self._yielded = self._passed = 0
        self._was_through = False
        self.before_first: Callable[[], None] = lambda: None  # called before the first item is asked about

    def listen(self, crawler: Crawler) -> None:
        """Hear of items that are through the pipelines. It makes each item of a page dearer: not where start() yields
        none."""
        for signal in (signals.item_scraped, signals.item_dropped, signals.item_error):
            crawler.signals.connect(self.through, signal)

    def through(self, item: Any, response: Any) -> None:
        """Count an item of start() that is through the pipelines."""
        self._passed += response is None  # as those of start() have none

    async def is_own(self, item: Any) -> bool:
        """Whether this agent is to yield the item; else another one has it."""
        if (claims := self._claims) is None:
            return True
        self.before_first()
        self.before_first = lambda: None
        own = (name := self._name(item)) is None or await self._holds(claims, name, item)
        self._yielded += own
        return own

    async def _holds(self, claims: ItemClaims, name: str, item: Any) -> bool:
        if name in self._held:
            return True
        said = (await claims.settle_claims({name: (None, self._own_held)}))[name]
        if said == self._own_held:  # a former life of this agent may have held it
            self._held.add(name)
            return True
        kind, _, holder = said.partition(" ")
        if not said or (kind != KEPT and self._many >= MOST_START_ITEMS):
            self._notices.once("start_items_many", MANY.format(MOST_START_ITEMS))
            return True
        self._count("ubi/start/items_elsewhere")
        sentence = ELSEWHERE.format(f"a {type(item).__name__}", plain(holder, NAME))
        self._notices.once("start_items", sentence, logging.INFO)
        if kind != KEPT:
            self._back.setdefault(name, []).append(item)
            self._said[name] = said
            self._many += 1
        return False

    async def rest(self) -> AsyncIterator[Any]:
        """Wait until all are kept. Yields items whose holders have gone."""
        claims = self._claims
        while claims is not None and (self._held or self._back):
            await asyncio.sleep(LOOK_EVERY)
            if self._are_through():
                await claims.settle_claims(self._all_kept())
                self._held.clear()
            for item in await self._taken_over(claims):
                yield item

    async def close(self) -> None:
        """This agent leaves, and its pipelines are through: say what is kept, if that can be said. What is not comes
        again after a restart."""
        for _ in range(LAST_LOOKS):
            if self._claims is None or not self._held:
                return
            if self._passed >= self._yielded and self._outlasts():
                if await self._claims.try_once(self._all_kept()):
                    self._held.clear()
                return
            await asyncio.sleep(LOOK_EVERY)

    def _all_kept(self) -> dict[str, tuple[str | None, str]]:
        return dict.fromkeys(self._held, (self._own_held, self._own_kept))

    def _are_through(self) -> bool:
        """Whether all items are, since the last look: handlers of the signals run in any order."""
        through, self._was_through = self._was_through, self._passed >= self._yielded
        return through and self._was_through and bool(self._held) and self._outlasts()

    async def _taken_over(self, claims: ItemClaims) -> list[Any]:
        """Items that this agent holds from now on in the place of others."""
        wanted: dict[str, tuple[str | None, str]] = {}
        looks = {name: (said, said) for name, said in self._said.items()}
        for name, said in (await claims.settle_claims(looks)).items():
            kind, _, holder = said.partition(" ")
            self._said[name] = said
            if kind == KEPT:
                del self._back[name], self._said[name]
            elif not said:  # Redis has forgotten it
                wanted[name] = None, self._own_held
            elif self._has_gone(holder):
                wanted[name] = said, self._own_held
        names = {name for name, said in (await claims.settle_claims(wanted)).items() if said == self._own_held}
        self._held |= names
        items = [item for name in names for item in self._back.pop(name)]
        for name in names:
            del self._said[name]
        self._yielded += len(items)
        self._was_through = self._was_through and not items
        return items

    def _has_gone(self, holder: str) -> bool:
        if holder in self._members():
            self._away.pop(holder, None)
            return False
        return self._clock() - self._away.setdefault(holder, self._clock()) > self._patience

    def _name(self, item: Any) -> str | None:
        """What an item is known by; None where that cannot be said."""
        try:
            text = json.dumps(item, cls=_Content, sort_keys=True)
        except (TypeError, ValueError, RecursionError):
            self._notices.once("start_items_alike", ALIKE.format(f"A {type(item).__name__}"))
            return None
        kind = f"{type(item).__module__}.{type(item).__qualname__}"
        return blake2b(f"{kind}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class _Content(json.JSONEncoder):
    """The same text for the same content: sets have an order of their own in each process."""

    def default(self, o: Any) -> Any:
        if isinstance(o, set | frozenset):
            return sorted(json.dumps(one, cls=_Content, sort_keys=True) for one in o)
        return _scrapys_encoder().default(o)


@cache
def _scrapys_encoder() -> json.JSONEncoder:
    """Scrapy's, loaded when it is used: it brings itemadapter, and that pydantic where it is installed (0.1 s)."""
    from scrapy.utils.serialize import ScrapyJSONEncoder

    return ScrapyJSONEncoder()
