"""Which hosts are private: this machine itself, and what only a local network can reach.

Loopback, unspecified and link-local addresses (cloud metadata, 169.254.169.254, among them), the private networks of
RFC 1918, the shared address space of carriers (RFC 6598), unique local IPv6 addresses, IPv6 addresses that stand for
one of these of IPv4, and the names `localhost` and `*.localhost` (RFC 6761).

Rules of this module:

* `NETWORKS` is the one table. Addresses for documentation and benchmarks are not in it: no service has them.
* A host is looked at as the normal form writes it: what the WHATWG parser reads as an address (`2130706433`,
  `0x7f.1`, `127.1`, `[::ffff:127.0.0.1]`) is written as one there.
* Names are not looked up here: what a name leads to is known when it is connected to
  (`scrapy_ubi.adapter.downloads.reach`).
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from scrapy_ubi.urls.normal import host_and_port, normal_form

NETWORKS = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # unspecified: the system connects to itself
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "255.255.255.255/32",
            "::/128",
            "::1/128",
            "fc00::/7",
            "fe80::/10",
            "fec0::/10",  # site-local, given up by RFC 3879, and still routed here and there
        ),
    )
)
_NAT64 = ip_network("64:ff9b::/96")
_COMPATIBLE = ip_network("::/96")

# Whether the host of a normal form may be private as it is written: one look, as it is asked of every new link.
may_be_private = re.compile(r"https?://(?:[^/@]*@)?(?:[0-9]|\[|(?:[a-z0-9_-]+\.)*localhost[:/])").match


def is_private_address(text: str) -> bool:
    """Whether an address (numeric, with a zone or without) is private; False for what is none."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return any(address in network for network in NETWORKS) or _stands_for_private(address)


def _stands_for_private(address: IPv4Address | IPv6Address) -> bool:
    """Whether an IPv6 address is another way to write a private one of IPv4, or a way to it."""
    if isinstance(address, IPv4Address):
        return False
    behind = address.ipv4_mapped or address.sixtofour
    if behind is None and (address in _NAT64 or address in _COMPATIBLE):
        behind = IPv4Address(int(address) & 0xFFFFFFFF)
    return behind is not None and any(behind in network for network in NETWORKS)


def is_private_host(host: str) -> bool:
    """Whether a host, written as in a normal form, is private as it is written."""
    if host[-9:] == "localhost":
        return host == "localhost" or host[-10:-9] == "."
    return is_private_address(host.strip("[]"))


def canonical(host: str) -> str:
    """A host (IPv6 with brackets or without) as the normal form writes it; in small letters where it has none."""
    normal = normal_form(f"http://[{host}]/" if ":" in host and host[:1] != "[" else f"http://{host}/")
    return host_and_port(normal)[0] if normal is not None else host.lower()


def host_of(url: str) -> str:
    """The host of a URL, as the normal form writes it; "" where it has none."""
    normal = normal_form(url)
    return host_and_port(normal)[0] if normal is not None else ""
