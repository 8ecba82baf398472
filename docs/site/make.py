"""The documentation as a site, in build/site: `make docs`.

    python docs/site/make.py [--serve] [--to DIRECTORY]

Pages are written for people who read them in the repository. So they are staged first, in build/site-source:

* Links that leave docs/ lead to a copy of that file under `repository/`; those to a directory are plain text there.
* A list or a table directly below a paragraph gets an empty line before it, and what belongs to an item is indented by
  four: GitHub does not need that, Python-Markdown does.
* The navigation follows docs/README.md: each section has its pages in the order in which that page names them.

For language models the site has `llms.txt`, a list of its pages with a sentence for each, and `llms-full.txt`, the
pages themselves as one text (without decisions and what is outside of docs/).

Then MkDocs builds them, strict: a link that leads nowhere, an anchor that is not there or a page outside of the
navigation is an error. So is a page that would load anything from another server.

Rules of this module: it writes below build/ only (or `--to`), and reads nothing over the network. MkDocs is imported
where it is called: pages can be staged, and that be tested, without it.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent
ROOT = DOCS.parent
STAGED = ROOT / "build" / "site-source"
SITE = ROOT / "build" / "site"
COPIES = "repository"  # below it lie copies of files that are not in docs/
PORT = 8000
SECTIONS = {
    "tutorial": "Tutorial",
    "how-to": "How-to guides",
    "deploy": "Recipes",
    "reference": "Reference",
    "explanation": "Explanation",
    "decisions": "Decisions",
}
FILES = (".svg", ".png")
BOOST = {"reference": 3, "how-to": 2, "tutorial": 2, "decisions": 0.5, COPIES: 0.5}  # which page search shows first

_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_ITEM = re.compile(r"( *)(?:[-*]|\d+\.) +\S")
_LOADED = {
    ".html": re.compile(r"<(?:script|img|iframe|source)\b[^>]*?\bsrc=[\"']?((?:https?:)?//[^\"'\s>]+)"
                        r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preconnect|preload|icon))"
                        r"[^>]*?\bhref=[\"']?((?:https?:)?//[^\"'\s>]+)"),
    ".css": re.compile(r"@import\s+[\"']((?:https?:)?//[^\"']+)|url\(\s*[\"']?((?:https?:)?//[^\"')]+)"),
}  # fmt: skip
_FENCE = re.compile(r" *```")
Nav = list[dict[str, object]]


class ForeignRequest(Exception):
    """A page of the site would load something from another server."""


def staged_name(file: Path) -> str:
    """The place of a file among the staged ones, as a path with slashes. What browsers would not show has the ending
    `.txt`; a dot at the beginning, which hides files from MkDocs, is left out."""
    inside = file.is_relative_to(DOCS)
    name = file.relative_to(DOCS if inside else ROOT)
    shown = name.with_name(name.name.removeprefix(".")).as_posix()
    ending = "" if file.suffix in (".md", ".txt", *FILES) else ".txt"
    return f"{shown}{ending}" if inside else f"{COPIES}/{shown}{ending}"


class Staging:
    """The pages, as they are copied: what they lead to comes with them."""

    def __init__(self, to: Path) -> None:
        self._to = to
        self._done: set[Path] = set()

    def page(self, file: Path) -> None:
        """Stage a page, and all outside of docs/ that it leads to."""
        if file in self._done:
            return
        self._done.add(file)
        text = "\n".join(for_python_markdown(file.read_text().split("\n"))) if file.suffix == ".md" else ""
        there = self._to / staged_name(file)
        there.parent.mkdir(parents=True, exist_ok=True)
        if text:
            there.write_text(_LINK.sub(lambda found: self._link(file, found), text))
        else:
            shutil.copyfile(file, there)

    def _link(self, source: Path, found: re.Match[str]) -> str:
        before, target, anchor, after = found[1], found[2], found[3] or "", found[4]
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        file = Path(os.path.normpath(source.parent / target))
        index = file / "README.md"
        if file.is_dir() and index.exists():
            file = index
        if file.is_dir() or not file.is_relative_to(ROOT):
            return "]{}"  # nothing to show: the words stay (`drop_links`)
        if not file.exists():
            return found[0]  # MkDocs says it
        if not file.is_relative_to(DOCS) or file.suffix not in (".md", *FILES):
            self.page(file)
        start = PurePosixPath(staged_name(source)).parent
        return f"{before}{os.path.relpath(staged_name(file), start)}{anchor}{after}"


def drop_links(text: str) -> str:
    """Words in place of links that lead to nothing that is shown."""
    return re.sub(r"\[([^\]\n]+)\]\{\}", r"\1", text)


def for_python_markdown(lines: list[str]) -> Iterator[str]:
    """What GitHub reads as a list or a table, written so that Python-Markdown does, too."""
    fenced, before, inside = False, "", 0  # inside: how far the text of the list that we are in is indented
    for line in lines:
        fenced ^= bool(_FENCE.match(line))
        item = None if fenced else _ITEM.match(line)
        if item and not item[1]:
            is_first, inside = not inside, len(item[0]) - 1
        else:
            is_first, inside = False, inside if line.startswith(" ") or not line or before else 0
        is_table = not fenced and line.startswith("|") and not before.startswith("|")
        if before.strip() and (is_first or is_table):
            yield ""
        yield " " * (4 - inside) + line if 0 < inside < 4 and line.startswith(" " * inside) else line
        before = line


def title(page: Path) -> str:
    """The heading of a page."""
    return page.read_text().split("\n", 1)[0].removeprefix("# ").replace("`", "")


def navigation() -> Nav:
    """Section by section, in the order of docs/README.md; what it does not name comes last, by name."""
    named = re.findall(r"\]\(([^)#]+\.md)", (DOCS / "README.md").read_text())
    first: Nav = [{"Start here": "README.md"}]
    for folder, name in SECTIONS.items():
        files = {str(file.relative_to(DOCS)) for file in (DOCS / folder).glob("*.md")}
        order = [f"{folder}/README.md", *(page for page in dict.fromkeys(named) if page in files), *sorted(files)]
        pages = [page for page in dict.fromkeys(order) if page in files]
        if pages:
            first.append({name: [{title(DOCS / page): page} for page in pages]})
    loose = sorted(file for file in DOCS.glob("*.md") if file.name != "README.md")
    own = [{title(file): file.name} for file in loose]
    project = [{"README": f"{COPIES}/README.md"}, *own, {"Changes": f"{COPIES}/CHANGELOG.md"}]
    examples = sorted((ROOT / "example_project").rglob("README.md"))
    figures = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
    return [*first, {"Project": [*project, *({title(file): staged_name(file)} for file in [*examples, *figures])]}]


def stage(to: Path = STAGED) -> None:
    """Write all pages, pictures and what they lead to."""
    shutil.rmtree(to, ignore_errors=True)
    staging = Staging(to)
    pages = [page for page in DOCS.rglob("*") if page.suffix in (".md", *FILES) and HERE not in page.parents]
    readmes = (ROOT / "example_project").rglob("README.md")
    figures = (ROOT / "benchmarks" / "results").glob("*.md")
    for page in [*pages, ROOT / "README.md", ROOT / "CHANGELOG.md", *readmes, *figures]:
        staging.page(page)
    for page in to.rglob("*.md"):
        boost = BOOST.get(page.relative_to(to).parts[0], 1)
        page.write_text(f"---\nsearch: {{boost: {boost}}}\n---\n\n{drop_links(page.read_text())}")
    shutil.copytree(HERE / "assets", to / "assets")


def first_sentence(page: Path) -> str:
    """What a page begins with below its heading: the words of its first paragraph, up to the end of a sentence."""
    for block in page.read_text().split("\n\n")[1:]:
        if block[:1].isalpha() or (block[:1] in "*`[" and not block.startswith("```")):
            words = " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", block).replace("**", "").split())
            return re.split(r"(?<=\.) ", words, maxsplit=1)[0].rstrip(":")
    return ""


def write_for_models(site: Path) -> None:
    """Write `llms.txt` and `llms-full.txt` into the site."""
    lines = ["# scrapy-ubi", "", f"> {first_sentence(ROOT / 'README.md')}", ""]
    texts = []
    for section in navigation():
        for name, pages in section.items():
            files = [(title(DOCS / page), page) for page in _pages(pages) if (DOCS / page).is_file()]
            if name != "Decisions" and files:
                lines += [f"## {name}", ""]
                for heading, page in files:
                    sentence = first_sentence(DOCS / page)
                    place = "index.html" if page == "README.md" else f"{page.removesuffix('.md')}.html"
                    lines.append(f"- [{heading}]({place}){f': {sentence}' if sentence else ''}")
                    texts.append(f"<!-- docs/{page} -->\n\n{(DOCS / page).read_text().strip()}\n")
                lines.append("")
    (site / "llms.txt").write_text("\n".join(lines))
    (site / "llms-full.txt").write_text("\n".join(texts))


def _pages(pages: object) -> Iterator[str]:
    """The files of a part of the navigation."""
    if isinstance(pages, str):
        yield pages
    elif isinstance(pages, list | dict):
        for part in pages.values() if isinstance(pages, dict) else pages:
            yield from _pages(part)


def loads_from_elsewhere(site: Path) -> list[str]:
    """What a browser would load from another server while it shows a page of this site: file and URL, sorted."""
    found = []
    for file in site.rglob("*"):
        if pattern := _LOADED.get(file.suffix):
            urls = {first or second for first, second in pattern.findall(file.read_text(errors="replace"))}
            found += [f"{file.relative_to(site)}: {url}" for url in urls]
    return sorted(found)


def make(to: Path) -> None:
    """Stage and build. Raises mkdocs.exceptions.Abort when something leads nowhere, ForeignRequest when something is
    loaded from elsewhere."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    stage()
    config = load_config(
        str(HERE / "mkdocs.yml"), docs_dir=str(STAGED), site_dir=str(to), nav=navigation(), strict=True
    )
    build(config)
    write_for_models(to)
    if foreign := loads_from_elsewhere(to):
        raise ForeignRequest("\n".join(["These would be loaded from another server:", *foreign]))


def serve(site: Path) -> None:
    """Show it on loopback, until Ctrl-C."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", PORT), handler) as server:
        print(f"http://127.0.0.1:{PORT}/ (Ctrl-C ends it)", flush=True)
        server.serve_forever()


def main() -> int:
    parser = argparse.ArgumentParser(description="The documentation as a site.")
    parser.add_argument("--serve", action="store_true", help="show it on loopback")
    parser.add_argument("--to", type=Path, default=SITE, help="where the site goes")
    chosen = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    try:
        make(chosen.to.resolve())
    except ForeignRequest as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{chosen.to}: {sum(1 for _ in chosen.to.rglob('*.html'))} pages, no link leads nowhere.")
    if chosen.serve:
        try:
            serve(chosen.to)
        except KeyboardInterrupt:
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
