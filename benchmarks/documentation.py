"""Documentation that is found on this machine, as sites: a real web for benchmarks, without a network.

A *site* is a directory with an `index.html` and enough pages below; one with too many is not one but what lies in it.
Its pages are those that links lead to from its front page, which is the first. Looked through by default, where there:

* `/usr/share/doc` and `/usr/share/gtk-doc`, as Debian's packages `*-doc` install;
* the documentation of rustup's stable toolchain;
* `realweb` in the directory for temporary files, and `$REALWEB_DIR`: packages that were unpacked there with `dpkg -x`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from posixpath import normpath
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser

FEWEST, MOST = 300, 40_000  # pages of a site
READ = 12_000  # pages that are read of one
LARGEST = 1 << 20  # bytes of a page; larger ones are left out
_PAGES = (".html", ".htm")


def default_places() -> list[Path]:
    """Where documentation may be."""
    realweb = Path(os.environ.get("REALWEB_DIR", Path(tempfile.gettempdir()) / "realweb"))
    rust = Path.home() / ".rustup/toolchains"
    places = [Path("/usr/share/doc"), Path("/usr/share/gtk-doc"), realweb, *sorted(rust.glob("stable-*/share/doc"))]
    return [place for place in places if place.is_dir()]


def find_sites(places: Sequence[Path]) -> dict[str, Path]:
    """Name -> directory."""
    found: dict[str, Path] = {}
    for place in places:
        for root in _sites(place):
            name = (
                "/".join(dict.fromkeys(part for part in root.relative_to(place).parts if part not in _COMMON))
                or place.name
            )
            found.setdefault(name, root)
    return dict(sorted(found.items()))


_COMMON = frozenset(("usr", "share", "doc", "html", "rust"))


def _sites(place: Path) -> Iterator[Path]:
    counts: dict[Path, int] = {}
    front: set[Path] = set()
    for at, _, files in os.walk(place, topdown=False):
        here = Path(at)
        counts[here] = counts.get(here, 0) + sum(name.endswith(_PAGES) for name in files)
        if "index.html" in files:
            front.add(here)
        if here != place:
            counts[here.parent] = counts.get(here.parent, 0) + counts[here]
    taken: set[Path] = set()
    for here in sorted(front, key=lambda path: len(path.parts)):
        if FEWEST <= counts[here] <= MOST and not taken.intersection(here.parents):
            taken.add(here)
            yield here


class Site:
    """The pages of a directory. `paths`: of each page, the front page first; `links`: numbers of pages, of each page
    those that it links to, itself among them, as often as it does."""

    def __init__(self, root: Path, most: int = READ) -> None:
        self.root = root
        numbers = {"index.html": 0}
        self.paths = ["index.html"]
        self.links: list[list[int]] = []
        for path in self.paths:  # grows while it is gone through
            to: list[int] = []
            for target in self._targets(path):
                number = numbers.get(target)
                if number is None and len(numbers) < most and self._is_page(target):
                    number = numbers[target] = len(numbers)
                    self.paths.append(target)
                if number is not None:
                    to.append(number)
            self.links.append(to)

    def body(self, number: int) -> bytes:
        """The bytes of a page."""
        return (self.root / self.paths[number]).read_bytes()

    def _is_page(self, target: str) -> bool:
        path = self.root / target
        try:
            return target.endswith(_PAGES) and path.is_file() and path.stat().st_size <= LARGEST
        except OSError:
            return False

    def _targets(self, path: str) -> Iterator[str]:
        folder = PurePosixPath(path).parent.as_posix()
        for node in LexborHTMLParser((self.root / path).read_bytes()).tags("a"):
            href = (node.attributes.get("href") or "").partition("#")[0].partition("?")[0].strip()
            if not href or ":" in href or href.startswith("/"):
                continue
            target = normpath(f"{folder}/{unquote(href)}")
            if not target.startswith(".."):
                yield f"{target}/index.html".removeprefix("./") if href.endswith("/") else target
