"""The access log: what was asked for, by whom, and how many requests a host had to bear at once.

Rules of this module: it only records and counts; times are handed in (seconds of one monotonic clock). A *document*
request is a GET for something of the graph; what counts as fetched is a document request that was answered with
anything but 503 (the client is expected to come again after that). robots.txt, forms and cookies are not documents.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from demo.graph import digest

TRY_AGAIN = 503
DOCUMENTS = ("page", "private", "redirect", "missing")
ABORTED = 0  # the status of a request whose client went away before the answer


@dataclass(slots=True)
class Access:
    """One request, as the log keeps it."""

    host: str
    path: str
    method: str
    agent: str
    kind: str  # a document's kind, or robots, form, cookies, none
    start: float
    end: float | None = None  # None while it is under way
    status: int = ABORTED


@dataclass
class Record:
    """The log of one web, and the counts that must be taken while requests are under way."""

    log: list[Access] = field(default_factory=list)
    under_way: Counter[str] = field(default_factory=Counter)
    peak: dict[str, int] = field(default_factory=dict)
    violations: int = 0
    fetched: set[str] = field(default_factory=set)

    def begin(self, access: Access) -> Access:
        """A request has arrived whole. More than one at its host is a violation, however short."""
        self.log.append(access)
        self.under_way[access.host] += 1
        now = self.under_way[access.host]
        self.peak[access.host] = max(now, self.peak.get(access.host, 0))
        self.violations += now > 1
        return access

    def end(self, access: Access, now: float, status: int) -> None:
        """The answer has been written (or, status ABORTED, there is nobody left to read it)."""
        access.end, access.status = now, status
        self.under_way[access.host] -= 1
        if _fetched(access):
            self.fetched.add(f"http://{access.host}{access.path}")

    def visits(self) -> Counter[str]:
        """URL -> how often that document was fetched."""
        return Counter(f"http://{a.host}{a.path}" for a in self.log if _fetched(a))

    def stats(self) -> dict[str, Any]:
        """The counts as one JSON object; `digest` names the set of fetched URLs (graph.digest)."""
        visits = self.visits()
        kinds = Counter(a.kind for a in self.log if _fetched(a))
        owners: dict[str, set[str]] = {}
        for access in self.log:
            owners.setdefault(access.host, set()).add(access.agent)
        done = [a.end for a in self.log if a.end is not None]
        return {
            "requests": len(self.log),
            "fetched": sum(visits.values()),
            "unique": len(visits),
            "duplicates": sum(visits.values()) - len(visits),
            "kinds": dict(sorted(kinds.items())),
            "robots": sum(a.kind == "robots" for a in self.log),
            "robots_violations": kinds["private"],
            "try_again": sum(a.status == TRY_AGAIN for a in self.log),
            "aborted": sum(a.end is not None and a.status == ABORTED for a in self.log),
            "unknown": sum(a.kind == "none" for a in self.log),
            "hosts": len({url.split("/", 3)[2] for url in visits}),
            "most_simultaneous": max(self.peak.values(), default=0),
            "violations": self.violations,
            "agents": dict(sorted(Counter(a.agent for a in self.log if _fetched(a)).items())),
            "hosts_with_many_agents": sum(len(names) > 1 for names in owners.values()),
            "shortest_gap": self.shortest_gap(),
            "seconds": round(max(done) - self.log[0].start, 3) if done else 0.0,
            "digest": digest(visits),
        }

    def shortest_gap(self) -> float | None:
        """Shortest time, in seconds, from the start of one request to the next at the same host."""
        last: dict[str, float] = {}
        gaps = []
        for access in self.log:
            if access.host in last:
                gaps.append(access.start - last[access.host])
            last[access.host] = access.start
        return round(min(gaps), 4) if gaps else None

    def rows(self) -> list[dict[str, Any]]:
        """The log, one JSON object a request, oldest first."""
        return [asdict(access) for access in self.log]


def _fetched(access: Access) -> bool:
    return access.kind in DOCUMENTS and access.method == "GET" and access.status not in (ABORTED, TRY_AGAIN)
