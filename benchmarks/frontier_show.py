"""Tables and plots of the frontier benchmark, from its rows."""

from __future__ import annotations

import contextlib
import io
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rounds import table

BEGIN, END = "<!-- tables of frontier.py -->", "<!-- end of tables -->"
SYSTEMS = ("disk", "bloom", "memory", "scrapy", "jobdir", "sqlite", "scrapy-redis")
COLORS = {
    "disk": "#1f5fa8",
    "bloom": "#5fa8d8",
    "memory": "#2f7d4f",
    "scrapy": "#c8641e",
    "jobdir": "#8a4fa8",
    "sqlite": "#b03a3a",
    "scrapy-redis": "#777777",
}
Row = dict[str, Any]


def show(figures: dict[str, Any], doc: str | None, folder: Path | None) -> None:
    """Print the tables; put them into the document and draw the plots where asked for."""
    printed = io.StringIO()
    rows = sorted(
        with_pops(figures["rows"]), key=lambda row: (SYSTEMS.index(row["system"]), row["known"], row["hosts"])
    )
    with contextlib.redirect_stdout(printed):
        tables(rows, figures["link"])
        pops_alone([row for row in figures["rows"] if row.get("fill")])
    print(printed.getvalue())
    if doc:
        into_document(doc, printed.getvalue())
    if folder:
        draw(rows, folder)


def pops_alone(rows: Sequence[Row]) -> None:
    """Pops from what was filled for them, when nothing goes on in the background any more."""
    cells = {
        f"{row['system']}, {known(row):,} URLs": [f"{row['pops']:,}", f"{pop_rate(row):,.0f}", f"{both_rate(row):,.0f}"]
        for row in rows
    }
    if cells:
        table("filled, at rest, then popped", ["   pops", "pops/s", "pops/s, each done"], cells)


def with_pops(rows: Sequence[Row]) -> list[Row]:
    """The rows of offers and pops; where there is one that was filled for pops alone, with its pops."""
    filled = {(row["system"], row["known"]): row for row in rows if row.get("fill")}
    found = []
    for row in rows:
        if not row.get("fill"):
            other = filled.get((row["system"], row["known"])) if row["mix"] == "crawl" and not row["round"] else None
            keys = ("pops", "pop_cpu", "finish_cpu", "pop_wall", "memory_after_pops")
            found.append({**row, **{key: other[key] for key in keys}} if other else row)
    return found


# ---------------------------------------------------------------------- what a row says


def known(row: Row) -> int:
    """How many URLs were known in the end."""
    found: int = row["samples"][-1]["known"]
    return found


def offer_rate(row: Row) -> float:
    """Offers a CPU second, all told, Redis's share included."""
    return row["offers"] / (row["offer_cpu"] + row.get("server", {}).get("cpu", 0.0))


def late_rate(row: Row) -> float:
    """Offers a CPU second from the moment half of the URLs were known."""
    samples = row["samples"]
    half = next(one for one in samples if one["known"] >= samples[-1]["known"] / 2)
    if half is samples[-1]:
        return offer_rate(row)
    return (samples[-1]["offers"] - half["offers"]) / (samples[-1]["cpu"] - half["cpu"])


def pop_rate(row: Row) -> float:
    """Pops a CPU second; 0 where none was possible."""
    return row["pops"] / (row["pop_cpu"] + row.get("pop_server_cpu", 0.0) or 1)


def both_rate(row: Row) -> float:
    """Pops a CPU second, each done and its host free again afterwards."""
    return row["pops"] / (row["pop_cpu"] + row["finish_cpu"] + row.get("pop_server_cpu", 0.0))


def whole_memory(sample: Row) -> float:
    """Resident bytes beyond those of an empty process and of an empty Redis."""
    return sample["memory"] + sample.get("server", {}).get("memory", 0)


def slope(row: Row, key: Callable[[Row], float]) -> float:
    """Bytes a URL, from the moment a tenth of the URLs were known."""
    samples = row["samples"]
    early = next(one for one in samples if one["known"] >= samples[-1]["known"] / 10)
    more = samples[-1]["known"] - early["known"]
    return (key(samples[-1]) - key(early)) / more if more else 0.0


