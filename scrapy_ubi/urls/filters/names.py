"""Sets of host names that also stand for all hosts below them: a million names in 8 bytes each.

A name is kept as 64 bits of its MurmurHash3, sorted; that a host is taken for one of a million names by chance happens
to one in 10^13. Looking up a host costs a search for each of its labels.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mmh3 import hash64

from scrapy_ubi.ground.later import Later
from scrapy_ubi.urls.filters.filter_text import FilterError
from scrapy_ubi.urls.normal import USUAL_HOST, host_and_port, normal_form

if TYPE_CHECKING:
    import numpy as np
else:
    np = Later("numpy")

NAMES_SEED = 0x6E616D65  # "name"

_usual_host = re.compile(USUAL_HOST).fullmatch


def host_name(text: str) -> str | None:
    """A host in normal form; None for what is none, or has a port."""
    name = text.strip().lower()
    if _usual_host(name):
        return name
    if not name or any(character in name for character in "/?#@\\"):
        return None
    normal = normal_form(f"http://{name}/")
    host, port = host_and_port(normal) if normal is not None else ("", "")
    # The default port is dropped by then: a colon outside of brackets was one.
    return None if port or not host or ":" in name.rpartition("]")[2] else host


class NameSet:
    """Host names, of which each stands for the hosts below it as well."""

    def __init__(self, names: Iterable[str]) -> None:
        found = array("Q", (hash64(name, NAMES_SEED, signed=False)[0] for name in names))
        self._hashes = array("Q", np.unique(np.frombuffer(found, np.uint64)).tobytes()) if found else found

    def __len__(self) -> int:
        return len(self._hashes)

    def __contains__(self, host: str) -> bool:
        hashes = self._hashes
        most = len(self._hashes)
        while host:
            wanted = hash64(host, NAMES_SEED, signed=False)[0]
            at = bisect_left(hashes, wanted)
            if at < most and hashes[at] == wanted:
                return True
            host = host.partition(".")[2]
        return False


def read_names(path: Path) -> NameSet:
    """The names of a file, one a line. Raises FilterError with the number of the first line that is none.

    Empty lines and what follows a `#` are passed over; of a line with commas or tabs the last field is taken, as public
    lists have a rank before the name; a leading `*.` or `.` is dropped.
    """
    remedy = "name a text file with one host name a line"
    try:
        with path.open(encoding="utf-8") as lines:
            names = NameSet(_names(path, lines))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise FilterError(f"cannot read {str(path)!r} ({reason})", remedy) from None
    if not names:
        raise FilterError(f"finds no name in {str(path)!r}", remedy)
    return names


def _names(path: Path, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        text = line.strip()
        usual = text.rpartition(",")[2]
        if _usual_host(usual) and "#" not in text:
            yield usual
            continue
        text = text.partition("#")[0].strip()
        if not text:
            continue
        field = text.replace("\t", ",").rpartition(",")[2].strip().removeprefix("*").removeprefix(".")
        name = host_name(field)
        if name is None:
            raise FilterError(
                f"finds {field[:60]!r} in line {number} of {str(path)!r}", "write one host name a line, without a port"
            )
        yield name
