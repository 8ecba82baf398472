"""Which hosts are private, however they are written."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from scrapy_ubi.urls import normal_form
from scrapy_ubi.urls.private import canonical, host_of, is_private_address, is_private_host, may_be_private

PRIVATE = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.1.1", "::", "::1", "fc00::1", "fd12:3456::1",
    "fe80::1", "fe80::1%eth0", "fec0::1", "::ffff:127.0.0.1", "::ffff:10.1.2.3", "::127.0.0.1", "64:ff9b::7f00:1",
    "2002:7f00:1::",
]  # fmt: skip
PUBLIC = [
    "93.184.216.34", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
    "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.51.100.7", "203.0.113.9",
    "2606:2800:220::1", "::ffff:93.184.216.34", "64:ff9b::5db8:d822", "2002:5db8:d822::", "fbff::1", "no address", "",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses(address: str) -> None:
    assert is_private_address(address)
    written = f"[{ip_address(address)}]" if ":" in address and "%" not in address else address
    if "%" not in address:
        normal = normal_form(f"http://{written}:6379/x")
        assert normal is not None and may_be_private(normal) and is_private_host(host_of(normal))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses(address: str) -> None:
    assert not is_private_address(address)


@pytest.mark.parametrize(
    "host",
    [
        "2130706433", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "127.0.0.1.", "017700000001", "127.0.0.01",
        "localhost", "LocalHost", "localhost.", "db.localhost", "a.b.localhost", "[::1]", "[::ffff:7f00:1]", "[0:0::1]",
        "①②⑦.0.0.1", "ⓛocalhost",
    ],
)  # fmt: skip
def test_every_spelling_that_leads_there(host: str) -> None:
    for url in (f"http://{host}:6379/", f"https://user:pass@{host}/a?b", f"HTTP://{host}"):
        normal = normal_form(url)
        assert normal is not None and may_be_private(normal), url
        assert is_private_host(host_of(url)), url
    assert is_private_host(canonical(host))


@pytest.mark.parametrize(
    "url",
    [
        "http://h1.example/", "http://localhost.example/", "http://notlocalhost/", "http://127.0.0.1.example/",
        "http://h.example/localhost/", "http://h.example/?u=http://127.0.0.1/", "http://3com.example/",
        "http://localhost@h.example/", "http://127.0.0.1@h.example/",
    ],
)  # fmt: skip
def test_names_that_only_look_like_it(url: str) -> None:
    assert not is_private_host(host_of(url))


def test_hosts_of_connections_are_written_without_brackets() -> None:
    assert canonical("::1") == "[::1]" and is_private_host(canonical("::1"))
    assert canonical("H.Example") == "h.example"
    assert canonical("no host") == "no host"
