"""Which links a page has: a pure function of the seed, its host and its number; and the page with them.

Three quarters of the links lead into the page's own host, half of them towards its first pages, as menus do; one
quarter leads to other hosts, to large ones more often, half of these to their home pages. Sizes and numbers of links
are drawn for each page from those of `page_bodies`.
"""

from __future__ import annotations

import struct
from hashlib import shake_128

from page_bodies import Body
from population import Host, Population

OUTSIDE = 4  # one link in so many leads to another host
_HEAD = b'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Page %d of h%05d</title></head>\n<body>'


class PageLinks:
    """Makes the pages of a population. `port`: where its hosts listen, None for the usual one of the scheme."""

    def __init__(
        self, seed: int, population: Population, bodies: dict[str, list[Body]], scheme: str, port: int | None
    ) -> None:
        self._seed, self._population, self._bodies = seed, population, bodies
        after = b"" if port is None else b":%d" % port
        self._origins = [b"%s://%s%s" % (scheme.encode(), name, after) for name in population.names]

    def url(self, number: int) -> str:
        """The home page of a host."""
        return self._origins[number].decode() + "/"

    def page(self, host: Host, number: int) -> tuple[bytes, int]:
        """A page, compressed as its host does, and how many bytes it has unpacked."""
        page = host.first + number
        draws = shake_128(b"%d page %d" % (self._seed, page))
        bodies = self._bodies[host.coding]
        body = bodies[int.from_bytes(draws.digest(4), "big") * len(bodies) >> 32]
        lots = struct.unpack(f">{body.links + 1}I", draws.digest(4 * body.links + 4))
        links = [
            self._outside(lot) if place % OUTSIDE == 0 else self._inside(host, lot)
            for place, lot in enumerate(lots[1:])
        ]
        head = _HEAD % (number, host.number)
        return body.filled(head + b"".join(links)), body.unpacked

    def _inside(self, host: Host, lot: int) -> bytes:
        part = lot >> 2
        if lot & 2:
            part = part * part >> 30  # towards the first pages
        number = part * host.pages >> 30
        return b'<a href="/p%d">read more</a>\n' % number if number else b'<a href="/">home</a>\n'

    def _outside(self, lot: int) -> bytes:
        population = self._population
        page = (lot >> 1) * population.ends[-1] >> 31
        place = population.host_at(page)
        number = 0 if lot & 1 else page - population.hosts[place].first
        origin = self._origins[place]
        return b'<a href="%s/p%d">there</a>\n' % (origin, number) if number else b'<a href="%s/">there</a>\n' % origin
