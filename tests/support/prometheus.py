"""The referees of what Prometheus is told: the parser of prometheus-client, and promtool where it is installed.

`Recorded` is one scrape, in which an expression's metrics and labels can be looked up.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed (apt-get install prometheus): only our own rules were tried"
)

_STRING = r'"(?:[^"\\]|\\.)*"'
_SELECTOR = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{{(?:[^{{}}\"]|{_STRING})*\}})?")
_MATCHER = re.compile(rf"([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*({_STRING})")
_GROUPED = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)")
WORDS = frozenset(
    "sum max min avg count topk bottomk rate increase irate delta histogram_quantile clamp_min clamp_max abs time "
    "vector changes max_over_time min_over_time avg_over_time label_values label_replace and or unless bool offset by "
    "without on ignoring group_left group_right absent scalar".split()
)


class Recorded:
    """One scrape."""

    def __init__(self, text: str) -> None:
        self.samples = [
            (sample.name, sample.labels, float(sample.value))
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        ]

    def of(self, name: str, **labels: str) -> list[float]:
        """The values of this series, with these labels among its own."""
        return [value for _, _, value in self.find(name, labels)]

    def value(self, name: str, **labels: str) -> float:
        """The one value of it."""
        (found,) = self.of(name, **labels)
        return found

    def find(self, name: str, labels: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, str], float]]:
        for sample in self.samples:
            if sample[0] == name and all(sample[1].get(one) == value for one, value in labels.items()):
                yield sample

    def labels_of(self, name: str) -> set[str]:
        """The labels that series of this name have."""
        return {label for one, labels, _ in self.samples if one == name for label in labels}

    def wrong(self, expression: str) -> list[str]:
        """What an expression names that is not here: metrics, labels, and exact values of labels (but `$variables`)."""
        found, bare = [], _GROUPED.sub(" ", expression)
        names: set[str] = set()
        for match in _SELECTOR.finditer(re.sub(r"\[[^\]]*\]|\$\w+", " ", _without_texts(bare))):
            names |= {match[1]} - WORDS
        names = {name for name in names if not re.fullmatch(r"[smhdwy]|inf|nan|e\d*", name, re.IGNORECASE)}
        found += [f"no metric {name}" for name in sorted(names) if not self.labels_of(name)]
        known = set().union(*(self.labels_of(name) for name in names)) if names else set()
        grouped = {
            label.strip() for group in _GROUPED.findall(expression) for label in group.split(",") if label.strip()
        }
        found += [f"no label {label}" for label in sorted(grouped - known)]
        for match in _SELECTOR.finditer(bare):
            for label, how, text in _MATCHER.findall(match[2] or ""):
                value = text[1:-1]
                if label not in self.labels_of(match[1]):
                    found.append(f"{match[1]} has no label {label}")
                elif how == "=" and "$" not in value and not self.of(match[1], **{label: value}):
                    found.append(f"{match[1]} has no {label}={value!r}")
        return found


def _without_texts(expression: str) -> str:
    """The same without the matchers of its selectors, whose labels are no metrics."""
    return re.sub(rf"\{{(?:[^{{}}\"]|{_STRING})*\}}", " ", expression)


def promtool(*arguments: str, stdin: str = "", cwd: Path | None = None) -> None:
    """Run promtool, and fail with what it says."""
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *arguments], input=stdin, text=True, capture_output=True, timeout=60, cwd=cwd)
    assert not done.returncode, done.stdout + done.stderr
