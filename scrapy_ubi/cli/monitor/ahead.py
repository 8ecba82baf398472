"""How near the end of a crawl is, of what its agents have published: the one figure, and the one or two sentences that
say it, for `scrapy ubi status` and `report`, the web page and the metrics.

Rules of this module: it only adds up; the estimate is `agent.profile.remaining`. Sentences hold printable characters
only.
"""

from __future__ import annotations

from typing import Any

from scrapy_ubi.agent.profile.idle_reason import END, PAUSED, SEEDS, IdleReason, sentence
from scrapy_ubi.agent.profile.profile import Profile
from scrapy_ubi.agent.profile.remaining import (
    ABOUT,
    ENDLESS,
    NOTHING,
    OPEN,
    UNSURE,
    Ahead,
    Remaining,
    SlowHost,
    remaining,
    shifted,
    summed,
)
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.cli.monitor.text_table import count, counted, span
from scrapy_ubi.ground.untrusted.terminal_text import plain

FEW = 3  # agents that a line names
MOST_IDLE = 5  # sentences of agents that fetch nothing
SERVES = "UBI_SERVE"
SAID = 60.0  # s; what takes less needs no reason


def remaining_of(status: CrawlStatus) -> Remaining | None:
    """The estimate of a crawl that runs; None of any other."""
    if status.state != "running":
        return None
    return remaining(ahead_of(status))


def ahead_of(status: CrawlStatus) -> Ahead:
    """What all agents of a crawl have before them."""
    members = [agent.profile for agent in status.members if agent.profile is not None]
    everybody = [*members, *(agent.profile for agent in status.gone if agent.profile is not None)]
    curves = [list(profile.curve) for profile in members]
    left = [(agent.profile, agent.age) for agent in status.gone]
    curves += [shifted(profile.curve, age) for profile, age in left if profile is not None and age is not None]
    most_pages = max((profile.most_pages for profile in members), default=0)
    most_seconds = max((profile.most_seconds for profile in members), default=0.0)
    pages = sum(profile.count("pages") for profile in everybody)
    seconds = max((profile.seconds for profile in everybody), default=0.0)
    return Ahead(
        waits=sum(profile.count("queued") + profile.count("in_flight") for profile in members),
        done=sum(profile.count("unique") for profile in members),
        curve=summed(curves),
        slowest=max((one for one in map(_slowest, members) if one is not None), key=SlowHost.needs, default=None),
        most_pages=max(0, most_pages - pages) if most_pages else None,
        most_seconds=max(0.0, most_seconds - seconds) if most_seconds else None,
        endless=next((profile.endless for profile in members if profile.endless), ""),
    )


def _slowest(profile: Profile) -> SlowHost | None:
    return profile.slowest


def sentences(status: CrawlStatus, told: Remaining | None = None) -> list[str]:
    """How near the end is, in one or two sentences; none where the crawl is not there."""
    waits = sum(agent.profile.count("queued") for agent in status.members if agent.profile is not None)
    waits += sum(agent.profile.count("in_flight") for agent in status.members if agent.profile is not None)
    if status.state == "absent":
        return []
    if status.state == "starting":
        return ["The agents start: nothing is fetched yet."]
    if status.finished:
        return ["Finished: nothing is left to fetch anywhere."]
    if status.state == "stopped":
        return [f"Stopped: no agent works, and {_urls(waits)}. The crawl goes on when agents are started again."]
    told = told if told is not None else remaining(ahead_of(status))
    if status.paused:
        rest = f" It then takes about {span(told.seconds)}." if told.kind == ABOUT and told.seconds is not None else ""
        return [f"Paused: {_urls(waits)} until somebody resumes the crawl.{rest}"]
    return [*_running(waits, told), *_host(told)]


