"""Who takes part in a crawl and how far it is, as text for people: the live table, the agents, the owner of a URL.

`make demo` draws its live table with `live`, too. The report is in `render_report`, letters in `commands.inbox_report`,
the JSON twins in `document`.

Rules of this module: every line fits the terminal (`table.room`) and holds printable characters only.
"""

from __future__ import annotations

from collections.abc import Sequence

from scrapy_ubi.agent.profile.profile import Profile
from scrapy_ubi.agent.profile.summed_up import SummedUp
from scrapy_ubi.cli.monitor.headline import headline, remarks
from scrapy_ubi.cli.monitor.render_report import long_gone, measures_of
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.cli.monitor.text_table import Column, count, pairs, rate, room, span, table
from scrapy_ubi.cli.monitor.url_owner import Ownership
from scrapy_ubi.ground.untrusted.terminal_text import cut, plain

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
    """The same within these columns and rows: without room the last agents are left out; the sums stay."""
    head, table_rows, rest = _live_parts(status)
    end = 1 + len(status.agents)  # below the headings
    hidden = min(len(status.agents), len(head) + len(table_rows) + len(rest) - rows + 1)
    if hidden > 1:
        table_rows[end - hidden : end] = [f"... {count(hidden)} more agents"]
    return [cut(line, columns) for line in [*head, *table_rows, *rest][:rows]]


def _live_parts(status: CrawlStatus) -> tuple[list[str], list[str], list[str]]:
    return (
        [*headline(status), ""],
        live_table(status.agents, status.summed_up),
        [*_joined_shortly(status), *remarks(status)],
    )


def live_table(agents: Sequence[AgentStatus], summed_up: SummedUp | None = None) -> list[str]:
    """A row an agent and a row for all, in the columns agent, state, pages, pages/s, hosts, queue, inbox, forwarded;
    a row for those who are long gone, where there are such."""
    rows = [_live_row(agent) for agent in agents]
    profiles = [agent.profile for agent in agents if agent.profile is not None]
    if summed_up is not None:
        pages, forwarded = (count(summed_up.profile.count(name)) for name in ("pages", "forwarded"))
        rows.append([long_gone(summed_up), "", pages, "", "", "", "", forwarded])
        profiles.append(summed_up.profile)
    members = [agent.profile for agent in agents if agent.profile is not None and not agent.gone]
    if len(rows) > 1:
        rows.append(
            [
                "all",
                "",
                count(sum(profile.count("pages") for profile in profiles)),
                rate(sum(agent.pages_per_second for agent in agents)),
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
        rate(agent.pages_per_second),
        count(profile.count("hosts")),
        count(profile.count("queued")),
        count(agent.inbox),
        count(profile.count("forwarded")),
    ]


def agents(status: CrawlStatus) -> list[str]:
    """Who the agents are, on which machines, and since when."""
    rows = [_agent_row(agent, status.now) for agent in status.agents]
    return [*headline(status), "", *table(_AGENTS, rows), *remarks(status)]


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


def owner(answer: Ownership) -> list[str]:
    """Who owns a URL's host, and who comes next."""
    rest = answer.order[1 + answer.replication :]
    rows = [
        ("url", answer.url),
        ("host" if answer.partition == "host" else "domain", answer.host),
        ("owner", answer.owner),
        ("then", ", ".join(f"{agent} (keeps a copy)" for agent in answer.successors) or "no agent"),
    ]
    return pairs([*rows, ("after them", ", ".join(rest))] if rest else rows)


def _joined_shortly(status: CrawlStatus) -> list[str]:
    joined = measures_of(status).joined
    if not joined:
        return []
    steps = ", ".join(f"{plain(step, 40)} {count(number)}" for step, number in joined.items())
    return ["", cut(f"URLs joined by lossy steps: {steps} (scrapy ubi report has examples)", room())]
