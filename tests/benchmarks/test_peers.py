"""The benchmark beside Scrapy and scrapy-redis: its arithmetic, its page, what it says when something is missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
sys.path.insert(0, str(FOLDER))  # the benchmarks are scripts, which find each other beside themselves
sys.path.insert(0, str(FOLDER / "crawl"))

import links  # noqa: E402
import mail  # noqa: E402
import peers  # noqa: E402
import peers_show  # noqa: E402
import systems  # noqa: E402
import web  # noqa: E402
from pages import END, spread  # noqa: E402
from peers_aims import AIMS, Aim, memory_at, ratio  # noqa: E402

PAGES = [f"{size // 1000} kB with {count}" for size, count, _ in links.SIZES]


def test_the_page_holds_the_committed_figures() -> None:
    figures = json.loads((FOLDER / "results" / "peers.json").read_text(encoding="utf-8"))
    page = (ROOT / "benchmarks" / "results" / "peers.md").read_text(encoding="utf-8")
    tables = page.partition(peers_show.BEGIN)[2].partition(END)[0]
    assert tables == f"\n{peers_show.tables(figures)}\n", "python benchmarks/peers.py --only '' --json ... --doc ..."


def test_an_aim_is_judged_by_the_median_of_paired_rounds() -> None:
    rounds = [{"a": {"cpu_ms": a}, "b": {"cpu_ms": b}} for a, b in ((1.0, 10.0), (3.0, 10.0), (2.0, 5.0))]
    figures = {"pages": {"rounds": rounds}}
    assert Aim("", 0.3, ratio("pages", "a", "b")).judge(figures) == ([0.1, 0.3, 0.4], True)
    assert Aim("", 0.29, ratio("pages", "a", "b")).judge(figures) == ([0.1, 0.3, 0.4], False)
    assert Aim("", 0.3, ratio("pages", "a", "b"), at_least=True).judge(figures) == ([0.1, 0.3, 0.4], True)
    assert Aim("", 0.3, ratio("pages", "a", "c")).judge(figures) is None, "c has not run"
    assert Aim("", 0.3, ratio("two", "a", "b")).judge(figures) is None


def test_aims_name_systems_that_there_are() -> None:
    row = {"cpu_ms": 1.0, "redis_cpu_ms": 1.0, "redis_commands": 1.0, "pages_per_second": 1.0}
    everything = {
        "pages": {"rounds": [dict.fromkeys(systems.PEERS, row)]},
        "later": {"rounds": [dict.fromkeys(systems.PEERS, row)]},
        "two": {"rounds": [{name: row for name in systems.PEERS if name.endswith("2")}]},
        "hosts": {"rounds": [{name: {"1": row, "2": row} for name in systems.PEERS}], "settings": {"sizes": [1, 2]}},
        "memory": {"runs": {name: {"samples": [(30_000, 1.0, 1.0)]} for name in systems.PEERS}},
        "micro": {"seconds": {f"page of {page} links: its links": {"ours": 1.0, "theirs": 9.0} for page in PAGES}},
    }
    assert all(aim.judge(everything) for aim in AIMS)
    assert systems.LABELS.keys() == systems.PEERS.keys()


def test_memory_is_the_most_so_far() -> None:
    figures = {"memory": {"runs": {"a": {"samples": [(10, 5.0, 5.0), (100, 3.0, 6.0), (200, 4.0, 7.0)]}}}}
    assert [memory_at(figures, "a", pages) for pages in (5, 50, 200)] == [5.0, 6.0, 7.0]
    with pytest.raises(KeyError):
        memory_at(figures, "a", 201)


def test_a_single_round_has_no_range() -> None:
    assert spread([1.0]) == "1.00"
    assert spread([3.0, 1.0, 2.0], "{:.0f}") == "2 (1-3)"


def test_scattered_pages_are_as_described() -> None:
    graph = web.Scattered(300, 30_000)
    for place in (0, 7, 299):
        page = graph.html(place, 1)
        links = [part.partition(b'"')[0] for part in page.split(b'href="')[1:]]
        away = [link for link in links if link.startswith(b"http") and graph.names[place] not in link]
        assert 13_000 < len(page) < 15_500
        assert len(links) == 40
        assert 7 <= len(away) <= 10, "those to other hosts, less what led to this one by chance"
        assert page == graph.html(place, 1), "a page is a pure function of its address"


def test_a_letter_that_was_told_is_taken() -> None:
    one, other, hosts = mail.two_agents()
    before = other.counters.received
    mail.take(other, mail.tell(one, mail.entries(0, hosts)))
    assert other.counters.received - before == mail.URLS
    assert not len(one.outbox)


def asked(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["peers.py", *arguments])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--only", "pages,nothing"], "no part nothing: there are pages,"),
        (["--systems", "walk1,squid"], "no system squid: there are scrapy,"),
    ],
)
def test_what_does_not_exist_is_named(
    arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(monkeypatch, *arguments)
    with pytest.raises(SystemExit):
        peers.options()
    assert sentence in capsys.readouterr().err


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    asked(monkeypatch, "--systems", "walk1,redis2")
    with pytest.raises(SystemExit):
        peers.options()
    assert "redis2: scrapy-redis is not installed: pip install -e '.[bench]'" in capsys.readouterr().err
    asked(monkeypatch, "--only", "", "--plot", "somewhere")
    with pytest.raises(SystemExit):
        peers.options()
    assert "matplotlib is not installed" in capsys.readouterr().err


def test_tables_can_be_written_without_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = tmp_path / "page.md"
    document.write_text(f"before\n{peers_show.BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    asked(monkeypatch, "--only", "", "--json", str(FOLDER / "results" / "peers.json"), "--doc", str(document))
    args = peers.options()
    figures = json.loads(args.json.read_text(encoding="utf-8"))
    peers.measure(args, figures)
    peers_show.show(figures, args.doc, args.plot)
    text = document.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "ms CPU, crawlers" in text
