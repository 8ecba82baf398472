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
from scrapy_ubi.cli.monitor.render_report import loss_sentence
from scrapy_ubi.cli.monitor.text_table import count, rate, size, span

SECTIONS = (
    *(sections.speed, sections.balance, sections.hosts, sections.failures, sections.politeness),
    *(sections.communication, sections.response, sections.agents, sections.events),
)

# Light and dark by the reader's choice, and on paper.
STYLE = """
:root { color-scheme: light dark; --ink: #1d2330; --soft: #5d6675; --line: #dfe3e9; --ground: #ffffff; --card: #ffffff;
  --a: #2463b4; --b: #c2690b; --c: #2f7d4f; --bad: #b3261e; --band: #e9eef6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #9aa4b5; --line: #333b49; --ground: #12161d;
  --card: #191e27; --a: #7fb0f2; --b: #f0a350; --c: #74c596; --bad: #ff8a80; --band: #232c3a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 28px 20px 48px; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
h1 { font-size: 25px; line-height: 1.2; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 0 0 2px; }
p { margin: 0 0 8px; }
.soft, figcaption, header p, footer { color: var(--soft); }
header { margin-bottom: 18px; }
.warn { color: var(--bad); font-weight: 600; }
.tiles { display: grid; grid-template-columns: repeat(5, 1fr); gap: 10px; margin: 0 0 16px; }
.tile { border: 1px solid var(--line); border-radius: 6px; padding: 9px 12px; background: var(--card); }
.tile b { display: block; font-size: 21px; font-weight: 600; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
.cards { columns: 2; column-gap: 16px; }
.card { border: 1px solid var(--line); border-radius: 6px; padding: 14px 16px 12px; background: var(--card);
  margin: 0 0 16px; break-inside: avoid; }
.wide { column-span: all; } .card + .wide { margin-top: 16px; }
.card p { color: var(--soft); font-size: 13.5px; }
svg { display: block; width: 100%; height: auto; margin-top: 6px; }
text { font: 11px system-ui, "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; fill: var(--ink); }
.tick { fill: var(--soft); font-variant-numeric: tabular-nums; }
.name { fill: var(--ink); }
.note { fill: var(--soft); font-variant-numeric: tabular-nums; paint-order: stroke; stroke: var(--card);
  stroke-width: 4px; }
.line { fill: none; stroke-width: 1.7; stroke-linejoin: round; }
.line.a { stroke: var(--a); } .line.b { stroke: var(--b); stroke-dasharray: 6 3; }
.line.c { stroke: var(--c); stroke-dasharray: 2 2; }
.area { stroke: none; fill-opacity: 0.13; }
.area.a, .bar.a, .dot.a { fill: var(--a); } .bar.b, .dot.b, .area.b { fill: var(--b); }
.dot.c, .area.c { fill: var(--c); }
.bar.b { fill-opacity: 0.75; }
.axis { stroke: var(--soft); } .grid { stroke: var(--line); }
.rule { stroke: var(--ink); stroke-dasharray: 4 3; }
.mark { stroke: var(--bad); stroke-opacity: 0.55; stroke-width: 1.3; }
.band { fill: var(--band); }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 3px 8px 3px 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 500; white-space: nowrap; }
td.n, th.n { text-align: right; white-space: nowrap; overflow-wrap: normal; }
td.t { white-space: nowrap; overflow-wrap: normal; }
.scroll { overflow-x: auto; }
footer { margin-top: 20px; font-size: 12.5px; }
@media (max-width: 820px) { .cards { columns: 1; }
  .tiles { grid-template-columns: repeat(auto-fit, minmax(138px, 1fr)); } }
@media print {
  :root { color-scheme: light; --ink: #000000; --soft: #444444; --line: #cccccc; --ground: #ffffff; --card: #ffffff;
    --a: #1d4f91; --b: #b35c00; --c: #256b42; --bad: #a3211a; --band: #eeeeee; }
  @page { size: A4; margin: 14mm 13mm; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  .cards { columns: 1; } .card { margin: 0 0 10pt; } .card.events { break-inside: auto; }
  thead { display: table-header-group; } tr { break-inside: avoid; } .scroll { overflow: visible; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
""".strip()


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
    if lost := loss_sentence(status):
        lines.append(f'<p class="warn">{lost}.</p>')
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
