"""How a crawl went: what agents have noted as events of the crawl, and what was seen of it."""

from __future__ import annotations

import threading

from scrapy_ubi.agent.report.timeline import WHATS
from scrapy_ubi.web.page_history import SeenHistory, join_events, shown_event

LIMIT = 10.0


def test_what_agents_noted_together_is_one_event() -> None:
    noted = [
        *({"time": 10 + n, "what": "fenced", "who": f"a{n}", "why": "", "by": []} for n in range(7)),
        {"time": 20, "what": "dead", "who": "a9", "why": "", "by": []},
        {"time": 500, "what": "fenced", "who": "a1", "why": "", "by": []},
    ]
    made = join_events(noted)
    assert [(one["time"], one["what"], one["who"]) for one in made] == [
        (10, "fenced", ""),
        (20, "dead", "a9"),
        (500, "fenced", "a1"),
    ]
    assert made[0]["why"] == "7 agents: a0, a1, a2, a3, a4 and 2 more"


def test_what_agents_noted_is_told_in_sentences() -> None:
    def text(what: str, who: str = "", why: str = "") -> str:
        return str(shown_event({"time": 1, "what": what, "who": who, "why": why})["text"])

    assert text("settled", why="2 agents") == "The agents agree on one view (2 agents)."
    assert text("joined", "a1", "again") == "Agent a1 has joined (again)."
    assert text("fenced", why="2 agents: a1, a2") == "2 agents: a1, a2"
    assert all(text(what, "a1").endswith(".") for what in WHATS)


def test_what_was_seen_is_told_while_more_is_seen() -> None:
    seen = SeenHistory()
    made = {"time": 0.0, "measures": {"totals": {"pages": 1, "queued": 1}, "pages_per_second": 1.0, "failed": {}}}
    faults: list[BaseException] = []
    over = threading.Event()

    def tell() -> None:
        try:
            while not over.is_set():
                seen.since(0.0)
        except RuntimeError as error:
            faults.append(error)

    teller = threading.Thread(target=tell)
    teller.start()
    for number in range(20_000):
        seen.look({**made, "time": float(number)})
    over.set()
    teller.join(LIMIT)
    assert not faults
