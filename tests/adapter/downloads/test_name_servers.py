"""Names asked of DNS servers: answers are kept, also those that there is none; no name is asked for twice at once."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CannotResolveHostError

from scrapy_ubi.adapter.downloads import name_servers
from scrapy_ubi.adapter.downloads.name_servers import MOST_ADDRESSES, Found, NameServers, NoSuchName
from scrapy_ubi.adapter.downloads.resolver import ReactorNames, Resolver
from tests.fast.http.raw import run


class Asked:
    """Answers as `answers` says, and keeps what was asked."""

    def __init__(self, answers: dict[str, Found | Exception]) -> None:
        self.answers, self.names, self.at = answers, list[str](), 0.0

    async def ask(self, host: str) -> Found:
        self.names.append(host)
        await asyncio.sleep(0)
        answer = self.answers[host]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def servers(self, most: int = 100, timeout: float = 5.0) -> NameServers:
        return NameServers(self.ask, most, timeout, now=lambda: self.at)


def test_an_answer_is_kept_as_long_as_it_holds_within_bounds() -> None:
    asked = Asked({"a.example": (["192.0.2.1"], 100.0), "b.example": (["192.0.2.2"], 0.0)})

    async def walk() -> None:
        servers = asked.servers()
        for asked.at, count in ((0.0, 1), (99.0, 1), (101.0, 2)):
            assert await servers.addresses("a.example") == ["192.0.2.1"]
            assert len(asked.names) == count
        for asked.at, count in ((200.0, 3), (209.0, 3), (211.0, 4)):
            assert await servers.addresses("b.example") == ["192.0.2.2"]
            assert len(asked.names) == count

    run(walk())


def test_that_there_is_no_answer_is_kept_too_and_a_failure_for_a_moment() -> None:
    asked = Asked({"no.example": NoSuchName("none"), "broken.example": ValueError("whatever c-ares says")})

    async def walk() -> None:
        servers = asked.servers()
        for host, moments in (("no.example", ((0.0, 1), (59.0, 1), (61.0, 2))), ("broken.example", ((0, 3), (6, 4)))):
            for asked.at, count in moments:
                with pytest.raises(CannotResolveHostError) as error:
                    await servers.addresses(host)
                assert error.type is CannotResolveHostError, "as an errback, and the stats, know it"
                assert len(asked.names) == count, (host, asked.at)

    run(walk())


def test_a_name_is_asked_for_once_at_a_time_and_outlasts_who_asked_first() -> None:
    asked = Asked({"a.example": (["192.0.2.1"], 100.0)})

    async def walk() -> None:
        servers = asked.servers()
        first = asyncio.ensure_future(servers.addresses("a.example"))
        others = [asyncio.ensure_future(servers.addresses("a.example")) for _ in range(3)]
        await asyncio.sleep(0)
        first.cancel()
        assert await asyncio.gather(*others) == [["192.0.2.1"]] * 3
        assert asked.names == ["a.example"]

    run(walk())


def test_a_name_without_an_address_is_none_and_of_many_the_first_are_kept() -> None:
    many = [f"192.0.2.{number}" for number in range(200)]
    asked = Asked({"none.example": ([], 100.0), "many.example": (many, 100.0)})

    async def walk() -> None:
        servers = asked.servers()
        with pytest.raises(CannotResolveHostError):
            await servers.addresses("none.example")
        for _ in range(2):
            assert await servers.addresses("many.example") == many[:MOST_ADDRESSES]

    run(walk())


def test_closed_it_lets_go_of_what_it_asks_and_asks_for_nothing_more() -> None:
    let_go = list[str]()

    async def silent(host: str) -> Found:
        await asyncio.Event().wait()
        raise AssertionError

    async def end() -> None:
        let_go.append("once")

    async def walk() -> None:
        servers = NameServers(silent, 10, 60.0, end)
        waiting = asyncio.ensure_future(servers.addresses("a.example"))
        await asyncio.sleep(0)
        await servers.close()
        await servers.close()
        for each in (waiting, servers.addresses("a.example")):
            with pytest.raises(CannotResolveHostError, match="has ended"):
                await each
        assert let_go == ["once"]

    run(walk())


def test_so_many_answers_are_kept_and_none_without_a_cache() -> None:
    asked = Asked({f"{number}.example": (["192.0.2.1"], 100.0) for number in range(5)})

    async def walk() -> None:
        servers, none = asked.servers(most=3), asked.servers(most=0)
        for host in asked.answers:
            await servers.addresses(host)
            await none.addresses(host)
        assert (len(servers), len(none)) == (3, 0)

    run(walk())


def test_a_question_without_an_answer_ends() -> None:
    async def silent(host: str) -> Found:
        await asyncio.Event().wait()
        raise AssertionError

    async def walk() -> None:
        with pytest.raises(CannotResolveHostError, match=r"within 0\.01 s"):
            await NameServers(silent, 10, 0.01).addresses("a.example")

    run(walk())


@contextmanager
def dns() -> Iterator[str]:
    """A DNS server on loopback that knows `known.example`, and says of all else that it does not exist."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def serve() -> None:
            while (asked := server.recvfrom(2000))[0] != b"end":
                data, who = asked
                end = data.index(b"\0", 12) + 5
                kind = struct.unpack_from(">H", data, end - 4)[0]
                knows, has = b"\5known" in data[12:end].lower(), kind == 1
                head = data[:2] + struct.pack(">HHHHH", 0x8180 | (0 if knows else 3), 1, int(knows and has), 0, 0)
                record = b"\xc0\x0c" + struct.pack(">HHIH4B", 1, 1, 300, 4, 127, 9, 9, 9) if knows and has else b""
                server.sendto(head + data[12:end] + record, who)

        thread = Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.sendto(b"end", server.getsockname())
            thread.join()


