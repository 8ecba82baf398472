"""What it costs to tell costly pages from others, beside what lexbor takes: ordinary shapes, and hostile ones.

    python benchmarks/costly.py [--bytes 200000] [--hostile]

Each page is made so large. *looked at*: what the parser looks at, as it is told (`urls.links.costly.survey`);
*estimate*: ms of `urls.links.costly.is_costly`; *lexbor*: ms of parsing the page. With `--hostile` also pages that are
refused are parsed, which takes seconds each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from scrapy_ubi.urls.links.costly import is_costly, survey
from scrapy_ubi.urls.links.page import Page, eased
from tests.urls.links.shapes import HOSTILE, ORDINARY


def spent(call: Callable[[], object]) -> float:
    """Milliseconds of CPU."""
    began = time.process_time()
    call()
    return (time.process_time() - began) * 1e3


def main() -> None:
    """Print a line for each shape."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=200_000)
    parser.add_argument("--hostile", action="store_true")
    args = parser.parse_args()
    print(f"{'shape':32} {'bytes':>9} {'looked at':>12} {'estimate':>9} {'lexbor':>9}")
    for name, shape in (ORDINARY | HOSTILE).items():
        unit = max(1, len(shape(101)) - len(shape(100)))
        page = shape(max(1, args.bytes // unit))
        refused = is_costly(page)
        steps = min(survey(eased(page)).steps, 10**12)
        lexbor = "refused" if refused and not args.hostile else f"{spent(lambda page=page: Page(page)):.1f}"
        print(f"{name:32} {len(page):9} {steps:12} {spent(lambda page=page: is_costly(page)):9.1f} {lexbor:>9}")


if __name__ == "__main__":
    main()
