"""The stream of items, on each kind of server and on a cluster: what its readers rely on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scrapy_ubi.transport.address import address
from scrapy_ubi.transport.clients import client_of
from scrapy_ubi.transport.item_stream import FOLLOW, Group, ItemStream, NoSuchGroup, read_id
from tests.support.redis_groups import Cluster
from tests.support.server import Server, available

ME = f"{FOLLOW}me"


@pytest.fixture
def stream(server: Server) -> Iterator[ItemStream]:
    client = client_of(address(server.url), 10.0)
    yield ItemStream(client, "shop")
    client.close()


def check(stream: ItemStream) -> None:
    assert (stream.last_id(), stream.groups(), stream.ends()) == ((0, 0), [], ("", ""))
    added = stream.append([("a-0", b"{}"), ("b-0", b'{"x": 1}')], "r")
    assert added.length == 2 and stream.last_id() == read_id(added.last)
    assert stream.append((), "").token == added.token
    stream.join_at(ME, "0")
    assert stream.groups() == [Group(ME, (0, 1))]
    got = stream.read(ME, 0.01)
    assert [fields for _, fields in got] == [
        {"id": "a-0", "run": "r", "item": "{}"}, {"id": "b-0", "run": "r", "item": '{"x": 1}'},
    ]  # fmt: skip
    assert stream.groups() == [Group(ME, read_id(got[0][0]))]
    assert not stream.take_out(2, stream.groups()[0].needs)
    stream.acknowledge(ME, [got[0][0]])
    assert stream.take_out(2, stream.groups()[0].needs) == 1
    assert stream.after("0-0") == stream.newest(5) == got[1:] and stream.ends()[0] == got[1][0]
    stream.unfollow(ME)
    with pytest.raises(NoSuchGroup):
        stream.read(ME, 0.01)


def test_what_is_appended_is_read_acknowledged_and_taken_out(stream: ItemStream) -> None:
    check(stream)


@pytest.mark.slow
def test_so_it_is_in_a_cluster() -> None:
    cluster = Cluster(available()[0], masters=3, replicas=0).start()
    try:
        check(ItemStream(client_of(address(cluster.url), 10.0), "shop"))
    finally:
        cluster.stop()


def test_an_id_that_is_none_is_refused() -> None:
    assert read_id(b"12-3") == (12, 3) and read_id("12") == (12, 0)
    with pytest.raises(ValueError, match="invalid literal"):
        read_id("x-1")
