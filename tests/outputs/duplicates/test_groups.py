"""What a group of duplicates is: whatever page is looked at first, and whichever agent has fetched what."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.outputs.duplicates.kept import agent
from tests.outputs.duplicates.planted import Planted, Plants
from tests.outputs.duplicates.test_command import command

Groups = set[frozenset[str]]


def groups_of(agents: list[list[Planted]]) -> Groups:
    """The URLs of each group of what these agents have fetched, each in its order."""
    with tempfile.TemporaryDirectory() as name:
        place, dirs = Path(name), []
        for number, pages in enumerate(agents):
            dirs += ["--dir", str(agent(place / f"a{number}", pages))]
        command(*dirs, "-o", str(place / "out.jsonl"))
        groups = [json.loads(line)["pages"] for line in (place / "out.jsonl").read_text().splitlines()]
    found = [frozenset(page["url"] for page in group) for group in groups]
    assert len(frozenset().union(*found)) == sum(map(len, found)), "a page is in two groups"
    return set(found)


def chain(seed: int, *steps: float) -> list[Planted]:
    """Pages of which each has so many words of a hundred other than the one before."""
    plants = Plants(seed)
    texts = [plants.body(600)]
    for percent in steps:
        texts.append(plants.changed(texts[-1], percent))
    return [Planted(f"{plants.host}/{number}", plants.page(text), "") for number, text in enumerate(texts)]


@pytest.mark.parametrize("seed", range(8))
def test_a_page_stays_with_its_copy_when_that_is_nearer_to_a_third_one(seed: int) -> None:
    pages = chain(seed, 2, 1, 2)
    urls = frozenset(page.url for page in pages)
    assert groups_of([pages]) == {urls}
    assert groups_of([[pages[0], pages[3]]]) == set(), "the outer ones are not near each other"


@settings(deadline=None, max_examples=15)
@given(data=st.data(), seed=st.integers(0, 5))
def test_groups_are_the_same_in_any_order_and_by_any_agents(data: st.DataObject, seed: int) -> None:
    pages = chain(seed, 2.5, 0, 1.5, 30, 2.5, 2.5, 30) + chain(seed + 10, 1, 3)
    order = data.draw(st.permutations(pages))
    agents: list[list[Planted]] = [[], [], []]
    for page in order:
        agents[data.draw(st.integers(0, 2))].append(page)
    assert groups_of([some for some in agents if some]) == groups_of([pages])
