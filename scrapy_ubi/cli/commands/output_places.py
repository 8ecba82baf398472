"""Whether items can be written where `-o` and `-O` say, as far as that can be known before a crawl.

Rules of this module: it leaves nothing written. What it cannot judge (a bucket, another machine) it lets pass.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from urllib.parse import unquote, urlsplit

from scrapy import version_info
from scrapy.settings import BaseSettings

from scrapy_ubi.errors import UbiDirectoryError, UbiError
from scrapy_ubi.ground.untrusted.terminal_text import plain

# What Scrapy's own storages import, by scheme, and how it is installed.
# Before 2.19 Scrapy does with botocore, which boto3 brings along.
NEEDS: Mapping[str, tuple[str, str]] = {
    "s3": ("boto3" if version_info >= (2, 19) else "botocore", "boto3"),
    "gs": ("google.cloud.storage", "google-cloud-storage"),
}
LONGEST_NAME = 250  # bytes of a file's name: 255, with what it ends in while it is written
LONGEST = 200  # characters of a place that are shown


class UbiUnusableOutput(UbiError):
    """Items cannot be written to the place that was named."""


def check(uri: str, settings: BaseSettings) -> None:
    """Raise UbiUnusableOutput, UbiDirectoryError with one sentence where items cannot be written there."""
    if "://" in uri:
        scheme = uri.partition("://")[0].lower()
        if scheme != "file":
            _check_scheme(uri, scheme, settings)
            return
        uri = unquote(urlsplit(uri).path)
    check_file(uri)


def _check_scheme(uri: str, scheme: str, settings: BaseSettings) -> None:
    known = settings.get_component_priority_dict_with_base("FEED_STORAGES")
    if scheme not in known:
        raise UbiUnusableOutput(
            f"{plain(uri, LONGEST)} has the scheme {plain(scheme, 40)}://, which Scrapy cannot write to: use one of "
            f"{', '.join(sorted(name for name in known if name))}, or a file."
        )
    module, name = NEEDS.get(scheme, ("", ""))
    if module and not _is_there(module):
        raise UbiUnusableOutput(f"{plain(uri, LONGEST)} needs {name}, which is not installed: pip install {name}.")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor what it is in
        return False


def check_file(path: str) -> None:
    """Raise UbiDirectoryError where this file cannot be written, nor made with the directories that lead to it. What
    only Scrapy knows of its name (a time) is not asked for."""
    whole = Path(path)
    known = whole
    while "%(" in str(known):
        known = known.parent
    named, shown = known == whole, plain(path, LONGEST)
    for part in known.parts:
        if len(os.fsencode(part)) > LONGEST_NAME:
            raise UbiDirectoryError(f"{shown} cannot be made: {plain(part, 40)} is too long a name for a file.")
    if named and known.is_dir():
        raise UbiDirectoryError(f"{shown} is a directory: name a file in it.")
    if named and known.exists():
        if not os.access(known, os.W_OK):
            raise UbiDirectoryError(f"{shown} cannot be written (Permission denied): name another file.")
        return
    there = known.absolute() if not named else known.absolute().parent
    while not os.path.lexists(there) and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise UbiDirectoryError(f"{shown} cannot be made, as {plain(str(there), LONGEST)} is no directory.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UbiDirectoryError(
            f"{shown} cannot be made, as nothing can be written in {plain(str(there), LONGEST)} (Permission denied)."
        )
    try:
        with TemporaryFile(dir=there):  # full disks, /proc and the like refuse what their rights allow
            pass
    except OSError as error:
        raise UbiDirectoryError(
            f"{shown} cannot be made, as nothing can be written in {plain(str(there), LONGEST)} ({error.strerror})."
        ) from error
