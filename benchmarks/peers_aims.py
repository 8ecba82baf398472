"""What the figures are judged by: ratios of paired runs, each beside its aim, met or not."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Figures = dict[str, Any]
Values = list[float]


@dataclass(frozen=True)
class Aim:
    """A figure, its values by round, and the bound its median is to keep."""

    title: str
    bound: float
    values: Callable[[Figures], Values]
    at_least: bool = False
    form: str = "{:.2f}"

    def judge(self, figures: Figures) -> tuple[Values, bool] | None:
        """The values and whether the median keeps the bound; None when they were not measured."""
        try:
            values = self.values(figures)
        except KeyError:  # that part, or that system, has no run
            return None
        median = statistics.median(values)
        return values, median >= self.bound if self.at_least else median <= self.bound


def ratio(part: str, above: str, below: str, key: str = "cpu_ms") -> Callable[[Figures], Values]:
    """One system's figure by another's, of the same round."""
    return lambda figures: [each[above][key] / each[below][key] for each in figures[part]["rounds"]]


def plain(part: str, name: str, key: str) -> Callable[[Figures], Values]:
    return lambda figures: [each[name][key] for each in figures[part]["rounds"]]


def flatness(name: str) -> Callable[[Figures], Values]:
    """CPU a page on the most hosts by that on the fewest."""

    def values(figures: Figures) -> Values:
        sizes = figures["hosts"]["settings"]["sizes"]
        most, fewest = str(max(sizes)), str(min(sizes))
        return [each[name][most]["cpu_ms"] / each[name][fewest]["cpu_ms"] for each in figures["hosts"]["rounds"]]

    return values


def memory_at(figures: Figures, name: str, pages: int) -> float:
    """The most MB that a long crawl had had when so many pages were crawled. Raises KeyError where it was shorter."""
    for count, _, most in figures["memory"]["runs"][name]["samples"]:
        if count >= pages:
            return float(most)
    raise KeyError(pages)


def memory_ratio(name: str, pages: int) -> Callable[[Figures], Values]:
    return lambda figures: [memory_at(figures, name, pages) / memory_at(figures, "scrapy", pages)]


def memory_mb(name: str, pages: int) -> Callable[[Figures], Values]:
    return lambda figures: [memory_at(figures, name, pages)]


def micro_ratio(operation: str) -> Callable[[Figures], Values]:
    """What the peer's way takes by what ours does: one value, the ratio of medians."""

    def values(figures: Figures) -> Values:
        row = figures["micro"]["seconds"][operation]
        return [row["theirs"] / row["ours"]]

    return values


def _aims() -> Iterator[Aim]:
    cpu, rate = "cpu_ms", "pages_per_second"
    for page, bound in (("10 kB with 40", 9.0), ("50 kB with 200", 12.0), ("300 kB with 1500", 12.0)):
        operation = f"page of {page} links: its links"
        yield Aim(f"Scrapy's LinkExtractor : ours, {page} links", bound, micro_ratio(operation), True, "{:.1f}")
    for family, kind, bound in (
        ("walk", "unmodified spider", 0.75),
        ("short", "short path", 0.20),
        ("fast", "short path, UBI_FAST", 0.13),
    ):
        yield Aim(f"CPU a page, {kind}, 1 agent : Scrapy", bound, ratio("pages", f"{family}1", "scrapy"))
    for family, kind in (("walk", "unmodified spider"), ("short", "short path"), ("fast", "short path, UBI_FAST")):
        one, two, four = (family + number for number in "124")
        yield Aim(f"CPU a page, {kind}, 4 agents : 1", 1.10, ratio("pages", four, one, cpu))
        yield Aim(f"CPU a page, {kind}, 4 agents : 1, later", 1.10, ratio("later", four, one, cpu))
        yield Aim(
            f"Redis, ms of CPU a page, {kind}, 4 agents", 0.05, plain("pages", four, "redis_cpu_ms"), form="{:.3f}"
        )
        yield Aim(f"Redis, commands a page, {kind}, 4 agents", 0.5, plain("pages", four, "redis_commands"))
        if family != "walk":  # nobody expects it of a spider that makes a request of every link
            yield Aim(
                f"pages/s, {kind}, 2 agents : 2 scrapy-redis", 7.0, ratio("two", two, "redis2", rate), True, "{:.1f}"
            )
        yield Aim(f"CPU a page, {kind}, most hosts : fewest", 1.10, flatness(one))
        yield Aim(f"memory at 5,000 pages, {kind} : Scrapy", 1.0, memory_ratio(one, 5000))
        yield Aim(f"MB at 20,000 pages, {kind}", 150.0, memory_mb(one, 20_000), form="{:.0f}")


AIMS = tuple(_aims())
