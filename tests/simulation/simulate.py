"""As many simulated crawls as minutes allow: `python -m tests.simulation.simulate --minutes 5 [--seed N] [--count N]
[--jobs N] [--frontier memory|disk|mixed] [--loads N] [--shards N] [--rounds N] [--outside N] [--kinds KIND,KIND,...]
[--early] [--watched]`. At the end it says what was tried; every violation comes with the line that repeats it.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field

from tests.simulation.checkers import Violation
from tests.simulation.plans import KINDS, RARE_KINDS, Plan

BATCH = 25  # crawls a process does between two reports
EVERY = 10  # s between two lines of progress
STRIDE = 200  # events between two checks of all invariants; what is promised is watched at each event
Kinds = tuple[str, ...] | None
# Loads, shards, rounds, seeds, early, watched, slots; None: drawn.
Drawn = tuple[int | None, int | None, int | None, int | None, bool, bool | None, int | None]


@dataclass
class Figures:
    """What some crawls were; figures of several add up."""

    crawls: int = 0
    steps: int = 0
    pages: int = 0
    excused: int = 0  # crawls in which more disks were lost at once than there are copies
    alarms: int = 0  # crawls that said that they had lost more than their copies
    again: int = 0  # pages fetched again, with the excuse of a fault
    recrawls: int = 0  # crawls in which pages were visited again
    visits: int = 0  # and how many visits these were
    opened: int = 0  # crawls into which seeds came from outside
    seeds: int = 0  # and how many these were
    refused: int = 0  # of these, as the crawl was over
    in_slots: int = 0  # crawls whose mail was in slots of its own
    watched: int = 0  # crawls whose agents asked for how long Redis had forgotten nothing
    cut: int = 0  # crawls with hosts in shards
    several: int = 0  # crawls in which several loads of a host were open at once
    most: int = 0  # the most pages fetched again in one crawl
    faults: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        """Take in the figures of other crawls."""
        for name in (
            "crawls",
            "steps",
            "pages",
            "excused",
            "alarms",
            "again",
            "several",
            "cut",
            "recrawls",
            "visits",
            "opened",
            "seeds",
            "refused",
            "watched",
            "in_slots",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.most = max(self.most, other.most)
        self.faults += other.faults
        self.happened += other.happened
        self.violations += other.violations

    def one(self, seed: int, on_disk: bool, kinds: Kinds, drawn: Drawn) -> None:
        """Run one crawl."""
        loads, shards, rounds, outside, early, watched, slots = drawn
        plan = Plan(
            seed,
            kinds=kinds,
            on_disk=on_disk,
            loads=loads,
            shards=shards,
            rounds=rounds,
            outside=outside,
            early=early,
            watched=watched,
            slots=slots,
        )
        try:
            plan.run(STRIDE)
        except (Violation, AssertionError) as violation:
            what = str(violation)[:600] or "an invariant does not hold"
            frontier = "disk" if on_disk else "memory"
            repeat = f"python -m tests.simulation.simulate --seed {seed} --count 1 --frontier {frontier}"
            # What was drawn is left out: with a number given, other things may be drawn after it.
            given = {"loads": loads, "shards": shards, "rounds": rounds, "outside": outside, "slots": slots}
            repeat += "".join(f" --{name} {number}" for name, number in given.items() if number is not None)
            repeat += " --early" if early else ""
            repeat += "" if watched is None else " --watched" if watched else " --no-watched"
            repeat += f" --kinds {','.join(kinds)}" if kinds is not None else ""
            self.violations.append(f"{plan}\n  {what}\n  repeat: {repeat}")
        world = plan.world
        self.crawls += 1
        self.steps += world.steps
        self.pages += world.referee.fetched.total()
        self.excused += plan.too_many_lost
        self.alarms += any(process.alarm for process in world.all)
        self.again += world.referee.again
        self.most = max(self.most, world.referee.again)
        self.faults.update(kind for time, kind in plan.faults if time < world.now)
        self.happened.update(world.happened)
        self.several += world.referee.most_open > 1
        self.cut += plan.shards > 1
        self.recrawls += plan.rounds > 0
        self.watched += plan.watched
        self.in_slots += plan.slots > 1
        if (outside_of := world.outside) is not None:
            self.opened += 1
            self.seeds += outside_of.written
            self.refused += len(outside_of.refused)
        self.visits += sum(count for (_, generation), count in world.referee.visited.items() if generation > 1)

    def __str__(self) -> str:
        faults = ", ".join(f"{kind} {n:,}" for kind, n in self.faults.most_common())
        happened = ", ".join(f"{what} {n:,}" for what, n in self.happened.most_common())
        return (
            f"{self.crawls:,} crawls, {len(self.violations)} violations, {self.steps:,} steps, {self.pages:,} pages\n"
            f"  judged fully: {self.crawls - self.excused:,}; more disks lost at once than copies (P3 excused): "
            f"{self.excused:,}\n"
            f"  said that more agents were lost than there are copies: {self.alarms:,}\n"
            f"  pages fetched again with the excuse of a fault: {self.again:,}, at most {self.most} in a crawl\n"
            f"  several loads of a host at once: in {self.several:,}; hosts in shards: in {self.cut:,}\n"
            f"  with re-crawl: {self.recrawls:,}, {self.visits:,} visits of pages visited before\n"
            f"  with seeds from outside: {self.opened:,}, {self.seeds:,} seeds, {self.refused:,} after the end\n"
            f"  with mail in slots, of which servers are away, slow, full or emptied: {self.in_slots:,}\n"
            f"  with a watched Redis, which forgets when agents come: {self.watched:,}\n"
            f"  faults: {self.faults.total():,}: {faults or 'none'}\n"
            f"  and by the way: {happened or 'nothing'}"
        )


def prepare() -> None:
    """What one process does first: a world is one big circle, and the collector is to look at nothing else."""
    gc.disable()
    gc.collect()
    gc.freeze()


def batch(seeds: range, end: float, frontier: str, kinds: Kinds, drawn: Drawn) -> Figures:
    """Crawls one after the other, until `end` (s, monotonic)."""
    figures = Figures()
    for seed in seeds:
        if time.monotonic() > end:
            break
        figures.one(seed, frontier == "disk" or (frontier == "mixed" and seed % 4 == 3), kinds, drawn)
        gc.collect()  # in one go: cheaper than to look for circles all the time
    return figures


def batches(seeds: range, end: float, frontier: str, jobs: int, kinds: Kinds, drawn: Drawn) -> Iterator[Figures]:
    """The figures of all batches, as they come."""
    parts = (seeds[i : i + BATCH] for i in range(0, len(seeds), BATCH))
    if jobs == 1:
        for part in parts:
            if time.monotonic() > end:
                return
            yield batch(part, end, frontier, kinds, drawn)
        return
    with ProcessPoolExecutor(jobs, initializer=prepare) as pool:
        first = zip(parts, range(2 * jobs), strict=False)
        waiting = {pool.submit(batch, part, end, frontier, kinds, drawn) for part, _ in first}
        while waiting:
            done = next(as_completed(waiting))
            waiting.remove(done)
            yield done.result()
            if time.monotonic() < end and (part := next(parts, None)):
                waiting.add(pool.submit(batch, part, end, frontier, kinds, drawn))


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(text.split(","))
    for kind in kinds:
        if kind not in KINDS and kind not in RARE_KINDS:
            raise argparse.ArgumentTypeError(f"there is no kind of fault {kind!r}")
    return kinds


def main() -> int:
    """Run; the exit status says whether every promise held."""
    parser = argparse.ArgumentParser(
        description="Simulated crawls of the production protocol, each drawn from its seed."
    )
    parser.add_argument("--seed", type=int, help="the first seed (default: from the clock)")
    parser.add_argument("--count", type=int, default=10**9, help="how many seeds at most")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long at most")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument(
        "--frontier",
        choices=("memory", "disk", "mixed"),
        default="mixed",
        help="with the frontier in memory, on a simulated disk, or one crawl in four on disk (the default)",
    )
    parser.add_argument(
        "--kinds", type=_kinds, help=f"only these faults, commas between: {', '.join((*KINDS, *RARE_KINDS))}"
    )
    parser.add_argument("--loads", type=int, help="loads of a host that may be open at once (default: drawn)")
    parser.add_argument("--shards", type=int, help="into which every other host is cut (default: drawn)")
    parser.add_argument("--rounds", type=int, help="how often each page is visited again (default: drawn)")
    parser.add_argument("--outside", type=int, help="seeds that come from outside at any time (default: drawn)")
    parser.add_argument("--slots", type=int, help="over which the mail is spread (default: drawn)")
    parser.add_argument(
        "--watched",
        action=argparse.BooleanOptionalAction,
        help="agents start without a wait where Redis is known to have forgotten nothing (default: drawn)",
    )
    parser.add_argument(
        "--early",
        action="store_true",
        help="small crawls whose agents are killed in the first seconds, alone or all at once, some of them for good "
        "(20,000 take half an hour on two cores)",
    )
    options = parser.parse_args()
    first = options.seed if options.seed is not None else int(time.time()) * 1000
    begun = told = time.monotonic()
    total = Figures()
    prepare()
    seeds, end = range(first, first + options.count), begun + 60 * options.minutes
    numbers = (options.loads, options.shards, options.rounds, options.outside)
    kinds, drawn = options.kinds, (*numbers, options.early, options.watched, options.slots)
    for figures in batches(seeds, end, options.frontier, options.jobs, kinds, drawn):
        for violation in figures.violations:
            print(violation, flush=True)
        total.add(figures)
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            rate = total.crawls / (told - begun)
            print(f"{total.crawls:,} crawls, {len(total.violations)} violations, {rate:.1f} a second", flush=True)
    print(f"From seed {first}: {total}")
    return 1 if total.violations else 0


if __name__ == "__main__":
    sys.exit(main())
