"""Is a page still as little work as it was? Function calls, counted, beside those of the committed baseline.

    python benchmarks/guard.py [--accept] [--only short,mail]      (or: make guard, make guard ACCEPT=1)

No clock is involved: what is counted are calls of functions, Python's and C's, while fixed things are done, each in a
process of its own. A machine that is slow or busy counts the same. The cases:

    walk      a page of a crawl by one agent with its frontier on disk: 40 links, the unmodified spider
    short     the same by the short path
    frontier  a link that is offered to the frontier on disk, nine of ten known; a page that is popped and done
    mail      a URL told to its owner: at the finder, at the owner
    lanes     a page of the short path, by how its links are written: a port, an address, letters beyond ASCII ...

Counts of the two crawls come by component, as in page_profile.py: calls of a library count for the component that makes
them. Their pages come out of this process, as many in each as the others; what the mail of a group adds is in `mail`.

A count that is more than `--margin` (15 %) above its baseline is an error: the component is named, and the exit status
is 1. Of a crawl that concerns the sum and this package's components, where they grow by a hundredth of the sum at
least: some of their work comes by the clock, and falls on more pages or fewer. If the work is wanted, `--accept` makes
the new counts the baseline: commit it with the change. A count that has fallen by as much is told, so that the gain can
be kept in the same way. Counts depend on the minor version of Python, and slightly on those of Scrapy and of libraries:
guard.json has a baseline for each version of Python, made by `--accept` under it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, FrameType

import lanes
from components import DISTRIBUTION, INSTEAD, component
from rounds import table

from scrapy_ubi.ground import later

HERE = Path(__file__).resolve().parent
BASELINE = HERE / "guard.json"
PAGES = {"walk": (50, 100), "short": (100, 200), "lanes": (30, 30)}  # before the counting, and counted
CASES = ("walk", "short", "frontier", "mail", "lanes")
LANE = "lane "  # before the name of a shape of links
SLACK = 0.01  # of the sum of a crawl: a component that grows by less has not grown
ALL = "all"
SHOWN = 1.0  # calls a page: what is less is not shown, nor kept
OURS = DISTRIBUTION | (INSTEAD - {"download handler", "signals"}) | {ALL}  # in those two Scrapy has its part
Counts = dict[str, float]


# ---------------------------------------------------------------------- counting


class Calls:
    """Counts the calls of all threads between `start` and `stop`, by component; a component's own, and what it calls
    that is nobody's."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._owners: dict[CodeType, str | None] = {}
        threading.setprofile(self._event)  # for threads that start from now on
        self._on = False

    def start(self) -> None:
        self._on = True
        sys.setprofile(self._event)

    def stop(self) -> None:
        self._on = False
        sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, _: object) -> None:
        if self._on and event in ("call", "c_call"):
            owner = self._owners.get(frame.f_code, self)  # self: not met yet
            self.counts[owner if type(owner) is str else self._owner(frame)] += 1

    def _owner(self, frame: FrameType | None) -> str:
        while frame is not None:
            code = frame.f_code
            if code not in self._owners:
                self._owners[code] = component(f"{code.co_filename}:{code.co_qualname}")
            if (found := self._owners[code]) is not None:
                return found
            frame = frame.f_back
        return "other"


def calls_of(what: Callable[[], object], times: int) -> float:
    """Calls while this is done, by the number of things done."""
    calls = Calls()
    calls.start()
    what()
    calls.stop()
    return calls.counts.total() / times


# ---------------------------------------------------------------------- cases, each in a process of its own


def crawl(spider: str, shape: str = "") -> Counts:
    """Calls a page of a crawl, by component. `shape`: of its links, as lanes.py has them."""
    sys.path[:0] = [str(HERE / "crawl"), str(HERE.parent)]
    os.environ["SCRAPY_SETTINGS_MODULE"] = "bench.settings"
    import guard_web
    from scrapy.crawler import AsyncCrawlerProcess
    from scrapy.utils.project import get_project_settings
    from systems import AGENT, METHOD, SHORT

    from tests.support.derived import derived

    calls = guard_web.calls = Calls()
    warm, pages = PAGES["lanes" if shape else spider]
    if shape:
        guard_web.shape = lanes.Shape(shape)
    with tempfile.TemporaryDirectory(prefix="ubi-guard-") as directory:
        settings = get_project_settings()
        settings.setdict({**METHOD, **AGENT, **(SHORT if spider == "short" else {})})
        settings.setdict(
            {
                "DOWNLOAD_HANDLERS": {"http": "guard_web.Pages"},
                "GUARD": (warm, pages),
                "CONCURRENT_REQUESTS": 4,  # what is under way at the beginning and at the end is not the same
                "CLOSESPIDER_PAGECOUNT": warm + pages,
                "LOG_LEVEL": "ERROR",
                "LOGSTATS_INTERVAL": 0,
                "UBI_DIR": str(Path(directory) / "agent"),
                "UBI_PRIVATE_HOSTS": "allow" if shape else "refuse",
            }
        )
        # What would come by the clock comes only as often as the number of records asks for.
        with derived(flush_interval=60.0, flush_records=100):
            process = AsyncCrawlerProcess(settings)
            process.crawl(spider)
            process.start()
    counts = {name: count / pages for name, count in calls.counts.items() if name != "sampling itself"}
    return {**counts, ALL: sum(counts.values())}


