"""Tables and plots of the benchmark beside Scrapy and scrapy-redis, from its figures."""

from __future__ import annotations

import contextlib
import io
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pages import into_document, spread
from peers_aims import AIMS, memory_at
from rounds import table
from systems import LABELS, PEERS

BEGIN = "<!-- tables of peers.py -->"
COLORS = {
    "scrapy": "#c8641e",
    "jobdir": "#8a4fa8",
    "redis": "#777777",
    "walk": "#1f5fa8",
    "short": "#2f7d4f",
    "fast": "#5fc88f",
}
FAMILIES = {
    "redis": "scrapy-redis",
    "walk": "unmodified spider",
    "short": "short path",
    "fast": "short path, UBI_FAST",
}
Figures = dict[str, Any]
Rounds = Sequence[Mapping[str, Any]]


def show(figures: Figures, doc: str | None, folder: Path | None) -> None:
    """Print the tables; put them into the document and draw the plots where asked for."""
    text = tables(figures)
    print(text)
    if doc:
        into_document(doc, BEGIN, text)
    if folder:
        draw(figures, folder)


def tables(figures: Figures) -> str:
    """All tables, as Markdown; only those that there are figures for."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        aims(figures)
        for part, of_part in PARTS.items():
            if part in figures:
                said(part, figures[part])
                of_part(figures[part])
    return printed.getvalue()


# ---------------------------------------------------------------------- tables


def said(part: str, figures: Figures) -> None:
    """When, on what and how a part was measured."""
    settings, (before, after) = figures["settings"], figures["load"]
    if part == "micro":
        size = rounds_of(settings)
    elif part == "memory":
        size = f"{settings['long']:,} pages"
    elif part == "later":
        size = f"{rounds_of(settings)} of the pages {settings['long'] // 10:,} to {settings['long']:,}"
    else:
        size = f"{rounds_of(settings)} of {settings['pages']:,} pages after {settings['warm']:,}"
    quick = "; with `--quick`: it shows that the benchmark runs, these are no figures to rely on"
    where = f"Python {figures['python']}, {figures['cores']} cores, load average {before} before and {after} after"
    print(f"\nPart `{part}`: {size}, {figures['taken']}, {where}{quick if settings['quick'] else ''}.")


def rounds_of(settings: Figures) -> str:
    return "1 round" if settings["rounds"] == 1 else f"{settings['rounds']} rounds"


def aims(figures: Figures) -> None:
    rows = {}
    for aim in AIMS:
        if judged := aim.judge(figures):
            values, met = judged
            sign = "at least" if aim.at_least else "at most"
            rows[aim.title] = [spread(values, aim.form), f"{sign} {aim.bound:g}", "met" if met else "**missed**"]
    if rows:
        table("aim", [f"{'median (least-most)':>20}", f"{'wanted':>13}", "          "], rows)


def names_of(rounds: Rounds) -> list[str]:
    return [name for name in LABELS if name in rounds[0]]


def pages(figures: Figures) -> None:
    rounds: Rounds = figures["rounds"]
    columns = {
        "ms CPU, crawlers": ("cpu_ms", "{:.2f}"),
        "ms CPU, Redis": ("redis_cpu_ms", "{:.3f}"),
        "Redis commands": ("redis_commands", "{:.2f}"),
        "bytes to, from Redis": ("redis_bytes", "{:,.0f}"),
        "pages/s": ("pages_per_second", "{:.0f}"),
        "MB, largest": ("memory_mb", "{:.0f}"),
    }
    rows = {}
    for name in names_of(rounds):
        cells = [spread([each[name][key] for each in rounds], form) for key, form in columns.values()]
        rows[LABELS[name]] = cells if PEERS[name].redis else [cells[0], "", "", "", *cells[4:]]
    table("a page, on one core", [f"{title:>19}" for title in columns], rows)
    four(rounds)


def four(rounds: Rounds) -> None:
    """What four agents on one core cost beyond one: sharing the core, and having to do with each other. Each of four
    crawls apart goes as far as that of one agent, and finds as much."""
    rows = {}
    for family in FAMILIES:
        one, apart, group = f"{family}1", f"{family}4apart", f"{family}4"
        if {one, apart, group} <= rounds[0].keys():
            pairs = ((apart, one), (group, apart), (group, one))
            ratios = [[each[above]["cpu_ms"] / each[below]["cpu_ms"] for each in rounds] for above, below in pairs]
            rows[FAMILIES[family]] = [spread(each) for each in ratios]
    if rows:
        table("CPU a page, ratios", ["  4 crawls : 1 crawl", "4 agents : 4 crawls", "  4 agents : 1 agent"], rows)


def later(figures: Figures) -> None:
    """One agent and four, when fewer links are new: `replicated` are the records for successors."""
    rounds: Rounds = figures["rounds"]
    rows = {}
    for name in names_of(rounds):
        one = f"{name.partition('4')[0].rstrip('1')}1"
        ratios = [each[name]["cpu_ms"] / each[one]["cpu_ms"] for each in rounds if name != one in each]
        counts = [[each[name][kind] for each in rounds if kind in each[name]] for kind in ("forwarded", "replicated")]
        rows[LABELS[name]] = [
            spread([each[name]["cpu_ms"] for each in rounds]),
            spread(ratios) if ratios else "",
            *(spread(each, "{:.1f}") if each else "" for each in counts),
        ]
    titles = ("ms CPU, crawlers", ": 1 agent", "URLs forwarded", "records replicated")
    table("a page, on one core", [f"{title:>19}" for title in titles], rows)


def two(figures: Figures) -> None:
    rounds: Rounds = figures["rounds"]
    rows = {
        LABELS[name]: [
            spread([each[name]["pages_per_second"] for each in rounds], "{:.0f}"),
            spread([each[name]["cpu_ms"] for each in rounds]),
            spread([each[name]["redis_cpu_ms"] for each in rounds], "{:.3f}"),
            spread([each[name]["redis_commands"] for each in rounds]),
        ]
        for name in names_of(rounds)
    }
    titles = ("pages/s", "ms CPU, crawlers", "ms CPU, Redis", "Redis commands")
    table("on both cores", [f"{title:>19}" for title in titles], rows)


def hosts(figures: Figures) -> None:
    rounds: Rounds = figures["rounds"]
    sizes = [str(size) for size in figures["settings"]["sizes"]]
    rows = {}
    for name in names_of(rounds):
        cells = [spread([each[name][size]["cpu_ms"] for each in rounds]) for size in sizes]
        ratios = [each[name][sizes[-1]]["cpu_ms"] / each[name][sizes[0]]["cpu_ms"] for each in rounds]
        rows[LABELS[name]] = [*cells, spread(ratios)]
    titles = [*(f"{int(size):,} hosts" for size in sizes), "most : fewest"]
    table("ms CPU a page", [f"{title:>19}" for title in titles], rows)


def memory(figures: Figures) -> None:
    at = [pages for pages in (1000, 5000, 10_000, 20_000) if pages <= figures["settings"]["long"]]
    rows = {
        LABELS[name]: [f"{memory_at({'memory': figures}, name, pages):.0f}" for pages in at]
        for name in LABELS
        if name in figures["runs"]
    }
    table("MB at most so far", [f"{f'{pages:,} pages':>14}" for pages in at], rows)


def micro(figures: Figures) -> None:
    cells = {
        title: [
            f"{each['ours'] * 1e6:.2f}",
            each["peer"],
            f"{each['theirs'] * 1e6:.2f}",
            f"{each['theirs'] / each['ours']:.1f}",
        ]
        for title, each in figures["seconds"].items()
    }
    table("microseconds of CPU", ["     ours", f"{'beside':>30}", "   theirs", "theirs : ours"], cells)


PARTS = {"pages": pages, "later": later, "two": two, "hosts": hosts, "memory": memory, "micro": micro}


# ---------------------------------------------------------------------- plots


def draw(figures: Figures, folder: Path) -> None:
    """speed-pages.svg, speed-scaling.svg, speed-hosts.svg, speed-memory.svg: those that there are figures for."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "peers", "svg.fonttype": "none", "axes.grid": True})
    matplotlib.rcParams.update({"grid.color": "#dddddd", "axes.spines.top": False, "axes.spines.right": False})
    if "pages" in figures:
        _bars(figures["pages"]["rounds"], folder / "speed-pages.svg")
        _scaling(figures["pages"]["rounds"], folder / "speed-scaling.svg")
    if "hosts" in figures:
        _hosts(figures["hosts"], folder / "speed-hosts.svg")
    if "memory" in figures:
        _memory(figures["memory"]["runs"], folder / "speed-memory.svg")


