"""UBI_LINKS_OF: which handlers it names, and what is said of what it should not name."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping

import pytest

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.urls.links.handlers.handler_choice import NAMES, chosen
from tests.urls.links.handlers.given import fetched, found

HERE = "tests.urls.links.handlers.test_handler_choice"


class Lines:
    """A handler of a user's: each line is a URL."""

    types = ("text/uri-list", "audio/*")
    extensions = (".URI",)

    def links(self, body: bytes, url: str, headers: Mapping[str, str]) -> Iterator[str]:
        yield from body.decode().split()


class Broken(Lines):
    def __init__(self) -> None:
        raise RuntimeError("not today")


class NoTypes:
    def links(self) -> None:
        """Nothing."""


def test_the_names() -> None:
    assert chosen(["html"]).only_html
    every = chosen(NAMES)
    assert every.html and every.pdf and every.header and set(every.by_kind) == {"feed", "sitemap", "css", "json"}
    assert every.extensions == {"pdf", "css", "rss"} and not chosen(["header"]).only_html
    assert not chosen(["pdf"]).html


@pytest.mark.parametrize("entry", [f"{HERE}.Lines", Lines, Lines()])
def test_a_handler_of_ones_own(entry: object) -> None:
    (own,) = chosen(["html", entry]).own
    assert own.name == "Lines" and own.extensions == ("uri",)
    assert own.takes("text/uri-list") and own.takes("audio/mpegurl") and not own.takes("text/plain")
    assert found(own.values, fetched("http://a.example/ b")) == ["http://a.example/", "b"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("sitmap", r"has 'sitmap', which is no handler: did you mean 'sitemap'\? The names are html, header,"),
        ("qqqq", r"has 'qqqq', which is no handler: the names are html, .* dotted paths \(my.module.MyHandler\)"),
        ("no.such.Module", r"has 'no.such.Module', which cannot be loaded \(No module named 'no'\)"),
        (f"{HERE}.Missing", r"which cannot be loaded \(module .* has no attribute 'Missing'\)"),
        (f"{HERE}.Broken", r"which cannot be made \(not today\): give a class with 'types'"),
        (f"{HERE}.NoTypes", "which is no handler: give a class with 'types'"),
        (7, "has 7, which is no handler"),
    ],
)
def test_what_does_not_hold_is_said_with_its_remedy(entry: object, said: str) -> None:
    with pytest.raises(UbiSettingError, match=f"UBI_LINKS_OF .*{said}"):
        chosen(["html", entry])


def test_pdf_needs_pypdf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert chosen(["html", "feed"]).by_kind
    with pytest.raises(UbiSettingError, match=r"pypdf is not installed: install it: pip install 'scrapy-ubi\[pdf\]'"):
        chosen(["pdf"])
