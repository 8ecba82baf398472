"""The text that Prometheus reads (exposition format 0.0.4), written line by line.

Rules of this module:

* Metrics come in the order of the table, each with its HELP and TYPE once, whatever order the values came in.
* What is not in the table is a mistake of ours: `KeyError`.
* prometheus-client would do the same for thirteen times as much time (docs/decisions/0062-metrics.md); its parser is
  the referee of the tests.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import inf

from scrapy_ubi.agent.metrics.metric_table import METRICS

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LONGEST_LABEL = 100  # characters of a value
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Histogram:
    """How often something took how long; `bounds` are the upper ones of its buckets, rising (s). One thread counts."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """It took so long once more."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum += seconds


def labels(values: Mapping[str, str]) -> str:
    """These labels, as they stand between the braces."""
    return ",".join(f'{name}="{label(value)}"' for name, value in values.items())


def label(value: str) -> str:
    """The value of a label, cut and escaped."""
    return value[:LONGEST_LABEL].translate(_ESCAPED)


class Exposition:
    """Values that were put in, as text."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {metric.name: [] for metric in METRICS}

    def put(self, name: str, value: float, labels: str) -> None:
        """This metric has this value, with these `labels`."""
        self._lines[name].append(f"{name}{{{labels}}} {_number(value)}\n")

    def put_histogram(self, name: str, histogram: Histogram, labels: str) -> None:
        """Put the buckets of a histogram, which add up, with these `labels`."""
        lines, total = self._lines[name], 0
        for bound, count in zip((*histogram.bounds, inf), list(histogram.counts), strict=True):
            total += count
            lines.append(f'{name}_bucket{{{labels},le="{_number(bound)}"}} {total}\n')
        lines.append(f"{name}_sum{{{labels}}} {_number(histogram.sum)}\n")
        lines.append(f"{name}_count{{{labels}}} {total}\n")

    def text(self) -> str:
        """Everything; metrics without a value are left out."""
        parts: list[str] = []
        for metric in METRICS:
            if lines := self._lines[metric.name]:
                parts.append(f"# HELP {metric.name} {metric.meaning}.\n# TYPE {metric.name} {metric.kind}\n")
                parts += lines
        return "".join(parts)


def _number(value: float) -> str:
    return "+Inf" if value == inf else repr(value)
