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
from tests.faults.test_all_outputs import AGENTS, SETTINGS, Faults, differs, reached
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
        group._settings["UBI_STORES"] = ",".join(stores)
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
