"""Crawls whose requests are signed (`UBI_BOT_KEY`): what servers see, by either handler, and what is left after."""

from __future__ import annotations

import re
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from scrapy import Request, Spider
from scrapy.http import Response

from scrapy_ubi.policy.politeness.bot_key import BotKey, make_key
from scrapy_ubi.policy.politeness.message_signatures import LIFE
from tests.support.crawls import crawl, items_of, total
from tests.support.site import Page, Site, Visit

AGENT = "https://bot.example"
NAMES = {"signature", "signature-input", "signature-agent"}
ONE, OTHER = "http://one.example", "http://other.example:8080"
INPUT = re.compile(
    r'sig1=(?P<listed>\("@authority" "signature-agent"\);created=(?P<created>\d+);keyid="(?P<keyid>[\w-]{43})"'
    r';alg="ed25519";expires=(?P<expires>\d+);nonce="(?P<nonce>[\w-]+)";tag="web-bot-auth")'
)


class Signed(Spider):
    """Asks for a page of each kind, and says which headers its requests have afterwards."""

    name = "signed"
    start_urls = (f"{ONE}/moves", f"{ONE}/fails", f"{OTHER}/page", f"{ONE}/private")
    handle_httpstatus_list = (500,)

    def parse(self, response: Response) -> Iterator[Any]:
        assert response.request is not None
        yield {
            "url": response.url,
            "left": sorted(NAMES & {name.decode().lower() for name in response.request.headers}),
        }
        if response.url == f"{OTHER}/page":
            yield Request(f"{ONE}/own", headers={"Signature-Input": "mine=()", "Signature": "mine=:AA==:"})


def web(site: Site) -> None:
    for host in (ONE, OTHER):
        site.page(f"{host}/robots.txt", "User-agent: *\nDisallow: /private\n")
    site.page(f"{OTHER}/page", "page")
    site.page(f"{ONE}/own", "own")
    site.page(f"{ONE}/moves", lambda visit: Page("", 302, {"Location": f"{OTHER}/arrived"}))
    site.page(f"{OTHER}/arrived", "arrived")
    site.page(f"{ONE}/fails", lambda visit: Page("", 503 if visit.number == 1 else 200))


def check(visit: Visit, key: BotKey) -> str:
    """That a request is signed as it has to be, for this host and no other; its nonce."""
    headers = {name.lower(): value for name, value in visit.headers.items()}
    assert headers["signature-agent"] == f'"{AGENT}"'
    found = INPUT.fullmatch(headers["signature-input"])
    assert found is not None, headers["signature-input"]
    assert found["keyid"] == key.keyid and int(found["expires"]) - int(found["created"]) == LIFE
    base = f'"@authority": {visit.host}\n"signature-agent": "{AGENT}"\n"@signature-params": {found["listed"]}'
    signature = b64decode(headers["signature"].removeprefix("sig1=:").removesuffix(":"))
    Ed25519PublicKey.from_public_bytes(urlsafe_b64decode(key.x + "=")).verify(signature, base.encode())
    return found["nonce"]


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "scrapys"])
@pytest.mark.parametrize("lean", [True, False], ids=["lean", "plain"])
def test_every_request_is_signed_for_the_host_it_goes_to(site: Site, tmp_path: Path, fast: bool, lean: bool) -> None:
    web(site)
    key = make_key(tmp_path / "bot.pem")
    settings = {
        "UBI_BOT_KEY": str(tmp_path / "bot.pem"), "UBI_BOT_AGENT": f"{AGENT}/", "UBI_FAST": fast, "UBI_LEAN": lean,
        "ROBOTSTXT_OBEY": True,
    }  # fmt: skip
    outcomes = crawl(Signed, site.proxy, 2, settings)
    own = [visit for visit in site.visits if visit.url == f"{ONE}/own"]
    assert [visit.headers["signature-input"] for visit in own] == ["mine=()"]
    ours = [visit for visit in site.visits if visit not in own]
    wanted = {"moves", "arrived", "page", "fails", "robots.txt"}
    assert {visit.url.rpartition("/")[2] for visit in ours} == wanted
    nonces = [check(visit, key) for visit in ours]
    assert len(set(nonces)) == len(nonces) >= 7, "each request has its own, the second try and the redirect too"
    assert total(outcomes, "ubi/bot_auth/signed") == len(ours)
    left = {item["url"]: item["left"] for item in items_of(outcomes)}
    assert left.pop(f"{ONE}/own") == ["signature", "signature-input"]
    assert set(left) == {f"{OTHER}/arrived", f"{OTHER}/page", f"{ONE}/fails"} and not any(left.values())


def test_without_a_key_nothing_is_signed(site: Site) -> None:
    web(site)
    crawl(Signed, site.proxy)
    assert not any(NAMES & {name.lower() for name in visit.headers} for visit in site.visits if "own" not in visit.url)
