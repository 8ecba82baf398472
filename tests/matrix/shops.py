"""The web of the matrix: shops that link to each other, files on other hosts, a login, an API, a site map.

`furnish(site)` tells a `Site` what each host answers. Every answer is a function of the request alone (and of the
cookies it brings), so a crawl gives the same items in whatever order it goes.

    shopK.example      /  /list?page=&sort=  /p/N  /detail/N  /large  /sitemap.xml  /feed.csv  /flaky/N  /gone/N
    filesK.example     /SHOP/N.pdf, some of them missing
    member.example     /login (a form), /account, /order/N: only with the session that the login gave
    api.example        POST /search: the next page is in the answer
    old.example        /p/N redirects to a shop
"""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from tests.support.site import Page, Site, Visit

SHOPS = 8
PRODUCTS = 20  # of each shop
LISTED = 5  # products on a page of the list
FILE_HOSTS = 4
ORDERS = 30
FOUND = 40  # pages of the API's answer

Path = Callable[[Visit, str], Page]


def furnish(site: Site) -> None:
    """Put the whole web in place."""
    for number in range(SHOPS):
        site.host(f"shop{number}.example", _by_path(_Shop(number).answers()))
    for number in range(FILE_HOSTS):
        site.host(f"files{number}.example", _file)
    site.host("member.example", _by_path({"login": _login, "account": _account, "order": _order, "": _login}))
    site.host("api.example", _by_path({"search": _search}))
    site.host("old.example", _by_path({"p": _moved}))


def _by_path(answers: dict[str, Path]) -> Callable[[Visit], Page]:
    def answer(visit: Visit) -> Page:
        first, _, rest = urlsplit(visit.url).path.lstrip("/").partition("/")
        return answers[first](visit, rest) if first in answers else Page("not found", 404)

    return answer


def _html(title: str, *lines: str) -> Page:
    body = "\n".join(lines)
    return Page(f"<html><head><title>{title}</title></head><body><h1>{title}</h1>\n{body}\n</body></html>")


def _link(url: str, of: str = "", text: str = "more") -> str:
    return f'<a class="{of}" href="{url}">{text}</a>'


def _argument(visit: Visit, name: str, default: str = "") -> str:
    return parse_qs(urlsplit(visit.url).query).get(name, [default])[0]


