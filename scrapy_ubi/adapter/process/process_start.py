"""What an agent says of its start: since when its process has been on its way to its crawl, and the code of its spider.

`scrapy crawl` takes a second and more to come to its spider. A crawl that ends meanwhile has ended after this agent was
started, not before: agent/group/join.py makes something of it. A process that was not started for the crawl (a
notebook, a service) is none of this: its crawl begins when it is asked for.

By a short digest of a spider's code agents on several machines see that one was not updated. Rules of it:

* It is of the sources of the modules that hold the spider's class and its bases, as they are on disk at the start:
  those of the project, not of libraries. Line ends do not count.
* Where a source cannot be read, or is too large, there is no digest, and nothing is compared.
"""

from __future__ import annotations

import itertools
import os
import sys
import sysconfig
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from scrapy_ubi.ground import clock

STAT = Path("/proc/self/stat")
LONGEST = 60.0  # s: who has run for longer was not started for this crawl
IMPORTED = clock.now()  # this module, which is soon after the start
_crawls = itertools.count()  # of this process

LARGEST_SOURCE = 1_000_000  # bytes of a module of a spider
MOST_SOURCES = 20  # modules of a spider
DIGEST_BYTES = 4  # 8 hex digits
_LIBRARIES = ("scrapy", "scrapy_ubi")


def asked_for() -> float:
    """When, by `clock`, the crawl that is being opened was asked for: at the start of this process if it is the
    first one and the process is young, else now."""
    now = clock.now()
    if next(_crawls):
        return now
    begun = started()
    return begun if now - begun < LONGEST else now


def started() -> float:
    """When this process was started; where the system does not tell, when this module was imported."""
    try:
        # proc(5): field 22, in ticks since the machine was booted; the second field may hold spaces and parentheses.
        ticks = int(STAT.read_text().rpartition(")")[2].split()[19])
        begun = ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return IMPORTED
    return begun if 0 <= begun <= IMPORTED else IMPORTED


def code_digest(spider: type, packages: Iterable[str] = ()) -> str:
    """8 hex digits of a spider's code; "" where there is nothing to tell. `packages`: modules of the project
    (SPIDER_MODULES), which are its own wherever they are installed."""
    own = {name.partition(".")[0] for name in packages}
    names = dict.fromkeys(cls.__module__ for cls in spider.__mro__)
    files = {name: file for name in names if (file := _source(name, own)) is not None}
    if not files or len(files) > MOST_SOURCES:
        return ""
    total = blake2b(digest_size=DIGEST_BYTES)
    for name, file in files.items():
        try:
            if file.stat().st_size > LARGEST_SOURCE:
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
