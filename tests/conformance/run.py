"""Scrapy's own tests, of the version that is installed, with our download handler and the lean way: `make conformance`.

    python tests/conformance/run.py [--into DIRECTORY] [-- PYTEST-ARGUMENTS]

Scrapy's tests are not part of its wheel: its sdist is fetched by pip, once, into DIRECTORY, and unpacked. Four runs:
the tests of download handlers with ours in place (handler.py), with Twisted's reactor and without one; and tests of
whole crawls with all that is lean (leanway.py), with Scrapy's handler and with ours (ourhandler.py). What needs
mitmproxy or the real web is left out. They need pytest-twisted and pytest-asyncio.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
CRAWLS = (
    "test_crawl.py test_engine.py test_engine_close_spider.py test_engine_download.py test_engine_loop.py "
    "test_engine_stop_download_bytes.py test_engine_stop_download_headers.py test_core_downloader.py "
    "test_core_scraper.py test_downloaderslotssettings.py test_downloadermiddleware.py test_extension_throttle.py "
    "test_request_attribute_binding.py test_request_cb_kwargs.py test_request_left.py test_spider_start.py "
    "test_spider_crawl.py test_spidermiddleware.py test_spidermiddleware_httperror.py "
    "test_spidermiddleware_output_chain.py test_spidermiddleware_process_start.py test_pipelines.py "
    "test_pipeline_crawl.py test_closespider.py test_signals.py test_scheduler.py test_feedexport.py"
).split()
# They put something that fails in the place of methods that are not called on the lean way.
WITHOUT = ["--deselect=tests/test_engine.py::test_enqueue_scrape_error",
           "--deselect=tests/test_core_scraper.py::test_scraper_exception"]  # fmt: skip
QUIET = ["-q", "-p", "no:cacheprovider", "-W", "ignore"]


def scrapys_tree(into: Path) -> Path:
    """Scrapy's sdist, unpacked."""
    name = f"scrapy-{version('scrapy')}"
    if not (into / name / "conftest.py").exists():
        into.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "scrapy"]
        subprocess.run([*pip, "--dest", str(into), name.replace("-", "==")], check=True)
        with tarfile.open(into / f"{name}.tar.gz") as archive:
            archive.extractall(into, filter="data")
    return into / name


def run(tree: Path, arguments: list[str]) -> int:
    """pytest in Scrapy's tree; its exit code."""
    print("pytest", *arguments, flush=True)
    path = os.pathsep.join([str(HERE), str(HERE.parent.parent), str(tree)])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-m", "pytest", *QUIET, *arguments], cwd=tree, env=environment).returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=HERE.parent.parent / ".venv" / "conformance")
    parser.add_argument("rest", nargs="*", metavar="PYTEST-ARGUMENT")
    args = parser.parse_args()
    tree = scrapys_tree(args.into.resolve())
    shutil.copy(HERE / "handler.py", tree / "tests" / "test_ubi_handler.py")
    crawls = [f"tests/{name}" for name in CRAWLS]
    ours = "tests/test_ubi_handler.py"
    whole = ["-p", "leanway", *WITHOUT, *crawls]
    runs = [[ours], ["-p", "no:twisted", "--reactor=none", ours], whole, ["-p", "ourhandler", *whole]]
    sys.exit(max(run(tree, [*each, *args.rest]) for each in runs))


if __name__ == "__main__":
    main()