def color(name: str) -> str:
    return COLORS[name[: re.search(r"\d|\Z", name).start()]]


def medians(rounds: Rounds, name: str, key: str) -> tuple[float, float, float]:
    """Median, least and most."""
    values = [each[name][key] for each in rounds]
    return statistics.median(values), min(values), max(values)


def _axes(height: float = 4.0) -> Any:
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(7, height), layout="constrained")[1]


def _save(axes: Any, path: Path) -> None:
    from matplotlib import pyplot

    axes.legend(frameon=False, fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    axes.figure.savefig(path, metadata={"Date": None})
    pyplot.close(axes.figure)


def _bars(rounds: Rounds, path: Path) -> None:
    """CPU a page of every system: crawlers, and Redis behind."""
    names = names_of(rounds)[::-1]
    axes = _axes(0.8 + 0.32 * len(names))
    for place, name in enumerate(names):
        median, least, most = medians(rounds, name, "cpu_ms")
        axes.barh(place, median, color=color(name), xerr=[[median - least], [most - median]], ecolor="#333333")
        if PEERS[name].redis:
            label = {"label": "Redis"} if place == 0 else {}
            axes.barh(place, medians(rounds, name, "redis_cpu_ms")[0], left=median, color="#b03a3a", **label)
    axes.set_yticks(range(len(names)), [LABELS[name] for name in names])
    axes.set_xlabel("ms of CPU a page (median; lines: least and most)")
    axes.grid(axis="y", visible=False)
    _save(axes, path)


def _scaling(rounds: Rounds, path: Path) -> None:
    """Work per agent against the number of agents, as UbiCrawler's Figure 3 has it; work is pages by CPU."""
    axes = _axes()
    for family, label in FAMILIES.items():
        if mine := [name for name in names_of(rounds) if name.rstrip("0123456789") == family]:
            counts = [PEERS[name].processes for name in mine]
            work = [[1000 / value for value in medians(rounds, name, "cpu_ms")] for name in mine]
            away = [[m - most for m, _, most in work], [least - m for m, least, _ in work]]
            middle = [m for m, _, _ in work]
            axes.errorbar(counts, middle, yerr=away, fmt="o-", color=COLORS[family], label=label, capsize=3)
    if "scrapy" in rounds[0]:
        work = 1000 / medians(rounds, "scrapy", "cpu_ms")[0]
        axes.axhline(work, color=COLORS["scrapy"], linestyle="--", label="Scrapy")
    axes.set_xticks([1, 2, 4])
    axes.set_xlabel("agents (or processes)")
    axes.set_ylabel("pages a CPU second of an agent")
    axes.set_ylim(bottom=0)
    _save(axes, path)


def _hosts(figures: Figures, path: Path) -> None:
    rounds: Rounds = figures["rounds"]
    sizes = figures["settings"]["sizes"]
    axes = _axes()
    for name in names_of(rounds):
        found = [medians([each[name] for each in rounds], str(size), "cpu_ms") for size in sizes]
        away = [[m - least for m, least, _ in found], [most - m for m, _, most in found]]
        axes.errorbar(
            sizes, [m for m, _, _ in found], yerr=away, fmt="o-", color=color(name), label=LABELS[name], capsize=3
        )
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.set_xlabel("hosts of the web")
    axes.set_ylabel("ms of CPU a page")
    axes.set_ylim(bottom=0)
    _save(axes, path)


def _memory(runs: Mapping[str, Any], path: Path) -> None:
    axes = _axes()
    for name in (name for name in LABELS if name in runs):
        counts, now, _ = zip(*runs[name]["samples"], strict=True)
        axes.plot(counts, now, color=color(name), label=LABELS[name])
    axes.axhline(150, color="grey", linewidth=0.8, linestyle=":", label="150 MB")
    axes.set_xlabel("pages crawled")
    axes.set_ylabel("resident memory, MB (the largest process)")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    _save(axes, path)
