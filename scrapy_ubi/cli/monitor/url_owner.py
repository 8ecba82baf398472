"""Who owns a URL's host, and who comes next: the ring asked on behalf of people.

The answer is the one every agent computes by itself: it depends on the living agents' names and replicas and on how the
crawl cuts URLs into partition keys, on nothing else. So it can be given without any Redis, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scrapy import Request

from scrapy_ubi.adapter.requests.named_hosts import HostNames
from scrapy_ubi.cli.monitor.status import DEAD, AgentStatus, CrawlStatus
from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.protocol.ring import Ring
from scrapy_ubi.settings import FINGERPRINTER, UbiSettings
from scrapy_ubi.settings.url_readers import PARTITIONS
from scrapy_ubi.urls import HostRules, Partition
from scrapy_ubi.urls.host_rules import NONE, name_of
from scrapy_ubi.urls.host_shards import read_name

_NOT_OWNERS = frozenset((DEAD, "left", "leaving", "joining"))


@dataclass(frozen=True, slots=True)
class Ownership:
    """The answer for one URL: `order` begins with the owner; the next `replication` agents keep a copy."""

    url: str
    host: str
    partition: str
    replication: int
    order: tuple[str, ...]

    @property
    def owner(self) -> str:
        """The one agent that fetches this host."""
        return self.order[0]

    @property
    def successors(self) -> tuple[str, ...]:
        """The agents that keep a copy."""
        return self.order[1 : 1 + self.replication]


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """What the answer depends on: replicas by agent, the partition, and how many copies there are; `normalise` is how
    the crawl compares URLs, which their keys depend on, and so are its rules for hosts: `rules_name` is what the agents
    call theirs, `rules` are those that the one who asks has. With a `fingerprinter` that is not Scrapy's own, keys
    depend on more than URLs. `shards` is the table of hosts that are cut, as agents call it; `named_by` the function of
    UBI_PARTITION there, `own_namer` that of the one who asks: what agents say is never imported."""

    replicas: Mapping[str, int]
    partition: str = "host"
    replication: int = 1
    normalise: str = "scrapy"
    rules_name: str = NONE
    rules: HostRules | None = None
    fingerprinter: str = FINGERPRINTER
    shards: str = NONE
    named_by: str = ""
    own_namer: str = ""

    @property
    def settings(self) -> UbiSettings:
        """The settings that a URL's host and key depend on. Raises UbiSettingError when the rules are not known."""
        if name_of(self.rules) != self.rules_name:
            raise UbiSettingError(
                "UBI_HOST_RULES",
                f"is {name_of(self.rules)!r} here, and {self.rules_name!r} in the crawl",
                "ask from the project that the agents run in, or give the same rules with -s",
            )
        if self.named_by != self.own_namer:
            raise UbiSettingError(
                "UBI_PARTITION",
                f"is {self.own_namer or self.partition!r} here, and {self.named_by or self.partition!r} in the crawl",
                "ask from the project that the agents run in, or give the same one with -s",
            )
        partition: Partition = "domain" if self.partition == "domain" else "host"
        return UbiSettings(
            partition=partition,
            normalise=self.normalise,
            host_rules=self.rules,
            host_shards=read_name(self.shards),
            fingerprinter=self.fingerprinter,
            named_by=self.named_by,
        )


def ownership(url: str, group: GroupSettings) -> Ownership | None:
    """Who owns `url` in `group`; None when the URL has no host to be owned.

    Raises protocol.ring.RingCollision when two agents' replicas collide, UbiSettingError as `GroupSettings.settings`
    does; `group.replicas` must not be empty.
    """
    settings = group.settings
    host = HostNames(settings).of_request(Request(url)) if settings.named_by else settings.host_of()(url)
    if host is None:
        return None
    order = Ring.of(group.replicas).order(host)
    return Ownership(url, host, group.partition, group.replication, order)


def group_of(status: CrawlStatus, rules: HostRules | None = None, partition: str = "host") -> GroupSettings:
    """The group among which hosts are shared out now; of a crawl that is over, the agents that ended it.

    `rules` and `partition` are those of the one who asks. A silent agent belongs to it until the others have declared
    it dead.
    `replicas` is empty when no agent is left.
    """
    agents = [agent for agent in status.agents if agent.state not in _NOT_OWNERS]
    return GroupSettings(
        replicas={agent.name: agent.replicas for agent in agents if agent.replicas > 0},
        partition=_common(agents, "partition", "host"),
        replication=int(_common(agents, "replication", "1")),
        normalise=_common(agents, "normaliser", "scrapy"),
        rules_name=_common(agents, "host_rules", NONE),
        rules=rules,
        fingerprinter=_common(agents, "fingerprinter", FINGERPRINTER),
        shards=_common(agents, "host_shards", NONE),
        named_by=_common(agents, "named_by", ""),
        own_namer="" if partition in PARTITIONS else partition,
    )


def _common(agents: list[AgentStatus], name: str, default: str) -> str:
    """The setting as the agents publish it. An agent that differs is refused by the others, so the first one speaks
    for all.
    """
    return next((str(getattr(agent.profile, name)) for agent in agents if agent.profile is not None), default)
