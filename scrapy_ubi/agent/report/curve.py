"""The curve of what one agent knows and has done, of its timeline: what its profile says, for `remaining`.

Rules of this module: the age of a point is the time in which the crawl went on. A pause by people is no part of it, nor
is the time between two processes.
"""

from __future__ import annotations

from collections.abc import Sequence

from scrapy_ubi.agent.profile.remaining import FIRST_AGO, Point
from scrapy_ubi.agent.report.timeline import STEPS, Sample

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
