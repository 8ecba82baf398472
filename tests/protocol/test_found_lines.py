"""Lines that are found: who was in which view."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_ubi.protocol.beat import LEFT, NEW, RELIEVED, words_after
from scrapy_ubi.protocol.found_lines import MOST_TRIED, SEEN, FoundLines
from scrapy_ubi.protocol.view import Member, View
from tests.protocol.members import DIGEST, OTHER, beat
from tests.support.views import REPLICAS, incarnation, view


def found(**said: str) -> FoundLines:
    """The lines of these agents: of the last view in which all had settled for them they say that digest."""
    lines = FoundLines()
    for name, complete in said.items():
        lines[incarnation(name)] = name, beat(name, complete=complete, era=2 if complete else 0)
    return lines


def test_the_members_of_a_view_are_named_by_who_believed_in_it() -> None:
    lines = found(b="", c="")
    lines[incarnation("b")] = "b", beat("b", digest=OTHER, members=tuple(map(incarnation, "bc")))
    assert lines.members(OTHER) == {incarnation("b"), incarnation("c")}
    assert lines.members(DIGEST) == set()


def test_or_are_those_who_give_its_digest() -> None:
    all_settled = view("b", "d")
    lines = found(b=all_settled.digest, c="", d="", e="")
    assert not lines.members(all_settled.digest)
    lines.open_views(())
    assert lines.members(all_settled.digest) == {incarnation("b"), incarnation("d")}
    lines.forget_lines()
    assert not lines.members(all_settled.digest)


@pytest.mark.parametrize("agents", ["bx", "b"], ids=["one has no line", "another life"])
def test_whose_members_are_not_all_known_is_not_opened(agents: str) -> None:
    digest = view(*agents, **({} if "x" in agents else {"b": 5})).digest
    lines = found(b=digest, c="", d="")
    lines.open_views(())
    assert not lines.members(digest)


def test_members_may_have_begun_again_or_been_fenced_since() -> None:
    """A line names the lives before; who was fenced has another epoch in views of before that and since."""
    members = {"b": Member(incarnation("b"), 0, REPLICAS), "c": Member(incarnation("c"), 2, REPLICAS)}
    all_settled = View.of(members)
    lines = FoundLines()
    again = replace(beat("b", carried=(incarnation("b"),)), incarnation=incarnation("b", 1))
    lines[again.incarnation] = "b", again
    lines[incarnation("c")] = "c", replace(beat("c", complete=all_settled.digest, era=2), epoch=2)
    lines.open_views(())
    assert lines.members(all_settled.digest) == set(all_settled.lives)


def test_words_that_are_repeated_count_as_lines() -> None:
    all_settled = view("b", "c")
    lines = found(b=all_settled.digest)
    (words,) = words_after(beat("c"))
    lines[incarnation("c", 1)] = "c", replace(beat("c", before=(words,)), incarnation=incarnation("c", 1))
    lines[words.incarnation] = "c", words.beat
    lines.open_views(())
    assert lines.members(all_settled.digest) == {incarnation("b"), incarnation("c")}


def test_only_views_of_those_are_looked_for_who_are_not_here_and_have_not_handed_on_all() -> None:
    all_settled = view("b", "c")
    lines = found(b=all_settled.digest, c="")
    lines.open_views({incarnation("b")})
    assert not lines.members(all_settled.digest)
    left = replace(lines[incarnation("b")][1], flags=LEFT + RELIEVED)
    lines[incarnation("b")] = "b", left
    lines.open_views(())
    assert not lines.members(all_settled.digest)


def test_never_more_are_tried_than_the_bound() -> None:
    most = MOST_TRIED.bit_length() - 1
    for count, opened in ((most, True), (most + 1, False)):
        names = [f"a{number}" for number in range(count)]
        all_settled = view(*names)
        lines = found(**dict.fromkeys(names, all_settled.digest))
        lines.open_views(())
        assert bool(lines.members(all_settled.digest)) == opened


@pytest.mark.parametrize(("flags", "era", "first"), [(NEW, 0, 0), (NEW, 5, 5), ("", 0, SEEN), ("", 5, 5)])
def test_how_far_one_had_come_when_it_was_found(flags: str, era: int, first: int) -> None:
    lines = FoundLines()
    lines.take("b", beat("b", flags=flags, era=era))
    lines.take("b", later := beat("b", 2, era=9))
    assert lines.first_era(later) == first
    lines.forget_lines()
    assert lines.first_era(later) == 9
