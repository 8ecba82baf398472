"""At which hosts something befell the crawl."""

from __future__ import annotations

from scrapy_ubi.agent.profile.heavy_hitters import LONGEST, MOST_HOSTS, MOST_REASONS, PUBLISHED, HeavyHitters


def test_a_host_with_many_cases_is_named_among_any_number_of_others() -> None:
    places = HeavyHitters()
    for number in range(10_000):
        places.add("http/404", f"h{number}.example")
        if number % 10 == 0:
            places.add("http/404", "calendar.example")
    named = places.published()["http/404"]
    assert next(iter(named)) == "calendar.example"
    assert 0 < named["calendar.example"] <= 1000
    assert len(named) <= PUBLISHED


def test_few_hosts_are_counted_exactly_and_the_most_frequent_comes_first() -> None:
    places = HeavyHitters()
    for host in ("a", "b", "b", "c", "c", "c"):
        places.add("robots", host)
    assert list(places.published()["robots"].items()) == [("c", 3), ("b", 2), ("a", 1)]


def test_everything_is_bounded() -> None:
    places = HeavyHitters()
    for reason in range(2 * MOST_REASONS):
        for host in range(2 * MOST_HOSTS):
            places.add(f"reason {reason}", f"{host}" * 500)
    assert len(places.published()) == MOST_REASONS
    assert all(len(host) <= LONGEST for hosts in places.published().values() for host in hosts)


def test_it_goes_on_from_what_was_published_and_believes_nothing_else() -> None:
    places, again = HeavyHitters(), HeavyHitters()
    places.add("robots", "a")
    again.restore(places.published())
    again.add("robots", "a")
    assert again.published() == {"robots": {"a": 2}}
    for value in (None, [], "x", {"x": 1}, {"x": ["a"]}, {"y": {"a": -1, "b": "1", "c": True, "d": 2}}):
        again.restore(value)
    assert again.published() == {"robots": {"a": 2}, "y": {"d": 2}}
