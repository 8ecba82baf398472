"""Servers that belong together, as real processes on loopback: a Redis Cluster, and a master that Sentinels watch.

Each is small and fast to fail over; `tests/faults` kills and moves what it needs. All methods wait until what they do
has happened, with a limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import redis

from tests.support.server import START_LIMIT, Server, ServerError, Tls, free_port

PROBE = 0.05  # s between two looks
SLOTS = 16_384


def wait_for(condition: Callable[[], Any], what: str, limit: float = START_LIMIT) -> Any:
    """The first true value of `condition`; what a server that is away raises is no answer. Fails after `limit` s."""
    end = time.monotonic() + limit
    while True:
        try:
            if value := condition():
                return value
        except redis.RedisError as error:
            assert time.monotonic() < end, f"{what}: {error}"
        assert time.monotonic() < end, what
        time.sleep(PROBE)


def ask(server: Server, *words: Any) -> Any:
    """What a server answers."""
    with server.client() as client:
        return client.execute_command(*words)


class ClusterNode(Server):
    """A server with the cluster switched on; with `tls` it is known by the name of its certificate."""

    def __init__(self, kind: str, node_timeout: int, tls: Tls | None = None) -> None:
        self.bus = free_port()
        options = ["--cluster-enabled", "yes", "--repl-diskless-sync-delay", "0"]
        options += ["--cluster-node-timeout", str(node_timeout), "--cluster-replica-validity-factor", "0"]
        if tls is not None:
            options += ["--tls-cluster", "yes", "--tls-replication", "yes"]
            options += ["--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type", "hostname"]
        super().__init__(kind, None, options, tls)

    def arguments(self, place: Path) -> list[str]:
        return [*super().arguments(place), "--cluster-port", str(self.bus)]

    def start(self) -> Server:
        """As any server; its second port may have been taken by a client's connection since it was found free."""
        for _ in range(3):
            try:
                return super().start()
            except ServerError:
                self.bus = free_port()
        return super().start()

    @property
    def name(self) -> str:
        """What the cluster calls it."""
        return str(ask(self, "CLUSTER", "MYID").decode())


