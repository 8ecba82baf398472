"""The timeline of one agent: what it had done and what it held, at moments from its beginning on, and what happened
when.

Rules of this module:

* No I/O and no clock: times are unix seconds, given from outside. As text, a moment is one line of JSON: that of a
  sample has `pages`, `queued` and so on, that of an event has `what`. What is 0 or empty is left out.
* What is read is judged line by line: a line that does not hold counts for nothing, and the others do.
* Counters go on from one process of an agent to the next; measures (`queued`, `hosts`) are those of the moment.
* A timeline is thinned with age (`STEPS`): of the samples in one step the last stands for all, with the longest and the
  least of them where that is what the measure says. So it is bounded: `MOST_SAMPLES`, `MOST_EVENTS`, the oldest go.
* `curve_of` makes of it what a profile says for `remaining`. The age of a point there is the time in which the crawl
  went on: a pause by people is no part of it, nor is the time between two processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, NamedTuple

from scrapy_ubi.agent.profile.profile import STATES
from scrapy_ubi.agent.profile.remaining import FIRST_AGO, Point
from scrapy_ubi.ground.untrusted.checks import MOST_COUNT, Malformed, is_count, is_number, is_text, json_object

HOUR, DAY = 3600, 86_400
STEPS: Sequence[tuple[float, int]] = (
    (HOUR, 2),
    (DAY, 60),
    (30 * DAY, 600),
    (inf, 7200),
)  # up to this age (s): step (s)
MOST_SAMPLES = 10_000  # a year and more
MOST_EVENTS = 1000
MOST_LINE = 4096  # characters
LONGEST_WHO, LONGEST_WHY = 64, 200
LATEST = 2**43  # unix seconds
WHATS = (
    *("joined", "left", "dead", "settled", "paused", "resumed", "fenced", "unfenced", "blocked", "unblocked"),
    "finished",
)


class Sample(NamedTuple):
    """An agent at one moment. Times are seconds; `bytes` is what was received of the web. `exchange`, `lag`: the
    longest exchange with Redis, and the longest that the event loop was late, since the sample before. `gaps`: how many
    gaps between two loads of a host were measured so far, `short` how many of them were shorter than its delay;
    `least`: the shortest since the sample before, in delays of its host (0: none was measured)."""

    time: int
    pages: int = 0
    done: int = 0
    bytes: int = 0
    links: int = 0
    forwarded: int = 0
    failed: int = 0
    queued: int = 0
    known: int = 0
    in_flight: int = 0
    hosts: int = 0
    outbox: int = 0
    gaps: int = 0
    short: int = 0
    exchange: float = 0.0
    lag: float = 0.0
    least: float = 0.0
    state: str = ""

    def then(self, later: Sample) -> Sample:
        """The sample that stands for this one and a later one."""
        return later._replace(
            exchange=max(self.exchange, later.exchange),
            lag=max(self.lag, later.lag),
            least=min(self.least, later.least) or max(self.least, later.least),
        )


class Event(NamedTuple):
    """Something that happened: `what` (of `WHATS`) to `who` (an agent; empty: the crawl), and `why`, where that says
    more."""

    time: int
    what: str
    who: str = ""
    why: str = ""


COUNTS = tuple(name for name, default in Sample._field_defaults.items() if type(default) is int)
MEASURES = tuple(name for name, default in Sample._field_defaults.items() if type(default) is float)


class Timeline:
    """The samples and events of one agent, in the order of time."""

    def __init__(self, samples: Iterable[Sample] = (), events: Iterable[Event] = ()) -> None:
        self.samples = sorted(samples, key=_time)  # of equal times the order stays
        self.events = sorted(events, key=_time)[-MOST_EVENTS:]

    def __len__(self) -> int:
        return len(self.samples) + len(self.events)

    def add(self, moment: Sample | Event) -> None:
        """Another moment; it is later than all before."""
        if isinstance(moment, Sample):
            self.samples.append(moment)
            return
        self.events.append(moment)
        del self.events[:-MOST_EVENTS]

    def thin(self, now: float) -> None:
        """Let go of what is too fine for its age."""
        self.samples = list(thinned(self.samples, now))[-MOST_SAMPLES:]

    def lines(self) -> Iterator[str]:
        """As text, in the order of time."""
        moments: list[Sample | Event] = [*self.samples, *self.events]
        return (line_of(moment) for moment in sorted(moments, key=_time))

    @classmethod
    def read(cls, lines: Iterable[str | bytes], now: float = inf) -> tuple[Timeline, int]:
        """The timeline in these lines, and how many of them do not hold. What is later than `now` is of a clock that
        was wrong."""
        samples: list[Sample] = []
        events: list[Event] = []
        bad = 0
        for line in lines:
            try:
                moment = read_line(line)
            except Malformed:
                bad += 1
                continue
            if moment.time <= now:
                (samples if isinstance(moment, Sample) else events).append(moment)  # type: ignore[arg-type]
        return cls(samples[-2 * MOST_SAMPLES :], events), bad

    def since(self, begin: float, most: int) -> tuple[float, list[Sample]]:
        """At most `most` samples from that time on, and the step (s) that each stands for (0: as they were taken)."""
        chosen = [sample for sample in self.samples if sample.time >= begin]
        step = 0
        while len(chosen) > most:
            step = max(2 * step, -(-(chosen[-1].time - chosen[0].time) // max(1, most - 1)), 1)
            chosen = list(_joined(chosen, partial(_bucket, step)))
        return float(step), chosen


def _bucket(step: int, sample: Sample) -> int:
    return sample.time // step


def _time(moment: Sample | Event) -> int:
    return moment.time


def thinned(samples: Iterable[Sample], now: float) -> Iterator[Sample]:
    """One sample for each step of its age."""

    def place(sample: Sample) -> tuple[int, int]:
        step = next(step for age, step in STEPS if now - sample.time < age)
        return step, sample.time // step

    return _joined(samples, place)


def _joined(samples: Iterable[Sample], place: Callable[[Sample], object]) -> Iterator[Sample]:
    """One sample for each place in time."""
    last: Sample | None = None
    there: object = None
    for sample in samples:
        at = place(sample)
        if last is not None and at == there:
            last = last.then(sample)
            continue
        if last is not None:
            yield last
        last, there = sample, at
    if last is not None:
        yield last


# -- as text


def row(moment: Sample | Event) -> dict[str, Any]:
    """Fit for JSON: what is not at its default."""
    least = moment._field_defaults
    return {name: value for name, value in moment._asdict().items() if name == "time" or value != least.get(name)}


def line_of(moment: Sample | Event) -> str:
    """One line, without its end."""
    return json.dumps(row(moment), separators=(",", ":"))


def read_line(line: str | bytes) -> Sample | Event:
    """The moment in this line. Raises `Malformed`."""
    if len(line) > MOST_LINE:
        raise Malformed(f"{len(line)} characters, more than {MOST_LINE}")
    return read_row(json_object(line))


def read_row(data: Mapping[str, Any]) -> Sample | Event:
    """The moment that this says. What a newer agent says beyond is ignored. Raises `Malformed`."""
    if not is_count(data.get("time"), LATEST):
        raise Malformed("it has no time")
    return _event(data) if "what" in data else _sample(data)


def _sample(data: Mapping[str, Any]) -> Sample:
    for names, holds in ((COUNTS, _is_count), (MEASURES, _is_measure)):
        for name in names:
            if name in data and not holds(data[name]):
                raise Malformed(f"{name} is not what it should be")
    state = data.get("state", "")
    if state and state not in STATES:
        raise Malformed("unknown state")
    return Sample(**{name: data[name] for name in Sample._fields if name in data})


def _is_count(value: object) -> bool:
    return is_count(value, MOST_COUNT)


def _is_measure(value: object) -> bool:
    return is_number(value, MOST_COUNT)


def _event(data: Mapping[str, Any]) -> Event:
    who, why = data.get("who", ""), data.get("why", "")
    if data["what"] not in WHATS:
        raise Malformed("unknown event")
    if not is_text(who, LONGEST_WHO) or not is_text(why, LONGEST_WHY):
        raise Malformed("who or why is no text, or too long")
    return Event(data["time"], data["what"], who, why)


MOST_POINTS = 24  # to eight years
SAMPLED = 10.0  # s between two samples of a timeline
GAP = 5  # samples missing: there was no process


def curve_of(samples: Sequence[Sample]) -> list[Point]:
    """The curve of one agent, of its timeline: the youngest point first, each of the next about twice as old."""
    if not samples:
        return []
    found, wanted, ago = [_point(samples[-1], 0.0)], FIRST_AGO, 0.0
    last = samples[-1]
    for sample in reversed(samples[:-1]):
        ago += _went_on(sample, last, samples[-1].time - sample.time)
        if ago >= wanted and len(found) < MOST_POINTS:
            found.append(_point(sample, ago))
            while wanted <= ago:
                wanted *= 2
        last = sample
    if ago > found[-1].ago:
        found.append(_point(last, ago))
    return found


def _point(sample: Sample, ago: float) -> Point:
    return Point(round(ago, 1), max(0, sample.known - sample.queued - sample.in_flight), sample.known)


def _went_on(first: Sample, then: Sample, age: float) -> float:
    """How many of the seconds between two samples the crawl went on."""
    step = next(step for limit, step in STEPS if age < limit)
    passed = then.time - first.time
    if first.state == "paused" or passed > GAP * max(SAMPLED, step):
        return 0.0
    return max(0.0, float(passed))
