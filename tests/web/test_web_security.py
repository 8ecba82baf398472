"""Who is let in: names of the server, origins, the token, bodies; and that nothing changes without all of it."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient

from scrapy_ubi.web.parameters import MOST_BODY
from scrapy_ubi.web.problem import Problem
from scrapy_ubi.web.security import Access, UbiUnsafe, check_bound, check_host, host_name, read_token
from tests.web.served import JSON, RIGHT, TOKEN, Crawl, run

Client = TestClient[Any, Any]


def unchanged(crawl: Crawl) -> bool:
    return not crawl.shelf.control and not crawl.shelf.seeds.waiting


@pytest.mark.parametrize(
    ("headers", "status", "kind"),
    [
        ({"Host": "evil.example"}, 403, "host"),
        ({"Host": "evil.example:8080"}, 403, "host"),
        ({"Host": ""}, 403, "host"),
        ({"Host": "127.0.0.1.evil.example"}, 403, "host"),
        ({"Origin": "http://evil.example"}, 403, "origin"),
        ({"Origin": "null"}, 403, "origin"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "origin"),
        ({"Sec-Fetch-Site": "same-site"}, 403, "origin"),
        ({"Authorization": ""}, 401, "token"),
        ({"Authorization": "Bearer"}, 401, "token"),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401, "token"),
        ({"Authorization": f"Basic {TOKEN}"}, 401, "token"),
        ({"Authorization": f"Bearer {TOKEN[:-1]}\u00e9"}, 401, "token"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415, "content_type"),
        ({"Content-Type": "text/plain"}, 415, "content_type"),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 415, "content_type"),
    ],
    ids=lambda value: "" if isinstance(value, str | int) else "-".join(f"{k}={v[:24]}" for k, v in value.items()),
)
def test_a_change_that_is_not_ours_is_refused(headers: dict[str, str], status: int, kind: str) -> None:
    crawl = Crawl()

    async def test(client: Client) -> None:
        for path, body in (("/api/pause", "{}"), ("/api/seeds", '{"urls": ["http://a/"]}'), ("/seeds", "{}")):
            answer = await client.post(path, data=body, headers={**RIGHT, **headers})
            said = await answer.json()
            assert (answer.status, said["error"]["kind"]) == (status, kind), said
            assert "Access-Control-Allow-Origin" not in answer.headers
        assert unchanged(crawl)

    run(test, crawl)


def test_the_simple_request_of_another_site_changes_nothing() -> None:
    """What a form or `fetch(..., {mode: "no-cors"})` of another page can send: no own header, no JSON type."""
    crawl = Crawl()

    async def test(client: Client) -> None:
        foreign = {"Origin": "http://evil.example", "Content-Type": "text/plain", "Sec-Fetch-Mode": "no-cors"}
        assert (await client.post("/api/finish", data="{}", headers=foreign)).status == 403
        ask = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
        preflight = await client.options("/api/finish", headers=ask)
        assert preflight.status == 405
        assert not [name for name in preflight.headers if name.lower().startswith("access-control")]
        assert unchanged(crawl)

    run(test, crawl)


def test_a_body_is_bounded_and_an_object() -> None:
    crawl = Crawl()

    async def test(client: Client) -> None:
        for body, status in (
            ("x" * (MOST_BODY + 1), 413), ("", 400), ("[]", 400), ("{", 400), ('{"urls": "http://a/"}', 400),
            ('{"urls": []}', 400), ('{"urls": ["http://a/"], "wat": 1}', 400), ('{"urls": ["\\ud800"]}', 400),
            ('{"urls": ["http://a/"], "priority": NaN}', 400), ("[" * 100_000, 400),
        ):  # fmt: skip
            answer = await client.post("/api/seeds", data=body, headers=RIGHT)
            assert answer.status == status, (body[:40], await answer.text())
            assert "error" in await answer.json()
        assert unchanged(crawl)

    run(test, crawl)


def test_without_a_token_file_nothing_is_changed() -> None:
    crawl = Crawl()

    async def test(client: Client) -> None:
        about = await (await client.get("/api/about")).json()
        assert (about["changes"], about["verbs"]) == (False, [])
        for headers in (RIGHT, JSON, {**JSON, "Authorization": "Bearer "}):
            answer = await client.post("/api/pause", data="{}", headers=headers)
            assert (answer.status, (await answer.json())["error"]["kind"]) == (403, "read_only")
        assert unchanged(crawl)

    run(test, crawl, Access("127.0.0.1"))


def test_off_loopback_reading_needs_the_token_and_addresses_are_ours() -> None:
    crawl = Crawl()

    async def test(client: Client) -> None:
        assert (await client.get("/")).status == 200
        for path in ("/api/about", "/api/crawl", "/api/events", "/api/nothing"):
            assert (await client.get(path)).status == 401
        for host, status in (("10.1.2.3:8080", 200), ("crawl.lan", 200), ("evil.example", 403), ("[::1]:80", 200)):
            answer = await client.get("/api/about", headers={**RIGHT, "Host": host})
            assert answer.status == status, host

    run(test, crawl, Access("0.0.0.0", TOKEN, frozenset({"crawl.lan"})))


def test_off_loopback_without_a_token_it_does_not_begin() -> None:
    for host in ("0.0.0.0", "::", "10.1.2.3", "crawl.lan", ""):
        with pytest.raises(UbiUnsafe, match="--token-file"):
            check_bound(Access(host))
        check_bound(Access(host, TOKEN))
    for host in ("127.0.0.1", "::1", "localhost", "127.9.9.9"):
        check_bound(Access(host))


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("LocalHost:80", "localhost"), ("127.0.0.1", "127.0.0.1"), ("[::1]:8080", "::1"), ("[::1]", "::1"),
        ("a:b", ""), ("a:123456", ""), ("[::1", ""), ("[::1]x", ""), ("a:1:2", ""), (":80", ""),
    ],
)  # fmt: skip
def test_names_in_host_headers(header: str, name: str) -> None:
    assert host_name(header) == name


def test_another_address_is_not_ours_on_loopback() -> None:
    for host in ("10.1.2.3", "0.0.0.0", "crawl.lan"):
        with pytest.raises(Problem):
            check_host(Access("127.0.0.1"), {"Host": host})
    check_host(Access("127.0.0.1", names=frozenset({"crawl.lan"})), {"Host": "crawl.lan:80"})


def test_every_answer_has_its_headers() -> None:
    async def test(client: Client) -> None:
        for path in ("/", "/api/about", "/api/no", "/no", "/api/hosts?wat=1"):
            answer = await client.get(path)
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            assert answer.headers["Cache-Control"] == "no-store"
            policy = answer.headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'") and "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy and "*" not in policy
        first, second = [(await client.get("/")).headers["Content-Security-Policy"] for _ in range(2)]
        assert first != second  # a nonce is used once
        page = await client.get("/")
        nonce = page.headers["Content-Security-Policy"].partition("'nonce-")[2].partition("'")[0]
        assert f'nonce="{nonce}"' in await page.text()

    run(test, Crawl())


def test_a_token_is_made_for_its_owner_alone_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    token, made = read_token(str(file))
    assert made and len(token) >= 43 and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_token(str(file)) == (token, False)


@pytest.mark.parametrize("text", ["", "short", "with spaces in the middle", "x" * 1001, "\x80" * 20])
def test_a_token_that_cannot_be_one_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(UbiUnsafe):
        read_token(str(file))


def test_a_token_file_that_others_can_write_or_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o666)
    with pytest.raises(UbiUnsafe, match="chmod 600"):
        read_token(str(file))
    with pytest.raises(UbiUnsafe, match="cannot be used"):
        read_token(str(tmp_path / "no" / "token"))