class Cluster:
    """Masters, each with so many replicas."""

    def __init__(
        self, kind: str, masters: int = 3, replicas: int = 1, node_timeout: int = 1000, tls: Tls | None = None
    ) -> None:
        self.masters = [ClusterNode(kind, node_timeout, tls) for _ in range(masters)]
        self.replicas = [ClusterNode(kind, node_timeout, tls) for _ in range(masters * replicas)]

    @property
    def nodes(self) -> list[ClusterNode]:
        return [*self.masters, *self.replicas]

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def start(self) -> Cluster:
        for node in self.nodes:
            node.start()
        first, *others = self.nodes
        for node in others:
            ask(first, "CLUSTER", "MEET", "127.0.0.1", node.port, node.bus)
        for at, node in enumerate(self.masters):
            begin, end = SLOTS * at // len(self.masters), SLOTS * (at + 1) // len(self.masters) - 1
            ask(node, "CLUSTER", "ADDSLOTSRANGE", begin, end)
        wait_for(lambda: all(len(self._known(node)) == len(self.nodes) for node in self.nodes), "all know each other")
        for at, node in enumerate(self.replicas):
            ask(node, "CLUSTER", "REPLICATE", self.masters[at % len(self.masters)].name)
        self.wait_until_whole()
        return self

    def _known(self, node: ClusterNode) -> Any:
        return [one for one in ask(node, "CLUSTER NODES").values() if "handshake" not in one["flags"]]

    def wait_until_whole(self) -> None:
        """Until each server that runs says that the cluster works, and each replica follows its master."""
        wait_for(lambda: all(self._is_whole(node) for node in self.nodes if node.running), "the cluster is whole")

    def _is_whole(self, node: ClusterNode) -> bool:
        state = ask(node, "CLUSTER INFO")["cluster_state"] == "ok"
        with node.client() as client:
            role = client.role()
        return bool(state and (role[0] == b"master" or role[3] == b"connected"))

    def owner(self, slot: int) -> ClusterNode:
        """The server that holds a slot, as the others see it."""
        for node in self.nodes:
            if node.running:
                with node.client() as client:
                    try:
                        client.execute_command("CLUSTER", "COUNTKEYSINSLOT", slot)
                        if client.role()[0] != b"master":
                            continue
                        mine = [one for one in ask(node, "CLUSTER NODES").values() if "myself" in one["flags"]]
                    except redis.RedisError:
                        continue
                if any(int(first) <= slot <= int(last) for first, last in (_ends(one) for one in mine[0]["slots"])):
                    return node
        raise AssertionError(f"no server holds slot {slot}")

    def move(self, slot: int, to: ClusterNode) -> None:
        """Move a slot with its keys, as `redis-cli --cluster reshard` does."""
        old = self.owner(slot)
        ask(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", old.name)
        ask(old, "CLUSTER", "SETSLOT", slot, "MIGRATING", to.name)
        while keys := ask(old, "CLUSTER", "GETKEYSINSLOT", slot, 10):
            ask(old, "MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "KEYS", *keys)
        for node in (to, old, *(one for one in self.present if one not in (to, old))):
            ask(node, "CLUSTER", "SETSLOT", slot, "NODE", to.name)

    @property
    def present(self) -> list[ClusterNode]:
        """Those that are masters now."""
        return [node for node in self.nodes if node.running and ask(node, "ROLE")[0] == b"master"]

    def fail_over(self, slot: int) -> None:
        """Have its replica take the place of the server that holds a slot, in order, as before an update."""
        old = self.owner(slot)
        follows = [
            node for node in self.nodes if node.running and ask(node, "ROLE")[:3] == [b"slave", b"127.0.0.1", old.port]
        ]
        ask(follows[0], "CLUSTER", "FAILOVER")
        wait_for(lambda: follows[0] in self.present and old not in self.present, "the replica is the master")
        self.wait_until_whole()

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()


def _ends(slots: Sequence[str]) -> tuple[str, str]:
    return slots[0], slots[-1]


class Sentinel(Server):
    """One Sentinel, which watches a master called `mymaster`."""

    def __init__(
        self, kind: str, master: tuple[str, int], quorum: int, down_after: int, tls: Tls | None = None
    ) -> None:
        super().__init__(kind, tls=tls)
        self.lines = [
            f"sentinel monitor mymaster {master[0]} {master[1]} {quorum}",
            f"sentinel down-after-milliseconds mymaster {down_after}",
            "sentinel failover-timeout mymaster 2000",
        ]

    def arguments(self, place: Path) -> list[str]:
        file = place / "sentinel.conf"
        if not file.exists():
            port = [f"port {self.port}"]
            if self.tls is not None:
                pairs = zip(self.tls.options[::2], self.tls.options[1::2], strict=True)
                port = [f"tls-port {self.port}", "port 0", "tls-replication yes", *(f"{n[2:]} {v}" for n, v in pairs)]
            file.write_text("\n".join([*port, "bind 127.0.0.1", f"dir {place}", *self.lines, ""]))
        return [str(file), "--sentinel"]


class Watched:
    """A master, its replicas, and Sentinels. `seen_at`: where replicas and Sentinels reach the master."""

    def __init__(
        self,
        kind: str,
        replicas: int = 1,
        sentinels: int = 3,
        down_after: int = 1000,
        seen_at: Callable[[int], int] = int,
        tls: Tls | None = None,
    ) -> None:
        quick = ("--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")
        if tls is not None:
            quick += ("--tls-replication", "yes")
        self.master = Server(kind, None, quick, tls)
        port = seen_at(self.master.port)
        follows = ("--replicaof", f"127.0.0.1 {port}")
        self.replicas = [Server(kind, None, (*quick, *follows), tls) for _ in range(replicas)]
        quorum = sentinels // 2 + 1
        self.sentinels = [Sentinel(kind, ("127.0.0.1", port), quorum, down_after, tls) for _ in range(sentinels)]

    @property
    def url(self) -> str:
        return "redis+sentinel://" + ",".join(f"127.0.0.1:{one.port}" for one in self.sentinels) + "/mymaster/0"

    def start(self) -> Watched:
        for one in (self.master, *self.replicas):
            one.start()
        wait_for(lambda: all(self._follows(one) for one in self.replicas), "replicas follow the master")
        for one in self.sentinels:
            one.start()
        wait_for(lambda: all(self._knows_all(one) for one in self.sentinels), "the Sentinels know all")
        return self

    def _follows(self, replica: Server) -> bool:
        with replica.client() as client:
            return bool(client.role()[3] == b"connected")

    def wait_until_followed(self) -> None:
        """Until all servers but the present master follow it."""
        servers = (self.master, *self.replicas)
        wait_for(lambda: sum(self._is_replica(one) for one in servers) == len(self.replicas), "all follow the master")

    def _is_replica(self, server: Server) -> bool:
        with server.client() as client:
            role = client.role()
        return bool(role[0] == b"slave" and role[2] == self.current().port and role[3] == b"connected")

    def _knows_all(self, sentinel: Server) -> bool:
        facts = self.facts(sentinel)
        sentinels, replicas = int(facts[b"num-other-sentinels"]), int(facts[b"num-slaves"])
        return sentinels == len(self.sentinels) - 1 and replicas == len(self.replicas)

    def facts(self, sentinel: Server) -> dict[bytes, bytes]:
        """What a Sentinel says of the master."""
        with sentinel.client() as client:
            connection = client.connection_pool.get_connection()
            connection.send_command("SENTINEL", "MASTER", "mymaster")
            flat = connection.read_response()
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def current(self) -> Server:
        """The server that takes writes now, as most Sentinels say."""
        ports = sorted(int(self.facts(one)[b"port"]) for one in self.sentinels)
        port = ports[len(ports) // 2]
        return next((one for one in self.replicas if one.port == port), self.master)

    def stop(self) -> None:
        for one in (*self.sentinels, *self.replicas, self.master):
            one.stop()
