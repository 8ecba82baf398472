"""Clients of redis-py for people's commands: of a server, of all servers of a cluster, or of what Sentinels name.

Rules of this module:

* One attempt: a person who waits for an answer would rather see the error. In a cluster, and with Sentinels, one more,
  as the server may be another one since.
* They look, and write what people ask for. What agents rely on, leases among it, does not go through here.
"""

from __future__ import annotations

from typing import Any, cast

import redis
from redis import cluster, connection, sentinel
from redis import exceptions as lib
from redis.backoff import NoBackoff
from redis.retry import Retry

from scrapy_ubi.transport.address import Address

_cluster: Any = cluster  # without types, as the two below
_connection: Any = connection
_sentinel: Any = sentinel


def client_of(at: Address, timeout: float) -> redis.Redis:
    """A client; `timeout` (s) bounds each connecting and each answer. That of a cluster is used like the others, as all
    keys of a call are of one crawl. Raises what redis-py raises; where a key has another type than it should, the error
    names it, as those of a pipeline do."""
    client = _client_of(at, timeout)
    call: Any = client.execute_command

    def execute_command(*args: Any, **options: Any) -> Any:
        try:
            return call(*args, **options)
        except lib.ResponseError as error:
            if "WRONGTYPE" not in str(error):
                raise
            raise lib.ResponseError(f"WRONGTYPE {', '.join(_keys_of(args))}") from error

    client.execute_command = execute_command  # type: ignore[method-assign]
    return client


def _keys_of(args: tuple[Any, ...]) -> list[str]:
    """The keys of a command."""
    keys = args[1:2]
    if args[0] == "EVAL":
        keys = args[3 : 3 + int(args[2])]
    elif "STREAMS" in (words := [word if isinstance(word, str) else _text(word) for word in args]):
        streams = args[words.index("STREAMS") + 1 :]
        keys = streams[: len(streams) // 2]
    return [_text(key) for key in keys]


def _text(key: object) -> str:
    return key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)


def _client_of(at: Address, timeout: float) -> redis.Redis:
    limits: dict[str, Any] = {"socket_timeout": timeout, "socket_connect_timeout": timeout, "protocol": 2}
    if at.kind == "single":
        return redis.Redis.from_url(**at.arguments(), **limits, retry=Retry(NoBackoff(), 0))
    limits["retry"] = Retry(NoBackoff(), 1)
    if at.kind == "cluster":
        return cast(redis.Redis, _of_cluster(at, limits))
    watching = _sentinel.Sentinel(at.nodes, sentinel_kwargs={**_arguments(at.sentinel(at.nodes[0])), **limits})
    return cast(redis.Redis, watching.master_for(at.master, db=_database(at), **_arguments(at), **limits))


def _of_cluster(at: Address, limits: dict[str, Any]) -> Any:
    nodes = [_cluster.ClusterNode(host, port) for host, port in at.nodes]
    try:
        return _cluster.RedisCluster(startup_nodes=nodes, **_arguments(at), **limits)
    except lib.RedisClusterException as error:  # none of its errors
        if isinstance(error.__cause__, lib.RedisError | OSError):
            raise error.__cause__ from error
        raise lib.ConnectionError(str(error)) from error


def _arguments(at: Address) -> dict[str, Any]:
    """What the address says beside where the server is: user, password, TLS."""
    given = at.arguments()
    read: dict[str, Any] = {**_connection.parse_url(given.pop("url")), **given}
    if read.pop("connection_class", None) is not None:
        read["ssl"] = True
    return {name: value for name, value in read.items() if name not in ("host", "port", "db", "path")}


def _database(at: Address) -> int:
    return int(_connection.parse_url(at.url).get("db", 0))
