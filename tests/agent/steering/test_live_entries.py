"""Live entries: merging as a lattice, what is refused, what Redis lacks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.settings import Settings

from scrapy_ubi.agent.steering.live_entries import (
    FIELD,
    MOST,
    LiveEntry,
    LiveTable,
    field_of,
    mark_of,
    merged,
    read_entry,
)
from scrapy_ubi.agent.steering.runtime import refusal
from scrapy_ubi.ground.untrusted.checks import Malformed
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.settings.live_rows import LIVE

NAMES = ("UBI_HOST_DELAY", "UBI_HOST_LIMITS", "pause")


def values(name: str) -> st.SearchStrategy[object]:
    if name == "UBI_HOST_LIMITS":
        return st.sampled_from([None, "pages=1", "pages=2", "depth=3"])
    return st.sampled_from([None, True] if name == "pause" else [None, 1, 2, 3])


@st.composite
def entries(draw: st.DrawFn) -> LiveEntry:
    """Few versions, so that many are alike."""
    name = draw(st.sampled_from(NAMES))
    host = draw(st.sampled_from(["", "h.example"]))
    version = draw(st.integers(1, 3)), draw(st.sampled_from("ab")), draw(st.sampled_from([0.0, 1.5]))
    return LiveEntry(name, host, draw(values(name)), *version)


many = st.lists(entries(), max_size=6)


def told(*controls: list[LiveEntry]) -> LiveTable:
    table = LiveTable(refusal)
    for control in controls:
        for entry in control:
            table.merge({entry.field: entry.text})
    return table


@given(many, many, many)
def test_merging_is_a_lattice(a: list[LiveEntry], b: list[LiveEntry], c: list[LiveEntry]) -> None:
    one, other = merged(*a), merged(*b)
    assert merged(*one.values(), *other.values()) == merged(*b, *a), "commutative"
    assert merged(*merged(*a, *b).values(), *c) == merged(*a, *merged(*b, *c).values()), "associative"
    assert merged(*one.values(), *one.values()) == one, "idempotent"


@given(many, st.randoms(use_true_random=False))
def test_agents_that_are_told_in_any_order_agree(all_said: list[LiveEntry], random: st.DataObject) -> None:
    shuffled = [*all_said, *all_said]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    a, b = told(all_said), told(shuffled)
    assert (a.entries, a.mark) == (b.entries, b.mark)
    assert a.entries == merged(*all_said)


@given(many, many)
def test_what_an_agent_writes_again_brings_redis_to_what_it_knows(
    known: list[LiveEntry], there: list[LiveEntry]
) -> None:
    table = told(known)
    control = {entry.field: entry.text for entry in there}
    table.merge(control)
    lacks = table.lacking(control)
    assert all(control.get(field) == there for field, (there, _) in lacks.items())
    control |= {field: text for field, (_, text) in lacks.items()}
    assert table.lacking(control) == {}
    assert merged(*(read_entry(field, text) for field, text in control.items())) == table.entries


@pytest.mark.parametrize(("x", "y"), [(0, 2), (3, 1), (2, 200), (130, 130)])
def test_the_oldest_are_forgotten_at_the_bound_whoever_merges_first(x: int, y: int) -> None:
    crowd = [LiveEntry("pause", f"h{n}.example", True, n + 1, "a", 0.0) for n in range(MOST + 3)]
    parts = crowd[:x], crowd[x : x + y], crowd[x + y :]
    step = merged(*merged(*parts[0], *parts[2]).values(), *parts[1])
    assert step == merged(*crowd)
    assert min(entry.n for entry in step.values()) == 4
    table = LiveTable(refusal)
    table.merge({entry.field: entry.text for entry in parts[1]})
    table.merge({entry.field: entry.text for entry in crowd})
    assert table.entries == step


@given(entries())
def test_an_entry_comes_back_from_its_text(entry: LiveEntry) -> None:
    assert read_entry(entry.field, entry.text) == entry


def test_marks_are_those_of_the_entries() -> None:
    one = LiveEntry("UBI_HOST_DELAY", "", 2, 7, "ann", 1.0)
    assert mark_of({}) == "" and mark_of({one.field: one}).startswith("7-")
    assert mark_of({one.field: one}) != mark_of({one.field: LiveEntry("UBI_HOST_DELAY", "", 3, 7, "ann", 1.0)})


GOOD = '{"n":1,"who":"a","when":1.0,"value":%s}'
BAD = {
    f"{FIELD}UBI_PARTITION": (GOOD % '"domain"', "no live setting"),
    f"{FIELD}nonsense": (GOOD % 1, "no live setting"),
    f"{FIELD}UBI_HOST_DELAY": (GOOD % '"soon"', "give a number of seconds"),
    f"{FIELD}UBI_HOST_DELAY:a b": (GOOD % 1, "the host is no name"),
    f"{FIELD}UBI_HOST_DELAY:c.example": (GOOD % '{"a":1}', "dict"),
    f"{FIELD}UBI_HOST_LIMITS": (GOOD % '"pages=-1"', "pages=500, bytes=2GB"),
    f"{FIELD}UBI_HOST_LIMITS:a.example": (GOOD % '"limits.txt"', "reads no file"),
    f"{FIELD}UBI_HOST_LIMITS:b.example": (GOOD % '"{\\"c.example\\": \\"pages=1\\"}"', "names no hosts"),
    f"{FIELD}UBI_ROBOTS_TIMEOUT": ("]", "not JSON"),
    f"{FIELD}UBI_HOST_TRIES": ('{"n":0,"who":"a","when":1,"value":1}', "no version"),
    f"{FIELD}UBI_CRAWL_LIMITS": ('{"n":1,"who":"a","when":NaN,"value":1}', "not JSON"),
    f"{FIELD}UBI_MAX_BODY": (GOOD % '"%s"' % ("1" * 9000), "characters"),
    f"{FIELD}UBI_MAX_BODY:h.example": (GOOD % 1, "for the whole crawl"),
    f"{FIELD}UBI_FILTERS": (GOOD % '["os.system(x)"]', "class of yours"),
    f"{FIELD}pause": (GOOD % '"yes"', "neither true nor null"),
    f"{FIELD}finish:h.example": (GOOD % "true", "does not finish"),
}


@pytest.mark.parametrize("field", BAD)
def test_what_does_not_hold_is_refused_whole_and_changes_nothing(field: str) -> None:
    table = LiveTable(refusal)
    text, why = BAD[field]
    assert not table.merge({field: text, field_of("pause", "kept.example"): '"no"'})
    assert table.entries == {} and table.mark == "" and len(table.refused) == 2
    assert why in table.refused[field][1]
    good = LiveEntry("UBI_ROBOTS_TTL", "", 60.0, 1, "a", 0.0)
    assert table.merge({field: text, good.field: good.text}), "others are taken"
    assert [*table.refused] == [field], "what is not there any more is forgotten"


def test_a_bad_value_does_not_take_the_place_of_a_good_one() -> None:
    table = LiveTable(refusal)
    field = field_of("UBI_HOST_DELAY")
    table.merge({field: GOOD % 3})
    assert not table.merge({field: json.dumps({"n": 9, "who": "b", "when": 2.0, "value": -1})})
    assert table.entries[field].value == 3
    assert table.lacking({field: "garbage"}) == {field: ("garbage", table.entries[field].text)}


def test_a_flood_of_garbage_is_bounded() -> None:
    table = LiveTable(refusal)
    table.merge({f"{FIELD}x{number}": "?" for number in range(100_000)})
    assert len(table.refused) == MOST and len(table.told_refused) == 5


def test_what_the_disk_keeps_comes_back_and_garbage_there_does_not() -> None:
    table = told(
        [LiveEntry("UBI_HOST_DELAY", "", 2.0, 7, "ann", 1.0), LiveEntry("pause", "h.example", True, 8, "b", 2.0)]
    )
    again = LiveTable(refusal)
    again.load(json.loads(json.dumps({**table.kept, "set:pause": 7, "set:nonsense": "?"})))
    assert (again.entries, again.mark) == (table.entries, table.mark)
    garbage: list[object] = [None, [], "x", 7]
    for one in garbage:
        again.load(one)
        assert again.entries == {}


@pytest.mark.parametrize("name", LIVE)
def test_every_live_setting_has_bounds_that_hold_alone(name: str) -> None:
    """No relation to other settings: what one agent takes no other refuses."""
    row = LIVE[name]
    for bound in (row.low, row.high, *row.choices):
        if bound is not None:
            assert refusal(LiveEntry(name, "", bound, 1, "a", 0.0)) == ""
    with pytest.raises(Malformed):
        read_entry(f"{FIELD}{name}", "")


@pytest.mark.parametrize(
    ("started", "value", "holds"),
    [("off", "auto", False), ("off", "off", True), ("off", None, True), ("auto", "off", True)],
)
def test_a_browser_that_was_off_at_the_start_cannot_be_turned_on(started: str, value: str | None, holds: bool) -> None:
    settings = UbiSettings.from_scrapy(Settings({"UBI_BROWSER": started}), "walk")
    entry = LiveEntry("UBI_BROWSER", "app.example", value, 1, "me", 1.0)
    assert (refusal(entry, settings) == "") is holds and refusal(entry) == ""
