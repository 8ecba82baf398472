"""Items as they come, through kills, a join, a leave, a Redis that is emptied and receivers that are away: each item
reaches every receiver at least once, and once by its identity; what waits is bounded.

The moments are drawn; each run prints its seed. ITEM_RUNS is the number of runs.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from contextlib import closing

import pytest

from tests.faults.conftest import MakeGroup
from tests.faults.test_all_outputs import AGENTS, JOINED, SETTINGS, Faults, differs, judge_items, reached
from tests.support.receivers import Follower, Hook, Workers, key_file

pytestmark = [pytest.mark.processes, pytest.mark.faults]

RUNS = int(os.environ.get("ITEM_RUNS", "1"))
SEED = int(os.environ.get("ITEM_SEED", random.randrange(1_000_000)))
AWAY = float(os.environ.get("ITEM_AWAY", "4"))  # s for which the webhook's receiver is away
LENGTH, BATCH = 60, 25


@pytest.mark.parametrize("number", range(RUNS))
def test_each_item_reaches_each_receiver(make_group: MakeGroup, number: int) -> None:
    seed = SEED + number
    print(f"ITEM_SEED={seed} pytest -m faults tests/faults/test_items_as_they_come.py")
    draws = random.Random(seed)
    with closing(Hook()) as hook:
        group = make_group(hosts=20, pages=240, latency=draws.choice((0.01, 0.03)), **SETTINGS)
        key = key_file(group.place)
        stores = [
            "items",
            f"stream(length={LENGTH}, size=20000)",
            f'webhook("{hook.url}", batch={BATCH}, size=20000, key="{key}")',
        ]
        group.settings["UBI_STORES"] = ",".join(stores)
        follower, workers = Follower(group, "--from", "start", "--until-end"), Workers(group)
        follower.until_there(group)
        faults = Faults(group, draws)

        def flush(share: float) -> None:
            faults.told.append(f"flush at {share:.2f}")
            group.server.flush()

        def leave_hook(share: float) -> None:
            faults.told.append(f"hook away at {share:.2f}")
            hook.away = True
            threading.Timer(AWAY, lambda: setattr(hook, "away", False)).start()

        moments = (draws.uniform(0.1, 0.9), draws.uniform(0.1, 0.9))
        faults.run((moments[0], flush), (moments[1], leave_hook))
        workers.end()
        wanted = Counter(url for url, document in reached(group) if document.kind == "page")
        wrong = [
            *differs("followed", Counter[object](follower.end().once()), Counter[object](wanted)),
            *differs("stream", Counter[object](workers.got.once()), Counter[object](wanted)),
            *differs("webhook", Counter[object](hook.got.once()), Counter[object](wanted)),
            *(f"not signed: {name}" for name in hook.wrong),
            *faults.judge(),
        ]
        if workers.longest > LENGTH + len(AGENTS) * LENGTH // 10 + BATCH:
            wrong.append(f"the stream had {workers.longest} entries")
        if hook.largest > BATCH:
            wrong.append(f"a request had {hook.largest} items")
        print("; ".join(faults.told), follower.err.read_text(), workers.longest, hook.refused)
        assert not wrong, "\n".join([f"ITEM_SEED={seed}", "; ".join(faults.told), follower.err.read_text(), *wrong])


def test_a_newcomer_to_an_emptied_redis_gives_the_crawl_no_other_name(make_group: MakeGroup) -> None:
    """Those who know its name can write nothing then, as their items are not taken; one of them never comes back. What
    it has kept of its pages is collected with the rest."""
    with closing(Hook()) as hook:
        group = make_group(hosts=20, pages=240, latency=0.03, **SETTINGS)
        group.settings["UBI_STORES"] = f'items(size=2000),webhook("{hook.url}", key="{key_file(group.place)}")'
        group.start("a0", "a1")
        group.until_served(0.3)
        hook.away = True
        for name in ("a0", "a1"):
            group.until(lambda: group.said(name, "answers with 503"), f"{name} is held up")  # noqa: B023
        group.server.flush()
        group.start("a2")
        group.until(lambda: group.said("a2", JOINED), "a2 has joined")
        group.kill("a0")
        group.until(lambda: group.said("a1", "Dead: a0"), "a1 goes on without a0")
        hook.away = False
        group.until_ended("a1")
        group.until_ended("a2")
        assert not judge_items(group)
