"""The same requests by Scrapy's handler and by ours: what is written, what is read, which errors are raised.

Left out is what is known to differ (docs/how-to/fast.md): extensions of chunks that break the grammar, and which error
ends a request that neither can make.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
import scrapy

from tests.fast.http.beside_scrapys import Case, outcomes
from tests.fast.http.raw import answer

pytestmark = pytest.mark.skipif(
    scrapy.version_info[:2] < (2, 19), reason="Scrapy's handler refused lines without a colon: ours reads them"
)
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
BODY = b"Content-Length: 2\r\n\r\nok"
EMPTY = b"Content-Length: 0\r\n\r\n"

STATUS_LINES = (
    """
HTTP/1.1 200 OK|HTTP/1.1 200|HTTP/1.1 200 |HTTP/1.0 200 OK|HTTP/1.2 200 OK|HTTP/2.0 200 OK|HTTP/2 200 OK
HTTP/0.9 200 OK|HTTP/3.0 200 OK|HTTP/1.10 200 OK|HTTP/01.01 200 OK|http/1.1 200 OK|ICY 200 OK|RTSP/1.0 200 OK
HTTP/1.1  200 OK| HTTP/1.1 200|HTTP/1.1 2000 OK|HTTP/1.1 20 OK|HTTP/1.1 099 x|HTTP/1.1 000 x|HTTP/1.1 999 x
HTTP/1.1 -1 x|HTTP/1.1 +200 x|HTTP/1.1 2_00 x|HTTP/1.1 200;OK|HTTP/1.1 200\tOK|HTTP/1.1\t200 OK
HTTP/1.1 200 O\rK|HTTP/1.1 200 OK\r|HTTP/1.1 200 \xfcber|HTTP/1.1 200OK|HTTP/1.1 404 Not Found|HTTP/1.1 204 No
HTTP/1.1 304 Not|HTTP/1.1 205 Reset|not HTTP at all||\x16\x03\x01\x02|HTT|<html>
""".strip()
    .replace("\n", "|")
    .split("|")
)

FIELDS = [
    b"X: y",
    b"X:y",
    b"X: ",
    b"X:",
    b"X: \t a b \t",
    b"X: a\r\n\tb",
    b"X: a\r\n \r\n  b ",
    b" first",
    b"X : y",
    b": y",
    b":",
    b"X y: z",
    b"X(y): z",
    b"\xc3\xbc: z",
    b"no colon",
    b"<html>",
    b"X: \xff\x01",
    b"X: a\0b",
    b"X: a\rb",
    b"X: a\x0bb\x0cc\x1cd",
    b"X: c\r",
    b"X: a\r\nX: b\r\nx: c",
    b"Set-Cookie: 1\r\nset-cookie: 2",
    b"etag: x\r\nX-XSS-protection: 1\r\nDNT: 1\r\nX_y-zA: 1",
    b"Connection: close\r\nKeep-Alive: 5\r\nTE: x\r\nTrailers: y\r\nUpgrade: h2\r\nProxy-Connection: z",
    b"Trailer: x",
    b"Connection: Upgrade\r\nUpgrade: websocket",
    b"Content-Encoding: gzip ",
    b"X: " + b"x" * 16_381,
    b"X: " + b"x" * 16_382,
    b"X: " + b"x" * 17_000,
    b"X: y\n",
    b"Content-Type: text/html; charset=utf-8",
    b"\r\n".join(b"X-%d: x" % number for number in range(1500)),
    b"\r\n".join(b"Set-Cookie: %d=%s" % (number, b"x" * 1000) for number in range(300)),
]

LENGTHS = [
    b"Content-Length: 2",
    b"content-length:2 ",
    b"Content-Length: 2\r\nContent-Length: 2",
    b"Content-Length: 2, 02",
    b"Content-Length: 2,2",
    b"Content-Length: 2\r\nContent-Length: 3",
    b"Content-Length: 2, 3",
    b"Content-Length: 2, ",
    b"Content-Length: -1",
    b"Content-Length: +2",
    b"Content-Length:",
    b"Content-Length: 0x2",
    b"Content-Length: 9999999999999999999999999",
    b"Content-Length: 4",
    b"Content-Length: 2\t",
    b"Content-Length : 2",
    b"Content-Length: 2\rX: y",
    b"Transfer-Encoding: identity",
    b"Transfer-Encoding: gzip",
    b"Transfer-Encoding:",
    b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
    b"Content-Length: 0",
    b"Content-Length: 00",
]
CODINGS = [
    b"Transfer-Encoding: Chunked",
    b"Transfer-Encoding: chunked\t",
    b"Transfer-Encoding: chunked, gzip",
    b"Transfer-Encoding: chunked;q=1",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nContent-Length: 2",
    b"Content-Length: 2\r\nTransfer-Encoding: chunked",
    b"transfer-encoding:chunked",
]
CHUNKS = [
    b"2\r\nok\r\n0\r\n\r\n",
    b"02\r\nok\r\n00\r\n\r\n",
    b"1\r\no\r\n1;name=value\r\nk\r\n0\r\nX-T: x\r\n\r\n",
    b"2\r\nok\r\n",
    b"2\r\nok\r\n0\r\n",
    b"2\r\nok\r\nzz\r\n",
    b"2\r\nok\r\n-2\r\n",
    b"2\r\nok0\r\n\r\n",
    b"2\r\nok\r\nFFFFFFFFFFFFFFFFFFFF\r\n",
    b"1 \r\no\r\n0\r\n\r\n",
    b"2\nok\n0\n\n",
    b"2\r\nok\n0\r\n\r\n",
    b"2\r\nok\r\n0\r\nno colon\r\n\r\n",
    b"2\r\nok\r\n0\r\nX y: 1\r\n\r\n",
    b"0x2\r\nok\r\n0\r\n\r\n",
    b" 2\r\nok\r\n0\r\n\r\n",
    b"2\r\nok\r\n0\r\n\r\ngarbage",
    b"\r\n",
    b"a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n",
    b"",
]
INTERIMS = [
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 103 E\r\nX-I: 1\r\n\r\nHTTP/1.1 100 C\r\n\r\n",
    b"HTTP/1.0 100 Continue\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 103 E\r\nno colon\r\n\r\n",
    b"HTTP/1.1 103 E\r\nX : c\r\n\r\n",
    b"HTTP/1.1 104 P\r\n\r\n",
    b"HTTP/1.1 199 x\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 150 x\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    b"HTTP/1.1 100 C\r\n\r\n\r\n",
    b"\r\n",
    b"\n",
]


def served() -> list[bytes]:
    lines = [line.encode("latin-1") + b"\r\n" + BODY for line in STATUS_LINES]
    fields = [OK + field + b"\r\n" + BODY for field in FIELDS]
    lengths = [OK + length + b"\r\n\r\nok" for length in LENGTHS]
    codings = [OK + coding + b"\r\n\r\n2\r\nok\r\n0\r\n\r\n" for coding in CODINGS]
    ends = [
        OK + b"\r\nto the end",
        OK + b"X: y\r\n",
        OK,
        OK + b"\n",
        b"HTTP/1.0 200 OK\r\n\r\nok",
        b"",
        b"HTTP/1.1 200 OK\n" + BODY,
    ]
    chunks = [CHUNKED + each for each in CHUNKS]
    interims = [each + answer() for each in INTERIMS]
    return [
        *lines,
        *fields,
        *lengths,
        *codings,
        *ends,
        *chunks,
        *interims,
        answer() + b"garbage",
        answer(status=b"204 No"),
    ]


def random_answers(chance: random.Random, count: int) -> list[bytes]:
    """Answers of which some lines are odd."""
    made = []
    for _ in range(count):
        parts = [chance.choice(INTERIMS)] if chance.random() < 0.1 else []
        line = chance.choice(STATUS_LINES) if chance.random() < 0.3 else "HTTP/1.1 200 OK"
        fields = [chance.choice(FIELDS) for _ in range(chance.randrange(4))]
        framing, body = (
            (chance.choice(CODINGS), chance.choice(CHUNKS))
            if chance.random() < 0.4
            else (chance.choice(LENGTHS), b"ok")
        )
        fields.insert(chance.randrange(len(fields) + 1), framing)
        end = chance.choice([b"\r\n", b"\r\n", b"\n"])
        parts += [line.encode("latin-1"), end, *(field + end for field in fields), end, body]
        made.append(b"".join(parts))
    return made


def assert_alike(cases: list[Case], **settings: Any) -> None:
    for case, (scrapys, ours) in zip(cases, outcomes(cases, **settings), strict=True):
        assert ours == scrapys, f"ours first: {case!r:.300}"


@pytest.mark.parametrize("fails", [True, False], ids=["losses fail", "losses kept"])
def test_answers_are_read_as_by_scrapys_handler(fails: bool) -> None:
    assert_alike([{"served": each} for each in served()], DOWNLOAD_FAIL_ON_DATALOSS=fails)


def test_answers_to_head_are_read_as_by_scrapys_handler() -> None:
    heads = [each.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" for each in served()]
    assert_alike([{"served": each, "method": "HEAD"} for each in heads if b"\n" in each])


def test_answers_of_many_odd_lines_are_read_as_by_scrapys_handler() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    assert_alike([{"served": each} for each in random_answers(random.Random(seed), 400)])


HEADERS: list[dict[str, Any]] = [
    {"X-Second": "2", "Accept": ["a", "b"]},
    {
        "dnt": "1",
        "te": "x",
        "x_u": "1",
        "ETag": "q",
        "content-md5": "z",
        "P3P": "1",
        "x-xss-protection": "0",
        "X-UPPER-x": "1",
    },
    {"Content-Length": "3"},
    {"Transfer-Encoding": "chunked"},
    {"Connection": "close"},
    {"Host": "h.example"},
    {"A": "1", "Host": "h", "B": "2"},
    {"Host": ["a", "b"]},
    {"Host": None},
    {"X": "a\r\nEvil: 1"},
    {"X": "a\nE"},
    {"X": "a\r"},
    {"X": "a\0"},
    {"X y": "1"},
    {"": "1"},
    {"X": ""},
    {"X": " a "},
    {"X": None},
    {"X": []},
    {"X": "\u00fc"},
    {"Proxy-Authorization": "Basic x"},
]
PATHS = [
    "a b",
    "p?q=1#f",
    "\u00fc",
    "%7e;a=b?c=d&e=%20",
    "../x/./y",
    "//x",
    "a?b?c",
    "?",
    "#",
    "a#b#c",
    "%",
    "%zz",
    "[x]",
    "a|b",
    "a?",
    "a?#x",
    "a;",
    "a;b",
    ";",
    "a;?",
    "/x",
    "/",
    "?#",
]
URLS = """
http://127.0.0.1:{port} http://127.0.0.1:{port}?x http://127.0.0.1:{port}#x http://user:pw@127.0.0.1:{port}/
http://user@127.0.0.1:{port}/ http://localhost:{port}/ http://LOCALHOST:{port}/ HTTP://127.0.0.1:{port}/
http://127.0.0.1:0{port}/ http:///x http://127.0.0.1:{port}//x http://127.0.0.1:{port}/? http://127.0.0.1:{port}?
http://255.255.255.255/ https://255.255.255.255/ http://127.0.0.1:1/ https://127.0.0.1:1/ http://no-such-host.invalid/
http://[::1%25none]/ http://[::1]:1/ http://127.0.0.1:{port};a gopher://h.example/ http://:{port}/ http://h.example:99999/
""".split()


def requests() -> list[Case]:
    by_proxy: list[Case] = [
        {"url": "http://h.example/a?b#c"},
        {"url": "http://h.example"},
        {"url": "http://h.example:80/a"},
        {"url": "http://h.example:81/"},
        {"url": "http://h.example/", "headers": {"Proxy-Authorization": "Basic x"}},
        {"url": "https://h.example/a"},
    ]
    proxies = [
        "http://127.0.0.1:{port}",
        "127.0.0.1:{port}",
        "http://127.0.0.1:{port}/path",
        "http://u:p@127.0.0.1:{port}",
    ]
    metas: list[dict[str, Any]] = [
        {"bindaddress": "127.0.0.3"},
        {"bindaddress": ["127.0.0.3", 0]},
        {"bindaddress": 7},
        {"download_maxsize": 1},
        {"download_maxsize": 2},
        {"download_timeout": "3"},
        {"download_timeout": 0},
        {"proxy": "socks5://127.0.0.1:{port}"},
        {"proxy": "http://255.255.255.255"},
        {"proxy": "http://127.0.0.1:1"},
        {"proxy": ""},
    ]
    methods = "POST PUT PATCH DELETE OPTIONS TRACE FOO get head".split()
    return [
        *({"headers": each} for each in HEADERS),
        *({"headers": each, "method": "POST", "body": "a=b"} for each in HEADERS[:6]),
        *({"method": each, "body": body} for each in methods for body in ("", "a=b")),
        *({"method": each} for each in ("GET /evil", "")),
        *({"path": each} for each in PATHS),
        *({"path": each, "meta": {"verbatim_url": True}} for each in PATHS),
        *({"url": each} for each in URLS),
        *({"meta": each} for each in metas),
        *({**each, "meta": {"proxy": proxy}} for proxy in proxies for each in by_proxy),
    ]


def test_requests_are_written_or_refused_as_by_scrapys_handler() -> None:
    assert_alike([{"served": answer(), **each} for each in requests()])


def sequences() -> list[Case]:
    one, two, many = [answer()], [answer(), answer()], [answer()] * 5
    closing = [answer(b"ok", b"Connection: close")]
    unasked, broken, until_end = [answer() + b"x"], [OK + b"Content-Length: 9\r\n\r\nok"], [OK + b"\r\nok"]
    chunked, empty = [CHUNKED + b"2\r\nok\r\n0\r\n\r\n"] * 5, [OK + EMPTY] * 5
    connections = [[each] for each in (one, two, many, closing, broken, until_end, chunked, empty, [b""], [OK])]
    connections += [[one, [b""], many], [[answer(), b""], many], [[answer(), OK], many], [unasked, one]]
    asked = [{}, {"method": "POST", "body": "a=b"}]
    return [
        {"served": served, "times": 4, "secure": secure, **each}
        for served in connections
        for secure in (False, True)
        for each in asked
    ]


def test_requests_one_after_the_other_share_and_lose_connections_as_with_scrapys_handler() -> None:
    assert_alike(sequences())
