"""A lean HTTP/1.1 download handler (UBI_FAST, on by default), in place of Scrapy's own, and equal to it.

What of it is where, from the request to the response:

* `handler`: Scrapy's door: one `download_request` per request, its time-out, its second attempt;
* `route`: where a request goes (directly, by a proxy, by a tunnel) and what may share a connection;
* `request_head`: the head of a request, and what is refused to be written;
* `pool`: kept connections, bounded;
* `dialing`, `tls`, `tunnel`: new connections: addresses, TLS and its sessions, tunnels;
* `connection`: one connection: bytes in, by the parser, to one load at a time;
* `head_reader`: heads of responses that are not plain, read as Scrapy's handler does;
* `load`: what a request's response may be, its result, and Scrapy's response of it.

HTTP is parsed by httptools (llhttp). Rules: what a server sends is data: it ends a request with Scrapy's exceptions or
a response, within bounds of size, never with another exception, and never hangs beyond the time-out. A connection is
used again only after a response whose end is certain. Nothing is written without the right to it (`socket_gate`).
"""

from __future__ import annotations
