"""Collected graphs: numbers by reversed host and URL, merging is the union of sets, and what does not add up is
refused."""

from __future__ import annotations

import gzip
import random
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scrapy.settings import Settings

from scrapy_ubi.outputs.collector import Collector, find_outputs
from scrapy_ubi.outputs.graph import files, graph_store
from scrapy_ubi.outputs.graph.graph_store import ENDING, GraphPayload, GraphStore
from scrapy_ubi.outputs.graph.numbered import Numbered, reversed_host, usual_host
from scrapy_ubi.outputs.graph.page_record import HEAD, BadRecord, key_of, packed, stripped, unpacked, without_texts
from scrapy_ubi.outputs.graph.runs import LineSorter, NumberSorter
from scrapy_ubi.outputs.part_writer import Bundle
from scrapy_ubi.urls import url_key
from tests.outputs.kept import Kept


class Linked(NamedTuple):
    """A page as one agent has fetched it."""

    url: str
    links: tuple[str, ...] = ()
    attempt: int = 0
    kind: str = "ok"


def url(number: int) -> str:
    return f"http://{'ab'[number % 2]}{number % 3}.example/{number}"


def keys_in(forms: list[str]) -> bytes:
    """Their keys, as a record has them."""
    return b"".join(map(key_of, forms))


def agent(place: Path, pages: list[Linked], size: float = 1e9) -> Path:
    """The directory of an agent that has fetched these."""
    kept = Kept(place, agent=place.name)
    store = GraphStore({"size": (str(size),)}, Settings())
    for number, page in enumerate(pages):
        payload = GraphPayload([page.url, *page.links], bytes(len(page.links)), 200, 1, 1e9 + number)
        name = f"{url_key('GET', page.url):016x}"
        kept.writer.put([Bundle(store, name, page.attempt, page.kind, payload, 1)])
    kept.flush("run")
    kept.close()
    return place


def collected(place: Path, *directories: Path, crawled_only: bool = False, hosts: bool = True) -> dict[str, bytes]:
    """The files of a graph, by their endings."""
    name = place / "web"
    graph(place, *directories, crawled_only=crawled_only, name=str(name), hosts=hosts)
    return {path.name.removeprefix("web"): path.read_bytes() for path in place.glob("web*")}


def graph(place: Path, *directories: Path, crawled_only: bool = False, name: str = "", hosts: bool = True) -> Numbered:
    place.mkdir(exist_ok=True)
    inner = place / "sort"
    inner.mkdir(exist_ok=True)
    numbered = Numbered(Collector(find_outputs(directories), "graph", ENDING, inner), inner, crawled_only)
    files.write(numbered, name or str(place / "web"), hosts)
    return numbered


def lines(data: bytes) -> list[str]:
    return gzip.decompress(data).decode().splitlines()


def arcs_of(found: dict[str, bytes]) -> set[tuple[str, str]]:
    """Arcs, by URLs."""
    urls = lines(found[files.URLS])
    pairs = [tuple(map(int, line.split("\t"))) for line in lines(found[files.ARCS])]
    assert pairs == sorted(set(pairs))
    return {(urls[one], urls[two]) for one, two in pairs}


def test_a_graph(tmp_path: Path) -> None:
    pages = [
        Linked("http://www.b.example/", ("http://a.example/x", "http://www.b.example/", "http://10.0.0.1/")),
        Linked("http://a.example/", ("http://www.b.example/", "http://www.b.example/?y", "http://www.b.example/")),
    ]
    found = collected(tmp_path / "out", agent(tmp_path / "a", pages))
    assert lines(found[files.URLS]) == [
        "http://10.0.0.1/",
        "http://a.example/",
        "http://a.example/x",
        "http://www.b.example/",
        "http://www.b.example/?y",
    ]
    assert lines(found[files.ARCS]) == ["1\t3", "1\t4", "3\t0", "3\t2", "3\t3"]
    assert lines(found[files.HOSTS]) == ["0\t10.0.0.1", "1\texample.a", "2\texample.b.www"]
    assert lines(found[files.HOST_ARCS]) == ["1\t2\t2", "2\t0\t1", "2\t1\t1"]
    assert all(data[4:8] == bytes(4) and not data[3] for data in found.values()), "no time and no name"


def test_only_what_was_crawled(tmp_path: Path) -> None:
    pages = [Linked(url(1), (url(2), url(3))), Linked(url(2), (url(1), url(4)))]
    found = collected(tmp_path / "out", agent(tmp_path / "a", pages), crawled_only=True, hosts=False)
    assert set(lines(found[files.URLS])) == {url(1), url(2)} and files.HOSTS not in found
    assert arcs_of(found) == {(url(1), url(2)), (url(2), url(1))}


