"""At which hosts something happened: of each reason those at which it happened most often, in bounded memory.

By J. Misra and D. Gries (Finding repeated elements, 1982): of a reason `MOST_HOSTS` hosts are counted; when one more
comes, all counts fall by one, and those at nothing are forgotten. So a host with more than one in `MOST_HOSTS` + 1 of
all cases is named for certain, and no count is higher than the truth. A calendar or a host that is down is found among
any number of hosts with a dead link each.
"""

from __future__ import annotations

from collections.abc import Mapping

MOST_REASONS = 30  # of which hosts are counted; a crawl has a dozen
MOST_HOSTS = 20  # counted of one reason
PUBLISHED = 5  # named to people: a profile has to stay a small text
LONGEST = 100  # characters of a host's name


class HeavyHitters:
    """The hosts of each reason."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}

    def add(self, reason: str, host: str) -> None:
        """It has happened at this host once more. Constant time on average."""
        counts = self._counts.get(reason)
        if counts is None:
            if len(self._counts) >= MOST_REASONS:
                return
            counts = self._counts[reason] = {}
        host = host[:LONGEST]
        if host in counts or len(counts) < MOST_HOSTS:
            counts[host] = counts.get(host, 0) + 1
            return
        self._counts[reason] = {name: count - 1 for name, count in counts.items() if count > 1}

    def published(self) -> dict[str, dict[str, int]]:
        """By reason, the first hosts and how often it happened there at least; the most frequent first."""
        return {
            reason: dict(sorted(counts.items(), key=lambda one: -one[1])[:PUBLISHED])
            for reason, counts in self._counts.items()
        }

    def restore(self, value: object) -> None:
        """Go on from what was published; what does not hold counts for nothing."""
        if not isinstance(value, Mapping):
            return
        for reason, counts in value.items():
            if isinstance(counts, Mapping) and len(self._counts) < MOST_REASONS:
                held = {str(host)[:LONGEST]: n for host, n in counts.items() if type(n) is int and n > 0}
                self._counts[str(reason)] = dict(list(held.items())[:MOST_HOSTS])
