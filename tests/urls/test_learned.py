"""What is learned of a site: its note, which comes from anywhere, and the forms it makes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scrapy_ubi.urls import learned, normal_form, partition_key
from scrapy_ubi.urls.learned import AGREE, MOST_SITES, OFF, ON, bare, class_of, read, shown
from scrapy_ubi.urls.normaliser import TRIED
from scrapy_ubi.urls.steps import PARAMETERS, known_parameters
from tests.urls.test_normaliser import lossy_urls

sites = st.dictionaries(
    st.sampled_from(["h1.example", "www.h1.example", "a.b.c.d.e.f", "h_1", "1.2.3.4", "www.h"]),
    st.dictionaries(
        st.sampled_from(TRIED), st.sampled_from([ON, OFF]) | st.lists(st.integers(0, 65535), max_size=AGREE), min_size=1
    ),
    max_size=MOST_SITES,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(TRIED),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(TRIED) | st.text(max_size=5), inner, max_size=3)
    ),
)


@given(sites)
def test_what_is_written_is_read(value: dict[str, Any]) -> None:
    assert read(json.loads(json.dumps(value))) == value


@given(json_values)
def test_whatever_a_note_says_it_is_read_and_shown(value: Any) -> None:
    assert read(read(value)) == read(value)
    shown(value)
    class_of(read(value), "http://h1.example//A/index.html?sid=1")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"h": {"index": 1, "slashes": 2, "www": True, "plus": 1, "path-case": [1, 70000]}}, {"h": {"index": 1}}),
        ({"h": {"index": [1] * (AGREE + 1)}}, {}),
        ({"h": [], "i": {"index": [1]}}, {"i": {"index": [1]}}),
        ({f"h{number}": {"index": 1} for number in range(MOST_SITES + 1)}, {}),
        (None, {}),
    ],
)
def test_what_does_not_hold_was_never_learned(value: Any, found: Any) -> None:
    assert read(value) == found


def test_a_step_is_on_when_enough_pairs_of_different_contents_agree() -> None:
    site: learned.Site = {}
    for content in [7, 7, 7 + (1 << 16), *range(8, 8 + AGREE - 2)]:
        learned.agreed(site, "index", content)
    assert site == {"index": [7, *range(8, 8 + AGREE - 2)]}
    assert learned.agreed(site, "index", 99)
    assert site == {"index": ON}
    assert not learned.agreed(site, "index", 100)
    site["index"] = OFF
    assert not learned.agreed(site, "index", 101)


def test_what_was_learned_is_shown() -> None:
    assert shown({"h": {"index": ON, "www": OFF, "slashes": [1, 2]}}) == f"-www slashes 2/{AGREE} +index"
    assert shown({"h": {"index": ON}, "i": {"index": OFF}}) == "h: +index; i: -index"
    assert shown(None) == ""


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("http://www.h.example/www.a", "http://h.example/www.a"),
        ("https://u@www.h.example:81/", "https://u@h.example:81/"),
        ("http://www.www.h/", "http://www.h/"),
        ("http://www.1/", "http://www.1/"),  # would be an address
        ("http://www/", "http://www/"),
        ("http://h/?www.", "http://h/?www."),
    ],
)
def test_www(form: str, expected: str) -> None:
    assert bare(form) == expected


def test_each_site_has_its_own_steps() -> None:
    of: learned.Sites = {"h": {"www": ON, "index": ON}, "www.h": {"path-case": ON}, "www.i": {"path-case": ON}}
    assert class_of(of, "http://www.h/A/index.html") == ("http://h/A/", ("www", "index"))
    assert class_of(of, "http://www.i/A/index.html") == ("http://www.i/a/index.html", ("path-case",))
    assert class_of(of, "http://i/A") == ("http://i/A", ())


@given(lossy_urls, sites)
@example("http://www.h1.example/A//index.html?b&a", {"h1.example": {"www": ON, "index": ON}})
@example("http://www.www.h/", {"h": {"www": ON}, "www.h": {"www": ON}})
def test_the_form_of_a_class_is_its_own_and_any_steps_make_it_no_larger(url: str, of: learned.Sites) -> None:
    form = normal_form(url)
    if form is None:
        return
    normal, steps = class_of(of, form)
    assert (normal != form) == bool(steps)
    assert normal_form(normal) == normal
    assert class_of(of, normal) == (normal, ())
    assert _measure(normal) < _measure(form) or normal == form


def _measure(form: str) -> tuple[int, int, str]:
    """What every step makes smaller: so nothing is taken for what is taken for it, whatever steps come and go."""
    return len(form), sum(map(str.isupper, form)), form.partition("?")[2]


def test_a_partition_key_is_known_only_with_www() -> None:
    assert partition_key("http://www.h.example/") != partition_key(bare("http://www.h.example/"))


def test_the_names_of_arguments_are_in_small_letters() -> None:
    assert PARAMETERS.exists() and set(known_parameters()) == {"session", "tracking"}
    for names in known_parameters().values():
        for name in (*names.whole, *names.begin):
            assert name == name.lower() and not set(name) & set("=&;%/?#")
