"""How near the end is: the same figure in every place, of what agents have published."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_ubi.cli.monitor import ahead, document, render_report, render_status
from scrapy_ubi.web.crawl_view import view
from scrapy_ubi.web.metrics_routes import metrics_text
from tests.cli.monitor.test_render_status import agent, crawl
from tests.support.prometheus import Recorded

BIG = {"host": "big.example", "queued": 300, "delay": 9.0, "load": 1.0}
SMALL = {"host": "small.example", "queued": 40, "delay": 1.0}
FLAT = [[0, 700, 1000], [15, 650, 1000], [60, 500, 1000], [600, 0, 1000]]


def two(**more: Any) -> Any:
    one = agent("a1", counters={"unique": 700, "known": 1000, "queued": 300, "slowest": BIG}, curve=FLAT, **more)
    other = agent("a2", counters={"unique": 700, "known": 740, "queued": 40, "slowest": SMALL}, curve=FLAT, **more)
    return crawl(one, other)


def test_the_figure_is_that_of_the_slowest_host_of_all_agents_in_every_place() -> None:
    of = two()
    told = ahead.remaining_of(of)
    assert told is not None and told.host is not None
    assert (told.host.host, told.seconds) == ("big.example", 3000.0)
    for made in (document.status(of), document.report(of), view(of, True, [])):
        assert (made["remaining"]["seconds"], made["remaining"]["host"]["host"]) == (3000.0, "big.example")
        assert made["remaining"]["sentences"] == ahead.sentences(of)
    assert Recorded(metrics_text(of)).value("ubi_remaining_seconds") == 3000.0
    for lines in (render_status.live(of), render_report.report(of)):
        text = " ".join(lines)
        assert all(part in text for part in ("About 50 min 0 s to go", "The slowest host: big.example"))


def test_a_rest_of_the_slowest_host_counts_and_is_named() -> None:
    resting = {**SMALL, "rest": 600.0, "why": "retry-after"}
    of = crawl(agent("a1", counters={"unique": 700, "queued": 40, "in_flight": 0, "slowest": resting}, curve=FLAT))
    assert ahead.sentences(of)[0].startswith("About 10 min 40 s to go")
    assert "left alone for 10 min 0 s more (retry-after)" in ahead.sentences(of)[1]


@pytest.mark.parametrize(("setting", "named"), [({"serve": True}, "UBI_SERVE"), ({"recrawl": "x"}, "UBI_RECRAWL")])
def test_a_crawl_without_an_end_says_by_which_setting(setting: dict[str, Any], named: str) -> None:
    of = two(recrawl_rounds="none", **setting)
    assert ahead.sentences(of)[0].startswith(f"The crawl does not end by itself ({named}).")
    assert not Recorded(metrics_text(of)).of("ubi_remaining_seconds")


def test_a_crawl_with_a_limit_of_pages_ends_there() -> None:
    told = ahead.remaining_of(two(most_pages=210))
    assert told is not None
    assert told.pages == 10


def test_what_is_said_of_a_crawl_that_does_not_run() -> None:
    assert ahead.sentences(crawl(agent("a1"), finished="77 a1")) == ["Finished: nothing is left to fetch anywhere."]
    assert ahead.sentences(crawl(agent("a1", "left")))[0].startswith("Stopped: no agent works")
    assert ahead.remaining_of(crawl(agent("a1", "left"))) is None


@pytest.mark.parametrize("wrong", [[[1, 2]], [["a", 1, 2]], [[5, 1, 1], [1, 1, 1]], "x", [[0, 1, 1]] * 65])
def test_a_curve_that_does_not_hold_is_refused_with_its_profile(wrong: object) -> None:
    with pytest.raises(AssertionError, match="curve"):
        agent("a1", curve=wrong)


WAITS = {"kind": "rests", "names": ["a.example"], "number": 1, "until": 1_700_000_660.0, "more": "retry-after"}


def test_why_agents_fetch_nothing_is_said_once_for_all_with_the_same_reason_in_every_place() -> None:
    of = crawl(agent("a1", idle=WAITS), agent("a2", idle=WAITS), agent("a3"), agent("a4", "dead", idle=WAITS))
    (said,) = ahead.idle_sentences(of)
    assert said.startswith("a1, a2: Nothing is fetched: a.example: asked for a pause (Retry-After), until ")
    assert said.endswith("(10 min more).")
    assert document.status(of)["idle"] == view(of, True, [])["idle"] == [said]
    assert "Nothing is fetched" in " ".join(render_status.live(of))


def test_what_the_first_sentence_says_is_not_said_again() -> None:
    nothing = {"unique": 700, "queued": 0, "in_flight": 0}
    ends = crawl(agent("a1", counters=nothing, idle={"kind": "end"}), agent("a2", counters=nothing, idle=WAITS))
    assert ahead.sentences(ends)[0].startswith("Nearly done")
    assert [said[:3] for said in ahead.idle_sentences(ends)] == ["a2:"]
    serves = crawl(agent("a1", counters=nothing, recrawl_rounds="none", serve=True, idle={"kind": "seeds"}))
    assert ahead.sentences(serves)[0].startswith("The crawl waits for seeds (UBI_SERVE)")
    assert ahead.idle_sentences(serves) == []
