"""Transfer codings: with UBI_FAST a response ends as with Scrapy's own handler, which is the referee here."""

from __future__ import annotations

import gzip
import json
import socketserver
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

BODY = b"<p>a page</p>"
PACKED = gzip.compress(BODY)
LIMIT = 120  # s for a crawl


def chunks(body: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:5], body[5:])) + b"0\r\n\r\n"


ANSWERS: list[tuple[list[str], bytes]] = [
    (["Transfer-Encoding: chunked"], chunks(BODY)),
    (["transfer-encoding:  CHUNKED "], chunks(BODY)),
    (["Transfer-Encoding: chunked", "Content-Encoding: gzip"], chunks(PACKED)),
    (["Transfer-Encoding: gzip, chunked"], chunks(PACKED)),
    (["Transfer-Encoding: deflate, chunked"], chunks(PACKED)),
    (["Transfer-Encoding: x-gzip, chunked"], chunks(PACKED)),
    (["Transfer-Encoding: identity"], BODY),
    (["Transfer-Encoding: identity", f"Content-Length: {len(BODY)}"], BODY),
    (["Transfer-Encoding: identity, chunked"], chunks(BODY)),
    (["Transfer-Encoding: chunked, gzip"], chunks(PACKED)),
    (["Transfer-Encoding: chunked, chunked"], chunks(BODY)),
    (["Transfer-Encoding: gzip"], PACKED),
    (["Transfer-Encoding: x-made-up"], BODY),
    (["Transfer-Encoding:"], BODY),
    (["Transfer-Encoding: chunked;q=1"], chunks(BODY)),
    (["Transfer-Encoding: chunked", f"Content-Length: {len(BODY)}"], chunks(BODY)),
    ([f"Content-Length: {len(BODY)}", "Transfer-Encoding: chunked"], chunks(BODY)),
    (["Transfer-Encoding: gzip", "Transfer-Encoding: chunked"], chunks(PACKED)),
    (["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], chunks(BODY)),
    (["Transfer-Encoding: chunked", "Transfer-Encoding: gzip"], chunks(BODY)),
    (["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], chunks(BODY)),
    (["Content-Length: 13"], BODY),
]

SPIDER = """
import json
import scrapy


class Codings(scrapy.Spider):
    name = "codings"
    custom_settings = {
        "TELNETCONSOLE_ENABLED": False, "RETRY_ENABLED": False, "UBI_HOST_FAILURES": 0, "DOWNLOAD_TIMEOUT": 20,
    }

    async def start(self):
        for number in range(int(self.number)):
            yield scrapy.Request(f"http://127.0.0.1:{self.port}/{number}", errback=self.failed)

    def parse(self, response):
        yield {"path": response.url.rpartition("/")[2], "body": response.body.decode("latin-1")}

    def failed(self, failure):
        yield {"path": failure.request.url.rpartition("/")[2], "failed": failure.type.__name__}
"""


class Answers(socketserver.StreamRequestHandler):
    """One answer a connection."""

    def handle(self) -> None:
        path = self.rfile.readline().split()[1].decode()
        while self.rfile.readline().strip():
            pass
        lines, body = ANSWERS[int(path.strip("/"))]
        head = "\r\n".join(["HTTP/1.1 200 OK", "Content-Type: text/html", "Connection: close", *lines, "", ""])
        self.wfile.write(head.encode() + body)


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, dict[str, Any]]:
    """How each answer ends, by whether it is our handler's; by path."""
    place = tmp_path_factory.mktemp("codings")
    (place / "codings.py").write_text(SPIDER)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answers) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            return {fast: _crawled(place, server.server_address[1], fast) for fast in (True, False)}
        finally:
            server.shutdown()


def _crawled(place: Path, port: int, fast: bool) -> dict[str, Any]:
    addons = '{"scrapy_ubi.Addon": 500}' if fast else "{}"
    command = [sys.executable, "-m", "scrapy", "runspider", "codings.py", "-a", f"port={port}"]
    command += ["-a", f"number={len(ANSWERS)}", "-O", f"{fast}.jsonl", "-s", f"ADDONS={addons}", "-s", "UBI_FAST=True"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert ("scrapy_ubi's own handler" in done.stderr) is fast
    items = [json.loads(line) for line in (place / f"{fast}.jsonl").read_text().splitlines()]
    return {item.pop("path"): item for item in items}


@pytest.mark.parametrize("number", range(len(ANSWERS)), ids=[" + ".join(lines) for lines, _ in ANSWERS])
def test_a_response_ends_as_with_scrapys_handler(ends: dict[bool, dict[str, Any]], number: int) -> None:
    assert ends[True][str(number)] == ends[False][str(number)]
