"""`scrapy ubi report` as text: the measures of a crawl, its shares agent by agent, and what failed by reason.

Rules of this module: every line fits the terminal (`table.room`) and holds printable characters only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from scrapy_ubi.agent.profile.profile import Profile
from scrapy_ubi.agent.profile.summed_up import SummedUp
from scrapy_ubi.cli.monitor.headline import headline, remarks
from scrapy_ubi.cli.monitor.measures import Balance, Measures, measure
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.cli.monitor.text_table import Column, count, folded, pairs, rate, room, size, span, table
from scrapy_ubi.ground.untrusted.terminal_text import cut, cut_middle, plain, width

MOST_REASONS = 20
DOWNLOAD = "download/"  # what is noted of files and images, and other downloads beside the queue, that failed
MISSING = "not known, as the last figures of an agent are missing"
BESIDE = 34  # columns that are left beside a table of reasons, for hosts


def report(status: CrawlStatus) -> list[str]:
    """The measures of the crawl as a whole, then agent by agent."""
    of = measures_of(status)
    lines = [*headline(status), *folded(loss_sentence(status)), "", *pairs(_figures(of)), "", *_shares(status, of)]
    lines += _by_reason(of.failed, "failed URLs by reason", "URLs", of.failed_at)
    downloads = {name.removeprefix(DOWNLOAD): n for name, n in of.noted.items() if name.startswith(DOWNLOAD)}
    places = {name.removeprefix(DOWNLOAD): at for name, at in of.noted_at.items() if name.startswith(DOWNLOAD)}
    lines += _by_reason(downloads, "failed downloads by reason", "downloads", places)
    others = {name: number for name, number in of.noted.items() if not name.startswith(DOWNLOAD)}
    lines += _by_reason(others, "what else happened", "times", of.noted_at)
    lines += _joined(of)
    return lines + remarks(status)


def loss_sentence(status: CrawlStatus) -> str:
    """What the agents that ended the crawl say of those who were lost; empty where nobody was."""
    lost = lost_agents(status)
    if not lost:
        return ""
    many = "1 agent was" if lost == 1 else f"{lost} agents were"
    return f"{many} lost with what no copy (UBI_REPLICATION) may be left of: pages of hosts may be missing"


def lost_agents(status: CrawlStatus) -> int:
    """How many agents were lost permanently, by the word of those who saw the end."""
    profiles = [*(agent.profile for agent in status.agents if agent.profile is not None), *_summed_up(status)]
    return max([profile.count("lost_agents") for profile in profiles], default=0)


def _by_reason(
    counts: Mapping[str, int], what: str, unit: str, places: Mapping[str, Sequence[str]] | None = None
) -> list[str]:
    """A table of the most frequent reasons, after an empty line; nothing where there are none. `places` are hosts of
    each, those of which most is to be told first: as many as there is room for.
    """
    if not counts:
        return []
    reasons, others = list(counts.items())[:MOST_REASONS], list(counts.values())[MOST_REASONS:]
    rows = [[reason, count(number)] for reason, number in reasons]
    if others:
        rows.append(["other reasons", count(sum(others))])
    lines = table((Column(what), Column(unit, True)), rows, room() - BESIDE * bool(places))
    if not places:
        return ["", *lines]
    taken = max(map(width, lines))
    named = ["hosts, most first", *(_first_places(places.get(one, ()), room() - taken - 2) for one, _ in reasons), ""]
    return [
        "",
        *(f"{line}{' ' * (taken - width(line))}  {at}".rstrip() for line, at in zip(lines, named, strict=False)),
    ]


def _first_places(hosts: Sequence[str], most: int) -> str:
    """The first of these hosts, as many as fit into so many columns; one at least, if cut."""
    shown = ""
    for host in map(plain, hosts):
        longer = f"{shown}, {host}" if shown else cut(host, most)
        if width(longer) > most:
            return shown
        shown = longer
    return shown


def _joined(of: Measures) -> list[str]:
    """By lossy step, how many URLs were taken for others; of each an example, so that people can judge."""
    lines = _by_reason(of.joined, "joined by lossy step", "URLs")
    for step in list(of.joined)[:MOST_REASONS]:
        url, normal = of.examples.get(step, ("", ""))
        if url:
            lines += ["", cut(f"{plain(step, 40)}: not fetched, for the second has the same normal form:", room())]
            lines += [f"  {cut_middle(plain(one), room() - 2)}" for one in (url, normal)]
    return lines


def measures_of(status: CrawlStatus) -> Measures:
    """The measures of a crawl from its status; agents whose profile is unreadable do not count."""
    return measure(
        [
            agent.profile if agent.working else replace(agent.profile, pages_per_second=0.0)
            for agent in status.members
            if agent.profile is not None
        ],
        [*(agent.profile for agent in status.gone if agent.profile is not None), *_summed_up(status)],
        working=status.state == "running",
    )


def _summed_up(status: CrawlStatus) -> list[Profile]:
    return [] if status.summed_up is None else [status.summed_up.profile]


def long_gone(of: SummedUp) -> str:
    """What stands in the place of a name."""
    return f"{count(of.agents)} long gone"


def _figures(of: Measures) -> list[tuple[str, str]]:
    totals = of.totals
    return [
        ("pages done (n)", f"{count(totals['done'])} in {span(of.seconds)}"),
        ("unique pages (u)", count(totals["unique"])),
        ("overlap (n-u)/u", MISSING if of.overlap is None and totals["unique"] else _ratio(of.overlap)),
        ("communication overhead (e/n)", _ratio(of.overhead, " URLs forwarded a page")),
        ("pages fetched", f"{count(totals['pages'])}, retries included"),
        ("pages a second", f"{rate(of.average_pages_per_second)} on average, {rate(of.pages_per_second)} now"),
        ("balance of pages", _balance(of.balance_pages)),
        ("balance of hosts", _balance(of.balance_hosts)),
        ("URLs known, queued", f"{count(totals['known'])}, {count(totals['queued'])}"),
        ("links found", count(totals["links"])),
        ("URLs forwarded, suppressed", f"{count(totals['forwarded'])}, {count(totals['suppressed'])}"),
        ("records refused, replicated", f"{count(totals['refused'])}, {count(totals['replicated'])}"),
        ("letters sent, resent, dead", ", ".join(count(totals[n]) for n in ("letters_sent", "resent", "dead_letters"))),
        ("bytes sent", size(totals["bytes_sent"])),
        ("URLs failed", count(sum(of.failed.values()))),
    ]


def _ratio(value: float | None, of: str = "") -> str:
    return "not known" if value is None else f"{value:.4f}{of}"


def _balance(value: Balance | None) -> str:
    if value is None:
        return "not known"
    return f"highest {value.highest:.2f} x fair, mean deviation {value.deviation:.1%}"


def _shares(status: CrawlStatus, of: Measures) -> list[str]:
    columns = [Column("agent"), Column("state"), Column("capacity", True, spare=2)]
    columns += [Column("pages", True), Column("share", True)]
    columns += [
        Column("average/s", True),
        Column("hosts", True),
        Column("forwarded", True),
        Column("suppressed", True, spare=1),
    ]
    columns += [Column("failed", True)]
    pages = of.totals["pages"]
    rows = []
    for agent in status.agents:
        profile = agent.profile
        if profile is None:
            rows.append([agent.name, agent.state, *[""] * 8])
            continue
        rows.append(
            [
                agent.name,
                agent.state,
                f"{profile.capacity:g}",
                count(profile.count("pages")),
                f"{profile.count('pages') / pages:.1%}" if pages else "",
                rate(of.speeds[profile.agent].average),
                count(profile.count("hosts")),
                count(profile.count("forwarded")),
                count(profile.count("suppressed")),
                count(sum(profile.failing.values())),
            ]
        )
    if status.summed_up is not None:
        rows.append(_share_of(status.summed_up, pages))
    return table(columns, rows)


def _share_of(summed_up: SummedUp, pages: int) -> list[str]:
    """The row of those who are long gone."""
    profile = summed_up.profile
    loaded, failed = profile.count("pages"), sum(profile.failing.values())
    share = f"{loaded / pages:.1%}" if pages else ""
    sent = [count(profile.count(name)) for name in ("forwarded", "suppressed")]
    return [long_gone(summed_up), "", "", count(loaded), share, "", "", *sent, count(failed)]
