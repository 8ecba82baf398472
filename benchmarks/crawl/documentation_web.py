"""Documentation that lies on this machine, as a web: a forward proxy on loopback that answers for h0000.example and on.

    python benchmarks/crawl/documentation_web.py --port 8950 --hosts 64 --least 1000000 --most 5000000

Each host is one of the sites that `documentation.py` finds, or of `--places`, in turns: hosts 0 and 5 are the same one
where there are five. Its home page is made here: links to all its pages of `--least` to `--most` bytes, the largest
first, and to its real front page. All others are files, and what they link to is there. Bodies come in gzip to
who takes it. `/-/count` in origin form says how many pages were asked for, how many different ones, how many of those
of that size and their bytes. An answer takes `latency` milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import sys
from pathlib import Path
from urllib.parse import quote, unquote

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from documentation import default_places, find_sites

SUFFIXES = (".html", ".htm")
PACKED_BYTES = 256 << 20  # of bodies that are kept compressed


class Documentation:
    """Sites with large pages, and what they answer."""

    def __init__(self, places: list[Path], hosts: int, least: int, most: int) -> None:
        sites = [(root, large) for root in find_sites(places).values() if (large := large_pages(root, least, most))]
        if not sites:
            sys.exit(f"There is no documentation with pages of {least} to {most} bytes here.")
        self._least, self._most = least, most
        self._sites = {f"h{number:04d}.example": sites[number % len(sites)] for number in range(hosts)}
        self._packed: dict[Path, bytes] = {}
        self._kept = 0
        self.counts = {"pages": 0, "large": 0, "large_bytes": 0, "missing": 0}
        self.seen: set[tuple[str, str]] = set()

    def answer(self, host: str, path: str, packs: bool) -> tuple[str, bytes, bool]:
        """Status, body, whether it is compressed."""
        found = self._page(host, path)
        if found is None:
            self.counts["missing"] += 1
            return "404 Not Found", b"no such page\n", False
        self.counts["pages"] += 1
        self.seen.add((host, path))
        if isinstance(found, bytes):
            return "200 OK", found, False
        size = found.stat().st_size
        if self._least <= size <= self._most:
            self.counts["large"] += 1
            self.counts["large_bytes"] += size
        return "200 OK", self._compressed(found) if packs else found.read_bytes(), packs

    def _page(self, host: str, path: str) -> Path | bytes | None:
        site = self._sites.get(host)
        if site is None:
            return None
        root, large = site
        if path == "/":
            names = [*large, "index.html"]
            items = "".join(f'<li><a href="/{quote(name)}">{name}</a>' for name in names)
            return f"<!DOCTYPE html><title>{host}</title><ul>{items}</ul>".encode()
        file = root / os.path.normpath(unquote(path.partition("?")[0])).lstrip("/")
        file = file / "index.html" if file.is_dir() else file
        return file if file.suffix in SUFFIXES and file.is_file() else None

    def _compressed(self, file: Path) -> bytes:
        packed = self._packed.get(file)
        if packed is None:
            packed = gzip.compress(file.read_bytes(), 3)
            self._kept += len(packed)
            if self._kept > PACKED_BYTES:
                self._packed.clear()
                self._kept = len(packed)
            self._packed[file] = packed
        return packed


def large_pages(root: Path, least: int, most: int) -> list[str]:
    """Paths of a site's pages of that size, the largest first."""
    files = [Path(at) / name for at, _, names in os.walk(root) for name in names if name.endswith(SUFFIXES)]
    sizes = {file.relative_to(root).as_posix(): file.stat().st_size for file in files if file.is_file()}
    return sorted(
        (name for name, size in sizes.items() if least <= size <= most), key=lambda name: (-sizes[name], name)
    )


async def serve(port: int, web: Documentation, latency: float) -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                target = head.split(" ", 2)[1]
                packs = "gzip" in head.lower().partition("accept-encoding:")[2].partition("\r\n")[0]
                if target.startswith("/-/"):
                    body = json.dumps(web.counts | {"unique": len(web.seen)}).encode()
                    status, is_packed = "200 OK", False
                else:
                    host, _, path = target.removeprefix("http://").partition("/")
                    await asyncio.sleep(latency)
                    status, body, is_packed = web.answer(host, "/" + path, packs)
                fields = ["Content-Type: text/html", f"Content-Length: {len(body)}"]
                fields += ["Content-Encoding: gzip"] if is_packed else []
                writer.write("\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""]).encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(client, "127.0.0.1", port, backlog=1024)
    print("ready", flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--least", type=int, default=1_000_000)
    parser.add_argument("--most", type=int, default=5_000_000)
    parser.add_argument("--latency", type=float, default=50.0, help="milliseconds an answer takes")
    parser.add_argument("--places", type=Path, nargs="*", help="directories of documentation")
    args = parser.parse_args()
    web = Documentation(args.places or default_places(), args.hosts, args.least, args.most)
    asyncio.run(serve(args.port, web, args.latency / 1000))


if __name__ == "__main__":
    main()
