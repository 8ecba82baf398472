"""What lossy steps have joined: each spelling that was not fetched, once."""

from __future__ import annotations

from scrapy import Request

from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.agent.profile.merged_urls import EXAMPLES, LONGEST, MOST_LED, MergedUrls
from scrapy_ubi.settings import UbiSettings


class Finder:
    """Finds URLs as the scheduler does."""

    def __init__(self, normalise: str = "larm") -> None:
        self.keys, self.joins = RequestKeys(UbiSettings(normalise=normalise)), MergedUrls()
        self.seen: set[int] = set()

    def find(self, *urls: str) -> None:
        for url in urls:
            request = Request(url)
            place = self.keys.place(request)
            assert place is not None
            key, spelling = self.keys.key(request, place), self.keys.spelling(request, place)
            if key in self.seen:
                self.joins.known(spelling, key, url, place.normal, place.steps)
            else:
                self.joins.first(spelling, key, url, place.steps)
            self.seen.add(key)


def test_every_spelling_but_the_first_counts_once() -> None:
    finder = Finder()
    for _ in range(3):
        finder.find("http://h/a", "http://h/A", "http://h//A", "http://h/a#b", "http://H/a")
    assert finder.joins.counts == {"path-case": 2, "slashes": 1}
    assert finder.joins.examples == {
        "path-case": [("http://h/A", "http://h/a"), ("http://h//A", "http://h/a")],
        "slashes": [("http://h//A", "http://h/a")],
    }


def test_the_first_spelling_is_fetched_and_not_counted() -> None:
    finder = Finder()
    finder.find(*["http://h/A"] * 3)
    assert not finder.joins.counts
    finder.find(*["http://h/a"] * 3, *["http://h/A"] * 3)
    assert finder.joins.counts == {"path-case": 1}
    finder.find("http://h/x/Index.html", "http://h/x/index.html")
    assert finder.joins.counts == {"path-case": 1, "index": 1}


def test_safe_joins_nothing() -> None:
    finder = Finder("safe")
    finder.find("http://h/A", "http://h/a", "http://h/%41", "http://h/./A")
    assert not finder.keys.lossy and not finder.joins.counts


def test_what_is_kept_is_bounded() -> None:
    finder = Finder()
    long = "A" * LONGEST
    finder.find(f"http://h/{long}".lower(), f"http://h/{long}")
    assert finder.joins.counts == {"path-case": 1} and finder.joins.examples == {"path-case": []}
    for number in range(MOST_LED + 10):
        finder.find(f"http://h/A{number}")
    assert finder.joins.waiting == MOST_LED
    for number in range(5000):
        finder.find(f"http://h/a{number}")
        finder.find(f"http://h/{number}/b", f"http://h/{number}/B")
    assert 4990 - 10 + 5000 <= finder.joins.counts["path-case"] <= 10_001
    assert len(finder.joins.examples["path-case"]) == EXAMPLES
