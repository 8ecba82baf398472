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
* Names of crawls and agents hold no braces (settings refuse them), so keys of crawl `a` and crawl `a:b` cannot be
  mistaken for each other. What an agent's keys end in differs from what the crawl's end in, whatever its name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy_ubi.ground.later import Later

if TYPE_CHECKING:
    from redis import crc
else:
    crc = Later("redis.crc")  # an agent alone knows these keys, and needs no Redis

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


def drain_field(agent: str) -> str:
    """Field of the control hash that asks `agent` to leave; it holds the incarnation that is meant."""
    return f"drain:{agent}"


class RedisKeys:
    """Names of one crawl's keys."""

    def __init__(self, crawl: str) -> None:
        self.crawl = crawl
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
        return crc.key_slot(self.crawl.encode())

    def inbox(self, agent: str) -> str:
        """Stream of letters to `agent`."""
        return f"{self.prefix}{agent}:inbox"

    def acks(self, agent: str) -> str:
        """Hash of acknowledgements to `agent`."""
        return f"{self.prefix}{agent}:acks"

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
        prefix = re.sub(r"([\\*?\[\]])", r"\\\1", self.prefix)
        return f"{prefix}*:*"

    def owner(self, key: bytes) -> tuple[str, str] | None:
        """The agent, or the question, whose key this is, and what the key is (`inbox`, `acks`, `dead`, `answers`). None
        for any other key."""
        begin = self.prefix.encode()
        name, _, kind = key.removeprefix(begin).removesuffix(ASIDE.encode()).rpartition(b":")
        said = kind.decode(errors="replace")
        if not key.startswith(begin) or not name or said not in OWNED_KEYS:
            return None
        return name.decode(errors="replace"), said


def crawl_of(key: str) -> str | None:
    """The crawl to which one of the keys of a crawl as a whole belongs; None for any other key."""
    crawl = key.removeprefix("ubi:{").rpartition("}:")[0]
    return crawl if crawl and key in RedisKeys(crawl).shared else None
