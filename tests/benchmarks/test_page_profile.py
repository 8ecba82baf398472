"""The profile of a page: whose a sample is."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(FOLDER))  # the benchmarks are scripts, which find each other beside themselves

import components  # noqa: E402
import page_profile  # noqa: E402

SITE = "/venv/lib/python3.11/site-packages/"
STANDARD = "/usr/lib/python3.11/"


def test_a_sample_belongs_to_the_innermost_component() -> None:
    stack = [
        f"{STANDARD}json/encoder.py:JSONEncoder.encode",
        "/work/scrapy_ubi/adapter/requests/codec.py:Codec.encode",
        "/work/scrapy_ubi/adapter/components/scheduler.py:UbiScheduler.enqueue_request",
        f"{SITE}scrapy/core/engine.py:ExecutionEngine.crawl",
    ]
    assert components.owner_of(stack) == "Request as text and back"
    assert components.owner_of(stack[2:]) == "our scheduler"
    assert components.owner_of(stack[3:]) == "engine"
    assert components.owner_of(stack[:1]) == "other"


def test_special_files_come_before_their_folders() -> None:
    places = {
        f"{SITE}scrapy/core/downloader/handlers/http11.py:f": "download handler",
        f"{SITE}scrapy/core/downloader/__init__.py:f": "downloader (slots)",
        f"{SITE}scrapy/utils/request.py:fingerprint": "URL pipeline (normal form, key)",
        f"{SITE}scrapy/utils/defer.py:f": "async glue (deferreds, tasks)",
        "/work/scrapy_ubi/frontier/rocks.py:f": "frontier: disk",
        "/work/scrapy_ubi/protocol/lane.py:f": "mail",
        "/work/scrapy_ubi/protocol/agent.py:f": "protocol (the rest)",
        "/work/scrapy_ubi/agent/node.py:f": "node",
    }
    assert {place: components.component(place) for place in places} == places


def test_figures_of_agents_are_put_together_by_page() -> None:
    run = {
        "pages": 10,
        "process": 0.05,
        "main": 0.04,
        "collections": 0.01,
        "threads": {"asyncio_0": 0.01},
        "stacks": [[0.03, ["/work/scrapy_ubi/agent/node.py:Node.turn"]]],
    }
    sums = page_profile.Sums([run, run])
    assert (sums.pages, round(sums.process, 6)) == (20, 5.0)
    assert {name: round(ms, 6) for name, ms in sums.components.items()} == {"garbage collection": 1.0, "node": 3.0}
    assert {name: round(ms, 6) for name, ms in sums.threads.items()} == {"asyncio": 1.0}
