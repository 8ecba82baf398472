"""A crawl whose entries are signed (`UBI_SECRET`), while somebody writes into its Redis: a hub in memory here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scrapy_ubi.adapter.components import scheduler_builder
from scrapy_ubi.agent.steering.live_entries import FINISH, LiveEntry
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.transport import Transport
from scrapy_ubi.transport.in_process import MemoryHub
from scrapy_ubi.transport.redis import RedisTransport
from scrapy_ubi.transport.signed_transport import REPLAYED, UNSIGNED, WRONG, SignedTransport
from scrapy_ubi.transport.signer import Signer, bare
from tests.crawls.test_serve import HOSTS, Outside, Served, serve
from tests.support.crawls import SharedBuilder, SharedScheduler, items_of, total
from tests.support.site import Site, links
from tests.transport.worlds import until

SECRET = "a secret of some length"


class SigningBuilder(SharedBuilder):
    def make_transport(self) -> Transport:
        settings = self.scheduler.settings
        signer = Signer(settings.secret, settings.crawl)
        return SignedTransport(
            super().make_transport(), signer, self.scheduler.agent_id, settings.crawl, settings.heartbeat_interval
        )


class SignedScheduler(SharedScheduler):
    """Its agents sign."""

    builder_class = SigningBuilder


class Walk(Served):
    """Follows links, to other agents' hosts among them."""

    follows = True


class Stranger:
    """May read and write all there is, and does not know the secret."""

    def __init__(self, hub: MemoryHub, crawl: str) -> None:
        self.hub, self.crawl = hub, crawl
        self.letters: list[tuple[str, dict[bytes, bytes]]] = []
        append = hub.append

        def noted(crawl: str, agent: str, fields: Any) -> str:
            self.letters.append((agent, dict(fields)))
            return append(crawl, agent, fields)

        hub.append = noted  # type: ignore[method-assign]

    @property
    def shelf(self) -> Any:
        return self.hub.shelf(self.crawl)

    @property
    def run(self) -> str:
        return bare(self.shelf.control[b"run"].decode())

    def reasons(self) -> set[bytes]:
        return {one[b"reason"] for dead in self.shelf.dead.values() for one in dead}

    def post(self, agent: str, fields: dict[bytes, bytes]) -> None:
        MemoryHub.append(self.hub, self.crawl, agent, fields)


def signed(crawl: str, kind: str, run: str, fields: dict[str, str]) -> dict[bytes, bytes]:
    signer = Signer(SECRET, crawl)
    entry = signer.control(run, fields) if kind == "control" else signer.entry("seed", "", "token", fields)
    return {name.encode(): text.encode() for name, text in entry.items()}


def test_what_a_stranger_writes_into_redis_changes_nothing(site: Site) -> None:
    for host in HOSTS:
        site.page(f"{host}/", links(*(f"{other}/" for other in HOSTS)))
    evil = "http://evil.example/"
    site.page(evil)

    async def scene(outside: Outside) -> None:
        crawl = outside.schedulers[0].settings.crawl
        stranger = Stranger(outside.hub, crawl)
        await until(lambda: b"run" in stranger.shelf.control, 60)

        def finish() -> None:
            end = LiveEntry(FINISH, "", True, 1, "ann", 1.0)
            stranger.shelf.control |= signed(crawl, "control", stranger.run, {end.field: end.text})

        outside.finish = finish  # type: ignore[method-assign]

        for scheduler in outside.schedulers:
            letter = {"from": "a0", "store": "0badcafe", "lane": "discovery", "seq": "1", "floor": "1", "n": "1"}
            entry = json.dumps([{"host": "evil.example", "discovered": [["0" * 16, evil, 0, 0]]}])
            letter |= {"view": "0" * 16, "enc": "json", "body": entry, "run": stranger.run}
            stranger.post(scheduler.agent_id, {name.encode(): text.encode() for name, text in letter.items()})
        said = LiveEntry("UBI_CRAWL_LIMITS", "", "pages=1", 2**52, "mallory", 1.0)
        stranger.shelf.control[said.field.encode()] = said.text.encode()
        assert await outside.told(outside.push(evil)) == [f"REFUSED {UNSIGNED}"]
        seed = signed(crawl, "seed", "", {"url": f"{HOSTS[0]}/"})
        assert await outside.told(outside.seeds.append(seed)) == ["OK"]
        await outside.quiet()
        assert await outside.told(outside.seeds.append(seed)) == [f"REFUSED {REPLAYED}"]
        seed[b"url"] = evil.encode()
        assert await outside.told(outside.seeds.append(seed)) == [f"REFUSED {WRONG}"]
        letters = list(stranger.letters)
        assert letters, "agents have written to each other"
        for agent, fields in letters:
            stranger.post(agent, fields)
        await until(lambda: {UNSIGNED.encode(), REPLAYED.encode(), WRONG.encode()} <= stranger.reasons(), 60)
        await until(lambda: not any(stranger.shelf.inbox.values()), 60)

    own = {"SCHEDULER": "tests.crawls.test_secret.SignedScheduler", "UBI_SECRET": SECRET}
    outcomes = serve(site, scene, 2, Walk, **own)
    urls = [f"{host}/" for host in HOSTS]
    assert [item["url"] for item in items_of(outcomes)] == sorted(urls)
    assert site.urls() == dict.fromkeys(urls, 1)
    assert total(outcomes, "ubi/dead_letters") >= 5
    assert SECRET not in repr([outcome.stats for outcome in outcomes])


def test_the_transport_is_signed_where_the_setting_is_there() -> None:
    plain = scheduler_builder.make_transport(UbiSettings(redis_url="redis://127.0.0.1"), "a")
    assert isinstance(plain, RedisTransport)
    there = scheduler_builder.make_transport(UbiSettings(redis_url="redis://127.0.0.1", secret=SECRET), "a")
    assert isinstance(there, SignedTransport)
    with pytest.raises(UbiSettingError, match="UBI_SEED_LIST cannot be used with UBI_SECRET"):
        scheduler_builder.make_transport(
            UbiSettings(redis_url="redis://127.0.0.1", serve=True, seed_list="x", secret=SECRET), "a"
        )


@pytest.mark.parametrize("value", ["short", "x" * 1001, 5, ("a secret of some length",)])
def test_a_secret_has_to_be_long_enough_and_is_not_shown(value: object) -> None:
    with pytest.raises(UbiSettingError, match="UBI_SECRET") as caught:
        UbiSettings.from_scrapy({"UBI_SECRET": value})
    assert str(value)[:20] not in str(caught.value).replace("UBI_SECRET", "")
    assert SECRET not in repr(UbiSettings(secret=SECRET))
