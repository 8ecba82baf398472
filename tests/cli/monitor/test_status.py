"""What people see of a crawl whose keys were written by hand, whole and broken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import redis

from scrapy_ubi.agent.profile.profile import Profile
from scrapy_ubi.agent.profile.summed_up import sum_of
from scrapy_ubi.cli.monitor import document, render_status
from scrapy_ubi.cli.monitor.render_report import measures_of
from scrapy_ubi.cli.monitor.status import find_crawls, read_status, server_time, shown_state
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.transport.contract import SUMMED_UP
from scrapy_ubi.web.crawl_view import view
from tests.cli.monitor.by_hand import CRAWL, CrawlByHand, beat, incarnation, profile
from tests.support.server import Server


@pytest.fixture
def crawl(server: Server) -> Iterator[CrawlByHand]:
    with server.client() as client:
        yield CrawlByHand(client)


def test_status_of_nothing_is_absent(crawl: CrawlByHand) -> None:
    status = read_status(crawl.client, CRAWL)
    assert (status.exists, status.state, status.agents) == (False, "absent", ())


def test_status_reads_agents_mail_and_control(crawl: CrawlByHand) -> None:
    crawl.agent("a1")
    crawl.agent("a2", {"state": "waiting"})
    crawl.client.hset(crawl.keys.control, "run", "77")
    for _ in range(3):
        crawl.post("a1", {"x": "y"})
    crawl.refuse("a2", reason="not JSON")
    status = read_status(crawl.client, CRAWL)
    assert [(a.name, a.state, a.inbox, a.dead_letters) for a in status.agents] == [
        ("a1", "crawling", 3, 0),
        ("a2", "waiting", 0, 1),
    ]
    assert (status.state, status.run, status.views, status.unreadable) == ("running", "77", 1, 0)
    first = status.agents[0]
    assert first.profile is not None and first.profile.count("pages") == 100
    assert first.age is not None and 0 <= first.age < 10
    assert (first.replicas, first.incarnation) == (200, incarnation("a1"))


def test_status_of_a_finished_crawl_stays(crawl: CrawlByHand) -> None:
    crawl.agent("a1", {"state": "finished", "updated": 1.0}, flags="L")
    crawl.finish()
    status = read_status(crawl.client, CRAWL)
    assert (status.state, status.agents[0].state) == ("finished", "finished")
    assert status.members == list(status.agents)


def test_a_new_run_shows_nothing_of_the_one_before_from_its_first_beat_on(crawl: CrawlByHand) -> None:
    for name in ("a1", "a2"):
        crawl.agent(name, {"state": "finished", "counters": {"pages": 500}}, flags="L")
    crawl.finish()
    assert measures_of(read_status(crawl.client, CRAWL)).totals["pages"] == 1000
    crawl.client.hset(crawl.keys.beats, "a1", beat("a1", incarnation="0000bbbb"))
    status = read_status(crawl.client, CRAWL)
    assert (status.state, [(one.name, one.state) for one in status.agents]) == ("starting", [("a1", "joining")])
    assert measures_of(status).totals["pages"] == 0
    assert document.status(status)["finished"] is False and view(status, True, [])["state"] == "starting"
    assert "starting" in render_status.live(status)[0] and "500" not in " ".join(render_status.live(status))
    crawl.client.hset(crawl.keys.control, "run", "78")  # it is named, and the end is one of another
    crawl.agent("a1", {"incarnation": "0000bbbb", "counters": {"pages": 3}}, incarnation="0000bbbb")
    assert read_status(crawl.client, CRAWL).state == "running"


def test_status_of_a_crawl_nobody_works_at_is_stopped(crawl: CrawlByHand) -> None:
    crawl.agent("a1", {"state": "left", "counters": {"hosts": 0}}, flags="L")
    crawl.agent("a2", {"updated": 1.0})
    status = read_status(crawl.client, CRAWL)
    assert (status.state, [a.state for a in status.agents]) == ("stopped", ["left", "silent"])
    assert [a.name for a in status.gone] == ["a1"]


def test_figures_of_agents_that_left_together_stay(crawl: CrawlByHand) -> None:
    """Nobody was there to take their hosts over: they were summed up as if somebody had."""
    crawl.agent("a1", {"state": "left", "started": 100.0, "updated": 200.0}, flags="L")
    crawl.agent("a2", {"state": "left", "started": 101.0, "updated": 190.0}, flags="L")
    status = read_status(crawl.client, CRAWL)
    assert (status.state, status.gone, len(status.members)) == ("stopped", [], 2)
    crawl.agent("a3", {"state": "left", "started": 195.0, "updated": 300.0}, flags="L")  # may have taken over a2's
    status = read_status(crawl.client, CRAWL)
    assert [agent.name for agent in status.members] == ["a1", "a3"]
    crawl.agent("a4")
    assert [agent.name for agent in read_status(crawl.client, CRAWL).members] == ["a4"]


def test_status_knows_the_sets_of_arguments(crawl: CrawlByHand) -> None:
    crawl.agent("a1", {"arguments": {"site": "a"}})
    crawl.agent("a2", {"arguments": {"site": "a"}})
    crawl.agent("a3")
    assert read_status(crawl.client, CRAWL).arguments == [{"site": "a"}]
    crawl.agent("a4", {"arguments": {"site": "b"}})
    assert read_status(crawl.client, CRAWL).arguments == [{"site": "a"}, {"site": "b"}]


def test_status_agent_declared_dead_by_another_is_dead_until_it_is_new(crawl: CrawlByHand) -> None:
    crawl.agent("a1", dead=(incarnation("a2"),))
    crawl.agent("a2")
    assert [a.state for a in read_status(crawl.client, CRAWL).agents] == ["crawling", "dead"]
    crawl.agent("a2", incarnation="feedbeef")
    assert [a.state for a in read_status(crawl.client, CRAWL).agents] == ["crawling", "crawling"]


def test_an_agent_alone_is_never_fenced(crawl: CrawlByHand) -> None:
    crawl.agent("a1", flags="f")
    assert [a.state for a in read_status(crawl.client, CRAWL).agents] == ["waiting"]
    crawl.agent("a2")
    assert [a.state for a in read_status(crawl.client, CRAWL).agents] == ["fenced", "crawling"]


def test_status_counts_different_views(crawl: CrawlByHand) -> None:
    crawl.agent("a1")
    crawl.agent("a2", digest="f" * 16)
    assert read_status(crawl.client, CRAWL).views == 2


def test_status_garbage_is_unreadable_and_counted(crawl: CrawlByHand) -> None:
    crawl.agent("good")
    crawl.client.hset(crawl.keys.agents, mapping={"bad": b"\x80\x04pickle", "deep": b"[" * 10_000, "both": "{}"})
    crawl.client.hset(crawl.keys.beats, mapping={"both": "nonsense", "\x1b[2J": beat("x"), b"\xff": "y"})
    status = read_status(crawl.client, CRAWL)
    states = {agent.name: agent.state for agent in status.agents}
    assert states == {
        "good": "crawling",
        "bad": "unreadable",
        "deep": "unreadable",
        "both": "unreadable",
        "\\x1b[2J": "joining",
        "\\xff": "unreadable",
    }
    assert status.unreadable == 5
    assert {agent.name: len(agent.trouble) for agent in status.agents if agent.trouble} == {
        "bad": 1,
        "deep": 1,
        "both": 2,
        "\\xff": 1,
    }


def test_status_keys_of_another_type_are_no_obstacle(crawl: CrawlByHand) -> None:
    crawl.agent("a1")
    crawl.client.set(crawl.keys.control, "a string")
    crawl.client.set(crawl.keys.inbox("a1"), "a string")
    crawl.client.delete(crawl.keys.beats)
    crawl.client.rpush(crawl.keys.beats, "a list")
    status = read_status(crawl.client, CRAWL)
    assert [(a.name, a.state, a.inbox) for a in status.agents] == [("a1", "crawling", 0)]


def test_status_names_every_key_of_another_type(crawl: CrawlByHand) -> None:
    crawl.agent("a1")
    keys = crawl.keys
    streams = [keys.seeds, keys.seeded, keys.inbox("a1"), keys.dead("a1")]
    for key in [*streams, keys.control, keys.slots, keys.start, keys.acks("a1")]:
        crawl.client.set(key, "a string")
    crawl.client.delete(keys.pulses)
    crawl.client.rpush(keys.pulses, "a list")
    odd = [*streams, keys.control, keys.slots, keys.start, keys.acks("a1"), keys.pulses]
    assert sorted(read_status(crawl.client, CRAWL).odd_keys) == sorted(odd)


def test_a_finished_crawl_says_when_it_ended(crawl: CrawlByHand) -> None:
    crawl.agent("a1", {"state": "finished"}, flags="L")
    crawl.finish()
    crawl.client.hset(crawl.keys.control, "finished_at", f"{server_time(crawl.client) - 150:.3f}")
    status = read_status(crawl.client, CRAWL)
    assert re.search(r": finished at [0-9-]+ [0-9:]+ \(2 min \d+ s ago\), 0 of 1 agents", render_status.live(status)[0])
    assert document.status(status)["finished_at"] == pytest.approx(status.now - 150, abs=5)
    for unreadable in ("nan", "soon", f"{status.now + 999:.3f}"):
        crawl.client.hset(crawl.keys.control, "finished_at", unreadable)
        status = read_status(crawl.client, CRAWL)
        assert ": finished, 0 of 1 agents" in render_status.live(status)[0]
        assert document.status(status)["finished_at"] is None


def test_find_crawls_knows_colons_and_ignores_others(crawl: CrawlByHand) -> None:
    for name in ("demo:web", "demo:web:2", "plain"):
        CrawlByHand(crawl.client, name).agent("a1")
    crawl.post("a1", {"x": "y"})
    crawl.client.hset("ubi:", "x", "y")
    crawl.client.hset("ubi:{}:agents", "x", "y")
    crawl.client.hset("ubi:old:agents", "x", "y")
    crawl.client.hset("other:agents", "x", "y")
    crawl.client.set("ubi:{string}:agents", "x")
    assert find_crawls(crawl.client) == ["demo:web", "demo:web:2", "plain"]


def test_find_crawls_of_a_server_that_does_not_look_for_types(
    crawl: CrawlByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl.agent("a1")
    crawl.post("a1", {"x": "y"})
    crawl.client.set("ubi:{string}:agents", "x")
    execute = redis.Redis.execute_command

    def as_redis_5(client: redis.Redis, *words: object, **options: object) -> object:
        if words[0] == "SCAN" and b"TYPE" in words:
            raise redis.ResponseError("syntax error")
        return execute(client, *words, **options)

    monkeypatch.setattr(redis.Redis, "execute_command", as_redis_5)
    assert find_crawls(crawl.client) == [CRAWL]


def _profile(state: str) -> Profile:
    return Profile("a1", state=state, incarnation="0000aaaa")


def _beat(flags: str = "", incarnation: str = "0000aaaa") -> Beat:
    return Beat(incarnation, 0, 200, "0" * 16, flags=flags)


@pytest.mark.parametrize(
    ("given", "state"),
    [
        ((None, _beat(), 0.0), "joining"),
        ((_profile("crawling"), None, 1.0), "crawling"),
        ((_profile("crawling"), _beat("f"), 1.0), "fenced"),
        ((_profile("crawling"), _beat("l"), 1.0), "leaving"),
        ((_profile("crawling"), _beat("L"), 1.0), "left"),
        ((_profile("finished"), _beat("L"), 100.0), "finished"),
        ((_profile("crawling"), _beat(), 100.0), "silent"),
        ((_profile("left"), None, 100.0), "left"),
        ((_profile("left"), _beat(), 1.0), "left"),
        ((_profile("left"), _beat(incarnation="0000bbbb"), 1.0), "joining"),
        ((_profile("finished"), _beat(incarnation="0000bbbb"), 1.0), "joining"),
    ],
)
def test_shown_state(given: tuple[Profile | None, Beat | None, float], state: str) -> None:
    held, heard, age = given
    assert shown_state(held, heard, set(), age, unreadable=False) == state


def test_status_when_redis_is_away_raises_what_the_caller_explains(one_server: Server) -> None:
    with one_server.client() as client:
        one_server.kill()
        with pytest.raises(redis.ConnectionError):
            read_status(client, CRAWL)


def test_profile_by_hand_is_the_one_that_is_read(crawl: CrawlByHand) -> None:
    crawl.client.hset(crawl.keys.agents, "a1", json.dumps(profile("a1")))
    assert read_status(crawl.client, CRAWL).unreadable == 0


def test_those_who_are_long_gone_are_no_agent_and_are_counted(crawl: CrawlByHand) -> None:
    crawl.agent("a1")
    gone = json.dumps(profile("old", state="left", counters={"pages": 900, "seconds": 50.0}))
    crawl.client.hset(crawl.keys.agents, SUMMED_UP, sum_of(None, {"old": gone, "odd": "{"}, {}))
    status = read_status(crawl.client, CRAWL)
    assert [agent.name for agent in status.agents] == ["a1"] and status.unreadable == 0
    assert status.summed_up is not None and status.summed_up[:2] == (2, 1)
    measures = measures_of(status)
    assert (measures.agents, measures.totals["pages"], measures.totals["hosts"], measures.seconds) == (1, 1000, 10, 50)
    crawl.client.hset(crawl.keys.agents, SUMMED_UP, "garbage")
    status = read_status(crawl.client, CRAWL)
    assert status.summed_up is None and (status.unreadable, status.sum_trouble) == (1, "not JSON")