class _Shop:
    """One shop. Products of a shop have a detail page at the next one."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.host = f"shop{number}.example"
        self.next = f"http://shop{(number + 1) % SHOPS}.example"

    def answers(self) -> dict[str, Path]:
        return {
            "": self.home, "list": self.list, "p": self.product, "detail": self.detail, "large": self.large,
            "sitemap.xml": self.sitemap, "feed.csv": self.feed, "flaky": self.flaky, "gone": self.gone,
        }  # fmt: skip

    def home(self, visit: Visit, rest: str) -> Page:
        # Not itself: plain Scrapy fetches a start URL once more when it is found as a link.
        others = [_link(f"http://shop{n}.example/", "shop", f"shop {n}") for n in range(SHOPS) if n != self.number]
        pages = [_link(f"/list?page={n}&sort=name", "list") for n in range(PRODUCTS // LISTED)]
        return _html(f"Shop {self.number}", *others, *pages, _link("/large", "large"))

    def list(self, visit: Visit, rest: str) -> Page:
        page = int(_argument(visit, "page", "0"))
        numbers = range(page * LISTED, (page + 1) * LISTED)
        spelled = [f"/p/{n}?ref=list&lang=en" if n % 2 else f"/p/{n}?lang=en&ref=list" for n in numbers]
        again = [f"/p/{n}?lang=en&ref=list" if n % 2 else f"/p/{n}?ref=list&lang=en" for n in numbers]
        other = f"/list?sort=name&page={page}"
        return _html(f"List {page}", *(_link(url, "product") for url in [*spelled, *again]), _link(other, "list"))

    def product(self, visit: Visit, rest: str) -> Page:
        number = int(rest)
        files = [f"http://files{(number + k) % FILE_HOSTS}.example/{self.number}/{number}-{k}.pdf" for k in range(2)]
        return _html(
            f"Product {self.number}-{number}",
            f'<p class="price">{number * 3 + self.number}.50</p>',
            *(_link(url, "file") for url in files),
            _link(f"{self.next}/detail/{number}", "detail"),
            _link(f"http://old.example/p/{self.number}/{number}", "old"),
            _link(f"/flaky/{number}", "flaky"),
            _link(f"/gone/{number}", "gone"),
        )

    def detail(self, visit: Visit, rest: str) -> Page:
        return _html(f"Detail {rest}", f'<p class="stock">{int(rest) * 7 + self.number}</p>')

    def large(self, visit: Visit, rest: str) -> Page:
        rows = [f'<tr class="row"><td>{n}</td><td>{"x" * 200}</td></tr>' for n in range(2001)]
        return _html(f"Large {self.number}", "<table>", *rows, "</table>")

    def sitemap(self, visit: Visit, rest: str) -> Page:
        urls = [f"http://{self.host}/p/{n}" for n in range(PRODUCTS)] + [f"{self.next}/detail/{n}" for n in range(5)]
        body = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
        return Page(
            f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{body}</urlset>',
            headers={"Content-Type": "text/xml"},
        )

    def feed(self, visit: Visit, rest: str) -> Page:
        rows = [f"{n},http://{self.host}/p/{n}" for n in range(PRODUCTS)]
        return Page("\n".join(["id,url", *rows]) + "\n", headers={"Content-Type": "text/csv"})

    def flaky(self, visit: Visit, rest: str) -> Page:
        """A 503 the first time."""
        return Page("later", 503) if visit.number == 1 else _html(f"Flaky {self.number}-{rest}")

    def gone(self, visit: Visit, rest: str) -> Page:
        return Page("gone", 410)


def _file(visit: Visit) -> Page:
    path = urlsplit(visit.url).path
    if path.endswith("7-0.pdf"):
        return Page("missing", 404)
    return Page(b"%PDF " + path.encode() * 20, headers={"Content-Type": "application/pdf"})


def _moved(visit: Visit, rest: str) -> Page:
    shop, _, number = rest.partition("/")
    return Page("", 301, {"Location": f"http://shop{shop}.example/p/{number}?lang=en&ref=list&moved=1"})


def _login(visit: Visit, rest: str) -> Page:
    if visit.method != "POST":
        form = '<form method="post" action="/login"><input name="user"><input name="word">'
        return _html("Login", form, '<input type="hidden" name="token" value="t-42"></form>')
    told = parse_qs(visit.body.decode())
    if told != {"user": ["ada"], "word": ["secret"], "token": ["t-42"]}:
        return Page("wrong", 403)
    return Page("", 302, {"Location": "/account", "Set-Cookie": "session=ada-1; Path=/"})


def _account(visit: Visit, rest: str) -> Page:
    if "session=ada-1" not in visit.headers.get("cookie", ""):
        return _html("Please log in")
    return _html("Account", *(_link(f"/order/{n}", "order") for n in range(ORDERS)))


def _order(visit: Visit, rest: str) -> Page:
    if "session=ada-1" not in visit.headers.get("cookie", ""):
        return _html("Please log in")
    return _html(f"Order {rest}", f'<p class="sum">{int(rest) * 11}</p>')


def _search(visit: Visit, rest: str) -> Page:
    page = json.loads(visit.body or b"{}").get("page", 0)
    found = [{"id": page * 10 + k, "name": f"thing {page * 10 + k}"} for k in range(10)]
    following = page + 1 if page + 1 < FOUND else None
    return Page(json.dumps({"found": found, "next": following}), headers={"Content-Type": "application/json"})