def frontier() -> Counts:
    """Calls a link offered to the frontier on disk, and a page popped and done; flushes included."""
    import frontier_load
    import frontier_ours

    web = frontier_load.Web(200, seed=1)
    with tempfile.TemporaryDirectory(prefix="ubi-guard-") as directory:
        disk = frontier_ours.OnDisk("disk", Path(directory) / "frontier", None)
        for seeds in web.seeds(200):
            disk.offer(disk.prepare(seeds))
        offers = [disk.prepare(web.pages(100)) for _ in range(10)]
        count = sum(map(len, offers))
        counts = {"a link offered": calls_of(lambda: [disk.offer(each) for each in offers], count)}

        def pop() -> None:
            left = 1000
            while left:
                found = disk.pop(min(left, 50))
                assert found, "nothing is left to be popped"
                disk.finish(found)
                left -= len(found)

        counts["a page popped and done"] = calls_of(pop, 1000)
        counts["a record written, by a flush"] = calls_of(disk.settle, disk._pending)
    return counts


def letters() -> Counts:
    """Calls a URL that is told to its owner."""
    import mail

    one, other, hosts = mail.two_agents()
    told = mail.entries(0, hosts)
    sent: list[mail.Fields] = []
    return {
        "a URL told, at the finder": calls_of(lambda: sent.extend(mail.tell(one, told)), mail.URLS),
        "a URL told, at the owner": calls_of(lambda: mail.take(other, sent), mail.URLS),
    }


def count(case: str) -> Counts:
    """What a case counts, in this process."""
    if case in ("walk", "short"):
        return crawl(case)
    if case.startswith(LANE):
        return {ALL: crawl("short", case.removeprefix(LANE))[ALL]}
    return frontier() if case == "frontier" else letters()


# ---------------------------------------------------------------------- judging


def judge(case: str, now: Mapping[str, float], then: Mapping[str, float], margin: float) -> tuple[list[str], list[str]]:
    """Sentences about what has risen by more than the margin, and about what has fallen by as much."""
    risen, fallen = [], []
    names = sorted(now.keys() | then.keys())
    slack = SLACK * then[ALL] if ALL in then else 0.0
    for name in (name for name in names if name in OURS or ALL not in then):
        new, old = now.get(name, 0.0), then.get(name, 0.0)
        sentence = f"{case}, {name}: {new:.1f} calls, {old:.1f} in the baseline"
        if new > old * (1 + margin) and new > old + slack:
            risen.append(sentence)
        elif old > new * (1 + margin) and old > new + slack:
            fallen.append(sentence)
    return risen, fallen


def version() -> str:
    """The minor version of Python, by which baselines are kept."""
    return ".".join(platform.python_version_tuple()[:2])


def read_baselines() -> dict[str, dict[str, Counts]]:
    found: dict[str, dict[str, Counts]] = {}
    if BASELINE.exists():
        found = json.loads(BASELINE.read_text(encoding="utf-8"))
    return found


def child(case: str) -> Counts:
    """A case, counted in a process of its own, where hashes of texts are the same each time; lanes, each in one."""
    if case == "lanes":
        return {shape: child(LANE + shape)[ALL] for shape in lanes.SHAPES}
    command = [sys.executable, __file__, "--child", case]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "0"}, check=False
    )
    if done.returncode:
        sys.exit(f"guard.py: the case {case} failed:\n{done.stderr[-3000:]}")
    counts: Counts = json.loads(done.stdout.splitlines()[-1])
    return {name: round(each, 1) for name, each in counts.items() if each >= SHOWN}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES), metavar="CASES", help="cases to count (%(default)s)")
    parser.add_argument("--accept", action="store_true", help="make the counts of today the baseline")
    parser.add_argument("--margin", type=float, default=0.15, help="how much more is no error (%(default)s)")
    parser.add_argument("--child", metavar="CASE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.only = [name for name in args.only.split(",") if name]
    if unknown := set(args.only) - set(CASES):
        parser.error(f"no case {', '.join(sorted(unknown))}: there are {', '.join(CASES)}")
    return args


def show(case: str, now: Counts, then: Counts) -> None:
    def cell(value: float | None) -> str:
        return "" if value is None else f"{value:,.1f}"

    names = sorted(now.keys() | then.keys(), key=lambda name: -now.get(name, 0.0))
    table(
        f"calls, {case}",
        ["     now", "baseline"],
        {name: [cell(now.get(name)), cell(then.get(name))] for name in names},
    )


def main() -> None:
    args = options()
    if args.child:
        later.load("numpy")  # what is counted are pages of a crawl under way, which has it
        print(json.dumps(count(args.child)))
        return
    baselines = read_baselines()
    baseline = baselines.setdefault(version(), {})
    risen, fallen, missing = [], [], []
    for case in args.only:
        print(f"counting: {case}", file=sys.stderr, flush=True)
        now = child(case)
        show(case, now, baseline.get(case, {}))
        if args.accept:
            baseline[case] = now
        elif case not in baseline:
            missing.append(case)
        else:
            more, less = judge(case, now, baseline[case], args.margin)
            risen += more
            fallen += less
    if args.accept:
        BASELINE.write_text(json.dumps(baselines, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"\n{BASELINE.name} holds these counts now: commit it.")
    sys.exit(verdict(risen, fallen, missing, args.margin))


def verdict(risen: list[str], fallen: list[str], missing: list[str], margin: float) -> int:
    """Say what has changed; the exit status."""
    accept = "make guard ACCEPT=1"
    if fallen:
        print(f"\nLess work than in the baseline by more than {margin:.0%}; to keep it so, {accept}:")
        print("\n".join(f"  {each}" for each in fallen))
    if missing:
        print(f"\nNo baseline for Python {version()}: {', '.join(missing)}. {accept} makes one.")
    if risen:
        print(f"\nMore work than in the baseline by more than {margin:.0%}:")
        print("\n".join(f"  {each}" for each in risen))
        print(f"Find out what calls more (make profile tells what it costs). If it is wanted: {accept}, and commit it.")
    return 1 if risen or missing else 0


if __name__ == "__main__":
    main()
