"""What answers a sub-command of `scrapy ubi`: found by its name, and loaded when it is run."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser, _SubParsersAction

import pytest

from scrapy_ubi.cli.commands import answering
from scrapy_ubi.cli.commands.options import add_subcommands


@pytest.mark.parametrize("path", [*answering.RUNS.values(), *answering.QUERIES.values(), answering.HTML_REPORT])
def test_each_command_is_a_function(path: str) -> None:
    assert callable(answering.load_command(path))


def test_each_sub_command_is_answered() -> None:
    parser = ArgumentParser()
    add_subcommands(parser)
    (names,) = [action.choices for action in parser._actions if isinstance(action, _SubParsersAction)]
    assert set(names) == {*answering.RUNS, *answering.QUERIES, *answering.FIGURES}


def test_a_command_loads_none_of_the_others() -> None:
    loads = "from scrapy_ubi.cli.commands.answering import load_command; load_command('version.run')"
    asks = "import sys; print(*(name for name in sys.modules if name.startswith('scrapy_ubi.cli.commands.')))"
    told = subprocess.run([sys.executable, "-c", f"{loads}; {asks}"], capture_output=True, text=True, timeout=120)
    loaded = {name.rpartition(".")[2] for name in told.stdout.split()}
    assert "version" in loaded and loaded.isdisjoint({"doctor", "compare", "rank", "search", "run", "reset"}), told
