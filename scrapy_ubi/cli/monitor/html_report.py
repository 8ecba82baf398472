"""`scrapy ubi report --html`: a crawl on one page that stands alone, to be looked at, printed, and kept.

Rules of this module:

* One file. It asks nothing of any server and runs no script, and its policy (`Content-Security-Policy`) would not let
  it: nothing but the style within, by its digest.
* All that comes from the crawl is escaped where it is put in (`html_sections.shown`, `charts.text`).
"""

from __future__ import annotations

import hashlib
import time
from base64 import b64encode

from scrapy_ubi.cli.monitor import html_sections as sections
from scrapy_ubi.cli.monitor.ahead import sentences
from scrapy_ubi.cli.monitor.headline import arguments_of
from scrapy_ubi.cli.monitor.html_sections import ReportFacts, shown
from scrapy_ubi.cli.monitor.html_style import STYLE
from scrapy_ubi.cli.monitor.render_report import lost_agents
from scrapy_ubi.cli.monitor.text_table import count, rate, size, span

SECTIONS = (
    *(sections.speed, sections.balance, sections.hosts, sections.failures, sections.politeness),
    *(sections.communication, sections.response, sections.agents, sections.events),
)


def policy() -> str:
    """What the page may do: nothing, but look as it does."""
    digest = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def render_page(facts: ReportFacts, version: str) -> str:
    """The whole page."""
    status = facts.status
    parts = [part for section in SECTIONS if (part := section(facts))]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy()}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>Crawl {shown(status.crawl)}</title>",
            f"<style>{STYLE}</style></head>",
            "<body>",
            _head(facts),
            _tiles(facts),
            '<main class="cards">',
            *parts,
            "</main>",
            f"<footer>scrapy-ubi {shown(version)}. Measures: overlap (n - u) / u, overhead e / n, balance, as "
            "UbiCrawler was evaluated (Boldi, Codenotti, Santini, Vigna). Figures are the agents' own.</footer>",
            "</body></html>",
            "",
        ]
    )


def _head(facts: ReportFacts) -> str:
    status, times = facts.status, facts.history.times
    working = sum(agent.working for agent in status.agents)
    said = [f"{shown(status.state)}, {working} of {len(status.agents)} agents at work"]
    if times:
        said.append(f"{_date(times[0])} to {_date(times[-1])} UTC")
    said.append(f"written {_date(status.now)} UTC")
    lines = [f"<h1>Crawl {shown(status.crawl)}</h1>", f"<p>{'; '.join(said)}.</p>"]
    if status.arguments:
        lines.append(f"<p>Arguments: {shown(arguments_of(status), 400)}</p>")
    if status.state == "running":
        lines.append(f"<p>{shown(' '.join(sentences(status)), 400)}</p>")
    if lost := lost_agents(status):
        lines.append(
            f'<p class="warn">{lost} agents were lost, more than the copies make up for: pages of hosts that only they '
            "kept may be missing.</p>"
        )
    return "<header>" + "\n".join(lines) + "</header>"


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at))


def _tiles(facts: ReportFacts) -> str:
    of, totals = facts.of, facts.of.totals
    overlap = "not known" if of.overlap is None else f"{of.overlap:.4f}"
    figures = [
        (count(totals["done"]), "pages done (n)"),
        (count(totals["unique"]), "unique pages (u)"),
        (overlap, "overlap (n-u)/u"),
        (rate(of.average_pages_per_second), "pages a second"),
        (span(of.seconds), "of crawling"),
        (count(totals["queued"]), "URLs wait"),
        (count(totals["hosts"]), "hosts"),
        (count(sum(of.failed.values())), "URLs failed"),
    ]
    if received := int(facts.last.get("bytes", 0)):
        figures.append((size(received), "received"))
        figures.append((size(round(received / (totals["pages"] or 1))), "a page"))
    tiles = "\n".join(f'<div class="tile"><b>{figure}</b><span>{name}</span></div>' for figure, name in figures)
    return f'<div class="tiles">\n{tiles}\n</div>'
