"""A program: a small crawl with a Scrapy, and a Twisted, in which names have moved: each is another one in all of its
modules, as after a change of its authors.

    python -m tests.support.moved_names DIRECTORY on|off [MODULE:NAME ...]

MODULE is the beginning of the names of the modules in which a name is another one. It prints the items, sorted.
"""

from __future__ import annotations

import ast
import json
import linecache
import re
import sys
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

MOVED = "_moved"  # what a moved name ends with
PAGES = {"/": ["/a", "/b", "/a"], "/a": ["/b", "/c"], "/b": [], "/c": ["/"]}


class _Rename(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in ("id", "attr", "name", "arg", "value"):
            word = getattr(node, field, None)
            if isinstance(word, str) and word.rpartition(".")[2] in self._names:  # or the path of it
                setattr(node, field, word + MOVED)
        return super().generic_visit(node)


class _Loader(SourceFileLoader):
    names: set[str]

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path).decode()
        # What compares Scrapy's functions by their text finds the text of this, too; line for line.
        text = re.sub(rf"\b({'|'.join(self.names)})\b", rf"\1{MOVED}", source)
        linecache.cache[self.path] = len(text), None, text.splitlines(keepends=True), self.path
        return compile(_Rename(self.names).visit(ast.parse(source)), self.path, "exec")


class Moved(MetaPathFinder):
    """Finds modules, and renames in them."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = [name.split(":") for name in names]

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        names = {name for module, name in self._names if f"{fullname}.".startswith(f"{module}.")}
        found = PathFinder.find_spec(fullname, path) if names else None
        if found is None or not isinstance(found.loader, SourceFileLoader):
            return None
        found.loader = _Loader(fullname, str(found.origin))
        found.loader.names = names
        return found


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = "".join(f'<a href="{link}">x</a>' for link in PAGES.get(self.path, ())).encode()
        self.send_response(200 if self.path in PAGES else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def main(directory: Path, is_on: bool, names: Sequence[str]) -> None:
    """Crawl, and print."""
    sys.meta_path.insert(0, Moved(names))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    import scrapy
    from scrapy.crawler import AsyncCrawlerProcess

    class Walk(scrapy.Spider):
        name = "walk"
        start_urls = (f"http://127.0.0.1:{server.server_address[1]}/",)

        def parse(self, response: Any) -> Any:
            yield {"path": response.url.partition("//")[2].partition("/")[2]}
            for link in response.css("a::attr(href)").getall():
                yield response.follow(link)

    feed = directory / "items-%(ubi_agent)s.jsonl"
    process = AsyncCrawlerProcess(
        {
            "ADDONS": {"scrapy_ubi.Addon": 500},
            "UBI_ENABLED": is_on,
            "UBI_DIR": str(directory / "ubi"),
            "UBI_HOST_DELAY": 0,
            "UBI_PRIVATE_HOSTS": "allow",
            "FEEDS": {str(feed): {"format": "jsonlines"}},
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(Walk)
    process.start()
    lines = [line for path in sorted(directory.glob("items-*")) for line in path.read_text().splitlines()]
    print(json.dumps(sorted(json.loads(line)["path"] for line in lines)))
    sys.exit(int(process.bootstrap_failed))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "on", sys.argv[3:])
