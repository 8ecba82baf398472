"""The web of these projects: four shops with eight products each, whose details are at the next shop.

`furnish(site)` tells a `Site` what each host answers, `answer(url)` what one page is: a function of the URL alone.

    shopK.example    /  /p/N  /detail/N  /flaky/N (a 503 the first time)
    files.example    /N.pdf  /N.png
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from urllib.parse import urlsplit

from tests.support.site import Page, Site, Visit

SHOPS, PRODUCTS = 4, 8
FILES = "http://files.example"

# What a browser makes of a product's page: its price is put in by a script, its stock by a click.
SCRIPT = """
<script>
  document.querySelector(".price").textContent = document.body.dataset.price;
  document.querySelector("#stock").onclick = e => { e.target.textContent = document.body.dataset.stock; };
</script>
"""


def furnish(site: Site) -> None:
    """Put the whole web in place, and Zyte's endpoint before it, at this machine's own address."""
    for number in range(SHOPS):
        site.host(f"shop{number}.example", _visited)
    site.host("files.example", _visited)
    site.page(f"http://127.0.0.1:{site.port}/v1/extract", _extract)


def _visited(visit: Visit) -> Page:
    if "/flaky/" in visit.url and visit.number == 1:
        return Page("later", 503)
    return answer(visit.url)


def answer(url: str) -> Page:
    """What this URL answers."""
    parts = urlsplit(url)
    kind, _, rest = parts.path.lstrip("/").partition("/")
    if parts.netloc == "files.example":
        return _file(parts.path)
    shop = int(parts.netloc[4])
    if kind == "":
        return _home(shop)
    if kind in ("p", "detail", "flaky") and rest.isdigit():
        return {"p": _product, "detail": _detail, "flaky": _flaky}[kind](shop, int(rest))
    return Page("not found", 404)


def _html(title: str, *lines: str, data: str = "") -> Page:
    body = "\n".join(lines)
    return Page(f"<html><head><title>{title}</title></head><body {data}><h1>{title}</h1>\n{body}\n</body></html>")


def _link(url: str, of: str) -> str:
    return f'<a class="{of}" href="{url}">{of}</a>'


def _home(shop: int) -> Page:
    others = [_link(f"http://shop{n}.example/", "shop") for n in range(SHOPS) if n != shop]
    return _html(f"Shop {shop}", *others, *(_link(f"/p/{n}", "product") for n in range(PRODUCTS)))


def _product(shop: int, number: int) -> Page:
    return _html(
        f"Product {shop}-{number}",
        '<p class="price">?</p><p id="stock">?</p>',
        _link(f"http://shop{(shop + 1) % SHOPS}.example/detail/{number}", "detail"),
        _link(f"/flaky/{number}", "flaky"),
        _link(f"{FILES}/{shop * 10 + number}.pdf", "file"),
        f'<img src="{FILES}/{number}.png">',
        SCRIPT,
        data=f'data-price="{number * 3 + shop}.50" data-stock="{number * 7 + shop}"',
    )


def _detail(shop: int, number: int) -> Page:
    return _html(f"Detail {shop}-{number}", f'<p class="weight">{number * 5 + shop}</p>')


def _flaky(shop: int, number: int) -> Page:
    return _html(f"Flaky {shop}-{number}")


def _file(path: str) -> Page:
    if path.endswith(".png"):
        return Page(_png(1 + int(path[1:-4])), headers={"Content-Type": "image/png"})
    return Page(b"%PDF " + path.encode() * 20, headers={"Content-Type": "application/pdf"})


def _png(size: int) -> bytes:
    """A grey square."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x80" * size) * size)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def _extract(visit: Visit) -> Page:
    """Zyte API's `extract`, as far as httpResponseBody and browserHtml go."""
    asked = json.loads(visit.body)
    page = answer(asked["url"])
    body = page.body.encode() if isinstance(page.body, str) else page.body
    told: dict[str, object] = {"url": asked["url"], "statusCode": page.status}
    if asked.get("httpResponseBody"):
        told["httpResponseBody"] = base64.b64encode(body).decode()
    if asked.get("httpResponseHeaders"):
        told["httpResponseHeaders"] = [{"name": "content-type", "value": "text/html; charset=utf-8"}]
    if asked.get("browserHtml"):
        told["browserHtml"] = body.decode()
    return Page(json.dumps(told), headers={"Content-Type": "application/json"})
