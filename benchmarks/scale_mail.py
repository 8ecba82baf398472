"""What a group that crawls at full speed asks of Redis, and of each master where its mail is spread over slots. A part
of `scale.py`.

One production agent among N fetches 500 pages a second in virtual time; it paces its exchanges by the node's own
`Timing`, and what it sends is turned into the transport's own commands (`ExchangeCommands`) and keys. The others
acknowledge what they are sent, each in one exchange with whatever else it has for that sender, and ask for the state of
hosts that are new to them. They send nothing themselves: an agent of a group of equals is sent as much as it sends, so
what one does is multiplied. What a command costs the server is measured on a real one (`redis_costs`).

Beats, profiles and views are not in it: `group.py` and `scale_group.py` have them; they stay in the crawl's own slot.
"""

from __future__ import annotations

import math
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

import redis
import scale_crawl
import scale_ring
from processes import free_port, redis_command, wait_for_redis
from redis.crc import key_slot
from scale_crawl import DELAY, FLUSH
from scale_group import sharing_views

from scrapy_ubi.agent.mail.timing import SELDOM, Timing
from scrapy_ubi.protocol.agent import Effects
from scrapy_ubi.protocol.answer import Outcome
from scrapy_ubi.protocol.answer import text as answer_text
from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.bundle import gathered, opened
from scrapy_ubi.protocol.lane import STATE
from scrapy_ubi.protocol.ring import Ring
from scrapy_ubi.protocol.wire import decode
from scrapy_ubi.transport import Outgoing
from scrapy_ubi.transport.contract import MOST_READ
from scrapy_ubi.transport.exchange_commands import ExchangeCommands
from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.transport.round_trips import RedisCommand

CRAWL = "thousand"
SLOTS_OF_A_CLUSTER = 16_384
OWN_HOSTS = 100  # of an agent
RATE = 500  # pages/s of an agent
LOAD = (0.04, 0.12)  # s a load takes, so that so many of them at once make that rate
TURN = 0.005  # s between two looks at whether it is time for an exchange
TRIP = 0.012  # s of a round trip of a whole group's member, with its disk
DURABLE = 0.1  # s from a letter's reading to its answer
BUNDLE = 250_000  # characters of an entry: UBI_MAX_LETTER_BYTES of 1 MB, of which a character may take four
TEN = 10  # agents that crash, and that join
ENTRY_ID = 24  # bytes of the id of a stream's entry, as a server sends it and takes it
LIMIT = 120.0  # s of virtual time until a change has settled


@dataclass
class Traffic:
    """Commands, and bytes as RESP has them, to the server and from it."""

    commands: float = 0.0
    bytes_in: float = 0.0
    bytes_out: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, command: RedisCommand, reply: int = 0) -> None:
        self.commands += 1
        self.bytes_in += size_of(command.args)
        self.bytes_out += reply
        self.kinds[str(command.args[0])] += 1

    def sum_with(self, other: Traffic, times: float = 1.0) -> None:
        self.commands += other.commands * times
        self.bytes_in += other.bytes_in * times
        self.bytes_out += other.bytes_out * times
        for kind, count in other.kinds.items():
            self.kinds[kind] += count * times  # type: ignore[assignment]

    @property
    def bytes(self) -> float:
        """Both ways."""
        return self.bytes_in + self.bytes_out


def size_of(args: Iterable[object]) -> int:
    """Bytes of a command, as it is sent."""
    sizes = [len(arg) if isinstance(arg, bytes) else len(str(arg)) for arg in args]
    return 3 + len(str(len(sizes))) + sum(size + len(str(size)) + 5 for size in sizes)


class Paced(scale_crawl.Peer):
    """An agent that exchanges mail when the node's own `Timing` says so, with a flush interval of so many seconds."""

    def __init__(self, crawl: Busy | Whole, name: str, flush: float) -> None:
        super().__init__(crawl, name)
        self.timing = Timing(self.agent, flush, self.agent.config.lease_timeout)

    def exchange(self) -> None:
        """One round trip, when it is time for one."""
        now = self.crawl.now
        if not self.timing.is_time(now):
            self.crawl.at(now + TURN, self.exchange)
            return
        effects = self.drain()
        self.timing.begun(now)
        self.send(effects, self.timing.reads(now, False))

    def send(self, effects: Effects, reads: bool) -> None:
        """That goes out; with `reads` the mail is read. `exchanged` is called when the answer of the server is here."""
        raise NotImplementedError

    def exchanged(self, letters: list[tuple[int, dict[str, str]]], acks: dict[str, str], begun: float) -> None:
        """The answer of the server is here."""
        for number, fields in letters:
            self.consumed.append(number)
            for one in opened({name.encode(): value.encode() for name, value in fields.items()}):
                letter = {name.decode(): value.decode() for name, value in one.items()}
                self.agent.inbound.receive(decode(letter, self.name, 100_000, 4096))
        self.timing.came(len(letters), 0)
        for lane, text in acks.items():
            self.agent.outbound.answered(lane, text, self.crawl.now)
        self.timing.end_exchange(self.crawl.now)
        self.crawl.at(self.crawl.now + TURN, self.exchange)
        self.work()


