"""The page of `scrapy ubi report --html`: it stands alone, says what is known, and believes nobody."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from html.parser import HTMLParser
from typing import Any

import pytest

from scrapy_ubi.agent.report.timeline import Event, Sample, row
from scrapy_ubi.cli.monitor import html_report
from scrapy_ubi.cli.monitor.html_report import render_page
from scrapy_ubi.cli.monitor.html_sections import MOST_AGENTS, MOST_EVENTS, ReportFacts
from scrapy_ubi.cli.monitor.merged_history import History, merged
from scrapy_ubi.cli.monitor.render_report import measures_of
from scrapy_ubi.cli.monitor.status import CrawlStatus
from tests.cli.monitor.test_render_status import agent, crawl

NOW = 1_800_000_000
HOSTILE = "<img src=x onerror=alert(1)>\"'--></style></svg><script>alert(2)</script>\x1b[2J\u202e"


def answer(begin: int = 0, events: list[Event] | None = None, **more: Any) -> dict[str, Any]:
    samples = [
        Sample(NOW + at, pages=at, done=at, forwarded=at // 2, queued=600 - at, known=600, hosts=5,
               bytes=at * 1000, lag=0.1, exchange=0.2, state="crawling", **more)
        for at in range(begin, 600, 10)
    ]  # fmt: skip
    return {"rows": [row(one) for one in samples], "events": [row(one) for one in events or []], "step": 0.0}


def host(name: str, done: int = 10, queued: int = 3, failed: int = 0) -> dict[str, Any]:
    return {"agent": "a1", "host": name, "done": done, "queued": queued, "failed": failed}


def facts(status: CrawlStatus | None = None, history: History | None = None, **more: Any) -> ReportFacts:
    status = status or crawl(agent("a1"), agent("a2", counters={"hosts": 20}))
    if history is None:
        history = merged({"a1": answer(gaps=40, least=1.25), "a2": answer(200, [Event(NOW + 300, "dead", "a3")])})
    return ReportFacts(status, measures_of(status), history, **({"hosts": [host("h1.example")]} | more))


class Tags(HTMLParser):
    """What a browser would see of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "line", "rect", "polyline", "polygon", "circle"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_tells_what_is_known() -> None:
    text = render_page(facts(), "1.2")
    for title in ("Pages and queue over time", "Balance against capacity", "Hosts by size", "Failures by reason",
                  "Politeness", "Communication overhead", "Exchanges and event loops", "Agents",
                  "What happened when"):  # fmt: skip
        assert f"<h2>{title}</h2>" in text
    assert "40 gaps between two loads" in text
    assert "none was shorter than the host's delay" in text
    assert "1.25 delays" in text
    assert "h1.example" in text
    assert ">dead</td>" in text
    assert "figure 1 (section 4.3)" in text


def test_the_page_stands_alone() -> None:
    text = render_page(facts(), "1.2")
    assert "http://" not in text
    assert "https://" not in text
    assert "url(" not in text
    seen = Tags(text)
    assert seen.open == []
    names = {name for _, attributes in seen.tags for name in attributes}
    assert not names & {"src", "href", "style", "srcset", "action"}
    assert not any(name.startswith("on") for name in names)
    assert not {tag for tag, _ in seen.tags} & {"script", "link", "img", "iframe", "object", "base", "form", "a"}


def test_its_policy_allows_the_style_within_and_nothing_else() -> None:
    text = render_page(facts(), "1.2")
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert policy == html_report.policy()


def test_nothing_from_outside_is_markup() -> None:
    hostile = agent("a1", counters={"failed": {HOSTILE: 3}, "failed_at": {HOSTILE: {HOSTILE: 2}}},
                    host_name=HOSTILE, arguments={HOSTILE: HOSTILE})  # fmt: skip
    status = CrawlStatus(HOSTILE, (hostile, agent("a2")), now=1_700_000_060.0)
    history = merged({HOSTILE: answer(0, [Event(NOW, "joined", HOSTILE[:60], HOSTILE), Event(NOW, "dead", "b")])})
    text = render_page(facts(status, history, hosts=[host(HOSTILE)]), HOSTILE)
    plain = Tags(render_page(facts(), "1"))
    assert {tag for tag, _ in Tags(text).tags} <= {tag for tag, _ in plain.tags}
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "alert(1)&gt;" in text


def test_a_gap_that_was_too_short_is_said_loudly() -> None:
    text = render_page(facts(history=merged({"a1": answer(gaps=40, short=3, least=0.5)})), "1")
    assert '<span class="warn">3 were shorter than the delay</span>' in text


def test_without_a_history_the_rest_is_there() -> None:
    text = render_page(facts(history=History(), hosts=[]), "1")
    assert "<h2>Agents</h2>" in text
    assert "<h2>Balance against capacity</h2>" in text
    assert "Pages and queue" not in text
    assert "Hosts by size" not in text


def test_of_one_agent_there_is_no_balance_and_no_overhead() -> None:
    alone = crawl(agent("a1", counters={"letters_sent": 0, "forwarded": 0}))
    text = render_page(facts(alone, merged({"a1": answer()})), "1")
    assert "Balance" not in text.split("<footer>")[0].split("</style>")[1]
    assert "Communication overhead" not in text
    assert "1 agent." in text


def test_a_crawl_without_pages_or_agents_is_shown() -> None:
    Tags(render_page(facts(CrawlStatus("c", now=1.0), History(), hosts=[]), "1"))
    Tags(render_page(facts(crawl(agent("a1", counters=dict.fromkeys(("pages", "done", "unique", "hosts"), 0)))), "1"))


def test_the_page_of_a_thousand_agents_is_bounded() -> None:
    agents = [agent(f"a{number}", counters={"hosts": 10 + number % 7}) for number in range(1000)]
    events = [Event(NOW + number, "joined", f"a{number}") for number in range(900)]
    text = render_page(
        facts(crawl(*agents), merged({"a1": answer(0, events)}), hosts=[host(f"h{n}") for n in range(999)]), "1"
    )
    assert len(text) < 400_000
    assert text.count('class="bar a"') <= MOST_AGENTS + 40
    assert f"The last {MOST_EVENTS} of 900." in text


@pytest.mark.parametrize("lost", [0, 2])
def test_lost_agents_are_named_first(lost: int) -> None:
    text = render_page(facts(crawl(agent("a1", counters={"lost_agents": lost}))), "1")
    assert ("2 agents were lost" in text) == bool(lost)
