"""A thousand agents and a million hosts, by simulation: balance, what moves, how fast all agree, what travels a page.

    python benchmarks/scale.py [--quick] [--only PART,...] [--json benchmarks/results/scale.json]
    python benchmarks/scale.py --draw docs/explanation      # the plots of the committed figures; needs matplotlib

The production protocol in virtual time, all from one seed: but for the seconds of CPU the figures are the same on every
machine. All of it takes about fifteen minutes of one core, `--quick` two (smaller groups, fewer hosts and pages).
What they mean stands in docs/explanation/at-scale.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import scale_crawl
import scale_group
import scale_mail
import scale_ring
from rounds import table
from scale_crawl import FLUSH
from scale_group import Apart, Timing

from scrapy_ubi.protocol.read_interval import reads_apart
from scrapy_ubi.transport.redis_keys import RedisKeys

RESULTS = Path(__file__).parent / "results" / "scale.json"
SEED = 20020610
PARTS = ("ring", "group", "crawl", "mail", "boxes", "servers")
AGENTS = (4, 16, 64, 256, 1000)
LONG = [100, 300, 1000, 3000, 6000]  # pages at which the one agent of a long crawl is looked at

SPEEDING = ((10, FLUSH), (12, FLUSH), (100, FLUSH), (1000, FLUSH), (1000, 1.0))  # agents, s between flushes
CLUSTERS = ((3, 1), (6, 1), (3, 6), (6, 6), (6, 12), (6, 48), (12, 48), (24, 48), (48, 48))  # masters, mail slots

KINDS = ("crash", "join", "leave")

Rows = list[dict[str, Any]]


class Sizes:
    """How much of it: everything, or what a minute allows."""

    def __init__(self, quick: bool, tiny: bool) -> None:
        self.agents = (4, 8) if tiny else (4, 16, 64) if quick else AGENTS
        self.hosts = 2_000 if tiny else 50_000 if quick else 1_000_000
        self.pages = 10 if tiny else 40
        self.long = [20, 40] if tiny else LONG[:3] if quick else LONG
        self.speeding = SPEEDING[:1] if tiny else SPEEDING[:2] if quick else SPEEDING
        self.boxes, self.box_pages = ((4,), 60) if tiny else ((12,), 600) if quick else ((12, 48), 900)
        self.speed_pages = (300, 600) if tiny else (2_000, 9_000)
        self.changes = 1 if tiny or quick else 5

    def times(self, agents: int) -> int:
        """How many changes of each kind in a group of that size."""
        return max(1, min(self.changes, 800 // agents))


def every_beat(agents: int, interval: float, lease: float) -> float:
    """Read all beats with every beat, however many there are."""
    return 0.0


def ring(sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Balance, and what one join and one crash move."""
    for agents in sizes.agents:
        yield scale_ring.measure(agents, sizes.hosts)
    yield scale_ring.measure(sizes.agents[-1], sizes.hosts, mixed=True)


def group(sizes: Sizes) -> Iterator[dict[str, Any]]:
    """How long all take to agree, at default settings, with and without the slower pace of large groups, and with the
    time-outs that the largest group should have."""
    paces: list[tuple[str, float, float, Apart]] = [
        ("every beat", 10.0, 15.0, every_beat),
        ("default", 10.0, 15.0, reads_apart),
        ("longer time-outs", 30.0, 45.0, reads_apart),
    ]
    for agents in sizes.agents:
        for pace, lease, failure, apart in paces:
            if apart is every_beat or apart(agents, 1.0, lease):  # up to a hundred agents they are the same
                timing = Timing(1.0, lease, failure, apart)
                figures = scale_group.measure(agents, timing, sizes.times(agents), SEED)
                yield {"pace": pace, **figures}


