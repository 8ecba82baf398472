"""What is durable of an agent, and how it begins again from it (P8)."""

from __future__ import annotations

from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol import snapshot
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.lane import DISCOVERY, STATE
from scrapy_ubi.protocol.losses import missing
from scrapy_ubi.protocol.snapshot import Saved
from tests.support.ledger import everything
from tests.support.views import ordered
from tests.support.village import Village, page

AB, BA = ordered("a", "b"), ordered("b", "a")


def copy_of(frontier: MemoryFrontier) -> MemoryFrontier:
    """What a disk with this frontier would give back: what was out waits."""
    copy = MemoryFrontier()
    for state in frontier.states():
        entries = [*state.queued.values(), *(entry for key, entry in state.out.items() if key not in state.done)]
        copy.add_done(copy.add(state.host, entries)[0], state.done)
    return copy


class Town(Village):
    """A village of agents with disks."""

    def crash(self, name: str) -> tuple[Saved, MemoryFrontier]:
        """kill -9; what the disk holds."""
        agent = self.kill(name)
        assert isinstance(agent.frontier, MemoryFrontier)
        return everything(agent), copy_of(agent.frontier)

    def back(self, name: str, disk: tuple[Saved, MemoryFrontier]) -> Agent:
        """It starts again from that disk; the mail that waits for it is thrown away."""
        saved, frontier = disk
        self.inbox[name] = []
        fresh = lambda: f"{next(self._incarnations):08x}"  # noqa: E731
        agent = snapshot.restore(name, saved, self.config, frontier, fresh, self.now)
        self.agents[name] = agent
        agent.check_invariants()
        return agent


def found(town: Town, name: str, *pages: tuple[str, int]) -> None:
    """The agent's spider comes upon these pages."""
    for host, number in pages:
        town.agents[name].discovery.discover(host, page(host, number))


def test_what_was_done_is_done_after_a_restart() -> None:
    town = Town("a", "b")
    found(town, "a", (AB, 0), (AB, 1))
    assert town.visit("a")
    town.turn()
    agent = town.back("a", town.crash("a"))
    town.settle()
    assert agent.incarnation != ""
    assert len(town.crawl()) == 1, "the other page only"


def test_what_was_in_flight_is_fetched_again() -> None:
    town = Town("a", "b")
    found(town, "a", (AB, 0))
    assert town.agents["a"].work.next(town.now) is not None
    town.back("a", town.crash("a"))
    town.settle()
    assert town.crawl() == [page(AB, 0).url]


def test_outlinks_that_nobody_acknowledged_are_told_again_under_numbers_of_their_own() -> None:
    town = Town("a", "b")
    found(town, "a", (BA, 7))
    town.flush("a")  # it left, and is lost
    town.inbox["b"].clear()
    disk = town.crash("a")
    assert [record.entry for record in disk[0].discovered] == [page(BA, 7)]
    town.back("a", disk)
    town.settle()
    assert town.crawl() == [page(BA, 7).url]
    first, *later = [letter.seq for receiver, letter in town.log if receiver == "b" and letter.kind == DISCOVERY]
    assert later
    assert first not in later


def test_a_done_mark_waits_for_the_outbox_that_was_found() -> None:
    town = Town("a", "b")
    found(town, "a", (AB, 0))
    town.turn()
    town.visit("a", page(BA, 3))
    disk = town.crash("a")
    assert [unsent.entry for unsent in disk[0].unsent] == [page(AB, 0)]
    agent = town.back("a", disk)
    while not agent.group.sure:
        town.turn()
        assert page(AB, 0).key not in town.state("b", AB).done, "its outlink is at a only"
    town.settle()
    assert page(AB, 0).key in town.state("b", AB).done
    assert town.crawl() == [page(BA, 3).url]


def test_an_outlink_told_to_a_successor_is_open_until_its_host_is_brought_again() -> None:
    town = Town("a", "b")
    found(town, "a", (AB, 0))
    town.turn()
    town.visit("a", page(AB, 1))
    disk = town.crash("a")
    assert disk[0].told and disk[0].told[0][1] == AB
    town.back("a", disk)
    town.settle()
    assert page(AB, 1).key in town.state("b", AB).queued
    assert page(AB, 0).key in town.state("b", AB).done


def test_a_letter_that_was_merged_is_not_merged_again() -> None:
    town = Town("a", "b")
    found(town, "a", (BA, 0))
    town.flush("a")
    town.take("b")
    town.flush("b")
    saved, _ = town.crash("b")
    lanes = {name: lane for name, lane in saved.lanes_in.items() if name.endswith(STATE)}
    assert all(lane.sender == "a" for lane in saved.lanes_in.values())
    assert all(outcome is not None for lane in lanes.values() for outcome in lane.outcomes.values())


def test_all_come_back_and_nothing_is_fetched_twice() -> None:
    town = Town("a", "b", "c")
    hosts = [ordered(*names) for names in ("abc", "bca", "cab")]
    for name, host in zip("abc", hosts, strict=True):
        found(town, name, *((host, number) for number in range(3)))
    town.turn()
    before = [url for name in "abc" if (url := town.visit(name))]
    disks = {name: town.crash(name) for name in "abc"}
    for name, disk in disks.items():
        town.back(name, disk)
    town.settle()
    after = town.crawl()
    assert len(before) == 3
    assert sorted(before + after) == sorted({page(host, number).url for host in hosts for number in range(3)})


def test_who_is_not_back_when_a_view_is_complete_may_come_later_with_work() -> None:
    town = Town("a", "b", "c")
    disks = {name: town.crash(name) for name in "abc"}
    assert disks["a"][0].group.peers.keys() == {"a", "b", "c"}
    town.forget()  # the beats, too: nobody sees c die
    town.back("a", disks["a"])
    agent = town.back("b", disks["b"])
    town.settle()
    assert agent.lossy


def test_a_newcomer_that_comes_back_alone_knows_who_is_lost() -> None:
    town = Town("a", "b")
    town.start("c")
    town.turn()
    town.turn()
    disk = town.crash("c")
    for name in "ab":
        town.kill(name)
    assert disk[0].group.peers.keys() == {"a", "b"}
    agent = town.back("c", disk)
    town.settle()
    assert agent.lossy
    assert missing([agent.group.losses.book], lambda name, life: False) == ("a", "b")


def test_nobody_is_missed_when_all_are_back() -> None:
    town = Town("a", "b", "c")
    disks = {name: town.crash(name) for name in "abc"}
    town.forget()  # else those whose old beats are seen count as lost: a beat does not tell what is on a disk
    agents = [town.back(name, disk) for name, disk in disks.items()]
    town.settle()
    assert not any(agent.lossy for agent in agents)


def test_that_a_crawl_is_lossy_is_remembered() -> None:
    town = Town("a", "b")
    town.agents["a"].group.losses.lossy = True
    assert town.back("a", town.crash("a")).lossy
