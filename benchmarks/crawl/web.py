"""The web that the cost benchmark crawls: a forward proxy on loopback that answers for every host, cheaply.

    python benchmarks/crawl/web.py --port 8950 --hosts 300 --pages 100000

A page has about 10 kB and 40 links. 36 lead to its own host: the 26 of its navigation, the same on all its pages, and
10 to pages anywhere in it. 4 lead to other hosts: 3 of them are among the 12 that stand on many pages of the host, one
leads anywhere; half of all these lead to a home page, and large hosts are led to more often (sizes fall like
rank ** -0.8). So after the first pages of every host seven to nine links in ten are known, as on the real web, where
nine in ten stay on their host, too. Every page is a pure function of its URL: nothing is kept but which pages were
asked for.

With `--links scattered` it is a web without menus, as a small crawl of many hosts meets it: pages have about 14 kB; 30
of the 40 links lead into the host, half of them to its first pages, and 10 to other hosts; three in four of the inner
ones are relative.

`/-/count` in origin form says how many pages were asked for, and how many different ones. An answer takes `latency`
milliseconds. It costs a fiftieth of what a crawler spends on the page.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import struct
from bisect import bisect_right
from hashlib import shake_128
from itertools import accumulate

LINKS = 40
TEMPLATE_WORDS = 36  # of a paragraph
MENU, INSIDE, ELSEWHERE = 26, 10, 1  # links of a page to the host's first pages, to any of its pages, to other hosts
STANDING = 12  # links to other hosts of which a page has those of its LINKS that are left
SKEW = 0.8
WORDS = (
    b"crawl agent host ring page link graph queue order rank size time disk delay index seed path peer lease".split()
)
TEMPLATES = 64


class Graph:
    """Hosts `h0000.example` and so on, `pages` pages in all."""

    def __init__(self, hosts: int, pages: int) -> None:
        weights = [(rank + 1) ** -SKEW for rank in range(hosts)]
        scale = pages / sum(weights)
        sizes = [max(1, round(scale * weight)) for weight in weights]
        self.sizes = [sizes[place * 7919 % hosts] for place in range(hosts)] if hosts % 7919 else sizes
        self.ends = list(accumulate(self.sizes))
        self.names = [b"h%04d.example" % place for place in range(hosts)]
        self.places = {name: place for place, name in enumerate(self.names)}
        self._links: dict[int, tuple[list[bytes], list[bytes]]] = {}
        self._templates = [_template(number) for number in range(TEMPLATES)]

    def page(self, host: bytes, path: bytes) -> tuple[int, int] | None:
        """Host and number of a page; None when there is none."""
        place = self.places.get(host)
        if place is None or path[:2] != b"/p":
            return (place, 0) if place is not None and path == b"/" else None
        digits = path[2:].removesuffix(b".html")
        number = int(digits) if digits.isdigit() else 0
        return (place, number) if 0 < number < self.sizes[place] else None

    def html(self, place: int, number: int) -> bytes:
        draws = struct.unpack("<16I", shake_128(b"%d/%d" % (place, number)).digest(64))
        size, own = self.sizes[place], self.names[place]
        menu, standing = self._of_host(place)
        inside = [_url(own, (draw * size) >> 32) for draw in draws[:INSIDE]]
        outside = [standing[draw % STANDING] for draw in draws[INSIDE + ELSEWHERE : LINKS - MENU]]
        elsewhere = [self._elsewhere(draw) for draw in draws[INSIDE : INSIDE + ELSEWHERE]]
        return self._templates[draws[15] % TEMPLATES] % (number, own, *menu, *inside, *outside, *elsewhere)

    def _elsewhere(self, draw: int) -> bytes:
        at = ((draw >> 1) * self.ends[-1]) >> 31
        host = bisect_right(self.ends, at)
        return _url(self.names[host], 0 if draw & 1 else at - self.ends[host] + self.sizes[host])

    def _of_host(self, place: int) -> tuple[list[bytes], list[bytes]]:
        """The links that stand on all pages of a host, and those of which each has some."""
        links = self._links.get(place)
        if links is None:
            draws = struct.unpack(f"<{STANDING}I", shake_128(b"standing %d" % place).digest(4 * STANDING))
            menu = [_url(self.names[place], number % self.sizes[place]) for number in range(MENU)]
            links = self._links[place] = menu, [self._elsewhere(draw) for draw in draws]
        return links


class Scattered(Graph):
    """The web without menus: no two pages of a host have much in common."""

    INSIDE = 30
    WORDS = 56  # of a paragraph

    def __init__(self, hosts: int, pages: int) -> None:
        super().__init__(hosts, pages)
        self._templates = [_template(number, self.WORDS) for number in range(TEMPLATES)]

    def html(self, place: int, number: int) -> bytes:
        draws = struct.unpack(f"<{LINKS + 1}I", shake_128(b"%d/%d" % (place, number)).digest(4 * LINKS + 4))
        inside = [self._inside(place, draw) for draw in draws[: self.INSIDE]]
        links = inside + [self._elsewhere(draw) for draw in draws[self.INSIDE : LINKS]]
        order = draws[LINKS] >> 8  # where the links to other hosts begin: not always at the end
        turned = links[order % LINKS :] + links[: order % LINKS]
        return self._templates[draws[LINKS] % TEMPLATES] % (number, self.names[place], *turned)

    def _inside(self, place: int, draw: int) -> bytes:
        size, part = self.sizes[place], draw >> 3
        if draw & 4:  # towards the first pages
            part = part * part >> 29
        number = part * size >> 29
        if draw & 3 == 0 or not number:
            return _url(self.names[place], number)
        return b"p%d.html" % number if draw & 3 == 1 else b"/p%d.html" % number


KINDS = {"standing": Graph, "scattered": Scattered}


def _url(host: bytes, number: int) -> bytes:
    return b"http://%s/p%d.html" % (host, number) if number else b"http://%s/" % host


def _template(number: int, length: int = TEMPLATE_WORDS) -> bytes:
    """A page with places for its number, its host and its links, `length` words before each link."""
    draws = shake_128(b"template %d" % number).digest(LINKS * length)
    lines = []
    for link in range(LINKS):
        words = b" ".join(WORDS[draw % len(WORDS)] for draw in draws[link * length : (link + 1) * length])
        lines.append(b'<p>%s <a href="%%s">link %d</a></p>\n' % (words, link))
    head = b'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Page %d of %s</title></head>\n<body>\n'
    return head + b"".join(lines) + b"</body></html>\n"


class Connection(asyncio.Protocol):
    """One client; requests are answered in order, each after the latency."""

    def __init__(self, graph: Graph, seen: set[tuple[int, int]], counts: dict[str, int], latency: float) -> None:
        self.graph, self.seen, self.counts, self.latency = graph, seen, counts, latency
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            target = self.buffer.split(b" ", 2)[1]
            self.buffer = self.buffer[end + 4 :]
            if target.startswith(b"/-/"):
                self.write(b"200 OK", json.dumps(self.counts | {"unique": len(self.seen)}).encode())
            else:
                host, _, path = target.removeprefix(b"http://").partition(b"/")
                self.loop.call_later(self.latency, self.answer, host, b"/" + path)

    def answer(self, host: bytes, path: bytes) -> None:
        page = self.graph.page(host, path)
        if page is None:
            self.counts["missing"] += 1
            self.write(b"404 Not Found", b"no such page\n")
            return
        self.counts["pages"] += 1
        self.seen.add(page)
        self.write(b"200 OK", self.graph.html(*page))

    def write(self, status: bytes, body: bytes) -> None:
        if not self.transport.is_closing():
            head = b"HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n"
            self.transport.write(head % (status, len(body)) + body)


async def serve(port: int, graph: Graph, latency: float) -> None:
    seen: set[tuple[int, int]] = set()
    counts = {"pages": 0, "missing": 0}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(graph, seen, counts, latency), "127.0.0.1", port, backlog=1024)
    print("ready", flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--hosts", type=int, default=300)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--latency", type=float, default=10.0, help="milliseconds an answer takes")
    parser.add_argument("--links", choices=KINDS, default="standing", help="how pages are linked (%(default)s)")
    args = parser.parse_args()
    asyncio.run(serve(args.port, KINDS[args.links](args.hosts, args.pages), args.latency / 1000))


if __name__ == "__main__":
    main()
