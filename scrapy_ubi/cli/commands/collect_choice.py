"""Which outputs the command line means, for the commands that collect them; and what they say of what is left out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from scrapy.settings import BaseSettings

from scrapy_ubi.cli.commands import directories
from scrapy_ubi.cli.commands.crawl_choice import given_crawl
from scrapy_ubi.cli.commands.redis_connection import UbiNotFound, listed
from scrapy_ubi.outputs import collector as collecting
from scrapy_ubi.outputs.collector import CollectTally, Out

BAR = 30  # characters


class Chosen(NamedTuple):
    """The outputs of one run of a crawl, and which others there are."""

    outs: list[Out]
    run: str
    other_runs: list[str]

    @property
    def agents(self) -> int:
        """How many agents they are of."""
        return len({out.agent for out in self.outs})


def choose(settings: BaseSettings, opts: argparse.Namespace) -> Chosen:
    """The outputs that are meant. Raises UbiNotFound."""
    outs = _outs(settings, opts)
    runs = collecting.runs_of(outs)
    run = opts.run or runs[0]
    chosen = [out for out in outs if out.run == run]
    if not chosen:
        raise UbiNotFound(f"There is no run {run!r} in these directories; there are {listed(runs)}.")
    return Chosen(chosen, run, [one for one in runs if one != run])


def _outs(settings: BaseSettings, opts: argparse.Namespace) -> list[Out]:
    """The outputs of one crawl."""
    crawl = given_crawl(settings, opts)
    if opts.dir:
        paths, looked = [Path(path) for path in dict.fromkeys(opts.dir)], ", ".join(opts.dir)
    else:
        places, looked = directories.find_directories(settings, crawl)
        paths = [place.path for place in places]
    outs = [out for out in collecting.find_outputs(paths) if crawl is None or out.crawl == crawl]
    crawls = sorted({out.crawl for out in outs})
    if len(crawls) > 1:
        raise UbiNotFound(f"There are outputs of several crawls in {looked}: {listed(crawls)}. Name one with --crawl.")
    if not outs:
        of = f"of crawl {crawl!r} " if crawl is not None else ""
        raise UbiNotFound(
            f"There are no outputs {of}in {looked}: name the agents' directories with --dir (UBI_STORES says what is "
            "kept)."
        )
    return outs


def remarks(kind: str, tally: CollectTally, chosen: Chosen) -> list[str]:
    """What is not among what was collected."""
    said = []
    if chosen.other_runs:
        said.append(f"Left out are outputs of other runs of this crawl: {', '.join(chosen.other_runs)} (--run).")
    if tally.open_parts:
        said.append(f"{tally.open_parts} parts are still written by running agents: their {kind} are not among these.")
    if tally.damaged:
        said.append(f"{tally.damaged} parts are damaged: what stands behind the damage is not among these.")
    return said


def bar() -> Callable[[int, int], None]:
    """A progress bar, where standard error is a terminal."""
    if not sys.stderr.isatty():
        return lambda done, total: None

    def draw(done: int, total: int) -> None:
        share = done / total if total else 1.0
        filled = "#" * int(BAR * share)
        end = "\n" if done >= total else ""
        print(f"\r[{filled:<{BAR}}] {share:4.0%}", end=end, file=sys.stderr, flush=True)

    return draw
