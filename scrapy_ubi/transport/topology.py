"""Which server holds a crawl now: asked of the servers of a cluster, or of Sentinels.

Rules of this module:

* Functions that block, each for the time-out at most: called in the beating thread, and from the event loop in another.
* All are asked at once, each by one thread: one that is not through yet, as a name may be looked up for longer than
  the time-out, is not asked again meanwhile.
* One that answers may be cut off from the others, and tell of a state that is over: what most servers of a cluster say
  counts, and of Sentinels the one whose configuration is the newest.
* What is found is believed only as far as the server itself agrees: by MOVED in a cluster, by ROLE with Sentinels.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import redis
from redis import exceptions as lib
from redis.backoff import NoBackoff
from redis.retry import Retry

from scrapy_ubi.transport.address import Address, Node

GRACE = 0.2  # s after the first answer for the others; as long as that took, where it took longer
MOST_ASKED = 16  # servers of a cluster; any knows all of them

FAULTS = (redis.RedisError, OSError, TimeoutError, ValueError)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """The server that holds a crawl, and how many replicas it is known to have. `node`: what the others call it."""

    at: Address
    replicas: int = 0
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class _Said:
    """One answer: of a newer configuration counts more; `known`: servers that may be asked as well."""

    node: Node
    replicas: int
    epoch: int = 0
    known: tuple[Node, ...] = ()


class SlotFinder:
    """Finds the servers of several hash slots of a cluster."""

    def __init__(self, at: Address, slots: Sequence[int], timeout: float) -> None:
        self._at = at
        self._slots = slots
        self._timeout = timeout
        self._learned: tuple[Node, ...] = ()
        self._asking: dict[Node, threading.Thread] = {}

    def find_servers(self) -> dict[int, Node]:
        """The server of each slot that has one, as most say. Blocks. Raises what redis-py raises."""
        self._asking = {node: thread for node, thread in self._asking.items() if thread.is_alive()}
        known = list(dict.fromkeys((*self._at.nodes, *self._learned)))[:MOST_ASKED]
        said = _all_of(self._ask, [node for node in known if node not in self._asking], self._timeout, self._asking)
        votes: dict[int, Counter[Node]] = {slot: Counter() for slot in self._slots}
        for answer in said:
            for slot, node in answer.items():
                votes[slot][node] += 1
        return {slot: counted.most_common(1)[0][0] for slot, counted in votes.items() if counted}

    def _ask(self, node: Node) -> dict[int, Node]:
        ranges = _ranges(answer_of(self._at.server(node), ("CLUSTER", "SLOTS"), self._timeout), node)
        self._learned = tuple(one for *_, nodes in ranges for one in nodes)[:MOST_ASKED]
        return {slot: nodes[0] for slot in self._slots for first, last, nodes in ranges if first <= slot <= last}


class ServerFinder:
    """Finds the server of one hash slot. Each user has its own, as it remembers what it was told."""

    def __init__(self, at: Address, slot: int, timeout: float) -> None:
        self.at = at
        self._slot = slot
        self._timeout = timeout
        self._learned: tuple[Node, ...] = ()  # servers of the cluster
        self._replicas = 0  # known when last asked
        self._hint: Node | None = None
        self._asking: dict[Node, threading.Thread] = {}

    def moved(self, error: lib.MovedError) -> None:
        """The server has said that another one holds the slot: that is where to look next."""
        if error.host:
            self._hint = (error.host, int(error.port))

    def find_server(self) -> ServerPlace:
        """Where the crawl is. Blocks. Raises what redis-py raises."""
        if self.at.kind == "single":
            return ServerPlace(self.at)
        hint, self._hint = self._hint, None
        if hint is not None:
            return ServerPlace(self.at.server(hint), self._replicas, hint)
        said = self._ask()
        newest = max(one.epoch for one in said)
        found = _most([one for one in said if one.epoch == newest])
        self._learned, self._replicas = found.known, found.replicas
        return ServerPlace(self.at.server(found.node), found.replicas, found.node)

    def confirm(self, place: ServerPlace) -> bool:
        """Whether most of all, those that do not answer among them, say now that this is the server. Blocks."""
        try:
            agree = sum(one.node == place.node for one in self._ask())
        except FAULTS:
            return False
        return 2 * agree > len(self._nodes())

    def _nodes(self) -> list[Node]:
        return list(dict.fromkeys((*self.at.nodes, *self._learned)))[:MOST_ASKED]

    def _ask(self) -> list[_Said]:
        ask = self._sentinel if self.at.kind == "sentinel" else self._member
        self._asking = {node: thread for node, thread in self._asking.items() if thread.is_alive()}
        free = [node for node in self._nodes() if node not in self._asking]
        return _all_of(ask, free, self._timeout, self._asking)

    def _sentinel(self, node: Node) -> _Said:
        return _of_sentinel(answer_of(self.at.sentinel(node), ("SENTINEL", "MASTER", self.at.master), self._timeout))

    def _member(self, node: Node) -> _Said:
        return _of_cluster(answer_of(self.at.server(node), ("CLUSTER", "SLOTS"), self._timeout), self._slot, node)


def _most(said: Sequence[_Said]) -> _Said:
    """What most say; of its replicas the largest number that one knows of."""
    node, _ = Counter(one.node for one in said).most_common(1)[0]
    same = [one for one in said if one.node == node]
    return replace(same[0], replicas=max(one.replicas for one in same))


def _all_of(
    ask: Callable[[Node], T], nodes: Sequence[Node], timeout: float, threads: dict[Node, threading.Thread]
) -> list[T]:
    """The answers that come within the time-out, and soon after the first one. Raises what the most telling of the
    failures was when there is no answer. `threads` is told who asks."""
    answers: queue.SimpleQueue[T | BaseException] = queue.SimpleQueue()

    def put(node: Node) -> None:
        try:
            answers.put(ask(node))
        except BaseException as error:  # noqa: BLE001 - it is looked at in the thread that has asked
            answers.put(error)

    for node in nodes:
        threads[node] = threading.Thread(target=put, args=(node,), name="ubi-topology", daemon=True)
        threads[node].start()
    said: list[T] = []
    failed: list[BaseException] = []
    begun = time.monotonic()
    end = begun + timeout
    while len(said) + len(failed) < len(nodes):
        try:
            one = answers.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        if isinstance(one, BaseException):
            failed.append(one)
            continue
        if not said:
            now = time.monotonic()
            end = min(end, now + max(GRACE, now - begun))
        said.append(one)
    if not said:
        raise max(failed, key=_telling, default=lib.TimeoutError("no server answers"))
    return said


def _telling(error: BaseException) -> int:
    """A server that refuses says more than one that does not answer."""
    return 0 if isinstance(error, lib.TimeoutError) else 2 if isinstance(error, lib.ResponseError) else 1


def answer_of(at: Address, command: tuple[str, ...], timeout: float) -> Any:
    """What that server answers, as it comes."""
    pool = redis.ConnectionPool.from_url(
        **at.arguments(),
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
    )
    try:
        connection: Any = pool.get_connection()
        connection.send_command(*command)
        return connection.read_response()
    finally:
        pool.disconnect()


def _of_sentinel(answer: Any) -> _Said:
    """What a Sentinel says of a master."""
    try:
        facts = dict(zip(answer[::2], answer[1::2], strict=True))
        node = (facts[b"ip"].decode("ascii"), int(facts[b"port"]))
        return _Said(node, int(facts[b"num-slaves"]), int(facts[b"config-epoch"]))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise lib.InvalidResponse("it answers something else than a Sentinel") from error


def _of_cluster(answer: Any, slot: int, asked: Node) -> _Said:
    """Who holds the slot, by CLUSTER SLOTS."""
    ranges = _ranges(answer, asked)
    known = tuple(node for *_, nodes in ranges for node in nodes)
    for first, last, (master, *replicas) in ranges:
        if first <= slot <= last:
            return _Said(master, len(replicas), known=known[:MOST_ASKED])
    raise lib.ClusterDownError("no server of the cluster holds the slot of this crawl")


def _ranges(answer: Any, asked: Node) -> list[tuple[int, int, list[Node]]]:
    """First and last slot of each range, and the servers that hold it, the master first, by CLUSTER SLOTS."""
    try:
        ranges = [(first, last, [_endpoint(node, asked) for node in nodes]) for first, last, *nodes in answer]
        if not all(isinstance(first, int) and isinstance(last, int) and nodes for first, last, nodes in ranges):
            raise ValueError
        return ranges
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise lib.InvalidResponse("it answers something else than a server of a cluster") from error


def _endpoint(node: Any, asked: Node) -> Node:
    """Host and port of a server: without a host that of the one that was asked; where the host it prefers is not set,
    its address."""
    host, port, *rest = node
    if host == b"?":
        facts = rest[1] if len(rest) > 1 else []
        host = dict(zip(facts[::2], facts[1::2], strict=True)).get(b"ip")
    return (host.decode("ascii") if host else asked[0], int(port))
