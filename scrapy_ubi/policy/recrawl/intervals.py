"""Rules that plan by an interval of the page's own: always the same, grown and shrunk, or none at all.

Rules of this module:

* `least` and `most` bound the time from a visit to the next due time, first ones and failed ones included.
* The first due times are spread over the second half of the first interval, by the key of the page.
"""

from __future__ import annotations

from scrapy_ubi.policy.recrawl import durations
from scrapy_ubi.policy.recrawl.rule_contract import NEVER, NOTHING, Past, Plan, Settled, VisitSeen, plan, share_of
from scrapy_ubi.urls.filters.base import one, only
from scrapy_ubi.urls.filters.filter_text import Arguments, Call, FilterError, write

DAY, HOUR, MINUTE = durations.UNITS["d"], durations.UNITS["h"], durations.UNITS["m"]
MOST_GROWTH = 100.0


def spread(interval: float, key: int) -> float:
    """From half of the interval up to the whole of it, by the key."""
    return interval * (1 + share_of(key)) / 2


def times(arguments: Arguments, *defaults: float) -> list[float]:
    """The times without a key, each with its default. Raises FilterError."""
    given = arguments.get("", ())
    if len(given) > len(defaults):
        raise FilterError(f"has {len(given)} times", f"give {len(defaults)} at most")
    return [*map(durations.read, given), *defaults[len(given) :]]


def check_bounds(first: float, least: float, most: float) -> None:
    """Raise FilterError where these do not grow in the order least, first, most."""
    if not least <= first <= most:
        shown = ", ".join(map(durations.write, (first, least, most)))
        raise FilterError(f"has the times {shown}", "give the first interval, the least and the most: 1d, 1h, 30d")


class Every(Settled):
    """`every(1d)`: a day after each visit."""

    def __init__(self, interval: float) -> None:
        self.interval = interval

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> Every:
        only(arguments, "")
        return cls(durations.read(one(arguments, "", "")))

    def plan_first(self, seen: VisitSeen, key: int) -> Plan:
        return plan(NOTHING, seen, spread(self.interval, key), self.interval)

    def plan_next(self, past: Past, seen: VisitSeen, key: int = 0) -> Plan:
        if not past.visits and not seen.failed:
            return self.plan_first(seen, key)
        return plan(past, seen, self.interval, self.interval)

    def longest(self, past: Past) -> float:
        return self.interval

    def __str__(self) -> str:
        return write(Call("every", {"": (durations.write(self.interval),)}))


class Adaptive(Settled):
    """`adaptive(1d, 1h, 30d, unchanged=1.5, changed=0.5, shift=0, failed=1h)`: the first interval, the least and the
    most; what an interval is multiplied by behind a visit that found no change, or one.

    `shift`: where a page says when it was changed, the next visit comes earlier by this part of the time since then.
    `failed`: the time to the next visit behind one that failed; 0s of it is the interval that was.
    """

    name = "adaptive"

    def __init__(
        self,
        first: float = DAY,
        least: float = HOUR,
        most: float = 30 * DAY,
        *,
        unchanged: float = 1.5,
        changed: float = 0.5,
        shift: float = 0.0,
        failed: float = 0.0,
    ) -> None:
        check_bounds(first, least, most)
        self.begin = first
        self.least = least
        self.most = most
        self.unchanged = unchanged
        self.changed = changed
        self.shift = shift
        self.failed = failed

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> Adaptive:
        only(arguments, "", "unchanged", "changed", "shift", "failed")
        first, least, most = times(arguments, DAY, HOUR, 30 * DAY)
        failed = durations.read(one(arguments, "failed", "")) if "failed" in arguments else 0.0
        return cls(
            first,
            least,
            most,
            unchanged=_factor(arguments, "unchanged", 1.5, 1.0, MOST_GROWTH),
            changed=_factor(arguments, "changed", 0.5, 1 / MOST_GROWTH, 1.0),
            shift=_factor(arguments, "shift", 0.0, 0.0, 1.0),
            failed=failed,
        )

    def plan_first(self, seen: VisitSeen, key: int) -> Plan:
        return plan(NOTHING, seen, self._bound(spread(self.begin, key)), self.begin)

    def plan_next(self, past: Past, seen: VisitSeen, key: int = 0) -> Plan:
        if not past.visits and not seen.failed:
            return self.plan_first(seen, key)
        interval = self._bound(past.interval or self.begin)
        if seen.failed:
            return plan(past, seen, self._bound(self.failed or interval), interval)
        interval = self._bound(interval * (self.changed if seen.changed else self.unchanged))
        ago = seen.at - seen.lastmod if 0 < seen.lastmod < seen.at else 0.0
        if self.shift and ago > interval:  # a page that is as it was for so long changes as seldom
            interval = self._bound(ago)
        return plan(past, seen, self._bound(interval - self.shift * ago), interval)

    def longest(self, past: Past) -> float:
        return self._bound(max(past.interval or self.begin, self.failed))

    def _bound(self, seconds: float) -> float:
        return min(max(seconds, self.least), self.most)

    def __str__(self) -> str:
        arguments = {"": tuple(map(durations.write, (self.begin, self.least, self.most)))}
        usual = Adaptive(self.begin, self.least, self.most)
        for key in ("unchanged", "changed", "shift"):
            if (value := getattr(self, key)) != getattr(usual, key):
                arguments[key] = (f"{value:g}",)
        if self.failed:
            arguments["failed"] = (durations.write(self.failed),)
        return write(Call(self.name, arguments))


def nutch(arguments: Arguments) -> Adaptive:
    """`nutch`: the adaptive schedule of Apache Nutch, with its defaults."""
    only(arguments)
    return Adaptive(30 * DAY, MINUTE, 365 * DAY, unchanged=1.4, changed=0.8, shift=0.3)


def stormcrawler(arguments: Arguments) -> Adaptive:
    """`stormcrawler`: that of StormCrawler, with its defaults."""
    only(arguments)
    return Adaptive(DAY, HOUR, 14 * DAY, failed=2 * HOUR)


class NewOnly(Settled):
    """`new(1d)`: pages that have given items are not visited again, all others after a day: lists, for what is new."""

    def __init__(self, interval: float) -> None:
        self.interval = interval

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> NewOnly:
        only(arguments, "")
        return cls(times(arguments, DAY)[0])

    def plan_first(self, seen: VisitSeen, key: int) -> Plan:
        return self._plan(NOTHING, seen, spread(self.interval, key))

    def plan_next(self, past: Past, seen: VisitSeen, key: int = 0) -> Plan:
        return self._plan(past, seen, self.interval if past.visits else spread(self.interval, key))

    def _plan(self, past: Past, seen: VisitSeen, wait: float) -> Plan:
        planned = plan(past, seen, wait, self.interval)
        return planned._replace(due=NEVER) if seen.items else planned

    def longest(self, past: Past) -> float:
        return self.interval

    def __str__(self) -> str:
        return write(Call("new", {"": (durations.write(self.interval),)}))


def _factor(arguments: Arguments, key: str, default: float, low: float, high: float) -> float:
    text = one(arguments, key, str(default))
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not low <= number <= high:
        raise FilterError(f"has {key}={text!r:.50}", f"give a number from {low:g} to {high:g}")
    return number
