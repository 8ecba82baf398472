"""Mail that is refused, waits, is lost or comes again, and the end (docs/explanation/hard-cases.md)."""

from __future__ import annotations

from scrapy_ubi.protocol.lane import Bounds
from tests.simulation.scene import Scene

ONE = Bounds(window=1, records=1, size=10_000, resend=5.0)  # one fact under way in each lane


def refusal_names_the_dead() -> Scene:
    """A refusal names an agent that has died since.

    Rule: a name in a refusal is a hint only, followed when that agent is in the sender's own view.
    Look: a2 refuses h321/1 and names a3. When a1 reads that, a3 is dead: a1 asks a2 again, and never writes to a3.
    """
    s = Scene("a1 a2")
    s.find("a1", "h321/1")
    s.start("a3")
    s.beat("a3", "a2")
    s.flush("a1")
    s.take("a2")
    s.deaf = {"a1"}
    s.flush("a2")
    s.kill("a3")
    s.wait("a1 holds a3 dead")
    s.deaf.clear()
    s.wait("a2 fetch h321/1")
    s.in_order("refuse h321, a3 owns it", "a1 view {a1 a2}", "a1 -> a2 discovery h321 new 1", "a2 fetch h321/1")
    assert not s.count("a1 -> a3")
    s.end()
    return s


def death_known_to_one_only() -> Scene:
    """A URL is sent while the owner's death is known to the receiver and not to the sender, or the reverse.

    Rule: it waits for the dead until the sender knows, or is refused with a name, and tried again; it settles when
    views agree.
    Look: a1 first writes to a3, which is dead. Then a1 knows and writes to a2, which does not know yet and names a3;
    a moment later it takes the URL.
    """
    s = Scene("a1 a2 a3")
    s.kill("a3")
    s.find("a1", "h321/1")
    s.turns(6)
    s.now += 1
    s.beat("a1")
    s.flush("a1")
    s.take("a2")
    s.flush("a2")
    s.wait("a2 fetch h321/1")
    s.in_order("a1 -> a3 discovery h321", "a1 holds a3 dead", "a1 -> a2 discovery h321", "refuse h321, a3 owns it")
    s.in_order("refuse h321, a3 owns it", "a2 holds a3 dead", "a1 -> a2 discovery h321", "a2 fetch h321/1")
    s.end()
    return s


def windows_full_both_ways() -> Scene:
    """a1's window to a2 is full of URLs that wait for a2's successor a1, and the other way round.

    Rule: separate lanes; the state lane never waits for anything.
    Look: one letter of one record may be under way in a lane. Both discovery lanes are full, and both acknowledgements
    need a letter to the other side: it passes in the state lane.
    """
    s = Scene("a1 a2", bounds=ONE)
    s.slow = {"h12/1", "h21/1"}
    s.find("a1", "h21/1 h21/2 h21/3")
    s.find("a2", "h12/1 h12/2 h12/3")
    s.turn()
    s.in_order("a1 -> a2 discovery h21 new 1", "a2 -> a1 discovery h12 new 1")
    s.wait("a1 -> a2 ack discovery")
    s.in_order("a1 -> a2 state h12 new 1", "a2 -> a1 state h21 new 1", "a2 -> a1 ack discovery")
    s.wait("a1 -> a2 discovery h21 new 3")
    assert not s.count("again"), "nothing had to be sent twice"
    s.slow.clear()
    s.end()
    return s


def owner_and_sender_die() -> Scene:
    """Owner and sender of a link die together after the sender's page was parsed.

    Rule: the page's done mark had not left, so its successor does the page again, from its *redo* when it has one: it
    tells the links itself, and fetches nothing.
    Look: h2143/1 is in the queues of a1 and a2 only, and both are killed (t is 2). But a1 has told a3 and a4 what
    h1342/1 linked to.
    """
    s = _until_parsed()
    s.kill("a1")
    s.kill("a2")
    s.end()
    s.in_order("a1 -> a3 state h1342 redo 1 h2143/1", "a2 is killed", "a3 redoes", "a4 fetch h2143/1")
    return s


def owner_sender_and_redo_are_lost() -> Scene:
    """The same, and the redo is lost, too.

    Rule: the page's done mark had not left, so its successor fetches the page again, and finds the link again.
    Look: Redis is emptied before a3 and a4 have read the redo. So a3 fetches h1342/1 again, the one page that may be.
    """
    s = _until_parsed(deaf="a3 a4")
    s.forget(noticed=False)
    s.kill("a1")
    s.kill("a2")
    s.deaf.clear()
    s.end(again="h1342/1")
    s.in_order("a1 -> a2 discovery h2143", "a2 is killed", "a3 fetch h1342/1", "a3 done h1342/1", "a4 fetch h2143/1")
    return s


