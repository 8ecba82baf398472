"""What a page of the testbed costs at least: its steps one by one, each by the fastest library that we know.

    python benchmarks/net/floor.py [--rounds 5]

Every size and encoding of page_bodies.py has its turn in each round, as the testbed serves them. CPU of this thread
alone: no crawler, no loop, no thread beside it. A step is the median of the rounds. What a crawler adds (the connection
and its handshake, politeness, the frontier, its disk, Scrapy's own steps, the callback) is not in it.
"""

from __future__ import annotations

import argparse
import gzip
import ssl
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import brotli
import certificates
from lxml import etree
from page_bodies import CODINGS, LINK_BYTES, bodies, zstd
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

HOST = "h00000.test"
PIECE = 256 << 10  # bytes that asyncio reads at once
UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "br": brotli.decompress,
    "zstd": zstd.decompress,
}
STEPS = ("decrypt", "unpack", "lexbor: parse", "lexbor: links", "lxml: parse", "lxml: links", "lxml: free")


class Tls:
    """A client and a server of TLS 1.3 over memory, with the testbed's certificates."""

    def __init__(self) -> None:
        there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        with tempfile.TemporaryDirectory() as directory:
            certificates.write(Path(directory), "test")
            server_context = certificates.server_context(Path(directory))
            client_context = ssl.create_default_context(cafile=str(Path(directory) / "root.pem"))
        client_context.check_hostname, client_context.verify_mode = False, ssl.CERT_NONE
        self._client = client_context.wrap_bio(back, there, server_hostname=HOST)
        self._server = server_context.wrap_bio(there, back, server_side=True)
        for side in (self._client, self._server, self._client, self._server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue

    def send(self, page: bytes) -> None:
        self._server.write(page)

    def received(self, size: int) -> bytes:
        pieces = []
        while size:
            pieces.append(self._client.read(PIECE))
            size -= len(pieces[-1])
        return b"".join(pieces)


def head(links: int, room: int) -> bytes:
    """The beginning of a page, with its links."""
    anchors = (f'<a href="/p/{number:08d}">{"link":.<{LINK_BYTES - 32}}</a>\n' for number in range(links))
    return f"<html><head><title>a page</title></head><body>{''.join(anchors)}".encode()[:room]


class Steps:
    """Milliseconds that each step took, page by page."""

    def __init__(self) -> None:
        self.took: dict[str, list[float]] = {step: [] for step in STEPS}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        begun = time.thread_time()
        yield
        self.took[name].append(1000 * (time.thread_time() - begun))

    def means(self) -> dict[str, float]:
        return {name: statistics.fmean(took) for name, took in self.took.items()}


def one_round(tls: Tls, pages: list[tuple[str, bytes]]) -> dict[str, float]:
    """Milliseconds a page, of each step."""
    steps, options = Steps(), LexborDocumentOptions.WO_EVENTS.value
    for coding, packed in pages:
        tls.send(packed)
        with steps.step("decrypt"):
            arrived = tls.received(len(packed))
        with steps.step("unpack"):
            page = UNPACK[coding](arrived)
        with steps.step("lexbor: parse"):
            tree = LexborHTMLParser(page, options=options)
        with steps.step("lexbor: links"):
            links = [element.attributes.get("href") for element in tree.tags("a")]
        with steps.step("lxml: parse"):
            root = etree.fromstring(page, parser=etree.HTMLParser(recover=True, encoding="utf8"))
        with steps.step("lxml: links"):
            same = [element.get("href") for element in root.iter("a")]
        with steps.step("lxml: free"):
            del root
        assert links == same
    return steps.means()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    made = bodies(1)
    pages = [(coding, body.filled(head(body.links, body.room))) for coding in CODINGS for body in made[coding]]
    tls = Tls()
    rounds = [one_round(tls, pages) for _ in range(args.rounds)]
    for parser_name in ("lexbor", "lxml"):
        steps = [step for step in STEPS if step.partition(":")[0] in ("decrypt", "unpack", parser_name)]
        for found in rounds:
            found[f"all of it, by {parser_name}"] = sum(found[step] for step in steps)
    print("| step | ms a page | range |\n| --- | ---: | ---: |")
    for step in rounds[0]:
        took = [found[step] for found in rounds]
        print(f"| {step} | {statistics.median(took):.2f} | {min(took):.2f} to {max(took):.2f} |")


if __name__ == "__main__":
    main()
