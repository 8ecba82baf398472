"""How many URLs a frontier takes, how fast and in how much memory: ours on disk and in memory, beside Scrapy's.

    python benchmarks/frontier.py [--quick] [--only LIST] [--rounds 3] [--json FILE]

The same links are offered, 40 a page, nine of ten known, until N URLs of N / 100 hosts are known; then they are popped
in polite order (frontier_load.py has the web, frontier_ours.py and frontier_peers.py say what an offer and a pop are):

    disk, bloom      scrapy_ubi's frontier on disk, with the exact seen table and with Bloom filters
    memory           scrapy_ubi's frontier in memory
    scrapy           Scrapy's default queue and duplicate filter, in memory
    jobdir, sqlite   the same with JOBDIR, and with JOBDIR and Scrapy's sqlite queues
    scrapy-redis     its scheduler, priority queue and duplicate filter, on a Redis of its own

Every run is a process of its own, on one core; figures are CPU seconds of it unless they say otherwise, and what Redis
spends on the other core is counted, too. Peers get at most `--limit` seconds of CPU for their offers (twice that by the
clock, for those that wait for the disk) and stop where they are then.
The frontiers on disk are killed at the end and opened again by another process. The parts, for `--only`:

    rounds   all systems, 10,000 URLs, the order rotating, `--rounds` times: for ratios
    peers    the peers with 100,000 and 1,000,000 URLs
    ours     ours with 100,000, 1,000,000 and `--known` (10,000,000) URLs
    pops     ours on disk, filled with `--known` new URLs and popped: in a tenth of the time of `ours`
    worst    ours, each link to another host, drawn from all that is known
    hosts    ours, Scrapy and JOBDIR, 100,000 URLs of 100 and of 10,000 hosts

Rows of an existing `--json` FILE stay unless they are run again, so parts can be run one by one. It takes about an hour
and 4 GB of disk; `--quick` two minutes. Needs Linux, two cores, redis-server and `pip install -e '.[bench]'`. What is
committed comes from

    python benchmarks/frontier.py --json benchmarks/results/frontier.json
    python benchmarks/frontier.py --only '' --json benchmarks/results/frontier.json \\
        --doc benchmarks/results/frontier.md --plot docs/explanation
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from processes import free_port, redis_program

OURS = ("disk", "bloom", "memory")
PEERS = ("scrapy", "jobdir", "sqlite", "scrapy-redis")
ON_DISK = ("disk", "bloom", "jobdir", "sqlite")
PARTS = ("rounds", "peers", "ours", "pops", "worst", "hosts")
IDENTITY = ("system", "known", "hosts", "mix", "round", "fill")
Job = dict[str, Any]


def plan(args: argparse.Namespace, part: str) -> Iterator[Job]:
    """The runs of a part, in order."""
    if part == "rounds":
        for turn in range(args.rounds):
            for name in rotated((*OURS, *PEERS), turn):
                yield job(name, 2_000 if args.quick else 10_000, turn=turn + 1, limit=30)
    elif part == "peers":
        for known in (5_000,) if args.quick else (100_000, 1_000_000):
            for name in PEERS if known <= 100_000 else ("scrapy", "jobdir"):
                yield job(name, known, limit=20 if args.quick else args.limit)
    elif part == "ours":
        for known in (10_000, 50_000) if args.quick else sorted({100_000, 1_000_000, args.known}):
            for name in OURS if known <= 1_000_000 else OURS[:2]:
                yield job(name, known)
    elif part == "pops":
        for name in OURS[:2]:
            yield job(name, 20_000 if args.quick else args.known, fill=True)
    elif part == "worst":
        for known in (20_000,) if args.quick else (100_000, 1_000_000):
            for name in OURS:
                yield job(name, known, mix="uniform")
    elif part == "hosts":
        known = 10_000 if args.quick else 100_000
        for hosts in (known // 1000, known // 10):
            for name in ("disk", "memory", "scrapy", "jobdir"):
                yield job(name, known, hosts=hosts, limit=20 if args.quick else args.limit)


def job(
    name: str,
    known: int,
    *,
    hosts: int = 0,
    mix: str = "crawl",
    turn: int = 0,
    limit: float = 3600,
    fill: bool = False,
) -> Job:
    """One run; `hosts` 0: one for every hundred URLs. `fill`: only new links are offered, so that there is something to
    pop soon; their rate says nothing.
    """
    return {
        "fill": fill,
        "system": name,
        "known": known,
        "hosts": hosts or max(10, known // 100),
        "mix": mix,
        "round": turn,
        "pops": min(known // 2, 500_000),
        "limit": limit,
        "seed": 7,
        "disk": name in ON_DISK,
    }


def rotated(names: Sequence[str], by: int) -> Sequence[str]:
    """The same names, beginning with another one."""
    by %= len(names)
    return (*names[by:], *names[:by])


# ---------------------------------------------------------------------- one run


def run(job: Job, args: argparse.Namespace) -> dict[str, Any]:
    """A run in a process of its own; with ours on disk another one that opens what is left."""
    with contextlib.ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="ubi-frontier-", dir=args.directory))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        job = {**job, "directory": str(directory / "agent"), "core": args.core}
        (directory / "agent").mkdir()
        if job["system"] == "scrapy-redis":
            job |= stack.enter_context(redis_server(directory, 1 if args.core == 0 else 0))
        row = child(job)
        if job["system"] in ("disk", "bloom"):
            row["reopened"] = child({**job, "reopen": True})
        return {**row, "taken_at": time.strftime("%Y-%m-%d %H:%M")}


def child(job: Job) -> dict[str, Any]:
    """What a child process finds; its progress is shown."""
    command = [sys.executable, __file__, "--child", json.dumps(job)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    row: dict[str, Any] | None = None
    shown = time.monotonic()
    try:
        for line in process.stdout:
            found = json.loads(line)
            row = found.get("row", row)
            if "progress" in found and time.monotonic() > shown + 10:
                shown = time.monotonic()
                progress(job, found["progress"])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    if row is None:
        raise RuntimeError(f"no figures of {job['system']} with {job['known']:,} URLs: see above")
    return row


def progress(job: Job, sample: dict[str, Any]) -> None:
    """A line about a run that is under way."""
    rate = sample["offers"] / sample["cpu"] if sample["cpu"] else 0.0
    print(
        f"  {job['system']}: {sample['known']:,} of {job['known']:,} known, {rate:,.0f} offers/s,"
        f" {sample['memory'] / 2**20:.0f} MB, {sample['files']} files",
        file=sys.stderr,
        flush=True,
    )


@contextlib.contextmanager
def redis_server(directory: Path, core: int) -> Iterator[dict[str, int]]:
    """A Redis of its own, on another core."""
    import redis

    port = free_port()
    command = ["taskset", "-c", str(core), *redis_program(), "--port", str(port), "--dir", str(directory)]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        with redis.Redis(port=port) as client:
            end = time.monotonic() + 20
            while True:
                try:
                    empty = client.info("memory")["used_memory"]
                    break
                except redis.RedisError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.02)
        yield {"redis_port": port, "redis_pid": server.pid, "redis_empty": empty}
    finally:
        server.kill()
        server.wait()


# ---------------------------------------------------------------------- the whole


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts to run (%(default)s)")
    parser.add_argument("--systems", default=",".join((*OURS, *PEERS)), help="systems to run (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the part of that name (%(default)s)")
    parser.add_argument("--known", type=int, default=10_000_000, help="most URLs, for ours on disk (%(default)s)")
    parser.add_argument("--limit", type=float, default=180.0, help="CPU s a run of a peer may take (%(default)s)")
    parser.add_argument("--directory", metavar="DIR", help="where frontiers on disk are made (the machine's choice)")
    parser.add_argument(
        "--core", type=int, default=0, help="the core that is measured; Redis gets another (%(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: is it in order?")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures there, too")
    parser.add_argument("--doc", metavar="FILE", help="put the tables there, too, between the marks for them")
    parser.add_argument(
        "--plot", metavar="DIR", type=Path, help="draw the plots into this folder (SVG; needs matplotlib)"
    )
    parser.add_argument("--child", metavar="JOB", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.only = [name for name in args.only.split(",") if name]
    if unknown := set(args.only) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    return args


def merged(rows: list[dict[str, Any]], row: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows with this one in place of an older one of the same run."""
    same = [row.get(key, False) for key in IDENTITY]
    return [*(one for one in rows if [one.get(key, False) for key in IDENTITY] != same), row]