def _running(waits: int, told: Remaining) -> list[str]:
    """What is said of a crawl that runs."""
    if told.kind == NOTHING:
        if told.endless == SERVES:
            return [f"The crawl waits for seeds ({SERVES}): nothing else is left. `scrapy ubi seed` gives it some."]
        if told.endless:
            return [f"Nothing waits; the crawl does not end by itself ({told.endless})."]
        return ["Nearly done: nothing waits; the crawl ends once all agents agree."]
    if told.kind == ENDLESS:
        rest = ""
        if told.seconds is not None:
            rest = f" What waits now ({counted(waits, 'URL')}) takes about {span(told.seconds)}."
        return [f"The crawl does not end by itself ({told.endless}).{rest}"]
    if told.kind == OPEN:
        grows = f" ({told.growth:.1f} for each)" if told.growth is not None else ""
        return [
            f"No end in sight: {_urls(waits)}, more than were ever fetched, and more are found than fetched{grows}."
        ]
    if told.kind == UNSURE:
        if told.seconds is None:
            return [f"{_urls(waits)}; how long that takes cannot be told."]
        return [
            f"{span(told.seconds)} at least: each page leads to about one new, so the end cannot be told; "
            f"{_urls(waits)} now."
        ]
    if told.kind == ABOUT and told.seconds is not None:
        more = told.pages - waits if told.pages is not None else 0
        found = ""
        if more > waits / 10:
            found = f", and about {count(more)} more {'is' if more == 1 else 'are'} found meanwhile"
        return [f"About {span(told.seconds)} to go: {_urls(waits)}{found}."]
    return [f"{_urls(waits)}. How long that takes can be told in a minute."]


def _host(told: Remaining) -> list[str]:
    """Of the host that decides, where one does and that is worth a word."""
    host = told.host
    if host is None or host.needs() <= SAID or not host.queued:
        return []
    by_rate = " by its rate (UBI_RATES)" if host.each > host.pace else ""
    parts = [f"one each {span(max(host.pace, host.each))}{by_rate}"]
    if host.loads > 1:
        parts.append(f"{host.loads} loads at once")
    if host.rest > max(host.delay + host.load, host.each):
        why = f" ({plain(host.why, 40)})" if host.why else ""
        parts.append(f"and it is left alone for {span(host.rest)} more{why}")
    return [
        f"The slowest host: {plain(host.host, 100)}, of which {_urls(host.queued)}, {', '.join(parts)}: "
        f"{span(host.needs())} at least."
    ]


def idle(of: AgentStatus, now: float) -> str:
    """Why this agent fetches nothing, in a sentence; empty where it fetches, or does not work."""
    why = _why_idle(of)
    return sentence(why, now) if why is not None else ""


def _why_idle(of: AgentStatus) -> IdleReason | None:
    return of.profile.idle if of.profile is not None and of.working else None


def idle_sentences(status: CrawlStatus) -> list[str]:
    """Why agents fetch nothing, one sentence for all agents with the same one; but for what `sentences` say."""
    named: dict[str, list[str]] = {}
    told = _told_kinds(status)
    for agent in status.agents:
        why = _why_idle(agent)
        if why is not None and why.kind not in told:
            said = sentence(why, status.now)
            named.setdefault(said, []).append(agent.name)
    return [f"{_few(names)}: {said}" for said, names in named.items()]


def idle_shown(status: CrawlStatus) -> list[str]:
    """The first `MOST_IDLE` of `idle_sentences`, and how many more there are."""
    said = idle_sentences(status)
    more = len(said) - MOST_IDLE
    return [*said[:MOST_IDLE], f"... and {more} more"] if more > 0 else said


def _told_kinds(status: CrawlStatus) -> tuple[str, ...]:
    """The reasons that the first sentence has told for all agents."""
    if status.paused:
        return (PAUSED,)
    told = remaining_of(status)
    return (END, SEEDS) if told is not None and told.kind == NOTHING else ()


def _few(names: list[str]) -> str:
    shown = ", ".join(plain(name, 40) for name in names[:FEW])
    return f"{shown} and {count(len(names) - FEW)} more" if len(names) > FEW else shown


def _urls(number: int) -> str:
    return f"{counted(number, 'URL')} wait{'s' if number == 1 else ''}"


def document(status: CrawlStatus) -> dict[str, Any] | None:
    """The estimate as JSON, with its sentences: the same in every document."""
    told = remaining_of(status)
    if told is None:
        said = sentences(status)
        return {"kind": status.state, "seconds": None, "sentences": said} if said else None
    host = told.host
    return {
        "kind": told.kind,
        "seconds": _round(told.seconds),
        "pages": told.pages,
        "pace": _round(told.pace),
        "growth": _round(told.growth),
        "host": None if host is None else {**host._asdict(), "needs": round(host.needs(), 1)},
        "sentences": sentences(status, told),
    }


def _round(number: float | None) -> float | None:
    return None if number is None else round(number, 2)
