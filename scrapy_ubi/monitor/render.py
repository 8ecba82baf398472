"""The commands' answers as text for people; `make demo` draws its live table with `live` as well.

Every function gives lines that fit the terminal (`table.room`) and hold printable characters only. The JSON twins are
in `document`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scrapy_ubi.monitor.inbox_text import Box, InboxLetter
from scrapy_ubi.monitor.measures import Balance, Measures, measure
from scrapy_ubi.monitor.status import UNREADABLE, AgentStatus, CrawlStatus
from scrapy_ubi.monitor.table import Column, count, folded, pairs, rate, room, size, span, table
from scrapy_ubi.monitor.url_owner import Ownership
from scrapy_ubi.node.report.profile import Profile
from scrapy_ubi.untrusted.terminal_text import cut, cut_middle, plain, width

FIRST_URLS = 3  # URLs shown of a letter, unless all are asked for
MOST_REASONS = 20
DOWNLOAD = "download/"  # what is noted of files and images, and other downloads beside the queue, that failed
MISSING = "not known, as the last figures of an agent are missing"
BESIDE = 34  # columns that are left beside a table of reasons, for hosts

_LIVE = (
    Column("agent"),
    Column("state"),
    Column("pages", True),
    Column("pages/s", True),
    Column("hosts", True),
    Column("queue", True),
    Column("inbox", True),
    Column("forwarded", True, spare=1),
)
_AGENTS = (
    Column("agent"),
    Column("state"),
    Column("capacity", True, spare=1),
    Column("replicas", True, spare=3),
    Column("machine"),
    Column("pid", True),
    Column("up", True),
    Column("seen", True),
    Column("view", spare=2),
    Column("dead", True),
)


def live(status: CrawlStatus) -> list[str]:
    """The crawl at one look: a headline, a row an agent, the sum."""
    head, rows, rest = _live_parts(status)
    return [*head, *rows, *rest]


def live_within(status: CrawlStatus, columns: int, rows: int) -> list[str]:
    """The same in no more columns and rows: the last agents are left out where there is no room, and what they sum up
    to stays.
    """
    head, table_rows, rest = _live_parts(status)
    end = 1 + len(status.agents)  # below the headings
    hidden = min(len(status.agents), len(head) + len(table_rows) + len(rest) - rows + 1)
    if hidden > 1:
        table_rows[end - hidden : end] = [f"... {count(hidden)} more agents"]
    return [cut(line, columns) for line in [*head, *table_rows, *rest][:rows]]


def _live_parts(status: CrawlStatus) -> tuple[list[str], list[str], list[str]]:
    return [*headline(status), ""], live_table(status.agents), [*_joined_shortly(status), *_remarks(status)]


def headline(status: CrawlStatus) -> list[str]:
    """The crawl, its state, how many agents work, and the arguments of their spiders."""
    working = sum(agent.working for agent in status.agents)
    text = f"crawl {plain(status.crawl, 64)}: {status.state}, {working} of {len(status.agents)} agents at work"
    lines = folded(text + f", {status.views} different views" if status.views > 1 else text)
    return [*lines, cut(f"arguments: {arguments_of(status)}", room())] if status.arguments else lines


def arguments_of(status: CrawlStatus) -> str:
    """What the spiders of a crawl were started with; several sets where agents of several were let in."""
    sets = (", ".join(f"{plain(name)}={plain(value)}" for name, value in one.items()) for one in status.arguments)
    return "; ".join(sets)


def live_table(agents: Sequence[AgentStatus]) -> list[str]:
    """A row an agent and a row for all, in the columns agent, state, pages, pages/s, hosts, queue, inbox, forwarded."""
    rows = [_live_row(agent) for agent in agents]
    profiles = [agent.profile for agent in agents if agent.profile is not None]
    members = [agent.profile for agent in agents if agent.profile is not None and not agent.gone]
    working = [agent.profile for agent in agents if agent.profile is not None and agent.working]
    if len(agents) > 1:
        rows.append(
            [
                "all",
                "",
                count(sum(profile.count("pages") for profile in profiles)),
                rate(sum(profile.pages_per_second for profile in working)),
                count(sum(profile.count("hosts") for profile in members)),
                count(sum(profile.count("queued") for profile in members)),
                count(sum(agent.inbox for agent in agents)),
                count(sum(profile.count("forwarded") for profile in profiles)),
            ]
        )
    return table(_LIVE, rows)


def _live_row(agent: AgentStatus) -> list[str]:
    profile = agent.profile
    if profile is None:
        return [agent.name, agent.state, "", "", "", "", count(agent.inbox), ""]
    return [
        agent.name,
        agent.state,
        count(profile.count("pages")),
        rate(profile.pages_per_second if agent.working else 0.0),
        count(profile.count("hosts")),
        count(profile.count("queued")),
        count(agent.inbox),
        count(profile.count("forwarded")),
    ]


def agents(status: CrawlStatus) -> list[str]:
    """Who the agents are, on which machines, and since when."""
    rows = [_agent_row(agent, status.now) for agent in status.agents]
    return [*headline(status), "", *table(_AGENTS, rows), *_remarks(status)]


def _agent_row(agent: AgentStatus, now: float) -> list[str]:
    profile = agent.profile or Profile(agent.name)
    known = agent.profile is not None
    return [
        agent.name,
        agent.state,
        f"{profile.capacity:g}" if known else "",
        count(agent.replicas) if agent.replicas else "",
        profile.host_name,
        str(profile.pid) if profile.pid else "",
        span(max(0.0, now - profile.started)) if profile.started and agent.working else "",
        span(agent.age) if agent.age is not None else "",
        agent.beat.digest[:8] if agent.beat is not None else "",
        count(agent.dead_letters),
    ]


def _remarks(status: CrawlStatus) -> list[str]:
    """What agents wait for that are blocked, and what could not be read, one line each."""
    lines = []
    if any(agent.state == "blocked" for agent in status.agents):
        lines += [
            "",
            "Blocked agents wait for room, and lose nothing:",
            "Redis is full (raise its maxmemory), or the agent's disk is (see its log).",
        ]
    if not status.unreadable:
        return lines
    lines += ["", f"{status.unreadable} values in Redis are {UNREADABLE}:"]
    for agent in status.agents:
        lines += [cut(f"  {plain(agent.name, 40)}: {plain(trouble)}", room()) for trouble in agent.trouble]
    return lines


def inbox(agent: str, box: Box, now: float, full: bool) -> list[str]:
    """The letters that wait for an agent, oldest first; all their URLs when `full`."""
    lines = folded(f"inbox of {plain(agent, 64)}: {_shown(box.total, len(box.letters), 'letter', 'oldest')}")
    for letter in box.letters:
        lines += ["", *_letter(letter, now, full)]
    return lines


def _letter(letter: InboxLetter, now: float, full: bool) -> list[str]:
    about = f"{letter.id}  {span(max(0.0, now - letter.time))} old  {size(letter.size)}"
    if letter.trouble:
        return [
            cut(f"{about}  {UNREADABLE}: {letter.trouble}", room()),
            cut(f"  begins {letter.head}", room()),
        ]
    hosts = [f"{plain(host, 60)} ({number})" for host, number in letter.hosts.items()]
    lines = [
        cut(f"{about}  from {letter.sender}  {letter.lane} {letter.seq}  {letter.records} records", room()),
        f"  hosts: {', '.join(hosts)}" if full else _first_hosts(hosts),
    ]
    urls = [f"{entry.depth:>4}  {plain(entry.url)}" for delta in letter.deltas for entry in delta.discovered]
    if full:
        return lines + [f"  {url}" for url in urls] + _done(letter)
    lines += [f"  {cut_middle(url, room() - 2)}" for url in urls[:FIRST_URLS]]
    return lines + ([f"        and {len(urls) - FIRST_URLS} more URLs"] if len(urls) > FIRST_URLS else [])


def _first_hosts(hosts: Sequence[str]) -> str:
    """The first hosts of a letter, as many as fit into a line, and how many there are besides."""
    shown = min(len(hosts), room() // 4)  # no host takes less than four columns
    while True:
        more = f", and {len(hosts) - shown} more" if shown < len(hosts) else ""
        line = f"  hosts: {', '.join(hosts[:shown])}{more}"
        if width(line) <= room() or shown <= 1:
            return cut(line, room())
        shown -= 1


def _done(letter: InboxLetter) -> list[str]:
    lines = []
    for delta in letter.deltas:
        if delta.done:
            lines.append(f"  done at {plain(delta.host)}: {' '.join(f'{key:016x}' for key in delta.done)}")
        for redo in delta.redo:
            lines.append(
                f"  redo of {redo.key:016x} at {plain(delta.host)}: {len(redo.outlinks) + len(redo.own)} outlinks"
            )
            lines += [f"    {key:016x}" for key in redo.own]
            lines += [f"    {plain(entry.url)}" for _, entry in redo.outlinks]
        if delta.notes is not None:
            lines.append(f"  notes of {plain(delta.host)}, version {delta.notes.version}: {delta.notes.text}")
        if delta.offer is not None:
            lines.append(f"  offer of {plain(delta.host)}: {delta.offer.known} known, {delta.offer.done} done")
    return lines


def dead(agent: str, box: Box, now: float) -> list[str]:
    """The dead letters of an agent, newest first."""
    lines = folded(f"dead letters of {plain(agent, 64)}: {_shown(box.total, len(box.dead), 'letter', 'newest')}")
    for one in box.dead:
        about = f"{one.id}  {span(max(0.0, now - one.time))} old  from {one.sender or '?'}  {one.size or '?'} bytes"
        lines += ["", cut(about, room()), cut(f"  {one.reason}", room()), cut(f"  begins {one.head}", room())]
    return lines


def _shown(total: int, shown: int, what: str, which: str) -> str:
    text = f"{count(total)} {what}{'' if total == 1 else 's'}"
    return text if shown >= total else f"{text}, the {which} {shown} of them:"


def owner(answer: Ownership) -> list[str]:
    """Who owns a URL's host, and who comes next."""
    rest = answer.order[1 + answer.replication :]
    rows = [
        ("url", answer.url),
        ("host" if answer.partition == "host" else "domain", answer.host),
        ("owner", answer.owner),
        ("then", ", ".join(f"{agent} (keeps a copy)" for agent in answer.successors) or "nobody"),
    ]
    return pairs([*rows, ("after them", ", ".join(rest))] if rest else rows)


