"""A file that is whole under its name, or is not there: it is written beside, and renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(output: str | Path) -> Iterator[Path]:
    """Give the place to write to: what is there at the end gets the name `output`; after an error nothing is left of
    it, and what had that name before has it still. Raises OSError."""
    beside = Path(f"{output}.part")
    try:
        yield beside
        os.replace(beside, output)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
