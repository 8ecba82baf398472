"""What a million pages cost: pages a second and dollars, for one core and for a machine of eight, from CPU time a page.

    python benchmarks/net/bench.py --systems scrapy16,scrapy500,walk,short,fast \
        --json benchmarks/results/net.json && python benchmarks/price.py --write    # on a quiet machine: half an hour

CPU time a page (user and system, of the crawler alone) is that of the testbed (net/bench.py, its figures in
results/net.json): TLS, DNS, compression, real sizes of pages. What a page costs more in a group of agents is what
peers.py has measured of four agents beside one (results/peers.json), for as many links as pages of the testbed have: a
group talks of links, whatever the size of a page. A core is taken to be busy for `--busy` of the time. Prices are those
of `MACHINES`, or of `--machine NAME=CORES,DOLLARS_AN_HOUR`. Nothing is run here.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "explanation" / "price.md"
BEGIN, END = "<!-- tables of price.py -->\n", "<!-- end of tables -->\n"

# Name: cores, dollars an hour; on demand, Linux, us-east-1, without disks and outgoing traffic, as listed in 2025.
MACHINES = {"AWS c7a.2xlarge (8 vCPUs, each a core)": (8, 0.4106), "AWS c7i.2xlarge (8 vCPUs, 4 cores)": (4, 0.357)}
# System of net/bench.py: label, and those of peers.py whose ratio is the cost of a group.
SYSTEMS = {
    "scrapy16": ("plain Scrapy, 16 at once", None),
    "scrapy500": ("plain Scrapy, 500 at once", None),
    "walk": ("unmodified spider", ("walk1", "walk4")),
    "short": ("short path", ("short1", "short4")),
    "fast": ("short path, `UBI_FAST`", ("fast1", "fast4")),
}


LINKS = 87 / 40  # links of a page of the testbed, on average, and of a page of peers.py


def group_cost(peers: dict[str, Any], pair: tuple[str, str] | None) -> float:
    """CPU ms that a page of the testbed costs four agents more than one, by the median of paired runs; 0 without a
    group."""
    if pair is None:
        return 0.0
    one, four = pair
    rounds = [row for part in peers.values() if "rounds" in part for row in part["rounds"]]
    more = [row[four]["cpu_ms"] - row[one]["cpu_ms"] for row in rounds if one in row and four in row]
    return statistics.median(more) * LINKS


def dollars_a_million(dollars_an_hour: float, pages_a_second: float) -> float:
    return dollars_an_hour / 3600 / pages_a_second * 1_000_000


def tables(net: dict[str, Any], peers: dict[str, Any], machines: dict[str, tuple[int, float]], busy: float) -> str:
    """As Markdown."""
    columns = "".join(f" {name}: pages/s | $ a million |" for name in machines)
    lines = [
        f"| | CPU ms a page (least-most) | pages/s of a core | ms more in a group |{columns}",
        "| --- |" + " ---: |" * (3 + 2 * len(machines)),
    ]
    for name, (label, pair) in SYSTEMS.items():
        found = [row[name]["cpu_ms"] for row in net["rounds"] if name in row]
        if not found:
            continue
        cpu, more = statistics.median(found), group_cost(peers, pair)
        cells = [f"{cpu:.1f} ({min(found):.1f}-{max(found):.1f})", f"{1000 * busy / cpu:.0f}", f"{more:.1f}"]
        for cores, dollars in machines.values():
            rate = cores * 1000 * busy / (cpu + more)
            cells += [f"{rate:.0f}", f"{dollars_a_million(dollars, rate):.2f}"]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", type=Path, default=RESULTS / "net.json", help="figures of net/bench.py (%(default)s)")
    parser.add_argument("--peers", type=Path, default=RESULTS / "peers.json", help="of peers.py (%(default)s)")
    parser.add_argument("--busy", type=float, default=0.85, help="share of the time a core computes (%(default)s)")
    parser.add_argument("--machine", action="append", default=[], metavar="NAME=CORES,DOLLARS_AN_HOUR")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    args = parser.parse_args()
    machines = dict(MACHINES)
    for text in args.machine:
        name, _, numbers = text.rpartition("=")
        cores, _, dollars = numbers.partition(",")
        machines[name] = int(cores), float(dollars)
    net, peers = (json.loads(file.read_text(encoding="utf-8")) for file in (args.net, args.peers))
    found = tables(net, peers, machines, args.busy)
    print(found)
    if args.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{found}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
