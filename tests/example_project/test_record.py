"""The access log: what counts as fetched, as a duplicate, as too much at once."""

from __future__ import annotations

from demo.record import ABORTED, TRY_AGAIN, Access, Record


def ask(record: Record, path: str, *, at: float = 0.0, host: str = "a.example", kind: str = "page", agent: str = "x"):
    return record.begin(Access(host, path, "GET", agent, kind, at))


def test_two_answers_for_one_url_are_a_duplicate() -> None:
    record = Record()
    for second in (0.0, 1.0):
        record.end(ask(record, "/1", at=second), second + 0.5, 200)
    stats = record.stats()
    assert (stats["fetched"], stats["unique"], stats["duplicates"]) == (2, 1, 1)
    assert (stats["most_simultaneous"], stats["violations"]) == (1, 0)
    assert stats["shortest_gap"] == 1.0
    assert record.fetched == {"http://a.example/1"}


def test_a_page_that_says_try_again_is_not_fetched_yet() -> None:
    record = Record()
    record.end(ask(record, "/1"), 0.1, TRY_AGAIN)
    assert record.stats()["fetched"] == 0
    record.end(ask(record, "/1"), 0.2, 200)
    stats = record.stats()
    assert (stats["fetched"], stats["duplicates"], stats["try_again"]) == (1, 0, 1)


def test_redirects_and_dead_links_count_as_documents_robots_do_not() -> None:
    record = Record()
    for path, kind, status in (("/go/1", "redirect", 302), ("/gone/1", "missing", 404), ("/robots.txt", "robots", 200)):
        record.end(ask(record, path, kind=kind), 1.0, status)
    stats = record.stats()
    assert (stats["fetched"], stats["robots"]) == (2, 1)
    assert stats["kinds"] == {"missing": 1, "redirect": 1}


def test_requests_at_once_are_counted_per_host() -> None:
    record = Record()
    first, second = ask(record, "/1"), ask(record, "/2")
    other = ask(record, "/1", host="b.example")
    for access in (first, second, other):
        record.end(access, 1.0, 200)
    third = ask(record, "/3")
    record.end(third, 2.0, 200)
    stats = record.stats()
    assert (stats["most_simultaneous"], stats["violations"]) == (2, 1)
    assert stats["hosts"] == 2


def test_an_aborted_request_frees_its_host_and_counts_for_nothing_else() -> None:
    record = Record()
    record.end(ask(record, "/1"), 0.5, ABORTED)
    record.end(ask(record, "/1"), 1.0, 200)
    stats = record.stats()
    assert (stats["aborted"], stats["fetched"], stats["violations"]) == (1, 1, 0)


def test_agents_are_told_apart_by_name() -> None:
    record = Record()
    for agent, host in (("x", "a.example"), ("y", "a.example"), ("y", "b.example")):
        record.end(ask(record, f"/{agent}", host=host, agent=agent), 1.0, 200)
    stats = record.stats()
    assert stats["agents"] == {"x": 1, "y": 2}
    assert stats["hosts_with_many_agents"] == 1


def test_an_empty_record_has_stats_too() -> None:
    stats = Record().stats()
    assert stats["requests"] == stats["unique"] == stats["most_simultaneous"] == 0
    assert stats["shortest_gap"] is None
