"""The sections of the printed report: one function for each, from what is known of a crawl to a card with a chart.

Rules of this module:

* A section of which nothing is known is left out ("").
* Under each heading stands one sentence that says what is to be seen, with its figures: the picture is not the only
  place where they are.
* All that agents, hosts and pages say is escaped (`shown`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from scrapy_ubi.agent.profile.profile import Profile
from scrapy_ubi.cli.monitor import charts
from scrapy_ubi.cli.monitor.answers import Answer
from scrapy_ubi.cli.monitor.charts import WIDE, Band, Bar, EventMark, Line
from scrapy_ubi.cli.monitor.measures import Measures, expected_balance
from scrapy_ubi.cli.monitor.merged_history import History
from scrapy_ubi.cli.monitor.render_report import long_gone
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.cli.monitor.text_table import count, rate, size, span
from scrapy_ubi.ground.untrusted.terminal_text import cut_middle, plain

MOST_AGENTS, MOST_HOSTS, MOST_REASONS, MOST_EVENTS = 32, 20, 16, 200
MOST_ROWS = 1000  # of the table of agents
MOST_DELAYS = 5.0  # of a gap that is drawn
MOST_TEXT = 120  # characters of a text in a table
MARKED = ("joined", "left", "dead", "paused", "fenced", "finished")  # drawn into the charts


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """What the report is made of: `hosts` are rows of the answers about hosts, of the largest."""

    status: CrawlStatus
    of: Measures
    history: History = field(default_factory=History)
    hosts: Sequence[Answer] = ()

    def series(self, name: str) -> list[float | None]:
        """A series of the history; empty where there is none."""
        return list(self.history.series.get(name, ()))

    @property
    def last(self) -> Mapping[str, float]:
        """The last value of each series."""
        return {name: values[-1] or 0.0 for name, values in self.history.series.items() if values}


def shown(value: object, most: int = MOST_TEXT) -> str:
    """A text from outside, fit for the page."""
    return escape(cut_middle(plain(str(value)), most))


def card(title: str, sentence: str, body: str, look: str = "") -> str:
    """A section. `sentence` and `body` are HTML."""
    return f'<section class="card {look}">\n<h2>{title}</h2>\n<p>{sentence}</p>\n{body}\n</section>'


def _marks(facts: ReportFacts) -> list[EventMark]:
    chosen = [one for one in facts.history.events if one.what in MARKED]
    return [EventMark(one.time, f"{clock(one.time)} {one.who or 'the crawl'}: {one.what}") for one in chosen[-60:]]


def clock(at: float) -> str:
    """A time of day, UTC."""
    return time.strftime("%H:%M:%S", time.gmtime(at))


def speed(facts: ReportFacts) -> str:
    """Pages a second and the queue over time, with what happened."""
    times = facts.history.times
    if len(times) < 2:
        return ""
    marks, pages = _marks(facts), facts.series("pages_per_second")
    best = max((value for value in pages if value is not None), default=0.0)
    queued = max((value for value in facts.series("queued") if value is not None), default=0.0)
    sentence = (
        f"{rate(facts.of.average_pages_per_second)} pages a second on average, {rate(best)} at best; at most "
        f"{count(int(queued))} URLs waited. Each point is the mean of {step_words(facts.history.step)}; times are UTC; "
        "red lines are events, listed below."
    )
    body = [
        charts.over_time("Pages a second", times, [Line("pages a second", pages, "a", True)], marks, wide=WIDE),
        charts.over_time(
            "URLs", times, [Line("URLs that wait", facts.series("queued"), "b", True), _known(facts)], marks, wide=WIDE
        ),
        charts.over_time("Agents", times, [_working(facts)], marks, 84, wide=WIDE, whole=True),
    ]
    return card("Pages and queue over time", sentence, "\n".join(body), "wide")


def step_words(step: float) -> str:
    """A step of the history, for people."""
    return f"{step:.0f} s" if step < 60 else span(step)


def _working(facts: ReportFacts) -> Line:
    return Line("agents at work", facts.series("agents"), "c", True)


def _known(facts: ReportFacts) -> Line:
    return Line("URLs known", facts.series("known"), "c")


def balance(facts: ReportFacts) -> str:
    """What each agent has taken, relative to its fair share, beside what the ring lets expect."""
    members = [agent.profile for agent in facts.status.members if agent.profile is not None]
    if len(members) < 2 or facts.of.balance_hosts is None:
        return ""
    hosts, pages = facts.of.totals["hosts"], facts.of.totals["pages"]
    capacity = sum(profile.capacity for profile in members)
    replicas = members[0].replicas or 200
    deviation, spread = expected_balance(len(members), replicas, hosts)
    rows = []
    for profile in sorted(members, key=lambda one: -one.count("hosts") / one.capacity):
        fair = profile.capacity / capacity
        share = profile.count("hosts") / hosts / fair
        loaded = profile.count("pages") / pages / fair if pages else 0.0
        note = f"{share:.2f} hosts, {loaded:.2f} pages" + (
            f" (capacity {profile.capacity:g})" if profile.capacity != 1 else ""
        )
        rows.append(Bar(profile.agent, share, note))
    said = facts.of.balance_hosts
    sentence = (
        f"Hosts of each agent by its capacity, 1 = its fair share. Mean deviation {said.deviation:.1%}, highest "
        f"{said.highest:.2f}. Bound: {len(members)} agents with {replicas} replicas each and {count(hosts)} hosts have "
        f"a mean deviation of {deviation:.1%} to be expected, and 19 of 20 agents lie in the grey band; for very many "
        "hosts this is what UbiCrawler's figure 1 (section 4.3) plots."
    )
    if facts.of.balance_pages is not None:
        sentence += (
            f" Of pages: mean deviation {facts.of.balance_pages.deviation:.1%}, highest "
            f"{facts.of.balance_pages.highest:.2f}: they follow the sizes of the hosts."
        )
    body = charts.bars("Balance", _first(rows, MOST_AGENTS), 1.0, Band(1 - 2 * spread, 1 + 2 * spread))
    return card("Balance against capacity", sentence, body)


def _first(rows: list[Bar], most: int) -> list[Bar]:
    """The highest and the lowest, where there are too many."""
    return rows if len(rows) <= most else [*rows[: most // 2], *rows[-(most - most // 2) :]]


def hosts(facts: ReportFacts) -> str:
    """The largest hosts."""
    rows = sorted(facts.hosts, key=lambda row: (-(row["done"] + row["queued"]), row["host"]))[:MOST_HOSTS]
    if not rows:
        return ""
    of_all, done = facts.of.totals["hosts"], facts.of.totals["unique"]
    shares = [row["done"] for row in rows]
    part = f", {sum(shares) / done:.0%} of all pages done" if done else ""
    all_hosts = count(max(of_all, len(rows)))
    sentence = f"The largest {len(rows)} of {all_hosts} hosts{part}: URLs done, and (paler) those that wait."
    drawn = [
        Bar(row["host"], row["done"], f"{count(row['done'])}{_waits(row)}{_failed(row)}", row["queued"]) for row in rows
    ]
    return card("Hosts by size", sentence, charts.bars("Hosts by size", drawn))


def _waits(row: Answer) -> str:
    return f" + {count(row['queued'])}" if row["queued"] else ""


def _failed(row: Answer) -> str:
    return f", {count(row['failed'])} failed" if row["failed"] else ""


def failures(facts: ReportFacts) -> str:
    """Failed URLs by reason, with where."""
    failed = facts.of.failed
    if not failed:
        return card("Failures by reason", "No URL has failed.", "")
    total, done = sum(failed.values()), facts.of.totals["done"]
    reasons = list(failed.items())
    drawn = [Bar(reason, number, count(number)) for reason, number in reasons[:MOST_REASONS]]
    if others := sum(number for _, number in reasons[MOST_REASONS:]):
        drawn.append(Bar("other reasons", others, count(others)))
    share = f", {total / done:.1%} of the URLs done" if done else ""
    rows = [(shown(reason), shown(", ".join(facts.of.failed_at.get(reason, ())[:3]))) for reason, _ in reasons[:6]]
    places = table(("reason", "hosts, most first"), rows) if any(at for _, at in rows) else ""
    return card(
        "Failures by reason", f"{count(total)} URLs failed{share}.", charts.bars("Failures", drawn) + "\n" + places
    )


def politeness(facts: ReportFacts) -> str:
    """The section that says whether hosts were left alone for as long as their delay."""
    measured, short = int(facts.last.get("gaps", 0)), int(facts.last.get("short", 0))
    if not measured:
        return ""
    least = min((value for value in facts.series("least") if value), default=0.0)
    kept = (
        "none was shorter than the host's delay"
        if not short
        else f'<span class="warn">{count(short)} were shorter than the delay</span>'
    )
    sentence = (
        f"{count(measured)} gaps between two loads of a host were measured (a sample, once a second): {kept}; the "
        f"shortest was {least:.2f} delays. A gap is from the end of one load to the end of the next, so it is the "
        "delay and the next load's own time."
    )
    values = [value if value is None else min(value, MOST_DELAYS) for value in facts.series("least")]
    body = charts.over_time(
        "Shortest gap", facts.history.times, [Line("shortest gap, in delays of its host", values, "c")], rule=1.0
    )
    return card("Politeness", sentence, body)


def communication(facts: ReportFacts) -> str:
    """What agents tell each other, for a page."""
    totals, overhead = facts.of.totals, facts.of.overhead
    if overhead is None or not totals["letters_sent"]:
        return ""
    done = totals["done"] or 1
    sentence = (
        f"{overhead:.3f} URLs forwarded a page (e/n of UbiCrawler), {totals['letters_sent'] / done:.3f} letters and "
        f"{size(round(totals['bytes_sent'] / done))} a page; {count(totals['suppressed'])} URLs were not sent, as "
        f"their owner was known to have them; {count(totals['resent'])} letters sent again."
    )
    ratios: list[float | None] = [
        forwarded / finished if forwarded is not None and finished else None
        for forwarded, finished in zip(facts.series("forwarded"), facts.series("done"), strict=True)
    ]
    lines = [Line("URLs forwarded a page, so far", ratios, "a", True)]
    return card("Communication overhead", sentence, charts.over_time("Overhead", facts.history.times, lines))


def response(facts: ReportFacts) -> str:
    """How long exchanges took, and how late the event loop was."""
    exchanges, lags = facts.series("exchange"), facts.series("lag")
    if not any(exchanges) and not any(lags):
        return ""
    worst, late = (max((value or 0.0 for value in values), default=0.0) for values in (exchanges, lags))
    sentence = f"The slowest exchange of mail took {worst:.2f} s; an event loop was {late:.2f} s late at most."
    lines = [Line("slowest exchange", exchanges, "a"), Line("event loop late", lags, "b")]
    return card("Exchanges and event loops", sentence, charts.over_time("Delay", facts.history.times, lines, unit=" s"))


def agents(facts: ReportFacts) -> str:
    """A table of agents."""
    said = facts.status.agents[:MOST_ROWS]
    machines = any(agent.profile is not None and agent.profile.host_name for agent in said)
    rows = []
    for agent in said:
        row = [shown(agent.name), shown(agent.state), *([shown(_machine(agent), 40)] if machines else [])]
        rows.append(row + (_figures(facts, agent.profile) if agent.profile is not None else [""] * 6))
    if (gone := facts.status.summed_up) is not None:
        row = [shown(long_gone(gone)), *[""] * (2 + machines), count(gone.profile.count("pages"))]
        rows.append([*row, *[""] * 3, count(sum(gone.profile.failing.values()))])
    names = ("agent", "state", *(["machine"] if machines else []))
    figures = ("capacity", "pages", "average/s", "hosts", "queue", "failed")
    body = table((*names, *figures), rows, len(names))
    return card("Agents", _agents(len(facts.status.agents)), body, "wide events")


def _machine(agent: AgentStatus) -> str:
    return agent.profile.host_name if agent.profile is not None else ""


def _figures(facts: ReportFacts, profile: Profile) -> list[str]:
    return [
        f"{profile.capacity:g}",
        count(profile.count("pages")),
        rate(facts.of.speeds[profile.agent].average),
        count(profile.count("hosts")),
        count(profile.count("queued")),
        count(sum(profile.failing.values())),
    ]


def _agents(number: int) -> str:
    return "1 agent." if number == 1 else f"{count(number)} agents."


def events(facts: ReportFacts) -> str:
    """What happened when."""
    told = facts.history.events
    if not told:
        return ""
    rows = [
        (
            time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(one.time)),
            shown(one.who or "the crawl"),
            shown(f"{one.what} ({one.why})" if one.why else one.what),
            shown(", ".join(one.by[:4]) + (f" and {len(one.by) - 4} more" if len(one.by) > 4 else "")),
        )
        for one in told[-MOST_EVENTS:]
    ]
    cut = "" if len(told) <= MOST_EVENTS else f" The last {MOST_EVENTS} of {len(told)}."
    names = ("time (UTC)", "who", "what", "seen by")
    return card("What happened when", f"As the agents have seen it.{cut}", table(names, rows), "wide events")


def table(names: Sequence[str], rows: Iterable[Sequence[str]], figures_from: int | None = None) -> str:
    """A table of HTML cells; from that column on they are figures."""
    edge = len(names) if figures_from is None else figures_from

    def cell(tag: str, number: int, value: str) -> str:
        return f'<{tag} class="n">{value}</{tag}>' if number >= edge else f"<{tag}>{value}</{tag}>"

    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(cell(tag, number, value) for number, value in enumerate(cells)) + "</tr>"

    body = "\n".join(line("td", cells) for cells in rows)
    return f'<div class="scroll"><table><thead>{line("th", names)}</thead><tbody>\n{body}\n</tbody></table></div>'
