"""Hostile PDFs: how long each takes, what the child that reads it takes, and how long the loop is blocked meanwhile.

    python benchmarks/pdfs.py [--count 50] [--seed 0] [--json FILE]

Each file is read as a crawl reads it: awaited in an asyncio loop, by the child of `urls/links/handlers`. The aims are 3
s and 600 MB for each, and a loop that is never blocked for more than 50 ms.

*wall* is the time from asking to the answer, a new child's start included where the one before has ended. *peak* is the
most resident memory of the child while it reads this file (VmHWM, looked at every 10 ms). *block* is the longest time
between two turns of the loop, beyond the millisecond that it sleeps; *own* is the part of it in which the loop's thread
had the processor: the rest it has waited for others on the machine. A last line has the same of a loop without a PDF.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from rounds import save, table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scrapy_ubi.urls.links.handlers.pdf_child import PdfAnswer, PdfChild, PdfQueue
from tests.support import pdfs

TICK = 0.001  # s that the loop sleeps between two turns
SAMPLE = 0.01  # s between two looks at the child's memory
AIMS = {"wall": 3.0, "peak": 600.0, "block": 50.0}


class Watch:
    """What is seen of the loop and of the child until it is stopped."""

    def __init__(self, child: PdfChild) -> None:
        self._child = child
        self.peak = self.block = self.own = 0.0
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        sampled = 0.0
        self._reset()
        while True:
            before, cpu = time.monotonic(), time.thread_time()
            await asyncio.sleep(TICK)
            now = time.monotonic()
            if now - before - TICK > self.block:
                self.block, self.own = now - before - TICK, time.thread_time() - cpu
            if now - sampled > SAMPLE:
                sampled = now
                self.sample()

    def _reset(self) -> None:
        """Let the peak begin again."""
        try:
            Path(f"/proc/{self._child.pid}/clear_refs").write_text("5")
        except OSError:
            return

    def sample(self) -> None:
        """Look at the child's memory."""
        try:
            status = Path(f"/proc/{self._child.pid}/status").read_text()
        except OSError:
            return
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                self.peak = max(self.peak, int(line.split()[1]) / 1024)

    async def stop(self) -> None:
        self.sample()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def run(count: int, seed: int) -> list[dict[str, Any]]:
    """The rows of the table."""
    child = PdfChild()
    queue = PdfQueue(child)
    rows = []
    plain = pdfs.plain([pdfs.URL])
    assert await queue.read(plain) == PdfAnswer([pdfs.URL])
    for name, data in pdfs.hostile(count, seed):
        watch = Watch(child)
        await asyncio.sleep(0.02)
        began = time.monotonic()
        answer = await queue.read(data)
        wall = time.monotonic() - began
        await watch.stop()
        told = f"refused: {answer.refused}" if answer.refused else f"cut: {answer.cut}" if answer.cut else "read"
        rows.append(row(name, len(data), wall, watch, len(answer.links), told))
        print(f"{len(rows)}/{count} {name}: {wall:.2f} s, {told}", file=sys.stderr, flush=True)
    assert await queue.read(plain) == PdfAnswer([pdfs.URL]), "the next PDF is read"
    watch = Watch(child)
    began = time.monotonic()
    await asyncio.sleep(10)
    await watch.stop()
    rows.append(row("(no PDF, 10 s)", 0, time.monotonic() - began, watch, 0, ""))
    queue.close()
    return rows


def row(name: str, size: int, wall: float, watch: Watch, links: int, told: str) -> dict[str, Any]:
    seen = {"wall": wall, "peak": watch.peak, "block": watch.block * 1000, "own": watch.own * 1000}
    return {"name": name, "kb": size / 1000, **seen, "links": links, "told": told}


def cells(one: dict[str, Any]) -> list[str]:
    """One line of the table."""
    figures = [
        f"{one['kb']:.0f}",
        f"{one['wall']:.2f}",
        f"{one['peak']:.0f}",
        f"{one['block']:.1f}",
        f"{one['own']:.1f}",
    ]
    return [*figures, str(one["links"]), one["told"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=50, help="files (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the files that are broken at random (%(default)s)")
    parser.add_argument("--json", help="write the figures to this file")
    args = parser.parse_args()
    rows = asyncio.run(run(args.count, args.seed))
    table(
        "file",
        ["   kB", "wall s", "peak MB", "block ms", "own ms", " links", "         outcome"],
        {one["name"]: cells(one) for one in rows},
    )
    most = {name: max(one[name] for one in rows[:-1]) for name in ("wall", "peak", "block", "own")}
    print(f"\nseed {args.seed}; most: " + ", ".join(f"{name} {value:.2f}" for name, value in most.items()))
    for name, aim in AIMS.items():
        print(f"{name}: {'met' if most[name] < aim else 'MISSED'} ({most[name]:.2f}, aim {aim:g})")
    save(args.json, {"rows": rows, "most": most, "seed": args.seed})


if __name__ == "__main__":
    main()