class Sender(Paced):
    """The one agent."""

    crawl: Busy

    def __init__(self, crawl: Busy, name: str) -> None:
        super().__init__(crawl, name, crawl.flush)
        self.commands = ExchangeCommands(crawl.keys, name, 1_000_000)

    def send(self, effects: Effects, reads: bool) -> None:
        """What that is in commands is counted; the others answer it in their time."""
        crawl, now = self.crawl, self.crawl.now
        crawl.outbox.append(len(self.agent.outbox))
        out = Outgoing(
            letters=gathered(effects.letters, BUNDLE),
            acks=effects.answers,
            forget_acks=effects.forget,
            read_inbox=reads,
            read_acks=reads,
            read_control=False,
        )
        for command in self.commands.writes(replace(out, letters=())):
            crawl.own.add(command)
        for command in self.commands.deletions(out, (), {}):
            crawl.own.add(command)
        for receiver, fields in out.letters:
            (command,) = self.commands.writes(Outgoing(letters=((receiver, fields),)))
            crawl.posted(receiver, command)
        for key, command in self.commands.reads(out, MOST_READ, 4_000_000, ()).items():
            crawl.reads.add(command, crawl.server.acks_size[self.name] if key.endswith(":acks") else 0)
        if reads:  # what it has read before is deleted
            crawl.reads.add(RedisCommand(("XDEL", crawl.keys.inbox(self.name))))
        for lane in effects.forget:
            crawl.server.forget(self.name, lane)
        for receiver, fields in effects.letters:
            crawl.server.post(receiver, fields)
        crawl.exchanges += 1
        acks = dict(crawl.server.acks[self.name]) if reads else {}
        crawl.at(now + 2 * DELAY, lambda: self.exchanged([], acks, now))


