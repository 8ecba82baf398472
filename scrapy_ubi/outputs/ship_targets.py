"""Where sealed files are sent (UBI_SHIP): a directory, or an object store by way of obstore (the extra `[ship]`).

Rules of this module:

* Nothing is overwritten. What is there under the same name is the file itself, sent before, or `DifferentFile`.
* A file is there under its name whole, or not at all. It is read back and compared before it counts as sent; of an
  object store its size and the first and last bytes are, as it checks what it takes in itself.
* All calls block: they are made in the shipper's thread.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from scrapy_ubi.errors import UbiSettingError

CHUNK = 1 << 20
ENDS = 4096  # bytes at the beginning and at the end of an object that are compared
AT_ONCE = 64_000_000  # bytes of a file that is sent by one request, under the condition that nothing has its name
SCHEMES = ("s3", "gs", "az", "file")


class DifferentFile(Exception):
    """Under this name there is another file."""


class Target(Protocol):
    """Where files go."""

    def send(self, path: Path, name: str) -> bool:
        """Have this file there under that name; False where it was there already. Raises DifferentFile, and any other
        error where it may be tried again."""


def target_of(url: str) -> Target:
    """The target of a URL. Raises UbiSettingError where what it needs is not installed."""
    if url.startswith("file://"):
        return DirectoryTarget(Path(unquote(urlsplit(url).path)))
    try:
        import obstore
    except ImportError:
        raise UbiSettingError(
            "UBI_SHIP", "names an object store, and obstore is not installed", "run pip install 'scrapy-ubi[ship]'"
        ) from None
    return ObjectTarget(obstore, obstore.store.from_url(url))


class DirectoryTarget:
    """A directory: of another disk, or of a file server."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def send(self, path: Path, name: str) -> bool:
        """As `Target.send`."""
        there = self._path / name
        if there.exists():
            return self._same(path, there)
        there.parent.mkdir(parents=True, exist_ok=True)
        beside = there.with_name(f".{there.name}.{os.getpid()}.part")
        try:
            with path.open("rb") as source, beside.open("wb") as file:
                while data := source.read(CHUNK):
                    file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if _digest(beside) != _digest(path):
                raise OSError(f"{beside} is not what was written")
            try:
                os.link(beside, there)  # which fails where the name is taken
            except FileExistsError:
                return self._same(path, there)
            return True
        finally:
            with suppress(OSError):
                beside.unlink()

    @staticmethod
    def _same(path: Path, there: Path) -> bool:
        if path.stat().st_size != there.stat().st_size or _digest(path) != _digest(there):
            raise DifferentFile(str(there))
        return False


class ObjectTarget:
    """An object store. `api` is obstore, or what stands in for it."""

    def __init__(self, api: Any, store: Any) -> None:
        self._api = api
        self._store = store

    def send(self, path: Path, name: str) -> bool:
        """As `Target.send`. What is larger than `AT_ONCE` goes in pieces, which stores take without a condition."""
        size = path.stat().st_size
        if self._is_there(path, name, size):
            return False
        if size <= AT_ONCE:
            with suppress(self._api.exceptions.AlreadyExistsError):  # it is compared below
                self._api.put(self._store, name, path.read_bytes(), mode="create", use_multipart=False)
        else:
            self._api.put(self._store, name, path, use_multipart=True)
        if not self._is_there(path, name, size):
            raise OSError(f"{name} is not there after it was sent")
        return True

    def _is_there(self, path: Path, name: str, size: int) -> bool:
        """Raises DifferentFile."""
        try:
            facts = self._api.head(self._store, name)
        except FileNotFoundError:
            return False
        if facts["size"] != size:
            raise DifferentFile(name)
        with path.open("rb") as file:
            for start in {0, max(0, size - ENDS)} if size else ():
                end = min(size, start + ENDS)
                file.seek(start)
                if bytes(self._api.get_range(self._store, name, start=start, end=end)) != file.read(end - start):
                    raise DifferentFile(name)
        return True


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
