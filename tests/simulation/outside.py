"""Seeds that come into a simulated crawl from outside, and the checker of what is said of them.

Some come at any moment, more while agents are about to end the crawl: that is when one may fall between the last look
and the end. A seed is *taken in* where Redis takes it, or *refused*, as the crawl is over. The checker knows:

* what was acknowledged is fetched, as P3 has it;
* what was taken in is acknowledged before the crawl is over, unless Redis has forgotten it before;
* what was refused came after the end.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.simulation.checkers import Violation

if TYPE_CHECKING:
    from tests.simulation.process import Process
    from tests.simulation.world import World

MOST = 12  # seeds of a crawl
MOMENT = 0.3  # s, within which seeds come once an agent sees the end


class Outside:
    """Writes seeds into this world, `number` of them at any time before `end` (s)."""

    def __init__(self, world: World, number: int, end: float) -> None:
        self._world, self._random = world, Random(f"outside {world.seed}")
        self.taken_in: dict[int, str] = {}  # by number
        self.acknowledged: set[int] = set()
        self.lost: set[int] = set()  # by Redis, before they were acknowledged
        self.refused: list[str] = []
        self.written = 0
        for _ in range(number):
            world.at(self._random.uniform(0.5, end), self.write)

    def write(self) -> None:
        """A seed comes, if Redis is there, and anybody whom it may concern."""
        world = self._world
        if self.written >= MOST or not world.redis.up or not (world.living or world.awaited):
            return
        self.written += 1
        url = self._random.choice(world.web.urls())
        number = world.redis.append_seed(url)
        if number is not None:
            self.taken_in[number] = url
            return
        self.refused.append(url)
        if not world.redis.control.get("finished"):
            raise Violation(f"seeds: {url} was refused at {world.now:.2f}, and the crawl is not over")

    def near_the_end(self) -> None:
        """An agent is about to ask whether the crawl is over."""
        if self.written < MOST and self._random.random() < 0.2:
            self._world.at(self._world.now + self._random.uniform(0, MOMENT), self.write)

    def answered(self, numbers: list[int]) -> None:
        """An exchange that acknowledges these has arrived."""
        self.acknowledged |= {number for number in numbers if number in self.taken_in}

    def forgotten(self) -> None:
        """Redis has forgotten everything, or what came last: what is not acknowledged may be gone."""
        self.lost |= self.taken_in.keys() - self.acknowledged

    @property
    def sure(self) -> list[str]:
        """What must be fetched."""
        return [url for number, url in self.taken_in.items() if number in self.acknowledged]

    def over(self, process: Process) -> None:
        """This agent has been told that the crawl is over."""
        redis = self._world.redis
        if redis.control.get("finished") and (left := set(redis.seeds) - self.lost):
            what = [self.taken_in.get(number) for number in sorted(left)]
            raise Violation(f"seeds: over for {process.name} at {self._world.now:.2f}, and unanswered are {what[:3]}")

    def judge(self) -> None:
        """Nobody is left. Where the last have gone or crashed before the end, and where Redis has forgotten the end, a
        seed waits for the next start."""
        left, referee = self.taken_in.keys() - self.acknowledged - self.lost, self._world.referee
        if left and "finished" in referee.ends.values() and not referee.anything:
            raise Violation(f"seeds: never answered: {[self.taken_in[number] for number in sorted(left)][:3]}")