class Busy(scale_crawl.One):
    """One agent at full speed among so many. `inbox`: what it has sent, by receiver; `reads`: its own reads, and the
    deletions of what was read; `own`: what else it says of its keys; `answers`: what the others have answered it."""

    concurrency, load, own_hosts = int(RATE * sum(LOAD) / 2), LOAD, OWN_HOSTS
    peer_type = Sender

    def __init__(self, agents: int, local: float, seed: int, flush: float) -> None:
        self.flush, self.apart = flush, SELDOM * flush * 0.9  # s between two reads of an agent that is busy
        self.keys = RedisKeys(CRAWL)
        self.inbox: dict[str, Traffic] = defaultdict(Traffic)
        self.own, self.reads, self.answers = Traffic(), Traffic(), Traffic()
        self.outbox: list[int] = []
        self.exchanges = 0
        self._waiting: dict[tuple[str, float], dict[str, dict[int, Outcome]]] = {}
        self._told: dict[str, set[str]] = defaultdict(set)
        self._lanes: dict[str, dict[int, Outcome]] = defaultdict(dict)
        self._gone: set[str] = set()
        self._come = 0
        self._beat = 10
        super().__init__(agents, local, seed)
        self._names = [f"crawler-{number}" for number in range(1, agents)]
        self.agent = self.peers[0].agent
        self.at(1.0, self.beat)

    def posted(self, receiver: str, command: RedisCommand) -> None:
        """Count a letter on its way in, and out again: its reading costs what its writing has cost, without the
        command (`Sender.exchange` counts that for the agent itself)."""
        traffic = self.inbox[receiver]
        traffic.add(command, ENTRY_ID + size_of(command.args))
        traffic.bytes_in += ENTRY_ID  # deleted again

    def _answer(self, receiver: str, fields: dict[str, str]) -> None:
        """What is posted is answered when its receiver has read it next, and it is durable there."""
        self._post(receiver, fields)
        letter = decode(fields, receiver, 100_000, 4096)
        want = []
        for delta in letter.deltas:
            if delta.offer is not None and delta.host not in self._told[receiver]:
                want.append(delta.host)
            if letter.kind == STATE:
                self._told[receiver].add(delta.host)
        phase = crc32(receiver.encode()) % 1000 / 1000 * self.apart
        when = ((self.now - phase) // self.apart + 1) * self.apart + phase + DURABLE
        lane = letter.lane
        if (receiver, when) not in self._waiting:
            self._waiting[receiver, when] = {}
            self.at(when, lambda: self._answered(receiver, when))
        self._waiting[receiver, when].setdefault(lane, {})[letter.seq] = Outcome({}, tuple(want))
        for seq in [seq for seq in self._lanes[lane] if seq < letter.floor]:
            del self._lanes[lane][seq]

    def _answered(self, receiver: str, when: float) -> None:
        me = self.agent.me
        acks = {}
        for lane, outcomes in self._waiting.pop((receiver, when)).items():
            self._lanes[lane].update(outcomes)
            acks[me, lane] = answer_text(self._lanes[lane])
            self.server.answer(me, lane, acks[me, lane])
        for command in ExchangeCommands(self.keys, receiver, 1_000_000).writes(Outgoing(acks=acks)):
            self.answers.add(command)

    def beat(self) -> None:
        """All beats of a second: those who are gone say nothing new; the others believe what this agent believes."""
        self._beat += 1
        agent, digest = self.agent, self.agent.view.digest
        everybody = [*self._names, *(f"newcomer-{number}" for number in range(self._come))]
        beats = {
            name: Beat(f"{place + 1:08x}", 0, 200, digest, digest, counter=self._beat)
            for place, name in enumerate(everybody)
        }
        beats |= {name: replace(beats[name], counter=self._beat_gone) for name in self._gone}
        agent.group.lease.acknowledged(self.now)
        agent.read(self.now, self.now, {agent.me: replace(agent.beat, counter=self._beat), **beats})
        agent.tick(self.now)
        self.at(self.now + 1.0, self.beat)

    def crash(self, count: int) -> None:
        """So many others end without a word."""
        self._gone, self._beat_gone = set(self._names[:count]), self._beat

    def join(self, count: int) -> None:
        """So many more are there."""
        self._come = count

    def snapshot(self) -> tuple[dict[str, Traffic], Traffic]:
        """What is counted since the last call: of each inbox, and of the own keys. An agent is sent as many entries as
        it sends, and reads so many at once: where that takes more exchanges than it has made, more are counted."""
        inbox, own = dict(self.inbox), self.own
        entries = sum(traffic.commands for traffic in inbox.values())
        own.sum_with(self.answers)
        own.sum_with(self.reads, max(1.0, entries / MOST_READ / max(1, self.reads.kinds["EVAL"])))
        self.inbox = defaultdict(Traffic)
        self.own, self.reads, self.answers = Traffic(), Traffic(), Traffic()
        self.outbox, self.exchanges = [], 0
        return inbox, own


def measure(agents: int, pages: tuple[int, int], seed: int, change: bool, flush: float = FLUSH) -> dict[str, Any]:
    """One agent among so many: per page and second in its early pages (until the first number) and later (the last
    third until the second one); with `change` what follows when ten crash, and when ten join. `flush`:
    the flush interval (s)."""
    with sharing_views():
        crawl = Busy(agents, 0.9, seed, flush)
        crawl.until(pages[0] // 4)
        crawl.snapshot()
        early = _span(crawl, agents, pages[0])
        crawl.until(pages[1] * 2 // 3)
        crawl.snapshot()
        later = _span(crawl, agents, pages[1])
        figures: dict[str, Any] = {"agents": agents, "flush": flush, "early": early, "later": later}
        if change:
            figures["crash_of_ten"] = _change(crawl, lambda: crawl.crash(TEN), agents - TEN)
            figures["join_of_ten"] = _change(crawl, lambda: crawl.join(TEN), agents)
        return figures


def _span(crawl: Busy, agents: int, until: int) -> dict[str, Any]:
    """What happens until so many pages are fetched."""
    begun, before = crawl.now, crawl.pages
    crawl.until(until)
    seconds, pages = crawl.now - begun, crawl.pages - before
    outbox, exchanges = list(crawl.outbox), crawl.exchanges
    inbox, own = crawl.snapshot()
    whole = Traffic()
    for traffic in (*inbox.values(), own):
        whole.sum_with(traffic)
    letters = sum(traffic.commands for traffic in inbox.values())
    return {
        "pages_a_second": pages / seconds,
        "exchanges_a_second": exchanges / seconds,
        "entries_a_page": letters / pages,
        "commands_a_page": whole.commands / pages,
        "bytes_a_page": whole.bytes / pages,
        "commands_a_second": whole.commands / seconds,
        "bytes_in_a_second": whole.bytes_in / seconds,
        "bytes_out_a_second": whole.bytes_out / seconds,
        "kinds_a_second": {kind: count / seconds for kind, count in sorted(whole.kinds.items())},
        "outbox_mean": sum(outbox) / len(outbox),
        "outbox_most": max(outbox),
        "inboxes": [letters / seconds, (whole.bytes - own.bytes) / seconds],
        "own": [own.commands / seconds, own.bytes / seconds],
    }


def _change(crawl: Busy, begin: Any, members: int) -> dict[str, float]:
    """A change of the group: s until this agent has entered the view that follows, and until nothing of it is left to
    be handed over; what it has sent meanwhile beyond the usual."""
    agent, begun = crawl.agent, crawl.now
    usual = max(crawl.outbox, default=0)
    begin()
    crawl.snapshot()
    _until(crawl, lambda: len(agent.view.members) == members, begun)
    entered, crawl.outbox = crawl.now, []
    _until(crawl, lambda: agent.view_history.complete is agent.view, entered)
    most = max(crawl.outbox, default=0)
    crawl.snapshot()
    return {
        "entered": entered - begun,
        "settled": crawl.now - entered,
        "outbox_before": usual,
        "outbox_most": most,
    }


def _until(crawl: Busy, done: Any, since: float) -> None:
    """Go on until this is so. Raises RuntimeError when it is not in time."""
    while not done():
        crawl.until(crawl.pages + 1)
        if crawl.now > since + LIMIT:
            raise RuntimeError(f"it is not so within {LIMIT:g} s")


# -- a whole group -------------------------------------------------------------------------------------------------


class Member(Paced):
    """One of a group in which all are real: it reads, at most so many letters at once, what the others send."""

    crawl: Whole

    def __init__(self, crawl: Whole, name: str) -> None:
        super().__init__(crawl, name, FLUSH)

    def send(self, effects: Effects, reads: bool) -> None:
        """The server has it at once; what it says is here after a round trip."""
        crawl, now = self.crawl, self.crawl.now
        self.deliver(effects, gathered(effects.letters, BUNDLE))
        letters = list(crawl.server.inbox[self.name].items())[:MOST_READ] if reads else []
        acks = dict(crawl.server.acks[self.name]) if reads else {}
        crawl.at(now + TRIP, lambda: self.exchanged(letters, acks, now))


class Whole(scale_crawl.Crawl):
    """A group at full speed."""

    concurrency, load, own_hosts, seeds = Busy.concurrency, LOAD, OWN_HOSTS, OWN_HOSTS
    peer_type = Member


def boxes(agents: int, pages: int, seed: int) -> dict[str, Any]:
    """Letters in inboxes and records in outboxes of a whole group, after a third, two thirds and all of the pages."""
    with sharing_views():
        crawl = Whole(agents, 1, 0.9, seed)
        looks = []
        for part in (1, 2, 3):
            crawl.until(agents * pages * part // 3)
            inboxes = [len(crawl.server.inbox[peer.name]) for peer in crawl.peers]
            outboxes = [len(peer.agent.outbox) for peer in crawl.peers]
            looks.append({"seconds": crawl.now, **_extent("inbox", inboxes), **_extent("outbox", outboxes)})
        return {"agents": agents, "resent": crawl.tally()["resent"], "looks": looks}


def _extent(name: str, lengths: list[int]) -> dict[str, float]:
    return {f"{name}_mean": sum(lengths) / len(lengths), f"{name}_most": max(lengths)}


# -- masters -------------------------------------------------------------------------------------------------------


def master_of(key: str, masters: int) -> int:
    """Which of so many masters with equal parts of the slots holds this key."""
    return key_slot(tag_of(key).encode()) * masters // SLOTS_OF_A_CLUSTER


def tag_of(key: str) -> str:
    """What stands in the braces of a key."""
    return key[key.index("{") + 1 : key.index("}")]


def by_master(
    row: Mapping[str, Any], received: Mapping[str, float], keys: RedisKeys, masters: int
) -> list[list[float]]:
    """[commands, bytes] a second of each master, of a group in which all send as that one does. `received`: agent ->
    what is sent to it, over the mean."""
    found = [[0.0, 0.0] for _ in range(masters)]
    for name, share in received.items():
        place = found[master_of(keys.inbox(name), masters)]
        for at in (0, 1):
            place[at] += share * row["inboxes"][at] + row["own"][at]
    return found


def received_shares(agents: int, hosts: int = 20_000) -> dict[str, float]:
    """Agent -> how much it is sent, over the mean: half of it goes to owners, half to their first successors."""
    ring = Ring.of({f"crawler-{number}": scale_ring.REPLICAS for number in range(agents)})
    owned = ring.shares()
    second = Counter(ring.order(scale_ring.host(number), 2)[1] for number in range(hosts))
    return {name: agents * (share + second[name] / hosts) / 2 for name, share in owned.items()}


def spread(values: Iterable[float]) -> tuple[float, float]:
    """The least and the most of these, over their mean."""
    each = list(values)
    mean = sum(each) / len(each)
    return min(each) / mean, max(each) / mean


# -- what it takes -------------------------------------------------------------------------------------------------

BUSY = 0.5  # of a core that a master is to spend
LINE = 0.937e9 / 8 * BUSY  # bytes a second to a master, and as many from it: half of what an m7g.large always has
DOLLARS = 0.0816  # an hour of an m7g.large, on demand, us-east-1 (docs/explanation/at-scale.md has the source)


def masters_needed(row: Mapping[str, Any], agents: int, costs: Mapping[str, float]) -> int:
    """How many masters carry that mail, by processor and by line."""
    cores: float = agents * cores_of(row["kinds_a_second"], costs)
    line: float = agents * max(row["bytes_in_a_second"], row["bytes_out_a_second"])
    return max(1, math.ceil(cores / BUSY), math.ceil(line / LINE))


# -- what a command costs ------------------------------------------------------------------------------------------

MANY = 50  # commands of a pipeline
BODY = 500  # characters of a letter


def redis_costs(turns: int = 200) -> dict[str, float]:
    """Microseconds of a real server's processor a command of each kind, sent as exchanges send them, many in a
    pipeline; `letter`: for each letter that a reading of the inbox finds."""
    keys = RedisKeys(CRAWL)
    names = [f"crawler-{number}" for number in range(MANY)]
    letter = {"from": "crawler-0", "lane": "state", "seq": "1", "floor": "1", "body": "x" * BODY}
    one = ExchangeCommands(keys, "crawler-0", 1_000_000)
    post = [*one.writes(Outgoing(letters=[(name, letter) for name in names]))]
    text = '{"acked":[1,2,3,4]}'
    answer = [*one.writes(Outgoing(acks={(name, f"store/{name}/state"): text for name in names}))]
    look = [RedisCommand(("HGETALL", keys.acks(name))) for name in names]
    drop = [RedisCommand(("DEL", keys.inbox(name))) for name in names]

    def read(most: int) -> list[RedisCommand]:
        return [ExchangeCommands(keys, name, 1_000_000).read_inbox(most, 4_000_000, ()) for name in names]

    port = free_port()
    with tempfile.TemporaryDirectory(prefix="ubi-bench-") as directory:
        server = subprocess.Popen(redis_command(port, directory), stdout=subprocess.DEVNULL)
        try:
            with redis.Redis(port=port) as client:
                wait_for_redis(client)
                costs = {"XADD": _cost(client, [], post, turns), "HSET": _cost(client, [], answer, turns)}
                costs["HGETALL"] = _cost(client, answer, look, turns)
                few = _cost(client, [*drop, *post], read(MOST_READ), turns)
                many = _cost(client, [*drop, *post * MOST_READ], read(MOST_READ), turns)
        finally:
            server.kill()
            server.wait()
    costs["letter"] = (many - few) / (MOST_READ - 1)
    costs["EVAL"] = max(0.0, few - costs["letter"])
    return costs


def _cost(client: redis.Redis, before: list[RedisCommand], each: list[RedisCommand], turns: int) -> float:
    """Microseconds a command of these, after those before."""
    for start in range(0, len(before), MANY):
        _run(client, before[start : start + MANY])
    begun = _cpu(client)
    for _ in range(turns):
        _run(client, each)
    return 1e6 * (_cpu(client) - begun) / (turns * len(each))


def _run(client: redis.Redis, commands: Iterable[RedisCommand]) -> None:
    pipeline: Any = client.pipeline(transaction=False)
    for command in commands:
        pipeline.execute_command(*command.args)
    pipeline.execute()


def _cpu(client: Any) -> float:
    info = client.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def cores_of(kinds: Mapping[str, float], costs: Mapping[str, float]) -> float:
    """Cores of a server that so many commands a second of each kind take. Each entry that is added is read once."""
    spent = sum(count * costs.get(kind, costs["HSET"]) for kind, count in kinds.items())
    return (spent + kinds["XADD"] * costs["letter"]) / 1e6
