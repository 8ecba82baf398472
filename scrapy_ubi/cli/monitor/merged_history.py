"""The history of a crawl: the timelines of its agents as one, on one grid of times. Pure functions of answers.

Rules of this module:

* A counter of the crawl at a time is the sum of what its agents had counted by then; it never falls, though an agent
  that was killed may have forgotten its last second.
* A measure (what waits, hosts) is the sum of those that were at work then: what an agent had that has gone, others
  have, and count; until they held it dead, what it had is counted as its last sample says. An agent is at work between
  two samples that are about as near as its timeline is fine there.
* What several agents have seen is one event, at the earliest time; that an agent joined or left is best known by
  itself.
* Everything is bounded: `MOST_POINTS` times, `MOST_VALUES` of agents, `MOST_EVENTS` events.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Any

from scrapy_ubi.agent.report.timeline import MOST_EVENTS, STEPS, Event, Sample, read_row
from scrapy_ubi.cli.monitor.answers import Answer

MOST_POINTS = 2000
MOST_VALUES, FEW_POINTS = 40_000, 60  # of all agents in each series: with many agents it is less fine
COUNTERS = ("pages", "done", "bytes", "links", "forwarded", "failed", "gaps", "short")
STANDING = ("queued", "known", "in_flight", "hosts", "outbox")
LONGEST = ("exchange", "lag")
RATES = {"pages": "pages_per_second", "bytes": "bytes_per_second"}
OF_AGENT = ("pages_per_second", "queued", "lag")  # shown of each agent
SAME = 60  # s: two agents that say the same within that time mean one event
NEAR = 3.0  # steps of a timeline without a sample: the agent was not at work
FEWEST = 30.0  # s, at least
SAMPLE = 10.0  # s between two samples
UNNOTICED = 600  # s in which an agent that has died is held dead, at most
ENDED = ("left", "finished")
ROUND = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400)

Series = list[float | None]
_NOTHING = [0.0] * len(COUNTERS)
_COUNTS, _MEASURES, _LONGEST = attrgetter(*COUNTERS), attrgetter(*STANDING), attrgetter(*LONGEST)


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of the crawl, and which agents say so."""

    time: int
    what: str
    who: str
    why: str
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class History:
    """`times`: unix seconds, `step` apart; each of `series`, and each of an agent's in `agents`, has a value for each
    of them, None: not known. `events`: in the order of time."""

    step: float = 0.0
    times: Sequence[int] = ()
    series: Mapping[str, Series] = field(default_factory=dict)
    agents: Mapping[str, Mapping[str, Series]] = field(default_factory=dict)
    events: Sequence[Happened] = ()


