"""What is remembered of one authority's robots.txt, and what follows from it: policy only, no clock and no network.

An authority is scheme, host and port (RFC 9309, section 2.3): several of them may share a host queue. Rules of this
module:

* A record that is *known* has been answered for: its rules hold for `UBI_ROBOTS_TTL`, and beyond that for as long as
  no server answers (section 2.4).
* One that is not known and was asked for without an answer is *unreachable*: nothing may be fetched (section 2.3.1.4).
  It is asked for again after growing pauses; when that has lasted too long it is *given up* for a while: pages fail.
* Records travel as JSON, beside the host's URLs. What comes from elsewhere is data: what does not hold is no record.
* Of one that is too long to travel the delay does: the host's is the largest of all its authorities', also if another
  one is asked next. As its rules are to be fetched again, such a record is not known.

Times are seconds since the epoch, as they travel and outlive processes.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from scrapy_ubi.ground.clock import AHEAD, no_later
from scrapy_ubi.ground.untrusted.checks import is_number, is_text, is_whole

SECTION = "robots"  # of a host's notes; also the source of its delay, and why it is put off
FIRST_PAUSE = 2.0  # s after the first failure, doubled with each further one
MOST_PAUSE = 600.0  # s
GIVEN_UP_FOR = 3600.0  # s for which pages fail before the robots.txt is asked for once more
INSIST_AFTER = 60.0  # s after which a request that is to be fetched anyway (requeued, say) has it asked for once more
MOST_RULES = 2000  # characters of rules that travel: they share the host's notes with others
MOST_USAGE = 1000  # characters of rules about the use of pages
MOST_ERROR = 8  # characters of the word for an error
MOST_TRAVEL = 2000  # characters of all records of a host
MOST_TIME = 1e12  # s since the epoch: beyond any date; not for one that is no number
MOST_TRIES = 1_000_000


class Step(Enum):
    """What to do with a page of an authority."""

    USE = "use"  # the record says whether it may be fetched
    ASK = "ask"  # robots.txt is to be fetched first
    WAIT = "wait"  # it is unreachable, and not to be asked for yet
    FAIL = "fail"  # it was given up


@dataclass(frozen=True, slots=True)
class RobotsRecord:
    """What is remembered of one robots.txt.

    `fetched`: when it was answered for, 0 when it never was; `rules`: the rules as they travel, empty where all is
    allowed, None where they are too long to travel; `agent`: the digest of the user agent for which alone these rules
    hold, empty where they hold for all; `delay`: the Crawl-delay, s;
    `usage`: the rules of what its pages may be used for, as they travel (`usage_rules`);
    `since`: when it began to be unreachable, 0 when it is not; `error`: a word for what came in place of an answer;
    `tries`: how often it was asked for without an answer since; `again`: when it may be asked for again; `wait`:
    seconds that this was set for; `gone`: it was given up.
    """

    fetched: float = 0.0
    rules: str | None = ""
    agent: str = ""
    delay: float = 0.0
    since: float = 0.0
    tries: int = 0
    again: float = 0.0
    wait: float = 0.0
    gone: bool = False
    usage: str = ""
    error: str = ""

    @property
    def known(self) -> bool:
        """Whether there is an answer to go by."""
        return self.fetched > 0


def next_step(record: RobotsRecord | None, now: float, ttl: float) -> Step:
    """What to do with a page of an authority of which this is remembered."""
    if record is None:
        return Step.ASK
    if record.known:
        stale = not now - ttl < record.fetched <= now + AHEAD
        return Step.ASK if stale and now >= record.again else Step.USE
    if now >= record.again:
        return Step.ASK
    return Step.FAIL if record.gone else Step.WAIT


def may_insist(record: RobotsRecord, now: float) -> bool:
    """Whether one that was given up may be asked for at the wish of a request that is to be fetched anyway."""
    return record.gone and now >= record.again - GIVEN_UP_FOR + INSIST_AFTER


def after_failure(
    record: RobotsRecord | None, now: float, give_up: float, asked: float = 0.0, error: str = ""
) -> RobotsRecord:
    """The record after it was asked for without an answer. `give_up`: seconds after which the first failure was too
    long ago; `asked`: for how long (s) the server wants to be left alone; `error`: a word for what came in place of an
    answer."""
    record = record or RobotsRecord()
    tries, since = record.tries + 1, record.since or now
    pause, asked = pause_after(tries), min(asked, GIVEN_UP_FOR)
    left = since + give_up - now
    gone = not record.known and left <= 0
    wait = GIVEN_UP_FOR if gone else max(pause if record.known else min(pause, left), asked)
    return replace(record, tries=tries, since=since, again=now + wait, wait=wait, gone=gone, error=error)


def pause_after(tries: int) -> float:
    """Seconds to leave a robots.txt alone that was asked for so many times without an answer."""
    return min(FIRST_PAUSE * 2.0 ** min(tries - 1, 30), MOST_PAUSE)


def is_unreachable(status: int) -> bool:
    """Whether a status leaves the rules unknown (RFC 9309, section 2.3.1.4); 429 does as well, as Google has it. Any
    other but 2xx means that there are none (section 2.3.1.3).
    """
    return status == 429 or status >= 500 or status < 200


def digest(agent: str) -> str:
    """A user agent in eight digits: rules that travel are those of one."""
    return f"{zlib.crc32(agent.encode('utf-8', 'replace')):08x}"


# As it travels

_NUMBERS = {"t": "fetched", "d": "delay", "s": "since", "x": "again", "w": "wait"}


def to_json(record: RobotsRecord) -> dict[str, Any] | None:
    """The record as it travels, without what is as it begins; None when its rules are too long, so the next owner
    has to fetch them.
    """
    if record.known and record.rules is None:
        return None
    out: dict[str, Any] = {}
    for key, name in _NUMBERS.items():
        if value := getattr(record, name):
            out[key] = round(value, 3 if key == "d" else 1)
    if record.rules:
        out["r"] = record.rules
    if record.agent:
        out["u"] = record.agent
    if record.tries:
        out["n"] = record.tries
    if record.gone:
        out["g"] = 1
    if record.usage:
        out["p"] = record.usage
    if record.error:
        out["e"] = record.error
    return out


def from_json(value: object, now: float) -> RobotsRecord | None:
    """A record that came from elsewhere, None where it does not hold. Times that are ahead are of a clock that was:
    what was found by it was found now, and is asked for again in time."""
    if not isinstance(value, dict):
        return None
    numbers = {name: value.get(key, 0.0) for key, name in _NUMBERS.items()}
    tries, rules, agent, usage = value.get("n", 0), value.get("r", ""), value.get("u", ""), value.get("p", "")
    if not all(is_number(number, MOST_TIME) for number in numbers.values()) or not is_whole(tries, 0, MOST_TRIES):
        return None
    if not is_text(rules, MOST_RULES) or not is_text(agent, 8) or not is_text(usage, MOST_USAGE):
        return None
    error = value.get("e", "")
    if not is_text(error, MOST_ERROR):
        return None
    numbers["since"] = no_later(numbers["since"], now, 0.0)
    numbers["again"] = no_later(numbers["again"], now, min(numbers["wait"] or GIVEN_UP_FOR, GIVEN_UP_FOR))
    gone = value.get("g") == 1
    return RobotsRecord(rules=rules, agent=agent, tries=tries, gone=gone, usage=usage, error=error, **numbers)


def to_section(records: dict[str, RobotsRecord]) -> dict[str, Any] | None:
    """Records of one host as they travel, by authority, the last one first; of what does not fit into `MOST_TRAVEL` the
    delay is left, so that it is fetched again. The longest delay always is. None when there are none.
    """
    section: dict[str, Any] = {}
    newest_first = list(reversed(records.items()))
    slowest, slow = max(newest_first, key=lambda item: item[1].delay, default=("", RobotsRecord()))
    kept = _size(slowest, to_json(RobotsRecord(delay=slow.delay)))
    room = MOST_TRAVEL - kept
    for authority, record in newest_first:
        room += kept if authority == slowest else 0
        for value in (to_json(record), to_json(RobotsRecord(delay=record.delay))):
            size = _size(authority, value)
            if value and size <= room:
                room -= size
                section[authority] = value
                break
    return section or None


def _size(authority: str, value: object) -> int:
    return len(json.dumps({authority: value}))


def from_section(section: object, now: float) -> dict[str, RobotsRecord]:
    """The records in a host's notes that hold, the oldest first, as `to_section` wants them."""
    if not isinstance(section, dict):
        return {}
    found = ((authority, from_json(value, now)) for authority, value in section.items() if isinstance(authority, str))
    return dict(reversed([(authority, record) for authority, record in found if record is not None]))