def crawler_of(servers: str) -> Crawler:
    return Crawler(Spider, {"UBI_DNS_SERVERS": servers, "TWISTED_REACTOR_ENABLED": False})


def test_c_ares_asks_the_servers_that_are_named_until_the_engine_stops() -> None:
    pytest.importorskip("aiodns")

    async def walk(server: str) -> None:
        crawler = crawler_of(f"{server}, {server}")
        resolver, other = Resolver(crawler), Resolver(crawler)
        assert await resolver.addresses("known.example") == ["127.9.9.9"]
        for address in ("127.0.0.7", "::1"):
            assert await resolver.addresses(address) == [address], "an address is asked for nowhere"
        for each in (resolver, other):
            with pytest.raises(CannotResolveHostError) as error:
                await each.addresses("unknown.example")
            assert error.type is CannotResolveHostError
        servers = name_servers.name_servers(crawler)
        assert len(servers) == 2
        await crawler.signals.send_catch_log_async(signals.engine_stopped)
        with pytest.raises(CannotResolveHostError, match="has ended"):
            await resolver.addresses("later.example")

    with dns() as server:
        run(walk(server))


class Receiver:
    """What Twisted gives its resolver."""

    def __init__(self) -> None:
        self.addresses, self.complete = list[str](), asyncio.Event()

    def resolutionBegan(self, resolution: object) -> None:
        pass

    def addressResolved(self, address: Any) -> None:
        self.addresses.append(address.host)

    def resolutionComplete(self) -> None:
        self.complete.set()


def test_the_reactors_names_end_whatever_is_asked() -> None:
    pytest.importorskip("aiodns")

    async def walk(server: str) -> None:
        names = ReactorNames.from_crawler(crawler_of(server), None)
        for host, wanted in (("known.example", ["127.9.9.9"]), ("unknown.example", []), ("::1", ["::1"]), ("a..b", [])):
            receiver = Receiver()
            names.resolveHostName(receiver, host, 80)
            await receiver.complete.wait()
            assert receiver.addresses == wanted
        await names.close()
        await names.close()

    with dns() as server:
        run(walk(server))
    with pytest.raises(ValueError, match="needs UBI_DNS_SERVERS"):
        ReactorNames.from_crawler(crawler_of(""), None)
