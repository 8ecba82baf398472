"""A short digest of a spider's code, by which agents on several machines see that one was not updated.

Rules of this module:

* It is of the sources of the modules that hold the spider's class and its bases, as they are on disk at the start:
  those of the project, not of libraries. Line ends do not count.
* Where a source cannot be read, or is too large, there is no digest, and nothing is compared.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

LARGEST = 1_000_000  # bytes of a module
MOST = 20  # modules
DIGITS = 4  # bytes of a digest: 8 hex digits
_LIBRARIES = ("scrapy", "scrapy_ubi")


def digest(spider: type, packages: Iterable[str] = ()) -> str:
    """8 hex digits; "" where there is nothing to tell. `packages`: modules of the project (SPIDER_MODULES), which are
    its own wherever they are installed."""
    own = {name.partition(".")[0] for name in packages}
    names = dict.fromkeys(cls.__module__ for cls in spider.__mro__)
    files = {name: file for name in names if (file := _source(name, own)) is not None}
    if not files or len(files) > MOST:
        return ""
    total = blake2b(digest_size=DIGITS)
    for name, file in files.items():
        try:
            if file.stat().st_size > LARGEST:
                return ""
            text = file.read_bytes().replace(b"\r\n", b"\n")
        except OSError:
            return ""
        total.update(f"{file.name if name == '__main__' else name} {len(text)}\n".encode() + text)
    return total.hexdigest()


def _source(name: str, own: set[str]) -> Path | None:
    """The file of a module of the project; None for any other."""
    top, file = name.partition(".")[0], getattr(sys.modules.get(name), "__file__", None)
    if top in _LIBRARIES or not isinstance(file, str) or not file.endswith(".py"):
        return None
    path = Path(file)
    paths = sysconfig.get_paths()
    places = {Path(paths[kind]) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    return path if top in own or not any(path.is_relative_to(place) for place in places) else None