def report(status: CrawlStatus) -> list[str]:
    """The measures of the crawl as a whole, then agent by agent."""
    of = measures_of(status)
    lines = [*headline(status), *_lost(status), "", *pairs(_figures(of)), "", *_shares(status, of)]
    lines += _by_reason(of.failed, "failed URLs by reason", "URLs", of.failed_at)
    downloads = {name.removeprefix(DOWNLOAD): n for name, n in of.noted.items() if name.startswith(DOWNLOAD)}
    places = {name.removeprefix(DOWNLOAD): at for name, at in of.noted_at.items() if name.startswith(DOWNLOAD)}
    lines += _by_reason(downloads, "failed downloads by reason", "downloads", places)
    others = {name: number for name, number in of.noted.items() if not name.startswith(DOWNLOAD)}
    lines += _by_reason(others, "what else happened", "times", of.noted_at)
    lines += _joined(of)
    return lines + _remarks(status)


def _lost(status: CrawlStatus) -> list[str]:
    """What the agents that ended the crawl say of those who were lost."""
    lost = lost_agents(status)
    if not lost:
        return []
    return folded(
        f"{'1 agent was' if lost == 1 else f'{lost} agents were'} lost, more than the copies (UBI_REPLICATION) make up "
        "for: pages of hosts that only they kept may be missing"
    )


def lost_agents(status: CrawlStatus) -> int:
    """How many agents were lost for ever, by the word of those who saw the end."""
    profiles = [agent.profile for agent in status.agents if agent.profile is not None]
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


def _joined_shortly(status: CrawlStatus) -> list[str]:
    joined = measures_of(status).joined
    if not joined:
        return []
    steps = ", ".join(f"{plain(step, 40)} {count(number)}" for step, number in joined.items())
    return ["", cut(f"URLs joined by lossy steps: {steps} (scrapy ubi report has examples)", room())]


def measures_of(status: CrawlStatus) -> Measures:
    """The measures of a crawl from its status; agents whose profile is unreadable do not count."""
    return measure(
        [agent.profile for agent in status.members if agent.profile is not None],
        [agent.profile for agent in status.gone if agent.profile is not None],
        working=status.state == "running",
    )


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
        Column("pages/s", True),
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
                count(sum(profile.failed.values())),
            ]
        )
    return table(columns, rows)
