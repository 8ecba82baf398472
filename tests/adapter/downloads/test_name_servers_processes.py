"""UBI_DNS_SERVERS in a process of its own, as `scrapy crawl` makes one: Scrapy's handlers and UBI_FAST's ask them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("aiodns")
pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[3]
CRAWL = """
import http.server, sys, threading
import scrapy
from scrapy.crawler import CrawlerProcess
from tests.adapter.downloads.test_name_servers import dns

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass

class Walk(scrapy.Spider):
    name = "walk"

    async def start(self):
        for host in ("known.example", "unknown.example"):
            yield scrapy.Request(f"http://{host}:{port}/", self.parse, errback=self.failed)

    def parse(self, response):
        print("page", response.ip_address)

    def failed(self, failure):
        print("error", failure.type.__name__)

with http.server.ThreadingHTTPServer(("127.9.9.9", 0), Answers) as server, dns() as names:
    port = server.server_address[1]
    threading.Thread(target=server.serve_forever).start()
    settings = {"ADDONS": {"scrapy_ubi.Addon": 1}, "UBI_DNS_SERVERS": names, "UBI_FAST": sys.argv[1] == "fast"}
    process = CrawlerProcess({**settings, "RETRY_ENABLED": False, "LOG_LEVEL": "ERROR"})
    process.crawl(Walk)
    process.start()
    server.shutdown()
"""


@pytest.mark.parametrize("handler", ["scrapy", "fast"])
def test_both_handlers_ask_them_and_let_go_at_the_end(handler: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", CRAWL, handler]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60, check=False
    )
    assert sorted(done.stdout.split("\n")) == ["", "error CannotResolveHostError", "page 127.9.9.9"]
    assert (done.returncode, done.stderr) == (0, ""), "nothing is left that Python would have to end"