def merged(answers: Mapping[str, Answer], points: int = 360, now: float | None = None) -> History:
    """The history that these answers to the question `history` tell, with so many times at most. `now` (unix s): until
    then, where an agent is at work; None: until the last sample."""
    lines = {name: _AgentLine(answer) for name, answer in answers.items()}
    lines = {name: line for name, line in lines.items() if line.samples}
    events = _events(answers)
    if not lines:
        return History(events=events)
    first = min(line.samples[0].time for line in lines.values())
    last = max(line.samples[-1].time for line in lines.values())
    last = max(last, int(now)) if now is not None else last
    points = max(3, min(points, MOST_POINTS, max(FEW_POINTS, MOST_VALUES // len(lines))))
    times, step = _grid(first, last, points, max(line.spacing for line in lines.values()))
    series, agents = _series(lines, times, step, _deaths(events))
    return History(step, times, series, agents, events)


def _grid(first: int, last: int, points: int, fine: float) -> tuple[list[int], float]:
    """Times that are even, cover all, and are no nearer than most samples (s)."""
    least = max((last - first) / (points - 2), fine)
    step = next((step for step in ROUND if step >= least), -(-int(least) // ROUND[-1]) * ROUND[-1])
    begin, end = first // step * step, -(-last // step) * step
    return list(range(begin, end + 1, step)), float(step)


class _AgentLine:
    """The samples of one agent."""

    def __init__(self, answer: Answer) -> None:
        moments = [read_row(row) for row in answer["rows"]]
        self.samples = [moment for moment in moments if isinstance(moment, Sample)]
        self.samples.sort(key=lambda sample: sample.time)
        self._times = [sample.time for sample in self.samples]
        self._step = float(answer["step"])

    @property
    def spacing(self) -> float:
        """How far apart samples are (s) for the most of the time."""
        pairs = zip(self.samples, pairwise(self._times), strict=False)
        gaps = [later - before for sample, (before, later) in pairs if later - before <= self._near(sample)]
        return sum(gap * gap for gap in gaps) / sum(gaps) if any(gaps) else 0.0

    def counted(self, at: float) -> list[float]:
        """The counters at that time, evenly between two samples."""
        place = bisect_right(self._times, at)
        if not place:
            return _NOTHING
        before = _COUNTS(self.samples[place - 1])
        if place == len(self.samples):
            return list(before)
        begin, end = self._times[place - 1 : place + 1]
        part = (at - begin) / (end - begin)
        return [one + (other - one) * part for one, other in zip(before, _COUNTS(self.samples[place]), strict=True)]

    def within(self, begin: float, end: float) -> list[Sample]:
        """Those after `begin`, until `end`."""
        return self.samples[bisect_right(self._times, begin) : bisect_right(self._times, end)]

    def unnoticed(self, at: float, step: float, deaths: Sequence[int]) -> Sample | None:
        """The last sample, where the agent was not at work at that time and had not been held dead yet."""
        place = bisect_right(self._times, at)
        sample = self.samples[place - 1] if place else None
        if not deaths or sample is None or sample.state in ENDED:
            return None
        noticed = max(step, SAMPLE)  # then the others' samples say what they have taken over
        fits = any(at < death + noticed and 0 <= death - sample.time < UNNOTICED for death in deaths)
        return sample if fits else None

    def at_work(self, at: float, step: float) -> Sample | None:
        """The sample of that time, where the agent was at work; its last one stands for the step in which it ended."""
        place = bisect_right(self._times, at)
        if not place:
            return None
        sample = self.samples[place - 1]
        if place == len(self.samples):
            lasts = 0.0 if sample.state in ENDED else self._near(sample)
            return sample if at - sample.time < max(step, lasts) else None
        return sample if self._times[place] - sample.time <= self._near(sample) else None

    def _near(self, sample: Sample) -> float:
        age = self._times[-1] - sample.time
        fine = next(step for until, step in STEPS if age < until)
        return max(FEWEST, NEAR * max(self._step, fine))


class _Point:
    """What the agents add up to at one time."""

    __slots__ = ("agents", "counts", "lasting", "least", "longest")

    def __init__(self) -> None:
        self.counts: list[float] = _NOTHING
        self.lasting = [0] * len(STANDING)
        self.longest: list[float | None] = [None] * len(LONGEST)
        self.least: float | None = None
        self.agents = 0

    def add(self, counts: list[float], lasting: Sample | None, seen: Iterable[Sample]) -> None:
        self.counts = [one + other for one, other in zip(self.counts, counts, strict=True)]
        if lasting is not None:
            self.lasting = [one + other for one, other in zip(self.lasting, _MEASURES(lasting), strict=True)]
        for sample in seen:
            self.longest = [max(one or 0.0, other) for one, other in zip(self.longest, _LONGEST(sample), strict=True)]
            if sample.least and (self.least is None or sample.least < self.least):
                self.least = sample.least


def _series(
    lines: Mapping[str, _AgentLine], times: Sequence[int], step: float, deaths: Mapping[str, Sequence[int]]
) -> tuple[dict[str, Series], dict[str, Mapping[str, Series]]]:
    """Every series of the crawl by name, and those of each agent."""
    points = [_Point() for _ in times]
    agents: dict[str, Mapping[str, Series]] = {}
    for name, line in sorted(lines.items()):
        pages, queued, lags = Series(), Series(), Series()
        for point, at in zip(points, times, strict=True):
            working, counts, seen = line.at_work(at, step), line.counted(at), line.within(at - step, at)
            point.add(counts, working or line.unnoticed(at, step, deaths.get(name, ())), seen)
            point.agents += working is not None
            pages.append(counts[0])
            queued.append(working.queued if working is not None else None)
            lags.append(max((sample.lag for sample in seen), default=None))
        agents[name] = dict(zip(OF_AGENT, (_rates(pages, step), queued, lags), strict=True))
    return _of_points(points, times, step), agents


def _of_points(points: Sequence[_Point], times: Sequence[int], step: float) -> dict[str, Series]:
    series: dict[str, Series] = {"time": [float(at) for at in times]}
    for place, name in enumerate(COUNTERS):
        counts: list[int] = list(accumulate((round(point.counts[place]) for point in points), max))
        series[name] = [*counts]
    for place, name in enumerate(STANDING):
        series[name] = [point.lasting[place] for point in points]
    for place, name in enumerate(LONGEST):
        series[name] = [point.longest[place] for point in points]
    series["least"] = [point.least for point in points]
    series["agents"] = [point.agents for point in points]
    return series | {rate: _rates(series[name], step) for name, rate in RATES.items()}


def _rates(counts: Series, step: float) -> Series:
    """A second, over the step before each time."""
    return [None, *(round(max(0.0, (later or 0) - (before or 0)) / step, 3) for before, later in pairwise(counts))]


# -- events


def _deaths(events: Iterable[Happened]) -> dict[str, list[int]]:
    """When agents were held dead."""
    deaths: dict[str, list[int]] = {}
    for one in events:
        if one.what == "dead":
            deaths.setdefault(one.who, []).append(one.time)
    return deaths


def _events(answers: Mapping[str, Answer]) -> list[Happened]:
    found: list[Happened] = []
    told = [(event, by) for by, answer in answers.items() for event in _read(answer["events"])]
    latest: dict[tuple[str, str, str], int] = {}  # what, who, why -> its place in `found`
    own = {(event.what, event.who) for event, by in told if by == event.who}
    for event, by in sorted(told):
        if by != event.who and event.what in ("joined", "left") and (event.what, event.who) in own:
            continue
        place = latest.get(event[1:])
        if place is None or event.time - found[place].time > SAME:
            latest[event[1:]] = len(found)
            found.append(Happened(*event, (by,)))
        elif by not in found[place].by:
            found[place] = replace(found[place], by=(*found[place].by, by))
    return found[-MOST_EVENTS:]


def _read(rows: Iterable[Any]) -> list[Event]:
    moments = (read_row(row) for row in rows)
    return [moment for moment in moments if isinstance(moment, Event)]


def document(of: History) -> dict[str, Any]:
    """Fit for JSON; docs/reference/commands.md has the names."""
    return {
        "from": of.times[0] if of.times else None,
        "to": of.times[-1] if of.times else None,
        "step": of.step,
        "series": dict(of.series),
        "agents": {name: dict(series) for name, series in of.agents.items()},
        "events": [
            {"time": one.time, "what": one.what, "who": one.who, "why": one.why, "by": list(one.by)}
            for one in of.events
        ],
    }
