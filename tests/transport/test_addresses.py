"""Addresses of servers that belong together, user and password that a function gives, and when a beat counts."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

import pytest
from redis.credentials import CredentialProvider, UsernamePasswordCredentialProvider

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.transport import TransportDown, TransportError
from scrapy_ubi.transport.address import address
from scrapy_ubi.transport.beat_connection import PATIENT, Replicas
from scrapy_ubi.transport.credentials import CredentialsFailed, GivenCredentials, RedisLogin, named_credentials
from scrapy_ubi.transport.redis import RedisTransport
from scrapy_ubi.transport.seed_reader import SeedSource

THREE = (("a.example", 6379), ("10.0.0.2", 7001), ("::1", 7002))


def redis_login() -> str:
    return "pa/ss"


@pytest.mark.parametrize(
    ("url", "shown", "server"),
    [
        (
            "redis+cluster://me:s%2Fx@a.example,10.0.0.2:7001,[::1]:7002/?ssl=",
            "",
            "",
        ),
        (
            "rediss+cluster://me:s%2Fx@a.example,10.0.0.2:7001,[::1]:7002?ssl_ca_certs=/ca.pem&wait_replicas=2",
            "rediss+cluster://a.example:6379,10.0.0.2:7001,[::1]:7002",
            "rediss://me:s%2Fx@10.0.0.2:7001/0?ssl_ca_certs=/ca.pem",
        ),
        (
            "redis+sentinel://:s%2Fx@a.example,10.0.0.2:7001/main/3?sentinel_password=other",
            "redis+sentinel://a.example:26379,10.0.0.2:7001/main/3",
            "redis://:s%2Fx@10.0.0.2:7001/3",
        ),
    ],
    ids=["unknown option", "cluster", "sentinels"],
)
def test_addresses_of_several_servers(url: str, shown: str, server: str) -> None:
    if not shown:
        with pytest.raises(TransportError, match="'ssl' is not known"):
            address(url)
        return
    at = address(url)
    assert at.shown == shown and at.secret == "s/x" and "s/x" not in repr(at) and "other" not in repr(at)
    one = at.server(("10.0.0.2", 7001))
    assert one.url.replace("%2Fca", "/ca") == server
    assert one.shown == f"{one.url.partition('://')[0]}://10.0.0.2:7001 (of {shown})"


def test_sentinels_have_a_password_of_their_own() -> None:
    at = address("rediss+sentinel://u:x@s1,s2/m?sentinel_password=y%26z&ssl_min_version=TLSv1.3")
    assert at.nodes == (("s1", 26379), ("s2", 26379)) and at.master == "m"
    assert at.sentinel(("s2", 26379)).url == "rediss://s2:26379?password=y%26z"
    assert at.sentinel(("s2", 26379)).arguments()["ssl_min_version"] is ssl.TLSVersion.TLSv1_3
    assert at.scrub("x y&z") == "*** ***"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis+cluster://", "cannot be read"),
        ("redis+cluster://a,,b", "cannot be read"),
        ("redis+cluster://a:b:c", "cannot be read"),
        ("redis+cluster://a:99999,b", "cannot be read"),
        ("redis+cluster://a,b/1", "a cluster has one database"),
        ("redis+cluster://a,b?db=1", "a cluster has one database"),
        ("redis+sentinel://a,b", "the name of the master"),
        ("redis+sentinel://a,b/m/x", "the name of the master"),
        ("redis+sentinel://a,b/m?ssl_ca_certs=/x", "of TLS"),
        ("redis+cluster://a?sentinel_password=x", "'sentinel_password' is not known"),
        ("redis://a?wait_replicas=9", "'wait_replicas' is no number from 0 to 5"),
        ("rediss://a?ssl_min_version=1", "'ssl_min_version' is none of"),
        ("rediss://a?ssl_check_hostname=perhaps", "neither true nor false"),
        ("redis+cluster://" + ",".join(["a"] * 65), "more than 64 servers"),
    ],
)
def test_addresses_of_several_that_are_malformed(url: str, said: str) -> None:
    with pytest.raises(TransportError, match="UBI_REDIS_URL is malformed") as error:
        address(url)
    assert said in str(error.value)


def test_a_function_and_the_address_may_not_both_give_a_password() -> None:
    for url in ("redis://:x@h", "redis://h?username=x", "redis+cluster://u:x@a,b"):
        with pytest.raises(TransportError, match="take one of them out"):
            address(url, GivenCredentials(redis_login))
    assert address("redis+cluster://a,b", GivenCredentials(redis_login)).arguments()["credential_provider"]


@pytest.mark.parametrize(
    ("give", "given"),
    [
        (redis_login, ("pa/ss",)),
        (lambda: ("me", "x"), ("me", "x")),
        (lambda: UsernamePasswordCredentialProvider("me", "x"), ("me", "x")),
        (lambda: None, None),
        (lambda: ("a", "b", "c"), None),
        (lambda: 1 / 0, None),
    ],
    ids=["password", "both", "provider", "nothing", "three", "raises"],
)
def test_what_a_function_gives(give: Callable[[], object], given: tuple[str, ...] | None) -> None:
    credentials = GivenCredentials(give)
    if given is not None:
        assert credentials.get_credentials() == given == asyncio.run(credentials.get_credentials_async())
    else:
        with pytest.raises(CredentialsFailed):
            credentials.get_credentials()
    assert isinstance(credentials, CredentialProvider)


def test_the_function_is_named_by_its_path() -> None:
    found = named_credentials(f"{__name__}.redis_login")
    assert found is not None and found.get_credentials() == ("pa/ss",)
    assert named_credentials("") is None
    for path in (f"{__name__}.nothing", "no.such.module", f"{__name__}.THREE"):
        with pytest.raises(UbiSettingError, match="UBI_REDIS_CREDENTIALS"):
            named_credentials(path)


def test_a_function_that_fails_is_said() -> None:
    transport = RedisTransport(RedisLogin("redis://127.0.0.1:1/0", GivenCredentials(lambda: 1 / 0)), "c", "a")
    with pytest.raises(TransportDown, match="UBI_REDIS_URL"):
        asyncio.run(transport.open())


def test_a_list_in_another_slot_is_refused() -> None:
    transport = RedisTransport("redis+cluster://127.0.0.1:1", "bot:x", "a", seeds=SeedSource("x:start_urls"))
    with pytest.raises(TransportError, match=r"begins with \{bot:x\}"):
        asyncio.run(transport.open())


@pytest.mark.parametrize(
    ("url", "known", "have", "lacks"),
    [
        ("redis+cluster://a", 0, 0, False),
        ("redis+cluster://a", 1, 0, True),
        ("redis+cluster://a", 1, 1, False),
        ("redis+cluster://a", 2, 1, True),
        ("redis+sentinel://a/m", 1, 0, True),
        ("redis+sentinel://a/m?wait_replicas=1", 2, 1, False),
        ("redis://a?wait_replicas=1", 0, 0, True),
    ],
)
def test_a_beat_counts_when_all_known_replicas_have_it(url: str, known: int, have: int, lacks: bool) -> None:
    replicas = Replicas(address(url), 3.0)
    replicas.known(known)
    assert replicas.command()[0][0] == "WAIT"
    assert bool(replicas.lack(have)) is lacks


def test_a_single_server_waits_for_no_replica() -> None:
    for url in ("redis://a", "redis+cluster://a?wait_replicas=0"):
        assert Replicas(address(url), 3.0).command() == []


def test_a_replica_that_is_merely_slow_is_given_the_whole_time_again_after_a_while() -> None:
    replicas = Replicas(address("redis+cluster://a"), 3.0)
    replicas.known(1)
    whole, short = ("WAIT", 1, 1500), ("WAIT", 1, 50)
    assert replicas.command() == [whole]
    replicas.failed()
    waits = []
    for _ in range(2 * PATIENT):
        waits += replicas.command()
        replicas.lack(0)
    assert waits.count(whole) == 2 and waits[0] == short
    replicas.lack(1)
    assert replicas.command() == [whole]


def test_a_replica_that_was_seen_once_is_missed_later() -> None:
    replicas = Replicas(address("redis+cluster://a"), 3.0)
    assert replicas.lack(0) == "", "there is none, as far as is known"
    assert replicas.lack(1) == ""
    assert replicas.lack(0) == "0 of 1 have it"
    (_, number, limit), *_ = replicas.command()
    assert (number, limit) == (1, 50), "it is not waited for long again"


@pytest.mark.parametrize(
    ("url", "limit"), [("redis+cluster://a", 50), ("redis+sentinel://a/m", 50), ("redis://a?wait_replicas=1", 1500)]
)
def test_after_a_failure_replicas_are_waited_for_shortly_where_others_can_confirm_the_server(
    url: str, limit: int
) -> None:
    replicas = Replicas(address(url), 3.0)
    replicas.known(1)
    assert replicas.command()[0][2] == 1500
    replicas.failed()
    assert replicas.command()[0][2] == limit
    assert replicas.lack(1) == ""
    assert replicas.command()[0][2] == 1500
