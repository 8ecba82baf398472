"""Golden transcripts: `python -m tests.simulation.transcripts [NAME ...]` plays scenes; `--write` rewrites their files,
`--list` prints the lines of docs/explanation/hard-cases.md.

The docstring of a scene is the head of its file: the hard case in a sentence, the rule that answers it, what to look
at. The test compares every run with tests/simulation/golden/NAME.txt; a change of the protocol that changes a file is
to be read, not only written.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from inspect import cleandoc
from pathlib import Path

from tests.simulation.scene import Scene
from tests.simulation.scenes import accidents, changes, found, mail

GOLDEN = Path(__file__).parent / "golden"
HEAD = re.compile(r"(?P<case>.+?)\n\nRule: (?P<rule>.+?)\nLook: .+", re.DOTALL)

SCENES: dict[str, Callable[[], Scene]] = {
    name: play
    for module in (changes, mail, found, accidents)
    for name, play in vars(module).items()
    if callable(play) and play.__module__ == module.__name__ and not name.startswith("_")
}


def head(name: str) -> re.Match[str]:
    """What is said of a scene: its `case` and its `rule`."""
    told = HEAD.fullmatch(cleandoc(SCENES[name].__doc__ or ""))
    assert told is not None, f"the docstring of {name} is to say the case, 'Rule: ...' and 'Look: ...'"
    return told


def text(name: str) -> str:
    """The whole file of a scene: its head and what happens."""
    top = "\n".join(f"# {line}".rstrip() for line in head(name).group().splitlines())
    return f"{top}\n\n" + "\n".join(SCENES[name]().lines) + "\n"


def row(name: str) -> str:
    """The line of a scene in the list of hard cases."""
    case = " ".join(head(name)["case"].split())
    return f"- [{case}](../../tests/simulation/golden/{name}.txt)"


def main() -> None:
    """Print transcripts, or write them where the tests look for them."""
    parser = argparse.ArgumentParser(description="Transcripts of the hard cases.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which (default: all)")
    parser.add_argument("--write", action="store_true", help="write the golden files instead of printing")
    parser.add_argument("--list", action="store_true", help="print the lines of the list of hard cases")
    options = parser.parse_args()
    for name in options.names or SCENES:
        if options.list:
            print(row(name))
        elif options.write:
            (GOLDEN / f"{name}.txt").write_text(text(name))
        else:
            print(f"== {name}\n{text(name)}")


if __name__ == "__main__":
    main()
