"""The testbed of the real net: the same from the same seed, and pages that come out of their encodings."""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from pathlib import Path

import brotli
import pytest

NET = Path(__file__).resolve().parents[2] / "benchmarks" / "net"


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(NET))
    yield  # type: ignore[misc]
    for name in ("population", "page_bodies", "page_links"):
        sys.modules.pop(name, None)


def test_hosts_are_a_function_of_the_seed_and_have_addresses_of_their_own() -> None:
    from population import Population, address_of, number_of, number_of_name

    first, again, other = (Population(seed, 2000, 20_000) for seed in (1, 1, 2))
    assert first.hosts == again.hosts
    assert first.hosts != other.hosts
    fates = Counter(host.fate for host in first.hosts)
    assert 0.86 < fates["alive"] / 2000 < 0.94
    assert set(fates) == {"alive", "hang", "reset", "nxdomain", "servfail", "silent"}
    assert {host.fate for host in Population(1, 200, 2000, healthy=True).hosts} == {"alive"}
    assert all(number_of(address_of(number)) == number for number in range(70_000))
    assert (number_of("127.0.0.1"), number_of_name(b"h00012.test"), number_of_name(b"h00012.example")) == (-1, 12, -1)


def test_sizes_are_those_of_the_web_almanac() -> None:
    from page_bodies import quantile

    for share, size in ((0.10, 7), (0.25, 14), (0.50, 33), (0.75, 76), (0.90, 148)):
        assert quantile(share) == pytest.approx(size)


def test_pages_have_as_many_links_as_the_price_of_a_group_is_reckoned_with(monkeypatch: pytest.MonkeyPatch) -> None:
    from page_bodies import SIZES, links_at

    monkeypatch.syspath_prepend(str(NET.parent))
    import price

    links = sum(links_at((place + 0.5) / SIZES) for place in range(SIZES)) / SIZES
    assert links / 40 == pytest.approx(price.LINKS, rel=0.01)


def test_links_stand_in_pages_that_were_compressed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    import page_bodies
    from page_links import PageLinks
    from population import Population

    monkeypatch.setattr(page_bodies, "SIZES", 2)
    monkeypatch.setattr(page_bodies, "POOL", 50)
    population = Population(1, 30, 300)
    links = PageLinks(1, population, page_bodies.bodies(1, scale=0.3), "https", 8443)
    unpack = {"gzip": gzip.decompress, "br": brotli.decompress, "zstd": page_bodies.zstd.decompress}
    for host in population.hosts:
        body, size = links.page(host, 0)
        page = unpack[host.coding](body)
        assert len(page) == size
        assert page.count(b"<a href=") > 8
        assert page.endswith(b"</body></html>\n")
        assert links.page(host, 0)[0] == body
    assert links.url(3) == "https://h00003.test:8443/"
