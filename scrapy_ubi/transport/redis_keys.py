"""The Redis keys of a crawl, named here and nowhere else. docs/reference/redis-keys.md shows how to read each.

| key                            | type   | holds                                                             |
| ------------------------------ | ------ | ----------------------------------------------------------------- |
| `ubi:{<crawl>}:beats`          | hash   | agent -> its beat line, written when it says something new        |
| `ubi:{<crawl>}:pulses`         | string | each agent's pulse: the counter of its last beat (pulses.py)      |
| `ubi:{<crawl>}:slots`          | hash   | place of a pulse in that string -> the agent                      |
| `ubi:{<crawl>}:agents`         | hash   | agent -> its profile, JSON                                        |
| `ubi:{<crawl>}:control`        | hash   | `run`, `finished`, `drain:<agent>`, `ask:<id>`, ...: words to all |
| `ubi:{<crawl>}:start`          | hash   | an item of start() -> which agent has it, and whether it is kept  |
| `ubi:{<crawl>}:<agent>:inbox`  | stream | letters that wait for this agent                                  |
| `ubi:{<crawl>}:<agent>:acks`   | hash   | lane -> what became of the letters this agent sent on that lane   |
| `ubi:{<crawl>}:<agent>:dead`   | stream | letters this agent refused, with the reason; about 1,000          |
| `ubi:{<crawl>}:<id>:answers`   | hash   | agent -> its answer to the question `ask:<id>`; expires           |
| `ubi:{<crawl>/<i>}:memory`     | string | a token, gone when that mail was lost; only with mail slots        |
| `ubi:{<crawl>}:seeds`          | stream | URLs from outside, until an agent has them on its disk            |
| `ubi:{<crawl>}:seeded`         | stream | what became of those, about the newest 10,000; expires            |
| `ubi:{<crawl>}:items`          | stream | items for those who read along (the store `stream`), bounded       |
| `ubi:{<crawl>}:followers`      | hash   | who reads these without a group of their own -> when they last did  |
| `ubi:watched`                  | string | which server this data set was known at, and since when (not a crawl's)    |
| `<any of these>:aside`         | any    | what somebody had written there with a wrong type                 |

Rules of this module:

* What stands in braces is the hash tag of a Redis Cluster: all keys of a crawl are in one slot, so that a script may
  use any of them, and an exchange is one round trip to one server. `ubi:watched` (watched.py) is one for the database;
  in a cluster each crawl has its own in its slot.
* But for mail, where UBI_MAIL_SLOTS is more than 1: inbox and acks of an agent are in one of so many slots, with the
  tag `{<crawl>/<i>}`. Which one is made of the agent's name alone (`mail_place`), and `<i>` of the crawl's name and the
  number of slots, so that these are spread evenly over the slots of a cluster (`mail_tags`).
* Names of crawls and agents hold no braces and no `/` (settings refuse them), so keys of crawl `a`, of crawl `a:b` and
  of a mail slot of `a` cannot be mistaken for each other. What an agent's keys end in differs from what the crawl's end
  in, whatever its name.
"""

from __future__ import annotations

import re
from binascii import crc_hqx
from functools import lru_cache
from hashlib import blake2b
from itertools import count

LAYOUT = 7
"""Which layout of keys, beats and letters this is: 1 had no pulses, 2 no era in a beat, and ended crawls without a look
at seeds, 3 no lives before in a beat, 4 no members of its view, 5 no sums in notes, 6 no packed letters. Agents of two
do not understand each other, and each refuses to join those of the other. It is raised with every such change. So that
all versions can tell, some things stay as they are in each layout: the hash `agents` (before there were hash tags,
`ubi:<crawl>:agents`), by this name, and in it JSON with `layout`, `version`, `state`, `incarnation` and `updated`,
written every two seconds; and the field of the control hash that asks to leave."""
WATCHED_KEY = "ubi:watched"
ASIDE = ":aside"
SET_ASIDE = "%s held something else than it should; that is %s%s now"  # for the log: a key twice, and ASIDE
AGENT_KEYS = ("inbox", "acks", "dead")
OWNED_KEYS = (*AGENT_KEYS, "answers")
ALL = "ubi:{*"
"""A SCAN pattern that matches the keys of all crawls."""
ASK = "ask:"
"""What the fields of the control hash begin with that hold a question to the agents; its id, 16 hex digits, follows."""
CLUSTER_SLOTS = 16_384
_NUMBERED = re.compile(r"(.*?)(\d{0,9})")


