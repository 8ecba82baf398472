"""The demo web as a function: what is in it, what leads where, and what is reachable."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urldefrag, urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.graph import Document, Graph, digest

graphs = st.builds(
    lambda seed, hosts, more: Graph(seed, hosts, hosts + more),
    st.integers(0, 2**32),
    st.integers(1, 120),
    st.integers(0, 300),
)


def links_in(html: str, base: str) -> list[str]:
    """What a crawler finds in a page: absolute URLs without fragments."""
    return [urldefrag(urljoin(base, unescape(href)))[0] for href in re.findall(r'href="([^"]*)"', html)]


@given(graphs)
def test_sizes_sum_to_the_pages_asked_for(graph: Graph) -> None:
    pages = [d for d in graph.documents() if d.kind == "page"]
    assert len(pages) == sum(graph.sizes)
    assert min(graph.sizes) >= 1
    assert len(set(graph.names)) == len(graph.names) == len(graph.sizes)


@given(graphs)
def test_equal_arguments_give_equal_webs(graph: Graph) -> None:
    again = Graph(graph.seed, len(graph.names), sum(graph.sizes))
    assert list(again.documents()) == list(graph.documents())
    assert all(again.html(d) == graph.html(d) for d in graph.documents() if d.kind != "redirect")


def test_another_seed_gives_another_web() -> None:
    assert Graph(1).sizes != Graph(2).sizes
    home = Document("page", 0, 0)
    assert Graph(1).html(home) != Graph(2).html(home)


@given(graphs)
def test_every_path_finds_its_document_and_no_other(graph: Graph) -> None:
    seen: set[str] = set()
    for document in graph.documents():
        url = graph.url(document)
        assert url not in seen
        seen.add(url)
        assert graph.find(graph.names[document.host], graph.path(document)) == document


@pytest.mark.parametrize("path", ["/notes/", "/notes/0.html", "/maps/5.html", "/notes/99999.html", "/x/1", "/notes/²"])
def test_paths_of_no_document(path: str) -> None:
    assert Graph().find("alder.example", path) is None


def test_unknown_host_has_no_documents() -> None:
    assert Graph().find("nowhere.example", "/") is None


@given(graphs)
def test_html_holds_exactly_the_links_of_the_graph(graph: Graph) -> None:
    for document in graph.documents():
        if document.kind != "redirect":
            expected = [graph.url(link) for link in graph.links(document)]
            assert links_in(graph.html(document), graph.url(document)) == expected


@given(graphs)
def test_all_pages_are_reachable_from_the_first_home(graph: Graph) -> None:
    found = graph.reachable([graph.home(0)], obey_robots=False)
    assert {graph.url(d) for d in graph.documents()} <= found


@given(graphs)
def test_obeying_robots_leaves_out_private_pages_only(graph: Graph) -> None:
    free = graph.reachable([graph.home(0)], obey_robots=False)
    polite = graph.reachable([graph.home(0)])
    assert all("/private/" in url for url in free - polite)
    assert not any("/private/" in url for url in polite)


def test_default_web_has_every_kind_of_trouble() -> None:
    graph = Graph()
    found = graph.reachable([graph.home(0)], obey_robots=False)
    assert {url.split("/")[3] for url in found} >= {"go", "private", "gone", "notes", ""}
    redirects = [d for d in graph.documents() if d.kind == "redirect"]
    assert sum(graph.target(d).host != d.host for d in redirects) > len(redirects) // 2
    assert sum(map(graph.flaky, graph.documents())) > 20


def test_seeds_outside_the_web_reach_nothing() -> None:
    assert Graph().reachable(["http://nowhere.example/", "mailto:x", ""]) == set()


def test_a_web_without_pages_for_each_host_is_refused() -> None:
    with pytest.raises(ValueError, match="a page for each"):
        Graph(1, hosts=10, pages=9)


def test_digest_does_not_depend_on_order() -> None:
    assert digest(["b", "a"]) == digest(["a", "b"]) != digest(["a"])
