"""A crawl of one agent where packages are missing that are not there for every Python: the same items."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.project import Project
from tests.support.site import Site, links

pytestmark = pytest.mark.processes

HOSTS = ("http://h1.example", "http://xn--bcher-kva.example")
PAGES = [f"{host}/{path}" for host in HOSTS for path in ("", "a?b=%C3%BC", "c/d")]
WITHOUT = """
    import sys

    sys.modules.update(dict.fromkeys({names!r}))
"""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        odd = ["http://B\u00fccher.EXAMPLE:80/c/./d", "/c/x/../d", "/a?b=\u00fc", "http://[::1", "http://0x7f.1.1.1.1/"]
        for page in PAGES:
            running.page(page, links(*PAGES, *odd))
        yield running


def without(project: Project, *names: str) -> None:
    """From now on the processes of this project cannot import these."""
    hook = project.place / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(textwrap.dedent(WITHOUT.format(names=names)))
    project.environment["PYTHONPATH"] = str(hook)


def crawled(project: Project, name: str, *settings: str) -> list[str]:
    """The URLs of the items of a crawl, in a directory of its own."""
    options = [option for setting in (*settings, f"UBI_DIR={name}") for option in ("-s", setting)]
    status, output = project.run("crawl", "plain", "-O", f"{name}.jsonl", *options, fresh=True)
    assert status == 0 and "Closing spider (finished)" in output and "Traceback" not in output, output
    return sorted(item["url"] for item in project.items(f"{name}.jsonl"))


def test_without_rocksdict_and_can_ada_the_items_are_the_same(tmp_path: Path, site: Site) -> None:
    project = Project(tmp_path, site.proxy)
    with_both = crawled(project, "with")
    assert len(with_both) == len(PAGES)
    without(project, "rocksdict", "can_ada")
    assert crawled(project, "without") == with_both
    assert (tmp_path / "with" / "store" / "CURRENT").exists()
    assert (tmp_path / "without" / "store" / "rows.sqlite").exists()


def test_a_directory_of_the_other_engine_is_refused_with_one_sentence(tmp_path: Path, site: Site) -> None:
    project = Project(tmp_path, site.proxy)
    crawled(project, "agent", "UBI_STORE_ENGINE=sqlite")
    refused = ("crawl", "plain", "-s", "UBI_DIR=agent", "-s", "UBI_STORE_ENGINE=rocksdb", "-s", "LOG_LEVEL=WARNING")
    status, output = project.run(*refused)
    assert status == 1 and output.startswith("scrapy_ubi: ") and output.count("\n") == 1, output
    assert 'UBI_STORE_ENGINE is "rocksdb": set it to "sqlite" or "auto"' in output
    assert (tmp_path / "agent" / "store" / "rows.sqlite").exists()


NOT_OURS = """
    import builtins
    real = builtins.__import__
    def imported(name, globals=None, *arguments, **named):
        if name == "{name}" and globals and str(globals.get("__name__")).startswith("scrapy_ubi"):
            raise ImportError("there is no " + name)  # Twisted on Linux cannot be without it
        return real(name, globals, *arguments, **named)
    builtins.__import__ = imported
    """
# What other systems lack, taken away one by one. The signals that are left are those of Windows, and one
# that Twisted needs on Linux.
TAKEN_AWAY = {
    "fcntl": NOT_OURS.format(name="fcntl"),
    "resource": NOT_OURS.format(name="resource"),
    "epoll": "import select; del select.epoll",
    "malloc_trim": """
        import ctypes
        real = ctypes.CDLL
        def library(name, *arguments, **named):
            if name is None:
                raise OSError("there is no such library")
            return real(name, *arguments, **named)
        ctypes.CDLL = library
        """,
    "proc": """
        import builtins, io, os
        def hidden(real):
            def call(file, *arguments, **named):
                if isinstance(file, (str, os.PathLike)) and os.fspath(file).startswith("/proc"):
                    raise FileNotFoundError(2, "No such file or directory", file)
                return real(file, *arguments, **named)
            return call
        builtins.open = io.open = hidden(io.open)
        os.listdir, os.scandir, os.readlink = hidden(os.listdir), hidden(os.scandir), hidden(os.readlink)
        """,
    "signals": """
        import signal
        for name in [name for name in dir(signal) if name.startswith("SIG") and name[3] != "_"]:
            if name not in ("SIGINT", "SIGTERM", "SIGABRT", "SIGFPE", "SIGILL", "SIGSEGV", "SIGCHLD"):
                delattr(signal, name)
        """,
    "functions of Linux": """
        import mmap, os
        for name in ("posix_fallocate", "sched_getaffinity", "getloadavg"):
            delattr(os, name)
        for name in ("O_CLOEXEC", "O_DIRECTORY"):
            delattr(os, name)
        for name in [name for name in dir(mmap) if name.startswith("MADV_")]:
            delattr(mmap, name)
        """,
}


@pytest.mark.parametrize("what", TAKEN_AWAY)
def test_where_the_system_lacks_something_an_agent_alone_still_crawls(tmp_path: Path, site: Site, what: str) -> None:
    project = Project(tmp_path, site.proxy)
    spiders = tmp_path / "project" / "spiders"
    (spiders / "walk.py").unlink()  # it sends itself signals
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(f"import sys\n{textwrap.dedent(TAKEN_AWAY[what])}\n")
    project.environment["PYTHONPATH"] = str(hook)
    assert len(crawled(project, "agent")) == len(PAGES)