def drain_field(agent: str) -> str:
    """Field of the control hash that asks `agent` to leave; it holds the incarnation that is meant."""
    return f"drain:{agent}"


def hash_slot(tag: str) -> int:
    """The slot of a Redis Cluster that a hash tag leads to: without redis-py, which an agent alone does not need."""
    return crc_hqx(tag.encode(), 0) % CLUSTER_SLOTS


def mail_place(agent: str, slots: int) -> int:
    """Which of so many mail slots an agent's mail is in. Names that differ in the number at their end only, as those of
    most groups do (`a1`, `a2`, ...), take turns: by chance some masters would carry twice what others do."""
    parts = _NUMBERED.fullmatch(agent)
    begin, number = parts.groups() if parts is not None else (agent, "")
    mark = int.from_bytes(blake2b(begin.encode(), digest_size=6).digest(), "big")
    return (mark + int(number or 0)) % slots


@lru_cache(maxsize=16)
def mail_tags(crawl: str, slots: int) -> tuple[str, ...]:
    """The hash tags of a crawl's mail slots, by place: `<crawl>/<i>`, where `<i>` is the smallest number by which the
    tag is in the middle of its share of a cluster's slots. So as many masters, or a part of so many, carry the same."""
    found: dict[int, str] = {}
    for number in count():
        tag = f"{crawl}/{number}"
        place, rest = divmod(hash_slot(tag) * slots, CLUSTER_SLOTS)
        if CLUSTER_SLOTS <= 4 * rest < 3 * CLUSTER_SLOTS:
            found.setdefault(place, tag)
            if len(found) == slots:
                break
    return tuple(found[_share(place, slots)] for place in range(slots))


def _share(place: int, slots: int) -> int:
    """Which share of a cluster's slots is the next one: those of places in a row are far apart, as by van der Corput's
    sequence, so that the first twelve agents are spread over six masters with 48 mail slots, too."""
    share, width, left, factor = 0, slots, slots, 2
    factors = []
    while left > 1:
        while left % factor == 0:
            factors.append(factor)
            left //= factor
        factor += 1
    for factor in reversed(factors):  # the largest first: a number of masters is rarely a power of two
        place, digit = divmod(place, factor)
        width //= factor
        share += digit * width
    return share


