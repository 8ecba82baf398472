"""The end of a feed's file that is to be appended to: what a process that was killed has left of its last item.

Rules of this module:

* Appended to as it is, the torn item and the next one would make one line that cannot be read: the next one would be
  lost, and its page is done. So what is torn is cut off. Its page was not done, so it comes again.
* A last line that is whole and only lacks its end is completed.
* Only JSON lines, and CSV in its usual dialect, are looked at, in an encoding in which their bytes are ASCII.
* A file that cannot be read or cut is left as it is, with a warning.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import IO, Any

logger = logging.getLogger(__name__)

CHUNK = 1 << 20  # bytes read at a time
LINES = ("jsonlines", "jsonl", "jl")
CSV_DIALECT = ("quotechar", "escapechar", "quoting", "lineterminator", "doublequote", "dialect")


def mend(path: Path, options: dict[str, Any]) -> None:
    """Let the file of a feed with these options end with a whole item, where there is such a file."""
    as_text = options.get("format")
    is_csv = as_text == "csv" and not set(CSV_DIALECT) & set(options.get("item_export_kwargs") or ())
    if not (as_text in LINES or is_csv) or "postprocessing" in options or not _is_ascii(options.get("encoding")):
        return
    try:
        if not path.is_file():
            return
        with path.open("rb+") as file:
            _mend(file, path, is_csv)
    except OSError as error:
        logger.warning("The end of the feed %s cannot be looked at (%s).", path, error.strerror or error)


def _mend(file: IO[bytes], path: Path, is_csv: bool) -> None:
    size = file.seek(0, 2)
    end = _end_of_rows(file) if is_csv else _end_of_lines(file, size)
    if end == size:
        return
    file.seek(end)
    if not is_csv and _is_whole(file.read()):
        file.seek(0, 2)
        file.write(b"\n")
        return
    logger.warning(
        "The feed %s ends with a part of an item, of a process that was killed: these %d bytes are cut off, and the "
        "page is fetched again.",
        path,
        size - end,
    )
    file.truncate(end)


def _end_of_lines(file: IO[bytes], size: int) -> int:
    """Where the last whole line ends."""
    begin = size
    while begin:
        begin = max(0, begin - CHUNK)
        file.seek(begin)
        found = file.read(CHUNK).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
    return 0


def _end_of_rows(file: IO[bytes]) -> int:
    """Where the last whole row of a CSV ends: at the last line end that stands in no quotes."""
    file.seek(0)
    offset = end = 0
    quoted = False
    while chunk := file.read(CHUNK):
        found, quoted = _last_row_end(chunk, quoted)
        if found:
            end = offset + found
        offset += len(chunk)
    return end


def _last_row_end(chunk: bytes, quoted: bool) -> tuple[int, bool]:
    """Where in this chunk the last row ends (0: nowhere), and whether it ends in quotes; `quoted`: it begins so."""
    parts = chunk.split(b'"')
    ends_quoted = inside = quoted ^ (len(parts) % 2 == 0)
    end = len(chunk)
    for part in reversed(parts):
        if not inside and (found := part.rfind(b"\n")) >= 0:
            return end - len(part) + found + 1, ends_quoted
        end -= len(part) + 1
        inside = not inside
    return 0, ends_quoted


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _is_ascii(encoding: object) -> bool:
    try:
        return encoding is None or '{}",\n'.encode(str(encoding)) == b'{}",\n'
    except LookupError:
        return False
