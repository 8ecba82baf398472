"""The history of a crawl: the timelines of its agents as one, on one grid of times. Pure functions of answers.

Rules of this module:

* A counter of the crawl at a time is the sum of what its agents had counted by then; it never falls, though an agent
  that was killed may have forgotten its last second.
* A measure (what waits, hosts) is the sum of those that were at work then: what an agent had that has gone, others
  have, and count; until they held it dead, what it had is counted as its last sample says. An agent is at work between
  two samples that are about as near as its timeline is fine there.
* What several agents have seen is one event, at the earliest time; that an agent joined or left is best known by
  itself.
* Everything is bounded: `MOST_POINTS` times, `MOST_EVENTS` events.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from scrapy_ubi.monitor.answers import Answer
from scrapy_ubi.node.report.timeline import MOST_EVENTS, STEPS, Event, Sample, read_row

MOST_POINTS = 2000
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
    lines = {name: _Line(answer) for name, answer in answers.items()}
    lines = {name: line for name, line in lines.items() if line.samples}
    events = _events(answers)
    if not lines:
        return History(events=events)
    first = min(line.samples[0].time for line in lines.values())
    last = max(line.samples[-1].time for line in lines.values())
    last = max(last, int(now)) if now is not None else last
    times, step = _grid(first, last, max(3, min(points, MOST_POINTS)), max(line.spacing for line in lines.values()))
    return History(
        step,
        times,
        _of_crawl(lines, times, step, _deaths(events)),
        {name: _of_agent(line, times, step) for name, line in sorted(lines.items())},
        events,
    )


def _grid(first: int, last: int, points: int, fine: float) -> tuple[list[int], float]:
    """Times that are even, cover all, and are no nearer than most samples (s)."""
    least = max((last - first) / (points - 2), fine)
    step = next((step for step in ROUND if step >= least), -(-int(least) // ROUND[-1]) * ROUND[-1])
    begin, end = first // step * step, -(-last // step) * step
    return list(range(begin, end + 1, step)), float(step)


class _Line:
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

    def counted(self, name: str, at: float) -> float:
        """A counter at that time, evenly between two samples."""
        place = bisect_right(self._times, at)
        if not place:
            return 0.0
        before: int = getattr(self.samples[place - 1], name)
        if place == len(self.samples):
            return before
        begin, end = self._times[place - 1 : place + 1]
        after: int = getattr(self.samples[place], name)
        return before + (after - before) * (at - begin) / (end - begin)

    def within(self, begin: float, end: float) -> list[Sample]:
        """Those after `begin`, until `end`."""
        return self.samples[bisect_right(self._times, begin) : bisect_right(self._times, end)]

    def standing(self, at: float, step: float, deaths: Sequence[int]) -> Sample | None:
        """The sample of that time, where the agent was at work, or had not been held dead yet."""
        if (sample := self.at_work(at, step)) is not None:
            return sample
        place = bisect_right(self._times, at)
        sample = self.samples[place - 1] if place else None
        if sample is None or sample.state in ENDED:
            return None
        noticed = max(step, SAMPLE)  # then the others' samples say what they have taken over
        return (
            sample if any(at < death + noticed and 0 <= death - sample.time < UNNOTICED for death in deaths) else None
        )

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


def _of_crawl(
    lines: Mapping[str, _Line], times: Sequence[int], step: float, deaths: Mapping[str, Sequence[int]]
) -> dict[str, Series]:
    """Every series, by name."""
    begun = min(line.samples[0].time for line in lines.values())
    series: dict[str, Series] = {name: [] for name in (*COUNTERS, *STANDING, *LONGEST, "least", "agents")}
    for at in times:
        working = [line for line in lines.values() if line.at_work(at, step) is not None]
        found = (line.standing(at, step, deaths.get(name, ())) for name, line in lines.items())
        standing = [sample for sample in found if sample is not None]
        seen = [sample for line in lines.values() for sample in line.within(at - step, at)]
        for name in COUNTERS:
            value = round(sum(line.counted(name, at) for line in lines.values()))
            series[name].append(max([value, *(one for one in series[name][-1:] if one is not None)]))
        for name in STANDING:
            series[name].append(sum(getattr(sample, name) for sample in standing) if at >= begun else None)
        for name in LONGEST:
            series[name].append(max((getattr(sample, name) for sample in seen), default=None))
        series["least"].append(min((sample.least for sample in seen if sample.least), default=None))
        series["agents"].append(len(working))
    for name, rate in RATES.items():
        series[rate] = _rates(series[name], step)
    return {"time": [float(at) for at in times], **series}


def _of_agent(line: _Line, times: Sequence[int], step: float) -> dict[str, Series]:
    samples = [line.at_work(at, step) for at in times]
    pages: Series = [line.counted("pages", at) for at in times]
    lags: Series = [max((sample.lag for sample in line.within(at - step, at)), default=None) for at in times]
    queued: Series = [sample.queued if sample is not None else None for sample in samples]
    return dict(zip(OF_AGENT, (_rates(pages, step), queued, lags), strict=True))


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