class RedisKeys:
    """Names of one crawl's keys, with its mail in so many slots."""

    def __init__(self, crawl: str, mail_slots: int = 1) -> None:
        self.crawl = crawl
        self.mail_slots = mail_slots
        self.prefix = f"ubi:{{{crawl}}}:"
        self.beats = f"{self.prefix}beats"
        self.pulses = f"{self.prefix}pulses"
        self.slots = f"{self.prefix}slots"
        self.agents = f"{self.prefix}agents"
        self.control = f"{self.prefix}control"
        self.start = f"{self.prefix}start"
        self.seeds = f"{self.prefix}seeds"
        self.seeded = f"{self.prefix}seeded"
        self.items = f"{self.prefix}items"
        self.followers = f"{self.prefix}followers"
        self.former_agents = f"ubi:{crawl}:agents"  # of the first versions, whose keys had no hash tag
        self.former_control = f"ubi:{crawl}:control"

    @property
    def slot(self) -> int:
        """The hash slot of all keys, in a Redis Cluster."""
        return hash_slot(self.crawl)

    def mail_tag(self, agent: str) -> str:
        """The hash tag of the keys of this agent's mail."""
        if self.mail_slots == 1:
            return self.crawl
        return mail_tags(self.crawl, self.mail_slots)[mail_place(agent, self.mail_slots)]

    def inbox(self, agent: str) -> str:
        """Stream of letters to `agent`."""
        if self.mail_slots == 1:  # asked for often
            return f"{self.prefix}{agent}:inbox"
        return f"ubi:{{{self.mail_tag(agent)}}}:{agent}:inbox"

    def acks(self, agent: str) -> str:
        """Hash of acknowledgements to `agent`."""
        if self.mail_slots == 1:
            return f"{self.prefix}{agent}:acks"
        return f"ubi:{{{self.mail_tag(agent)}}}:{agent}:acks"

    def memory(self, agent: str) -> str:
        """String: a token of the mail slot of `agent`; another one when what was there is lost."""
        return f"ubi:{{{self.mail_tag(agent)}}}:memory"

    def mail_slot(self, key: str) -> int | None:
        """The hash slot of a key, where it is of a mail slot; None where it is in the crawl's."""
        tag = key[5 : key.find("}")]
        return hash_slot(tag) if "/" in tag else None

    def dead(self, agent: str) -> str:
        """Stream of letters that `agent` refused."""
        return f"{self.prefix}{agent}:dead"

    def answers(self, question: str) -> str:
        """Hash of the agents' answers to the question with this id."""
        return f"{self.prefix}{question}:answers"

    def watched(self, kind: str) -> str:
        """String: since when the data set is known; one for the database, in a cluster one in the crawl's slot."""
        return f"{self.prefix}watched" if kind == "cluster" else WATCHED_KEY

    @property
    def heart(self) -> tuple[str, str, str]:
        """What beats are written into: lines, slots, pulses."""
        return (self.beats, self.slots, self.pulses)

    @property
    def shared(self) -> tuple[str, ...]:
        """The keys of the crawl as a whole, control first, with their `:aside` forms."""
        names = (self.control, self.beats, self.agents, self.slots, self.pulses, self.start)
        return (*names, *(name + ASIDE for name in names), self.watched("cluster"))

    @property
    def outside(self) -> tuple[str, ...]:
        """The keys of what comes from outside, with their `:aside` forms, and of what goes there. A new run finds them
        as they are."""
        return (self.seeds, self.seeded, self.seeds + ASIDE, self.seeded + ASIDE, self.items, self.followers)

    @property
    def pattern(self) -> str:
        """A SCAN pattern that matches the keys of every agent of this crawl and of no other crawl. It matches `:aside`
        keys of the crawl as a whole as well: `owner` tells them apart."""
        return f"{_escaped(self.prefix)}*:*"

    @property
    def mail_pattern(self) -> str:
        """A SCAN pattern that matches the keys of all mail slots of this crawl, however many it has or had."""
        return f"ubi:{{{_escaped(self.crawl)}/*}}:*"

    def owner(self, key: bytes) -> tuple[str, str] | None:
        """The agent, or the question, whose key this is, and what the key is (`inbox`, `acks`, `dead`, `answers`). None
        for any other key."""
        begin = self._begin_of(key)
        name, _, kind = key.removeprefix(begin).removesuffix(ASIDE.encode()).rpartition(b":")
        said = kind.decode(errors="replace")
        if not begin or not name or said not in OWNED_KEYS:
            return None
        return name.decode(errors="replace"), said

    def _begin_of(self, key: bytes) -> bytes:
        """What a key of this crawl begins with, of the crawl's slot or a mail slot; b"" for any other key."""
        found = re.match(rb"ubi:\{%s(?:/[0-9]{1,9})?\}:" % re.escape(self.crawl.encode()), key)
        return found[0] if found is not None else b""

    def is_mail(self, key: bytes) -> bool:
        """Whether that is a key of a mail slot of this crawl."""
        return b"/" in self._begin_of(key)


def _escaped(text: str) -> str:
    return re.sub(r"([\\*?\[\]])", r"\\\1", text)


def crawl_of(key: str) -> str | None:
    """The crawl to which one of the keys of a crawl as a whole belongs; None for any other key."""
    crawl = key.removeprefix("ubi:{").rpartition("}:")[0]
    return crawl if crawl and key in RedisKeys(crawl).shared else None
