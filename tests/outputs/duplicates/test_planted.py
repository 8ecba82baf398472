"""Planted duplicates: which are found, and what is taken for one and is none; while crawling, and afterwards."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.judged import DUPLICATE_OF
from scrapy_ubi.agent.hosts.learned_forms import CUT
from scrapy_ubi.outputs.collector import Collector, find_outputs
from scrapy_ubi.outputs.duplicates.duplicates_store import ENDING, DuplicatesStore
from scrapy_ubi.outputs.duplicates.groups import Groups
from scrapy_ubi.outputs.duplicates.judge import Judge
from tests.outputs.duplicates.kept import agent
from tests.outputs.duplicates.planted import Planted, Plants, response_of

SEED = int(os.environ.get("TEST_SEED") or random.SystemRandom().randrange(1 << 30))
KINDS = {
    "zipf": {}, "uniform": {"zipf": False}, "small": {"vocabulary": 150}, "plain frame": {"frame": "plain"},
}  # fmt: skip


def judged(pages: Iterable[Planted], near: int | None = 3, action: str = "mark") -> tuple[dict[str, str], Counter[str]]:
    """Which page each was taken for a copy of; and what was counted."""
    counted: Counter[str] = Counter()
    judge = Judge(near, action, lambda stat: counted.update([stat]), lambda what, host: None)
    found = {}
    for page in pages:
        response = response_of(page)
        assert response.request is not None
        flight = Flight(response.request, "host")
        assert judge.judge(flight, response) is (action == "skip" and DUPLICATE_OF in response.request.meta)
        if of := response.request.meta.get(DUPLICATE_OF):
            found[page.url] = of
    return found, counted


def rates(pages: list[Planted], found: dict[str, str]) -> tuple[float, float]:
    """Recall and precision."""
    group = {page.url: page.group for page in pages}
    seen: set[str] = set()
    copies = {page.url for page in pages if page.group in seen or seen.add(page.group)}  # type: ignore[func-returns-value]
    right = sum(group[url] == group[of] for url, of in found.items())
    return right / max(1, len(copies)), right / max(1, len(found))


@pytest.mark.parametrize("kind", KINDS)
def test_planted_duplicates_are_found_while_crawling(kind: str) -> None:
    pages = list(Plants(SEED, **KINDS[kind]).web(240))  # type: ignore[arg-type]
    recall, precision = rates(pages, judged(pages)[0])
    assert recall >= 0.95 and precision >= 0.99, (SEED, kind, recall, precision)


def test_exact_finds_exact_copies_only() -> None:
    pages = list(Plants(SEED).web(40))
    found, counted = judged(pages, near=0)
    assert len(found) == counted["ubi/duplicates/exact"] == 10
    assert rates(pages, found)[1] == 1.0


@pytest.mark.parametrize("words", [60, 120, 1000])
def test_pages_on_one_template_are_no_duplicates(words: int) -> None:
    """Two thirds of what such a page says, links aside, is the template's, and not marked as such."""
    plants = Plants(SEED)
    common = plants.text(2 * words)
    pages = [plants.put(plants.page([common, *plants.body(words)]), str(number)) for number in range(300)]
    assert judged(pages)[0] == {}, SEED


def test_soft_404s_and_short_pages_are_never_near() -> None:
    plants = Plants(SEED)
    text = plants.body(200)
    soft = [plants.put(plants.page([f"x{n}", *text], title="Page not found"), "404") for n in range(20)]
    short = [plants.put(plants.page([f"x{n}", plants.text(30)]), "short") for n in range(20)]
    found, counted = judged(soft + short)
    assert found == {}
    assert counted["ubi/duplicates/not_near/missing"] == counted["ubi/duplicates/not_near/short"] == 20
    same = [soft[0], soft[0]._replace(url="http://h.example/other")]
    assert judged([*same, same[1]._replace(url=f"{plants.host}/same")])[1]["ubi/duplicates/exact"] == 1


def test_what_most_pages_are_near_to_is_a_shell() -> None:
    plants = Plants(SEED)
    login, pages = plants.body(200), []
    for number in range(200):
        pages.append(plants.put(plants.page([*login, f"for {number}"]), "shell"))
        if number % 3 == 0:
            pages.append(plants.put(plants.page(plants.body(200)), str(number)))
    found, counted = judged(pages)
    assert len(found) < 60 and counted["ubi/duplicates/not_near/shell"] > 120, (SEED, len(found), counted)


def test_what_is_not_compared() -> None:
    page = next(Plants(SEED).web(1))
    for change in ({"status": 404}, {"flags": [CUT[0]]}, {"body": b""}):
        response = response_of(page).replace(**change)
        flight = Flight(response.request, "host")
        judge = Judge(3, "skip", lambda stat: None, lambda what, host: None)
        assert not judge.judge(flight, response) and flight not in judge.judged
        assert not judge.judge(flight, response)


def test_a_page_is_no_duplicate_of_itself() -> None:
    page = next(Plants(SEED).web(1))
    assert judged([page, page])[0] == {}


@pytest.mark.parametrize("kind", KINDS)
def test_planted_duplicates_are_found_across_hosts(tmp_path: Path, kind: str) -> None:
    """Whoever has fetched what: the groups are the same."""
    plants, other = Plants(SEED, **KINDS[kind]), Plants(SEED + 1)  # type: ignore[arg-type]
    pages = list(plants.web(120))
    pages += [other.put(page.html, page.group) for page in pages[:40]]
    places = [agent(tmp_path / f"a{n}", pages[n::3]) for n in range(3)]
    one = agent(tmp_path / "all", pages)
    found = groups_of(places, tmp_path)
    assert found == groups_of([one], tmp_path)
    group = {page.url: page.group for page in pages}
    taken = {url: urls[0] for urls in found for url in urls[1:]}
    right = sum(group[url] == group[first] for url, first in taken.items())
    copies = len(pages) - len(set(group.values()))
    assert right / copies >= 0.95 and right / len(taken) >= 0.99, (SEED, kind, right, copies, len(taken))


def groups_of(places: list[Path], tmp_path: Path) -> list[list[str]]:
    inner = tmp_path / f"groups{len(list(tmp_path.iterdir()))}"
    inner.mkdir()
    collector = Collector(find_outputs(places), DuplicatesStore.name, ENDING, inner)
    return [[copy.url for copy in group] for group in Groups(collector, inner, 3).all()]