def test_of_a_page_the_last_complete_fetch_counts(tmp_path: Path) -> None:
    one = agent(tmp_path / "a", [Linked(url(1), (url(2),)), Linked(url(3), (url(4),), 0, "again")])
    two = agent(tmp_path / "b", [Linked(url(1), (url(5),), 1), Linked(url(3), (url(6),), 1)])
    found = collected(tmp_path / "out", one, two)
    assert arcs_of(found) == {(url(1), url(5)), (url(3), url(6))}
    assert set(lines(found[files.URLS])) == {url(1), url(5), url(3), url(6)}


PAGES = st.dictionaries(st.integers(0, 12), st.sets(st.integers(0, 20)).map(sorted), min_size=1)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PAGES, st.lists(st.integers(0, 2), min_size=13, max_size=13), st.lists(st.booleans(), min_size=13, max_size=13))
def test_merging_is_the_union_of_sets_whoever_has_crawled_what(
    tmp_path_factory: pytest.TempPathFactory, web: dict[int, list[int]], whose: list[int], doubled: list[bool]
) -> None:
    place = tmp_path_factory.mktemp("merge")
    pages = {number: Linked(url(number), tuple(map(url, links))) for number, links in web.items()}
    shares: list[list[Linked]] = [[], [], []]
    for number, page in pages.items():
        shares[whose[number]].append(page)
        if doubled[number]:
            shares[(whose[number] + 1) % 3].append(page)
    agents = [agent(place / f"a{number}", share, size=300) for number, share in enumerate(shares) if share]
    found = collected(place / "out", *agents)
    assert found == collected(place / "again", *reversed(agents))
    assert found == collected(place / "alone", agent(place / "one", list(pages.values())))
    assert arcs_of(found) == {(page.url, link) for page in pages.values() for link in page.links}
    nodes = {page.url for page in pages.values()} | {link for page in pages.values() for link in page.links}
    assert lines(found[files.URLS]) == sorted(nodes, key=lambda one: (reversed_host(one), one))
    weights: dict[tuple[str, str], int] = {}
    for one, two in arcs_of(found):
        ends = reversed_host(one), reversed_host(two)
        if ends[0] != ends[1]:
            weights[ends] = weights.get(ends, 0) + 1
    hosts = [line.split("\t")[1] for line in lines(found[files.HOSTS])]
    edges = [tuple(map(int, line.split("\t"))) for line in lines(found[files.HOST_ARCS])]
    assert edges == sorted(edges) and {(hosts[one], hosts[two]): weight for one, two, weight in edges} == weights


def test_a_record_comes_back_and_any_byte_that_is_wrong_is_seen() -> None:
    forms = [url(1), url(2), url(3)]
    data = packed(keys_in(forms), b"\x00\x02", forms[:2], 200, 3, 5.5)
    record = unpacked(data)
    assert record.texts == [one.encode() for one in forms[:2]] and record.types == b"\x00\x02"
    short = stripped(without_texts(record))
    assert int.from_bytes(short.key, "little") == record.key == url_key("GET", forms[0])
    assert (short.status, short.depth, short.ended) == (200, 3, 5.5)
    assert (short.targets, short.types) == (record.targets, b"\0\2")
    for end in range(len(data)):
        with pytest.raises(BadRecord):
            unpacked(data[:end])
    for place in range(len(data)):
        wrong = bytearray(data)
        wrong[place] ^= 0x41
        with pytest.raises(BadRecord):
            unpacked(bytes(wrong))


@pytest.mark.parametrize("text", ["http://a b/", "ftp://a/", "", "http://a/\n"])
def test_texts_that_are_no_urls_are_refused(text: str) -> None:
    with pytest.raises(BadRecord):
        unpacked(packed(keys_in([url(1)]), b"", [text, url(1)], 200, 1, 1.0))


def test_times_that_are_none_are_refused() -> None:
    for ended in (float("nan"), float("inf"), -1.0):
        with pytest.raises(BadRecord):
            unpacked(packed(keys_in([url(1)]), b"", [url(1)], 200, 1, ended))


def files_of(place: Path, pattern: str) -> Path:
    (found,) = (place / "out/graph").glob(pattern)
    return found


def test_records_that_do_not_add_up_are_left_out_and_counted(tmp_path: Path) -> None:
    place = agent(tmp_path / "a", [Linked(url(n), (url(n + 1),)) for n in range(5)])
    data = files_of(place, "*.graph")
    spans = [line.split()[3].split(":")[1:] for line in files_of(place, "*.idx").read_text().splitlines()]
    written = bytearray(data.read_bytes())
    begin = int(spans[2][0])
    struct.pack_into("<I", written, begin + 8, 0xFFFF_FFFF)  # how many links it has
    data.write_bytes(written)
    numbered = graph(tmp_path / "out", place)
    assert (numbered.found.refused, numbered.found.pages) == (1, 4)
    assert numbered.found.unnamed == 0 or numbered.found.nodes < 6


NOWHERE = ["x", "n 0 ok graph:-1:5", "n 0 ok graph:0:999999999999", "n -9 ok graph:0:1", "n 0 no"]