def between(small: Row, large: Row) -> float:
    """Bytes of memory a URL, of what a run of more URLs on more hosts has more than a smaller one."""
    return (large["memory"] - small["memory"]) / (known(large) - known(small))


# ---------------------------------------------------------------------- tables


def usual(rows: Sequence[Row]) -> list[Row]:
    """The runs of one size each: a hundred URLs a host, links as in a crawl."""
    return [r for r in rows if r["round"] == 0 and r["mix"] == "crawl" and r["hosts"] == max(10, r["known"] // 100)]


def tables(rows: Sequence[Row], link: dict[str, float]) -> None:
    """All tables, as Markdown."""
    targets(usual(rows))
    sizes(usual(rows), link)
    space(usual(rows))
    stops(rows)
    reopened(rows)
    ratios([row for row in rows if row["round"]])
    worst(rows)
    hosts(rows)
    if rows:
        loads = [load for row in rows for load in (row["load"], row.get("load_end", row["load"]))]
        days = sorted({row["taken_at"][:10] for row in rows})
        print(f"\nTaken on {', '.join(days)}; load average of the machine {min(loads):.1f} to {max(loads):.1f}.")


def targets(rows: Sequence[Row]) -> None:
    """What was to be reached, and what is."""
    found = {}
    for name in ("disk", "bloom"):
        mine = [row for row in rows if row["system"] == name]
        if len(mine) > 1:
            found[name] = (mine[-1], mine[0])
    if not found:
        return
    lines: dict[str, tuple[str, Callable[[Row, Row], str]]] = {
        "offers/s": (">= 200,000", lambda most, _: f"{offer_rate(most):,.0f}"),
        "pops/s": (">= 100,000", lambda most, _: f"{pop_rate(most):,.0f}"),
        "pops/s, each done and flushed": ("", lambda most, _: f"{both_rate(most):,.0f}"),
        "bytes of disk a URL": ("<= 60", lambda most, _: f"{most['disk'] / known(most):.1f}"),
        "bytes of memory a URL, slope": ("<= 12", lambda most, _: f"{slope(most, whole_memory):.1f}"),
        "the same from least to most, hosts and all": ("", lambda most, least: f"{between(least, most):.1f}"),
        "all memory by all URLs": ("", lambda most, _: f"{most['memory'] / known(most):.1f}"),
        "MB of memory": ("< 300", lambda most, _: f"{most['memory'] / 2**20:.0f}"),
        "MB of memory after the pops": ("", lambda most, _: f"{most['memory_after_pops'] / 2**20:.0f}"),
        "MB before, without pages of files": ("", lambda most, _: f"{most['anonymous'] / 2**20:.0f}"),
        "open files, most": ("<= 64", lambda most, _: f"{max(most['files'], most['files_after_pops'])}"),
        "offers/s : those with 100,000 URLs": (
            ">= 0.5",
            lambda most, least: f"{late_rate(most) / late_rate(least):.2f}",
        ),
        "s to open again after kill -9": ("", lambda most, _: f"{most['reopened']['wall']:.1f}"),
    }
    cells = {title: [wanted, *(say(*pair) for pair in found.values())] for title, (wanted, say) in lines.items()}
    columns = [f"{name}, {known(most):,} URLs of {most['hosts']:,} hosts" for name, (most, _) in found.items()]
    table("what was to be reached", ["    wanted", *columns], cells)


def sizes(rows: Sequence[Row], link: dict[str, float]) -> None:
    """Rates by system and size."""
    columns = sorted({row["known"] for row in rows})
    for title, rate in (
        ("offers/s", offer_rate),
        ("offers/s from text", lambda row: with_making(row, link)),
        ("pops/s", pop_rate),
        ("pops/s, each done", both_rate),
    ):
        cells = {
            name: [_cell(rows, name, size, lambda row, rate=rate: f"{rate(row):,.0f}") for size in columns]
            for name in SYSTEMS
        }
        table(title, [f"{size:>11,}" for size in columns], cells)


def with_making(row: Row, link: dict[str, float]) -> float:
    """Offers a CPU second, with what is made of the text of a link first: a key (ours), a Request (the others)."""
    making = row["make_cpu"] if row["system"] in SYSTEMS[3:] else link["seconds"] * row["offers"]
    return row["offers"] / (row["offers"] / offer_rate(row) + making)


def space(rows: Sequence[Row]) -> None:
    """Memory, disk and files by system, of the largest run of each."""
    cells = {}
    for name in SYSTEMS:
        mine = [row for row in rows if row["system"] == name]
        if not mine:
            continue
        row = max(mine, key=known)
        last = row["samples"][-1]
        cells[name] = [
            f"{known(row):,}",
            f"{whole_memory(last) / 2**20:,.0f}",
            f"{whole_memory(last) / known(row):.0f}",
            f"{slope(row, whole_memory):.1f}",
            f"{slope(row, lambda sample: sample['anonymous'] + sample.get('server', {}).get('memory', 0)):.1f}",
            f"{row['disk'] / known(row):.1f}" if "disk" in row else "-",
            f"{row['files']:,}",
        ]
    columns = [
        "URLs",
        "memory, MB",
        "B a URL",
        "B a URL, slope",
        "without pages of files",
        "disk, B a URL",
        "open files",
    ]
    table("largest run", [f"{column:>10}" for column in columns], cells)


def stops(rows: Sequence[Row]) -> None:
    """Who stopped where, and why."""
    lines = [
        f"- {row['system']}, {row['known']:,} URLs of {row['hosts']:,} hosts: at {known(row):,}, {row['stopped']}"
        for row in rows
        if row["stopped"] and not row["round"]
    ]
    print("\nStopped before the end:\n" + "\n".join(["", *lines]) if lines else "")


def reopened(rows: Sequence[Row]) -> None:
    """What a kill left behind, opened by another process."""
    cells = {
        f"{row['system']}, {known(row):,}": [
            f"{row['reopened']['wall']:.2f}",
            f"{row['reopened']['cpu']:.2f}",
            f"{row['reopened']['first_pop']:.2f}",
            f"{row['reopened']['memory'] / 2**20:.0f}",
            f"{row['reopened']['missing']}",
        ]
        for row in usual(rows)
        if "reopened" in row
    }
    if cells:
        columns = ["s to open", "s of CPU", "s to the first pop", "memory, MB", "keys missing of 100,000"]
        table("after kill -9", columns, cells)


def ratios(rows: Sequence[Row]) -> None:
    """How many times the rate of each peer ours has, from paired rounds."""
    turns = sorted({row["round"] for row in rows})
    cells = {}
    for name in SYSTEMS:
        if name == "disk":
            continue
        line = []
        for rate in (offer_rate, pop_rate, both_rate):
            found = []
            for turn in turns:
                pair = {row["system"]: row for row in rows if row["round"] == turn}
                if "disk" in pair and name in pair:
                    found.append(rate(pair["disk"]) / rate(pair[name]) if pair[name]["pops"] else 0.0)
            if found:
                line.append(f"{statistics.median(found):.2f} ({min(found):.2f}-{max(found):.2f})")
        if line:
            cells[name] = line
    if cells:
        table("disk : other, the median of rounds", [f"{c:>18}" for c in ("offers/s", "pops/s", "pops/s, done")], cells)


def worst(rows: Sequence[Row]) -> None:
    """Links without any locality."""
    mine = [row for row in rows if row["mix"] == "uniform"]
    cells = {
        f"{row['system']}, {row['known']:,}": [
            f"{offer_rate(row):,.0f}",
            f"{late_rate(row):,.0f}",
            f"{pop_rate(row):,.0f}",
            f"{-row['wrong']:,}",
        ]
        for row in mine
    }
    if cells:
        table(
            "each link to another host",
            ["offers/s", "in the second half", "  pops/s", "new ones taken for known"],
            cells,
        )


def hosts(rows: Sequence[Row]) -> None:
    """The same URLs on few hosts and on many."""
    sizes_of = [row["known"] for row in rows if row["hosts"] == row["known"] // 10]
    if not sizes_of:
        return
    size = max(sizes_of)
    mine = [r for r in rows if r["known"] == size and r["mix"] == "crawl" and not r["round"]]
    columns = sorted({row["hosts"] for row in mine})
    for title, rate in (("offers/s", offer_rate), ("pops/s", pop_rate)):
        cells = {}
        for name in ("disk", "memory", "scrapy", "jobdir"):
            by_hosts = {row["hosts"]: row for row in mine if row["system"] == name}
            cells[name] = [f"{rate(by_hosts[n]):,.0f}" if n in by_hosts else "" for n in columns]
        table(f"{title}, {size:,} URLs, by hosts", [f"{n:>9,}" for n in columns], cells)


def _cell(rows: Sequence[Row], name: str, size: int, say: Callable[[Row], str]) -> str:
    found = [row for row in rows if row["system"] == name and row["known"] == size]
    return say(found[0]) + ("*" if found[0]["stopped"] else "") if found else ""


def into_document(path: str, text: str) -> None:
    """Put the tables where a document has room for them, between two marks."""
    document = Path(path)
    before, begin, rest = document.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has no room for tables: no {BEGIN} and {END}")
    document.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


# ---------------------------------------------------------------------- plots


def draw(rows: Sequence[Row], folder: Path) -> None:
    """Rate and memory against the number of URLs."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "frontier", "svg.fonttype": "none", "axes.grid": True})
    matplotlib.rcParams.update({"grid.color": "#dddddd", "axes.spines.top": False, "axes.spines.right": False})
    largest = {row["system"]: row for row in sorted(usual(rows), key=known)}
    _lines(largest, rates_of, "offers a CPU second", folder / "frontier-offers.svg")
    _lines(largest, memory_of, "memory, MB", folder / "frontier-memory.svg")
    _points(usual(rows), folder / "frontier-pops.svg")


def rates_of(row: Row) -> list[tuple[int, float]]:
    """Offers a CPU second between one sample and the next."""
    found = []
    before: Row = {"known": 0, "offers": 0, "cpu": 0.0}
    for sample in row["samples"]:
        cpu = sample["cpu"] - before["cpu"]
        server = sample.get("server", {}).get("cpu", 0.0) - before.get("server", {}).get("cpu", 0.0)
        if sample["known"] <= 1.1 * row["hosts"]:  # the seeds: no page yet
            before = sample
        elif cpu > 0.005:
            found.append((sample["known"], (sample["offers"] - before["offers"]) / (cpu + server)))
            before = sample
    return found


def memory_of(row: Row) -> list[tuple[int, float]]:
    """MB beyond those of an empty process."""
    return [(one["known"], whole_memory(one) / 2**20) for one in row["samples"] if one["known"] >= 10_000]


def _axes() -> Any:
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("known URLs")
    return axes


def _lines(rows: dict[str, Row], points: Callable[[Row], list[tuple[int, float]]], what: str, path: Path) -> None:
    axes = _axes()
    for name in SYSTEMS:
        if name in rows and (found := points(rows[name])):
            axes.plot(*zip(*found, strict=True), "-", color=COLORS[name], label=name, linewidth=1.6)
    axes.set_ylabel(what)
    _save(axes, path)


def _points(rows: Sequence[Row], path: Path) -> None:
    axes = _axes()
    for name in SYSTEMS:
        if mine := sorted((known(row), pop_rate(row)) for row in rows if row["system"] == name and row["pops"]):
            axes.plot(*zip(*mine, strict=True), "o-", color=COLORS[name], label=name, linewidth=1.2, markersize=5)
    axes.set_ylabel("pops a CPU second")
    _save(axes, path)


def _save(axes: Any, path: Path) -> None:
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axes.legend(frameon=False, fontsize=9, ncols=2)
    axes.figure.savefig(path, metadata={"Date": None})
    pyplot.close(axes.figure)