def crawl(sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Letters, records and bytes a page: of whole groups, by replication, by share of local links; in a long crawl."""
    for agents in sizes.agents:
        yield {"what": "group", **scale_crawl.measure(agents, sizes.pages, 1, 0.9, SEED)}
    few, middle, many = sizes.agents[0], sizes.agents[len(sizes.agents) // 2], sizes.agents[-1]
    for replication in (0, 2):
        yield {"what": "replication", **scale_crawl.measure(middle, sizes.pages, replication, 0.9, SEED)}
    yield {"what": "foreign", **scale_crawl.measure(middle, sizes.pages, 1, 0.75, SEED)}
    for agents in dict.fromkeys((few, middle, many)):
        for local in (0.9, 0.75):
            yield from ({"what": "long", **row} for row in scale_crawl.one(agents, sizes.long, local, SEED))


def mail(sizes: Sizes) -> Iterator[dict[str, Any]]:
    """What agents at full speed ask of Redis; of each master, by the number of masters and of mail slots; and what
    follows when ten crash and ten join."""
    for agents, flush in sizes.speeding:
        row = scale_mail.measure(agents, sizes.speed_pages, SEED, agents > scale_mail.TEN and flush == FLUSH, flush)
        received = scale_mail.received_shares(agents)
        row["masters"] = []
        for masters, slots in CLUSTERS:
            each = scale_mail.by_master(row["later"], received, RedisKeys(scale_mail.CRAWL, slots), masters)
            shares = {what: scale_mail.spread(one[at] for one in each) for at, what in enumerate(("commands", "bytes"))}
            row["masters"].append({"masters": masters, "slots": slots, **shares})
        for part in ("early", "later"):
            del row[part]["inboxes"], row[part]["own"]
        yield row


def boxes(sizes: Sizes) -> Iterator[dict[str, Any]]:
    """What waits in a whole group at full speed."""
    for agents in sizes.boxes:
        yield scale_mail.boxes(agents, sizes.box_pages, SEED)


def servers(sizes: Sizes) -> Iterator[dict[str, Any]]:
    """What each kind of command costs a real server here, us."""
    yield scale_mail.redis_costs()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a minute's worth")
    parser.add_argument("--tiny", action="store_true", help="a few seconds' worth, to see that it runs")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, comma separated (%(default)s)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures there; parts not run stay")
    parser.add_argument("--draw", metavar="DIR", type=Path, help=f"only draw the plots of {RESULTS.name}")
    args = parser.parse_args()
    if args.draw:
        import scale_plots

        scale_plots.draw(json.loads((args.json or RESULTS).read_text(encoding="utf-8")), args.draw)
        return
    sizes = Sizes(args.quick, args.tiny)
    figures: dict[str, Any] = {}
    if args.json and args.json.exists():
        figures = json.loads(args.json.read_text(encoding="utf-8"))
    for name in args.only.split(","):
        figures[name] = run(name, globals()[name], sizes)
        if args.json:
            where = {"python": platform.python_version(), "machine": platform.machine(), "seed": SEED}
            args.json.parent.mkdir(parents=True, exist_ok=True)
            args.json.write_text(json.dumps({**figures, **where}, indent=1) + "\n", encoding="utf-8")
    show(figures)


def run(name: str, part: Callable[[Sizes], Iterator[dict[str, Any]]], sizes: Sizes) -> Rows:
    """All rows of a part, with a line of progress for each."""
    rows: Rows = []
    before = time.process_time()
    for row in part(sizes):
        now = time.process_time()
        said = " ".join(f"{key}={row[key]:g}" if isinstance(row[key], float) else f"{key}={row[key]}" for key in row
                        if not isinstance(row[key], dict) and len(str(row[key])) < 20)  # fmt: skip
        print(f"[{name}, {now - before:.0f} s CPU] {said}"[:150], flush=True)
        rows.append(row)
        before = now
    return rows


def needed(agents: int, row: dict[str, Any], costs: dict[str, float] | None) -> list[str]:
    """Cores of Redis, masters, and dollars an hour, as text; empty where no server was measured."""
    if costs is None:
        return ["", "", ""]
    masters = scale_mail.masters_needed(row, agents, costs)
    cores = agents * scale_mail.cores_of(row["kinds_a_second"], costs)
    return [f"{cores:.2f}", f"{masters}", f"{masters * scale_mail.DOLLARS:.2f}"]


def show(figures: dict[str, Any]) -> None:
    """Print tables for people."""
    if rows := figures.get("ring"):
        table(
            "agents",
            ["most/fair", "mean dev. %", "join moves x least", "crash moves x least", "needless"],
            {
                f"{row['agents']}, capacity {row['capacities']}": [
                    f"{row['balance']['max_over_fair']:.2f}",
                    f"{row['balance']['deviation_per_cent']:.1f}",
                    f"{row['join']['times_least']:.2f}",
                    f"{row['crash_or_leave']['times_least']:.2f}",
                    str(row["join"]["needless"] + row["crash_or_leave"]["needless"]),
                ]
                for row in rows
            },
        )
    if rows := figures.get("group"):
        table(
            "agents, pace: s until the last one",
            [f"{kind}: {what}" for kind in KINDS for what in ("in view", "complete")] + ["read MB/s"],
            {
                f"{row['agents']}, {row['pace']}": [
                    *(f"{row[k][w]['max']:.1f}" for k in KINDS for w in ("last_entered", "last_complete")),
                    f"{row['read_bytes_a_second'] / 1e6:.2f}",
                ]
                for row in rows
            },
        )
    if rows := figures.get("crawl"):
        columns = (
            "urls_sent_a_page", "state_records_a_page", "letters_a_page", "records_a_discovery_letter",
            "records_a_state_letter", "letter_bytes_a_page", "answers_read_bytes_a_page",
        )  # fmt: skip
        table(
            "what, agents, t, local links, pages",
            [column.replace("_", " ") for column in columns],
            {
                f"{row['what']} {row['agents']} {row.get('replication', 1)} {row['local_links']} "
                f"{row.get('until_page', row.get('pages_an_agent'))}": [f"{row[column]:.2f}" for column in columns]
                for row in rows
            },
        )
    costs = (figures.get("servers") or [None])[0]
    if rows := figures.get("mail"):
        table(
            "agents, 500 pages/s each",
            [
                "commands a page",
                "kB a page",
                "commands/s",
                "MB/s",
                "cores of Redis",
                "masters",
                "$ an hour",
                "outbox, most",
            ],
            {
                f"{row['agents']}, flush {row['flush']:g} s, {part}": [
                    f"{row[part]['commands_a_page']:.2f}",
                    f"{row[part]['bytes_a_page'] / 1000:.2f}",
                    f"{row['agents'] * row[part]['commands_a_second']:,.0f}",
                    f"{row['agents'] * row[part]['bytes_a_page'] * row[part]['pages_a_second'] / 1e6:,.0f}",
                    *needed(row["agents"], row[part], costs),
                    f"{row[part]['outbox_most']:,}",
                ]
                for row in rows
                for part in ("early", "later")
            },
        )
        table(
            "agents, masters, mail slots: of the mean",
            ["commands, least", "most", "bytes, least", "most"],
            {
                f"{row['agents']}, {each['masters']}, {each['slots']}": [
                    f"{share:.2f}" for what in ("commands", "bytes") for share in each[what]
                ]
                for row in rows
                if row["flush"] == FLUSH
                for each in row["masters"]
            },
        )
        table(
            "s after ten have changed",
            ["new view", "all handed over", "outbox, most"],
            {
                f"{row['agents']}, {what.replace('_', ' ')}": [
                    f"{row[what]['entered']:.1f}", f"{row[what]['settled']:.1f}", f"{row[what]['outbox_most']:,}"
                ]
                for row in rows
                for what in ("crash_of_ten", "join_of_ten")
                if what in row
            },
        )  # fmt: skip
    if rows := figures.get("boxes"):
        table(
            "agents, 500 pages/s each, after s",
            ["letters in an inbox", "most", "records in an outbox", "most"],
            {
                f"{row['agents']}, {look['seconds']:.1f}": [
                    f"{look[f'{name}_{what}']:,.0f}" for name in ("inbox", "outbox") for what in ("mean", "most")
                ]
                for row in rows
                for look in row["looks"]
            },
        )


if __name__ == "__main__":
    main()
