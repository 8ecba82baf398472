"""The scope of a seed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.urls.scope import KINDS, Scope, read_scope, scope_at

SEED = "http://www.shop.com/a/b/index.html?x=1"


@pytest.mark.parametrize(
    ("kind", "url", "within"),
    [
        ("host", "https://www.shop.com/x", True),
        ("host", "http://shop.com/x", True),
        ("host", "http://SHOP.com", True),
        ("host", "http://shop.com:8080/", False),
        ("host", "http://shop.com:80/", True),
        ("host", "https://shop.com:443/", True),
        ("host", "http://shop.com:443/", False),
        ("host", "http://blog.shop.com/", False),
        ("host", "http://notshop.com/", False),
        ("domain", "http://blog.shop.com:81/", True),
        ("domain", "http://shop.org/", False),
        ("prefix", "https://shop.com/a/b/c/d", True),
        ("prefix", "http://shop.com/a/b/", True),
        ("prefix", "http://shop.com/a/", False),
        ("prefix", "http://shop.com/a/bc", False),
        ("prefix", "http://shop.com:81/a/b/c", False),
        ("host", "mailto:a@shop.com", False),
        ("domain", "http://[", False),
        ("prefix", "", False),
    ],
)
def test_what_is_within(kind: str, url: str, within: bool) -> None:
    assert scope_at(kind, [SEED]).holds(url) is within


def test_where_a_seed_is_redirected_to_is_within() -> None:
    scope = scope_at("host", [SEED, "http://new.example/"])
    assert scope.holds("http://new.example/x") and scope.holds("http://shop.com/")


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_that_writes_the_usual_port_means_its_host(kind: str) -> None:
    scope = scope_at(kind, ["http://shop.com:80/a/"])
    assert scope.holds("http://shop.com/a/b") and scope.holds("https://www.shop.com/a/b")


@pytest.mark.parametrize("kind", KINDS)
def test_it_travels_as_a_list(kind: str) -> None:
    scope = scope_at(kind, [SEED, "http://new.example/y/"])
    assert read_scope(scope.as_list()) == scope
    assert read_scope(kind) == kind
    assert scope.holds(SEED)


@pytest.mark.parametrize("value", [None, 7, "planet", [], ["planet", "a"], ["host", 7], ["host"] * 99, {"host": 1}])
def test_anything_else_is_none(value: Any) -> None:
    assert read_scope(value) is None


@given(st.sampled_from(KINDS), st.text(max_size=40), st.text(max_size=40))
def test_whatever_pages_hold_raises_nothing(kind: str, seed: str, url: str) -> None:
    scope = scope_at(kind, [f"http://{seed}", seed])
    assert isinstance(scope.holds(url), bool) and isinstance(scope.holds(f"http://{url}"), bool)
    assert not Scope(kind, ()).holds("http://shop.com/")
