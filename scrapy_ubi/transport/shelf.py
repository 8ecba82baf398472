"""What the transport without Redis keeps of a crawl: what a Redis would hold, and the steps that are scripts there."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from scrapy_ubi.transport.beat_text import encode
from scrapy_ubi.transport.contract import DEAD_LETTERS, MOST_START_ITEMS, SUMMED_UP, EndOfCrawl, Fields, Outside
from scrapy_ubi.transport.shelf_seeds import ShelfSeeds

Raw = dict[bytes, bytes]


def _dead() -> deque[Raw]:
    return deque(maxlen=DEAD_LETTERS)


@dataclass(slots=True)
class Shelf:
    """What a Redis would hold of one crawl, by the names of redis_keys.py; bytes, as there."""

    beats: Raw = field(default_factory=dict)
    agents: Raw = field(default_factory=dict)
    control: Raw = field(default_factory=dict)
    start: Raw = field(default_factory=dict)
    former_agents: Raw = field(default_factory=dict)
    former_control: Raw = field(default_factory=dict)
    inbox: defaultdict[str, dict[str, Raw]] = field(default_factory=lambda: defaultdict(dict))
    acks: defaultdict[str, Raw] = field(default_factory=lambda: defaultdict(dict))
    dead: defaultdict[str, deque[Raw]] = field(default_factory=lambda: defaultdict(_dead))
    answers: defaultdict[str, Raw] = field(default_factory=lambda: defaultdict(dict))
    seeds: ShelfSeeds = field(default_factory=ShelfSeeds)

    @property
    def outside(self) -> Outside:
        """What is there of seeds."""
        memory, waiting = self.control.get(b"memory", b""), len(self.seeds.waiting)
        return Outside(waiting, f"{memory.decode()} {self.seeds.last}" if memory and not waiting else "")

    @property
    def over(self) -> bool:
        """Whether it is said that the present run is over."""
        run, finished = (self.control.get(name, b"").split(b" ")[0] for name in (b"run", b"finished"))
        return bool(run) and run == finished

    def end(self, end: EndOfCrawl) -> None:
        """The crawl is over, if nothing has come from outside."""
        if not self.over and end.mark and self.outside == Outside(0, end.mark):
            self.control.update({encode(name): encode(value) for name, value in end.control.items()})

    def forget(self, gone: Fields) -> None:
        """Take away line and mail of these agents, whose line still is the one given."""
        for agent, line in gone.items():
            if self.beats.get(encode(agent)) == encode(line):
                del self.beats[encode(agent)]
                self.inbox.pop(agent, None)
                self.acks.pop(agent, None)

    def publish(self, agent: str, profile: str, counts_anew: bool) -> None:
        """Put this profile there, unless what it counts may be in the sum."""
        if counts_anew or encode(agent) in self.agents or encode(SUMMED_UP) not in self.agents:
            self.agents[encode(agent)] = encode(profile)

    def sum_up(self, gone: Fields, before: str | None, after: str) -> bool:
        """Take away these profiles, and put the sum there, where all is as it is given; whether it was."""
        name = encode(SUMMED_UP)
        if self.agents.get(name) != (None if before is None else encode(before)):
            return False
        for agent, text in gone.items():
            if self.agents.get(encode(agent)) != encode(text) or encode(agent) in self.beats:
                return False
        for agent in gone:
            del self.agents[encode(agent)]
        self.agents[name] = encode(after)
        return True

    def claim_items(self, claims: Mapping[str, tuple[str | None, str]]) -> list[bytes]:
        """Let this be said of items, where what is said of them is as expected; what is said then."""
        for item, (before, after) in claims.items():
            name = encode(item)
            if name not in self.start and len(self.start) >= MOST_START_ITEMS:
                continue
            if self.start.get(name) == (None if before is None else encode(before)):
                self.start[name] = encode(after)
        return [self.start.get(encode(item), b"") for item in claims]
