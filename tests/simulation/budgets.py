"""What loads of each host have cost, beside what agents count of it: the law by which limits of bytes hold.

When an agent starts a load of a host, its count of the host is

* no more than all loads of it have cost until now: nothing is counted twice, so no limit is reached early;
* no less than the pages that this agent knows to be done have cost: nothing is forgotten, whoever has loaded them, so a
  limit is exceeded by no more than what was under way, or was lost with its agent and is fetched again.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from scrapy_ubi.protocol.host import HostState
from tests.simulation.checkers import Violation

if TYPE_CHECKING:
    from tests.simulation.process import Process
    from tests.simulation.world import World


class Budgets:
    """The budgets of one world. `on`: agents count what loads cost."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.on = Random(f"budgets {world.seed}").random() < 0.5  # draws from no other
        self._loaded = Counter[str]()  # by host: what all loads have cost
        self._cost: dict[int, int] = {}  # by key: what the page costs, where it was loaded
        self.checks = 0

    def loaded(self, process: Process, state: HostState, key: int) -> None:
        """A page was loaded, and its agent counts that."""
        if self.on:
            cost = self._cost[key] = 1 + key % 997
            self._loaded[state.host] += cost
            process.agent.keeping.spend(state, cost)
            self._world.happened["spent"] += 1

    def begin(self, process: Process, state: HostState) -> None:
        """A load of this host is to start."""
        if not self.on:
            return
        counted, loaded = state.notes.total_spent, self._loaded[state.host]
        known = sum(cost for key, cost in self._cost.items() if state.is_done(key) and key not in state.closing)
        self.checks += 1
        if not known <= counted <= loaded:
            what = "twice" if counted > loaded else "too little"
            raise Violation(
                f"{process.name} counts {what} of {state.host} at {self._world.now:.3f}: {counted}, where loads have "
                f"cost {loaded}, {known} of it for pages that it knows to be done; {state.notes}"
            )
