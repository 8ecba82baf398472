"""What people should see to: in the terminal, in JSON and on the page alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scrapy_ubi.agent.profile.profile import Profile
from scrapy_ubi.agent.profile.summed_up import SummedUp
from scrapy_ubi.cli.monitor import ahead, crawl_warnings, document, render_report, render_status
from scrapy_ubi.web.crawl_view import view
from tests.cli.monitor.test_render_status import agent, crawl

KINDS: dict[str, dict[str, Any]] = {
    "blocked": {},
    "seeds": {"seeds_waiting": 7},
    "mail": {"mail_away": tuple(f"a{number}" for number in range(9))},
    "keys": {"odd_keys": ("ubi:{c}:beats\x1b[2J",)},
    "gone": {"summed_up": SummedUp(3, 1, Profile("all"))},
    "unreadable": {"sum_trouble": "not JSON", "unreadable": 1},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_warning_stands_in_every_place(kind: str) -> None:
    agents = {"blocked": [agent("a1", state="blocked")], "seeds": [agent("a1", state="left")]}
    of = replace(crawl(*agents.get(kind, [agent("a1")])), **KINDS[kind])
    (said,) = crawl_warnings.sentences(of)
    assert said.isprintable()
    for made in (document.status(of), view(of, True, [])):
        assert made["warnings"] == [said]
    for lines in (render_status.live(of), render_status.agents(of), render_report.report(of)):
        assert " ".join(said.split()) in " ".join(" ".join(lines).split())


def test_a_crawl_without_a_fault_has_no_warning() -> None:
    assert crawl_warnings.sentences(crawl(agent("a1"))) == []


def test_warnings_are_few_whatever_the_number_of_agents_and_of_keys() -> None:
    many = [replace(agent(f"a{number}"), trouble=("profile: not JSON",)) for number in range(1000)]
    names = tuple(f"a{number}" for number in range(1000))
    of = replace(crawl(*many), unreadable=1000, mail_away=names, odd_keys=names)
    said = crawl_warnings.sentences(of)
    assert len(said) == 2 + crawl_warnings.MOST_NAMED
    assert said[-1].startswith("1000 values in Redis are unreadable: a0: profile: not JSON; ")
    assert said[-1].endswith("; ...")


def test_sentences_of_idle_agents_that_are_left_out_are_counted() -> None:
    rests = {"kind": "rests", "number": 1, "until": 1_700_000_660.0, "more": "retry-after"}
    of = crawl(*(agent(f"a{name}", idle={**rests, "names": [f"{name}.example"]}) for name in "1234567"))
    assert view(of, True, [])["idle"] == [*ahead.idle_sentences(of)[:5], "... and 2 more"]
