"""The last words of `scrapy ubi run`: pages that failed, what was lost, what the agents have warned of."""

from __future__ import annotations

from typing import Any

from scrapy_ubi.agent.profile.profile import Profile
from scrapy_ubi.cli.commands.run import as_concluded
from scrapy_ubi.cli.commands.run_words import MOST_WARNINGS, failures, losses, warnings
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.cli.supervisor.restarts import OK, Conclusion


def crawl(*agents: dict[str, Any]) -> CrawlStatus:
    names = (f"a{number}" for number in range(len(agents)))
    found = [AgentStatus(name, "left", profile=Profile(name, **one)) for name, one in zip(names, agents, strict=True)]
    return CrawlStatus("shop:walk", tuple(found))


def test_where_nothing_failed_nothing_is_said_of_it() -> None:
    assert failures(crawl({"counts": {"pages": 9}})) == [] == losses(crawl({}))


def test_pages_that_failed_are_said_with_their_reasons_and_hosts() -> None:
    status = crawl(
        {"failed": {"host/dead": 2}, "failed_at": {"host/dead": {"dead.example": 2}}}, {"failed": {"http/404": 1}}
    )
    assert failures(status) == [
        "3 pages failed.",
        "  2 pages: the host does not answer (dead.example)",
        "  1 page: answered with status 404",
    ]
    concluded = Conclusion(OK, "over")
    assert as_concluded(status, concluded) == (failures(status), concluded)


def test_pages_whose_request_could_not_travel_are_said_to_be_lost_those_of_all_agents_together() -> None:
    (sentence,) = losses(crawl({"failed": {"codec/cb_kwargs": 40}}, {"failed": {"codec/cb_kwargs": 5, "http/404": 1}}))
    assert sentence.startswith("Lost, of the crawl: 45 pages whose request could not travel")
    (sentence,) = losses(crawl({"counts": {"untravelled": 2}}, {"counts": {"untravelled": 1}}))
    assert sentence.startswith("Lost, of the crawl: 3 requests too large")


def test_what_agents_have_warned_of_is_said_once_and_losses_are_not_said_again() -> None:
    lost = losses(crawl({"failed": {"codec/meta": 1}}))[0]
    assert warnings([["One.", lost], ["One.", "\x1b[2JTwo."]], "logs") == [
        "What the agents have said:",
        "  One.",
        "  \\x1b[2JTwo.",
    ]
    assert warnings([[lost], []], "logs") == []


def test_of_many_warnings_the_first_are_said_and_where_the_others_are() -> None:
    said = warnings([[f"number {number}" for number in range(MOST_WARNINGS + 3)]], "x/logs")
    assert len(said) == MOST_WARNINGS + 2 and said[-1] == "  3 more are in x/logs."
