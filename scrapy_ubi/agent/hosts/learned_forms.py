"""What an agent learns of the hosts it owns: which lossy steps of the normal form hold there, and what that saves.

The policy and its note are `urls.learned`'s; here is what an owner does with it. Rules of this module:

* Keys are those of the steps that are not tried, for all agents, so one that finds a URL needs to know nothing. The
  owner judges when it is about to fetch one (`joins`): is another URL of its *class* (those that the steps which are on
  take for one) fetched, or out? Then this one is done without a load. So what waits profits from what is learned later,
  wherever it was found.
* Only plain requests are judged and compared: GET, no body, no nonce. What else is sent is sent for its own sake.
* A page fetched under a spelling that is not its class's form marks the class: one more key of the host is done with
  it, made of the class's form and `MARK`. It never was an entry, travels as every done mark does, and leaves no earlier
  than that of the page. So heirs know the class, and merging stays a union.
* One in `SAMPLE` of those that would be joined is fetched nevertheless, chosen by its key. Where its content is
  another, the steps that joined it are off from then on.
* What was joined is remembered, `MOST_JOINED` of it, in this process only: where steps turn out not to hold, or the
  page fetched for it fails, it is fetched after all, under a key of its own. What was joined before a crash or a
  handoff, and what is beyond, stays joined: that is the loss which this preset accepts.
* Contents are compared by a hash of the body, of pages answered with 200; not found (404, 410) is a content too, but
  two of them teach nothing. Of whatever else is answered, or was cut, nothing is learned. Redirects from one spelling
  to another say that both are one page. Contents are remembered for `MOST_PAGES` keys, in this process only.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from typing import NamedTuple

from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.agent.keys import UNJOINED, Keys, again_nonce
from scrapy_ubi.agent.profile.merged_urls import MergedUrls
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls import learned, partition_key, url_key
from scrapy_ubi.urls.host_shards import host_of_key
from scrapy_ubi.urls.normaliser import parse_steps, tried

LEARNED = "learned"  # the section of a host's notes in which the learned forms are
SAMPLE = 20
MOST_PAGES = 50_000  # 10 MB
MOST_JOINED = 10_000  # 5 MB, with usual URLs
MARK = "ubi-class"  # in place of a nonce, in the key of a class

# Flags of a response of which only the beginning is there: `components.truncate.FLAG`, and Scrapy's.
CUT = ("truncated", "dataloss", "download_stopped")

NOT_FOUND = -1
MOVED = -2  # to another spelling of itself
_GONE = (404, 410)

__all__ = ["CUT", "LearnedForms", "content_of"]


def content_of(status: int, body: bytes) -> int | None:
    """What two pages are compared by; None for what cannot be."""
    if status in _GONE:
        return NOT_FOUND
    return int.from_bytes(blake2b(body, digest_size=8).digest(), "big") if status == 200 else None


def _site(step: str, form: str) -> str:
    """The site of which a step is learned from a form."""
    site = learned.site_of(form)
    return learned.www_site(site) if step == "www" else site


class _Page(NamedTuple):
    """A page that was fetched: its key, its content, and by which steps it is of its class."""

    key: int
    content: int
    steps: tuple[str, ...] = ()


class _Joined(NamedTuple):
    """URLs of one class that were not fetched, and by which steps."""

    host: str
    entries: list[Entry]
    steps: set[str]


class LearnedForms:
    """The learning of one agent. `again` takes in an entry of a host.

    `counted` counts: `agreed`, `disagreed` (pairs), `on`, `off` (steps of sites), `sampled`, `unjoined` (fetched after
    all).
    """

    def __init__(self, settings: UbiSettings, keys: Keys, again: Callable[[str, Entry], object]) -> None:
        self._partition = settings.partition
        self._rules = settings.host_rules
        self._keys = keys
        self._again = again
        self._tried = tried(parse_steps(settings.normalise))
        self.counted: Counter[str] = Counter()
        # Key of a URL, of its form by a step, or of its class -> what was there.
        self._pages: OrderedDict[int, _Page] = OrderedDict()
        self._out: dict[int, int] = {}  # key of a class -> key of the entry that is out for it
        self._stands_for: dict[int, int] = {}  # the same by the key of the entry: what is learned changes classes
        self._moved: set[int] = set()
        self._joined: OrderedDict[int, _Joined] = OrderedDict()
        self._remembered = 0

    @staticmethod
    def from_settings(settings: UbiSettings, keys: Keys, again: Callable[[str, Entry], object]) -> LearnedForms | None:
        """The learned forms that these settings want; None without."""
        return LearnedForms(settings, keys, again) if tried(parse_steps(settings.normalise)) else None

    @property
    def kept(self) -> tuple[int, int]:
        """How many pages are remembered, and how many requests that were joined with one of a URL: both are bounded."""
        return len(self._pages), sum(len(joined.entries) for joined in self._joined.values())

    def work_for(self, agent: Agent, hosts: HostNotes, joins: MergedUrls) -> None:
        """Work for this agent."""
        self._agent = agent
        self._hosts = hosts
        self._joins = joins

    # -- before a load

    def joins(self, state: HostState, entry: Entry) -> bool:
        """Whether this entry, handed out, is not to be fetched: it is joined with another one of its class. Raises
        StoreError.
        """
        sites = self._sites(state)
        form = self._form(entry) if sites else None
        if form is None:
            return False
        normal, steps = self._class(state, sites, form)
        key = url_key("GET", normal, b"", MARK)
        if not self._is_met(state, key, normal if steps else ""):
            self._out[key], self._stands_for[entry.key] = entry.key, key
            return False
        if entry.key % SAMPLE == 0:
            self.counted["sampled"] += 1
            return False
        self._join(state.host, entry, key, normal, steps)
        return True

    def _is_met(self, state: HostState, key: int, normal: str) -> bool:
        """Whether a page of this class is fetched, or out; `normal`: the class's form, where the entry has another."""
        if state.is_done(key) or key in self._out:
            return True
        if not normal:
            return False
        plain = url_key("GET", normal)
        if not state.is_done(plain):
            return False
        if (page := self._pages.get(plain)) is not None:
            return page.content != NOT_FOUND
        # Done, but with what? Where that is not known (it failed, or another agent fetched it) this one is fetched.
        return self._agent.frontier.status_of(state, plain) == 200

    def _join(self, host: str, entry: Entry, key: int, normal: str, steps: tuple[str, ...]) -> None:
        if not steps:  # it is its class's form, and was met later than another spelling
            page = self._pages.get(key)
            steps = page.steps if page is not None else ()
        self._joins.join(entry.url, normal, steps)
        kept = self._joined.setdefault(key, _Joined(host, [], set()))
        kept.entries.append(entry)
        kept.steps.update(steps)
        self._remembered += 1
        while self._remembered > MOST_JOINED:
            self._remembered -= len(self._joined.popitem(last=False)[1].entries)

    # -- after it

    def moved(self, state: HostState, entry: Entry, url: str) -> None:
        """The page of this entry is a redirect to that URL."""
        form, target = self._form(entry), self._keys.normal_form(url)
        if form is None or target is None or form == target:
            return
        sites = self._sites(state)
        for step, variant in self._variants(state, form).items():
            if variant == target:
                self._judge(state, sites, step, form, url_key("GET", target), url_key("GET", target))
        sites = self._sites(state)
        if (normal := self._class(state, sites, form)[0]) == self._class(state, sites, target)[0]:
            self._moved.add(entry.key)
            key = url_key("GET", normal, b"", MARK)
            self._out.pop(key, None)  # nor may what is fetched now be joined with it
            if not state.is_done(key):
                self._unjoin(key)  # and what was, while it was out: the host is free before its redirect is heard of

    def end_visit(self, state: HostState, entry: Entry, content: int | None) -> None:
        """The visit of this entry has ended, with this content; None: it was not fetched, or cannot be compared."""
        form = self._form(entry)
        if form is None:
            return
        if entry.key in self._moved:
            self._moved.discard(entry.key)
            content = MOVED
        if content is not None and content != MOVED:
            self._compare(state, entry, form, content)
        stood_for = self._is_in(entry)
        sites = self._sites(state)
        if not sites:
            return
        normal, steps = self._class(state, sites, form)
        key = url_key("GET", normal, b"", MARK)
        if content is None or content == NOT_FOUND:
            for each in {key, stood_for or key}:
                self._unjoin(each)
        elif content != MOVED:
            self._check(state, entry, form, key, _Page(entry.key, content, steps))
            if steps and self._class(state, self._sites(state), form)[0] == normal:
                self._agent.work.mark_joined_done(state, entry._replace(key=key))

    def put_back(self, entry: Entry) -> None:
        """The visit of this entry was not made, or is to be made again."""
        self._moved.discard(entry.key)
        self._is_in(entry)

    def _is_in(self, entry: Entry) -> int | None:
        """This entry is out no longer; the key of the class that it was out for."""
        key = self._stands_for.pop(entry.key, None)
        if key is not None and self._out.get(key) == entry.key:
            del self._out[key]
        return key

    def _compare(self, state: HostState, entry: Entry, form: str, content: int) -> None:
        """With what was fetched of the URLs that a single step takes for this one."""
        sites, variants = self._sites(state), self._variants(state, form)
        page = _Page(entry.key, content)
        for step in self._tried:
            if sites.get(_site(step, form), {}).get(step) == learned.OFF:
                continue
            variant = variants.get(step, form)
            key = url_key("GET", variant, b"", step)
            other = self._pages.get(key)
            if other is None and variant != form:
                other = self._pages.get(url_key("GET", variant))
            if other is not None and other.key != entry.key:
                self._judge(state, sites, step, form, content, other.content)
            elif other is None and variant != form:
                self._remember(key, page)
        self._remember(entry.key, page)

    def _check(self, state: HostState, entry: Entry, form: str, key: int, page: _Page) -> None:
        """With the page of its class, if this is another one: a sample."""
        other = self._pages.get(key)
        if other is None and page.steps:
            other = self._pages.get(url_key("GET", self._class(state, self._sites(state), form)[0]))
        if other is None:
            if page.steps:
                self._remember(key, page)
        elif other.key != entry.key and other.content != page.content:
            sites = self._sites(state)
            for step in {*page.steps, *other.steps}:
                self._judge(state, sites, step, form, page.content, other.content)

    def _judge(self, state: HostState, sites: learned.Sites, step: str, form: str, one: int, other: int) -> None:
        """A pair of pages that this step takes for one."""
        name = _site(step, form)
        if name not in sites and len(sites) >= learned.MOST_SITES:
            return
        site = sites.setdefault(name, {})
        before = site.get(step)
        if one != other:
            self.counted["disagreed"] += 1
            site[step] = learned.OFF
            if before == learned.ON:
                self._unjoin_all(state.host, step)
        elif one != NOT_FOUND and learned.agreed(site, step, one):
            self.counted["agreed"] += 1
        after = site.get(step)
        if isinstance(after, int) and after != before:
            self.counted["on" if after == learned.ON else "off"] += 1
        if after != before or isinstance(after, list):
            self._hosts.put(state, LEARNED, sites)

    def _remember(self, key: int, page: _Page) -> None:
        self._pages[key] = page
        if len(self._pages) > MOST_PAGES:
            self._pages.popitem(last=False)

    # -- what was joined wrongly

    def _unjoin_all(self, host: str, step: str) -> None:
        for key, joined in list(self._joined.items()):
            if joined.host == host and (step in joined.steps or not joined.steps):
                self._unjoin(key)

    def _unjoin(self, key: int) -> None:
        joined = self._joined.pop(key, None)
        if joined is None:
            return
        self._remembered -= len(joined.entries)
        for entry in joined.entries:
            again = self._keys.again(entry, again_nonce(UNJOINED, entry))
            if again is not None:
                self.counted["unjoined"] += 1
                self._again(joined.host, again)

    # -- forms

    def _sites(self, state: HostState) -> learned.Sites:
        return learned.read(self._hosts.get(state, LEARNED)) if state.notes.text else {}

    def _form(self, entry: Entry) -> str | None:
        """The normal form of a plain request's URL; None for any other."""
        form = self._keys.normal_form(entry.url)
        return form if form is not None and url_key("GET", form) == entry.key else None

    def _class(self, state: HostState, sites: learned.Sites, form: str) -> tuple[str, tuple[str, ...]]:
        normal, steps = learned.class_of(sites, form)
        return (normal, steps) if self._stays(state, form, normal) else (form, ())

    def _variants(self, state: HostState, form: str) -> dict[str, str]:
        """The form by each step that is tried, alone, where that is another one."""
        variants = {step: learned.by(form, (step,))[0] for step in self._tried}
        return {step: to for step, to in variants.items() if to != form and self._stays(state, form, to)}

    def _stays(self, state: HostState, form: str, to: str) -> bool:
        """Whether both are URLs of the host: `www.` may be another one's."""
        return learned.site_of(form) == learned.site_of(to) or partition_key(
            to, self._partition, self._rules
        ) == host_of_key(state.host)