@pytest.mark.parametrize("line", NOWHERE)
def test_an_index_that_points_nowhere_is_damage(tmp_path: Path, line: str) -> None:
    place = agent(tmp_path / "a", [Linked(url(1), (url(2),))])
    index = files_of(place, "*.idx")
    index.write_text(f"{index.read_text()}{line}\n")
    sort = tmp_path / "sort"
    sort.mkdir()
    collector = Collector(find_outputs([place]), "graph", ENDING)
    numbered = Numbered(collector, sort)
    assert [node.url.decode() for node in numbered.nodes()] == sorted((url(1), url(2)), key=reversed_host)
    assert collector.tally.damaged == 1


def test_a_tail_that_a_killed_agent_has_left_is_passed_over(tmp_path: Path) -> None:
    place = agent(tmp_path / "a", [Linked(url(n), (url(n + 1),)) for n in range(4)])
    whole = collected(tmp_path / "whole", agent(tmp_path / "b", [Linked(url(n), (url(n + 1),)) for n in range(3)]))
    data, index = files_of(place, "*.graph"), files_of(place, "*.idx")
    last = len(data.read_bytes())
    begin = int(index.read_text().splitlines()[3].split()[3].split(":")[1])
    opened = [path.rename(f"{path}.open") for path in (data, index)]
    for end in (begin, (begin + last) // 2, last - 1):
        with opened[0].open("r+b") as file:
            file.truncate(end)
        assert collected(tmp_path / f"cut{end}", place) == whole
        with opened[0].open("r+b") as file:
            file.truncate(begin)


class Written:
    """A part that shows what it has."""

    def __init__(self) -> None:
        self.data = b""

    def append(self, name: str, data: bytes) -> None:
        self.data += data

    def end_of(self, name: str) -> int:
        return len(self.data)


def test_a_text_is_in_each_part_once_and_again_where_it_was_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    store = GraphStore({}, Settings())

    def texts(part: Any, *numbers: int) -> list[bytes]:
        begin = len(part.data)
        store.write(GraphPayload([url(n) for n in numbers], bytes(len(numbers) - 1), 200, 1, 1.0), part)
        return unpacked(part.data[begin:]).texts

    def named(*numbers: int) -> list[bytes]:
        return [url(n).encode() for n in numbers]

    first, second = Written(), Written()
    assert texts(first, 1, 2, 3, 2) == named(1, 2, 3)
    before = first.data
    assert texts(first, 4, 1) == named(4) and texts(first, 1, 4) == []
    first.data = before
    assert texts(first, 4, 1) == named(4, 1), "what was taken back names nothing"
    assert texts(second, 1, 2, 3) == named(1, 2, 3)
    monkeypatch.setattr(graph_store, "FORMS", 2)
    assert texts(second, *range(9)) == named(0, 4, 5, 6, 7, 8)


def test_a_key_without_a_text_is_counted(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "a")

    class Nameless(GraphStore):
        def write(self, payload: Any, part: Any) -> None:
            part.append(ENDING, packed(keys_in([url(1), url(2)]), b"\0", [url(1)], 200, 1, 1.0))

    kept.writer.put([Bundle(Nameless({}, Settings()), "n", 0, "ok", 1, 1)])
    kept.flush()
    kept.close()
    numbered = graph(tmp_path / "out", tmp_path / "a")
    assert (numbered.found.unnamed, numbered.found.nodes) == (1, 1)


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_numbers_and_lines_are_sorted_each_once(tmp_path: Path, most: int) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    draws = random.Random(seed)
    numbers = [draws.choice((draws.getrandbits(64), draws.randrange(50), 2**64 - 1)) for _ in range(600)]
    sorter, texts = NumberSorter(tmp_path, "n", most), LineSorter(tmp_path, "l", most)
    for start in range(0, 600, 3):
        sorter.add(np.array(numbers[start : start + 3], np.uint64))
    for number in numbers:
        texts.add(b"%d\n" % number)
    assert [one for block in sorter.blocks() for one in block.tolist()] == sorted(set(numbers))
    assert list(texts.lines()) == sorted({b"%d\n" % number for number in numbers})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("form", "host"),
    [
        ("http://www.example.com/x", "com.example.www"),
        ("https://user:p@www.example.com:8080/", "com.example.www:8080"),
        ("http://127.0.0.1:8000/a", "127.0.0.1:8000"),
        ("http://[::1]:80/", "[::1]:80"),
        ("http://localhost/", "localhost"),
    ],
)
def test_hosts_are_reversed(form: str, host: str) -> None:
    assert reversed_host(form) == host


def test_a_record_has_a_head_of_40_bytes() -> None:
    assert HEAD.size == 40


@pytest.mark.parametrize(
    "host", ["163.example", "www.163.example:8080", "1.2.3.example", "10.0.0.1", "10.0.0.1:81", "[::1]:81", "localhost"]
)
def test_a_reversed_host_has_its_usual_order_again(host: str) -> None:
    assert usual_host(reversed_host(f"http://{host}/")) == host