def measure(args: argparse.Namespace, figures: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Run what is asked for; the figures so far after every run."""
    if args.only:
        figures["link"] = child({"system": "link", "known": 0, "core": args.core, "seed": 1})
    for part in args.only:
        for one in plan(args, part):
            if one["system"] not in args.systems.split(","):
                continue
            begun = time.monotonic()
            row = run(one, args)
            print(
                f"[{part}, {time.monotonic() - begun:.0f} s] {row['system']}, {row['samples'][-1]['known']:,} URLs:"
                f" {row['offers'] / row['offer_cpu']:,.0f} offers/s, {row['pops'] / row['pop_cpu']:,.0f} pops/s,"
                f" {row['memory'] / row['samples'][-1]['known']:.1f} B of memory a URL {row['stopped']}",
                file=sys.stderr,
                flush=True,
            )
            figures["rows"] = merged(figures["rows"], row)
            yield figures


def write(path: Path, figures: dict[str, Any]) -> None:
    where = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = ",\n  ".join(json.dumps(row) for row in figures["rows"])
    head = json.dumps({**where, "link": figures["link"]}, indent=1)[:-2]
    path.write_text(f'{head},\n "rows": [\n  {rows}\n ]\n}}\n', encoding="utf-8")


def main() -> None:
    args = options()
    if args.child:
        import frontier_run

        frontier_run.main(json.loads(args.child))
        return
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # JOBDIR has a file open for every host
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # whoever ends us, nothing is left running
        signal.signal(number, signal.default_int_handler)
    figures: dict[str, Any] = {"link": {}, "rows": []}
    if args.json and args.json.exists():
        figures = json.loads(args.json.read_text(encoding="utf-8"))
    try:
        for found in measure(args, figures):
            if args.json:
                write(args.json, found)
    except KeyboardInterrupt:
        sys.exit(130)
    import frontier_show

    frontier_show.show(figures, args.doc, args.plot)


if __name__ == "__main__":
    main()
