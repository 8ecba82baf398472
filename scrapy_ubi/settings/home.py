"""Where the directories of agents lie that were not given one: `.ubi` in the root of the Scrapy project.

Rules of this module:

* The root is the nearest directory, from the working directory upwards, with a `scrapy.cfg` in it, as Scrapy has it;
  where there is none, it is the working directory.
* A crawl that an older version began in the working directory is found there, as long as the root has none of its name.
* `.ubi` keeps itself out of Git by a `.gitignore` of its own.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

HOME = Path(".ubi")
_IGNORE = "*\n"


def home() -> Path:
    """`.ubi` of this project; relative where the working directory is the project's root."""
    here = Path.cwd()
    root = next((path for path in (here, *here.parents) if (path / "scrapy.cfg").exists()), here)
    return HOME if root == here else root / HOME


def directory(crawl: str) -> Path:
    """Where agents of this crawl live."""
    usual, former = home() / crawl, HOME / crawl
    return former if former.is_dir() and not usual.is_dir() else usual


def is_former(path: Path) -> bool:
    """Whether a directory of `directory` is one where an older version had it."""
    return path.parent == HOME and home() != HOME


def remark(path: Path) -> str:
    """What is to be said where a crawl goes on in such a directory."""
    return (
        f"The crawl's directory is {path.absolute()}, in the working directory, where an older version has put it; "
        f"those of new crawls are in {home().absolute()}."
    )


def homes() -> list[Path]:
    """The places to look for directories of agents: `.ubi` of the project, and of the working directory."""
    return list(dict.fromkeys((home(), HOME)))


def keep_out_of_git(path: Path) -> None:
    """Have Git ignore what lies in `.ubi`, where `path` is a directory in it. It is no error if that cannot be."""
    if path.parent.name == HOME.name:
        with suppress(OSError), open(path.parent / ".gitignore", "x", encoding="utf-8") as file:
            file.write(_IGNORE)