def _until_parsed(deaf: str = "") -> Scene:
    """a1 has parsed its page, and a2 has taken the letter with the link on it; these others took no mail."""
    s = Scene("a1 a2 a3 a4", web={"h1342/1": "h2143/1"}, replication=2)
    s.slow = {"h1342/1"}
    s.find("a1", "h1342/1")
    s.settle()
    s.answer("h1342/1")
    s.deaf = set(deaf.split())
    s.wait("a1 done h1342/1")
    assert not s.count("done 1"), "no done mark has left"
    return s


def owner_dies_before_its_successor_knows() -> Scene:
    """An owner dies before its successor has the URL that it was sent.

    Rule: a URL is acknowledged when the owner and its successors have it; until then it stays with its sender.
    Look: a2 has h231/1 from a1; what it tells a3 is lost with Redis, and then a2 is killed. a1 has no acknowledgement,
    so it sends the URL to a3, the next owner.
    """
    s = Scene("a1 a2 a3")
    s.slow = {"h231/1"}
    s.find("a1", "h231/1")
    s.deaf = {"a3"}
    s.wait("a2 -> a3 state h231 new 1")
    s.turn()
    s.kill("a2")
    s.forget(noticed=False)
    s.deaf.clear()
    s.slow.clear()
    s.end()
    s.in_order("a1 -> a2 discovery h231", "a2 is killed", "a1 -> a3 discovery h231", "a3 fetch h231/1")
    return s


def redis_forgets_letters_and_acks() -> Scene:
    """FLUSHALL between append and read, or of the acks.

    Rule: what is not acknowledged is sent again after a time-out; the receiver remembers what it has merged.
    Look: the letter with h21/1 is lost before a2 reads it, then its acknowledgement before a1 does. Both times the
    letter comes again, and the page is fetched once. (Nobody notices here that Redis forgot; see redis_emptied.)
    """
    s = Scene("a1 a2")
    s.find("a1", "h21/1")
    s.flush("a1")
    s.forget(noticed=False)
    s.wait("a1 -> a2 discovery again")
    s.deaf = {"a1"}
    s.wait("a2 -> a1 state h21 new 1")
    s.deaf.clear()
    s.wait("a1 -> a2 ack state")
    s.deaf = {"a1"}
    s.wait("a2 -> a1 ack discovery")
    s.forget(noticed=False)
    s.deaf.clear()
    s.wait("a2 -> a1 ack discovery")
    assert s.count("a1 -> a2 discovery again h21 new 1") == 2
    s.end()
    return s


def last_letter_under_way() -> Scene:
    """Every agent is passive, one letter is still in Redis.

    Rule: its sender's outbox is not empty, so the sender is not passive.
    Look: for many beats nobody has anything to do but a1, which waits for one acknowledgement. The crawl ends after
    h21/1 is fetched.
    """
    s = Scene("a1 a2")
    s.exhaust()
    s.deaf = {"a2"}
    s.find("a1", "h21/1")
    s.turns(4)
    assert len(s.agents) == 2
    s.deaf.clear()
    s.end()
    s.in_order("a2 done h21/1", "closes")
    return s


def old_beats_say_passive() -> Scene:
    """The last beat of every agent says *passive*, and one of them has got work since.

    Rule: the crawl is over when two reads show the same agents passive, with the same activity, and each of them has
    beaten in between.
    Look: a1 took h12/1 after its last beat. When a2 has nothing left it reads that both are passive, twice; but a1 has
    not beaten in between. The crawl goes on until h12/1 is fetched.
    """
    s = Scene("a1 a2", web={"h21/1": "h12/1"})
    s.slow = {"h21/1"}
    s.find("a2", "h21/1")
    s.settle()
    s.exhaust()
    s.turns(2)
    s.slow, s.hesitant = {"h12/1"}, {"a1"}
    s.turn("a2")
    for _ in range(5):
        s.take("a1")
        s.flush("a1")
        s.take("a2")
        s.flush("a2")
    s.beat("a2")
    s.say("a2 has read that both are passive")
    s.beat("a2")
    s.flush("a2")
    assert len(s.agents) == 2 and not s.fetched["h12/1"]
    s.slow.clear()
    s.hesitant.clear()
    s.end()
    return s
