"""As many simulated crawls as minutes allow: `python -m tests.simulation.simulate --minutes 5 [--seed N] [--count
N]`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from .checkers import Violation
from .plans import Plan


def main() -> int:
    """Run; the exit status says whether every promise held."""
    parser = argparse.ArgumentParser(
        description="Simulated crawls of the production protocol, each drawn from its seed."
    )
    parser.add_argument("--seed", type=int, help="the first seed (default: from the clock)")
    parser.add_argument("--count", type=int, default=10**9, help="how many seeds at most")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long at most")
    options = parser.parse_args()
    first = options.seed if options.seed is not None else int(time.time()) * 1000
    end, told = time.monotonic() + 60 * options.minutes, time.monotonic()
    faults: Counter[str] = Counter()
    crawls = steps = bad = lossy = 0
    for seed in range(first, first + options.count):
        if time.monotonic() > end:
            break
        plan = Plan(seed)
        try:
            steps += plan.run().steps
        except (Violation, AssertionError) as violation:
            bad += 1
            print(
                f"{plan}\n  {str(violation)[:600]}\n"
                f"  repeat: python -m tests.simulation.simulate --seed {seed} --count 1"
            )
        crawls += 1
        lossy += plan.too_many_lost
        faults.update(kind for _, kind in plan.faults)
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"{crawls} crawls, {bad} violations, {steps:,} steps", flush=True)
    print(
        f"{crawls} crawls from seed {first}, {bad} violations, {steps:,} steps; "
        f"{lossy} lost more agents at once than there are copies; faults: {dict(faults.most_common())}"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
