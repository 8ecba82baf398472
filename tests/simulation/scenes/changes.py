"""Changes of the group: agents that join, leave, die, sleep and come back (docs/explanation/hard-cases.md)."""

from __future__ import annotations

from scrapy_ubi.protocol.lane import Bounds
from tests.simulation.scene import Scene

SMALL = Bounds(window=1, records=2, size=10_000, resend=5.0)  # a state of more than two pages goes in several letters


def owner_dies_in_handoff() -> Scene:
    """The old owner dies in the middle of a handoff to a newcomer.

    Rule: the dead one leaves the view, the digest changes, every holder offers what it has; the newcomer waits for
    *settled* of the new digest.
    Look: a3 has one half of h312 from a1, and waits with it. It fetches when a2 has brought the other half and has
    settled; h312/1, done before, is not fetched again.
    """
    s = Scene("a1 a2", bounds=SMALL)
    s.slow = {"h312/2"}
    s.find("a1", "h312/1 h312/2 h312/3 h312/4")
    s.wait("done 1")
    s.settle()
    s.start("a3")
    s.wait("a1 -> a3 state")
    s.kill("a1")
    s.slow.clear()
    s.wait("a3 fetch")
    s.in_order("a3 waits with h312", "a2 settled {a2 a3}", "a3 fetch h312")
    s.end()
    return s


def settled_says_handed_on() -> Scene:
    """*Settled* says "I have handed on all I hold", not "my copy is whole".

    Rule: a host is fetched at once only by an agent that kept it in the last *complete* view.
    Look: a3 settles for {a1 a2 a3} at once, for it holds nothing, and is the heir of a1 from then on. When a1 dies its
    copy of h132 lacks the done mark of h132/1; so it waits for a2, whose copy is whole.
    """
    s = Scene("a1 a2", bounds=SMALL)
    s.slow = {"h132/2"}
    s.find("a1", "h132/1 h132/2 h132/3 h132/4")
    s.wait("done 1")
    s.settle()
    s.start("a3")
    s.wait("a1 -> a3 state")
    s.kill("a1")
    s.slow.clear()
    s.wait("a3 fetch")
    s.in_order("a3 settled {a1 a2 a3}", "a1 is killed", "a3 waits with h132", "a2 settled {a2 a3}", "a3 fetch h132")
    s.end()
    return s


def leaver_still_loads() -> Scene:
    """An agent leaves while it still loads a page of a host.

    Rule: it lists the host beside its *settled*; its successor waits, as it would not for a dead one.
    Look: both have settled soon, but h12 is listed. a2 waits with it until the load has ended and its done mark
    has arrived.
    """
    s = Scene("a1 a2")
    s.slow = {"h12/1"}
    s.find("a1", "h12/1 h12/2")
    s.settle()
    s.leave("a1")
    s.wait("a2 waits with h12")
    s.turns(2)
    s.answer("h12/1")
    s.wait("a2 fetch h12/2")
    s.in_order("a1 settled {a2} but h12", "a1 done h12/1", "h12 done 1", "a2 -> a1 ack", "a2 fetch h12/2")
    s.end()
    return s


def pending_load_ends() -> Scene:
    """A pending host's load ends: its done mark must arrive before the host is let go.

    Rule: the host is listed until the done mark is acknowledged; and done marks come last.
    Look: the load of h312/1 ends, but its outlink to h213 lies in the inbox of a2, so the done mark has to stay at a1;
    a3 waits. When a2 has taken its mail everything follows in order.
    """
    s = Scene("a1 a2", web={"h312/1": "h213/1"})
    s.slow = {"h312/1"}
    s.find("a1", "h312/1 h312/2")
    s.settle()
    s.start("a3")
    s.wait("a1 settled {a1 a2 a3} but h312")
    s.deaf = {"a2"}
    s.answer("h312/1")
    s.turns(4)
    assert not s.count("a3 fetch")
    s.deaf.clear()
    s.wait("a3 fetch h312/2")
    s.in_order("a1 done h312/1", "a2 -> a1 ack discovery", "h312 done 1", "a3 -> a1 ack", "a3 fetch h312/2")
    s.end()
    return s


def declared_dead_beats_again() -> Scene:
    """An agent is declared dead, and beats again a moment later.

    Rule: its incarnation stays dead; it sees that, and joins again under another one.
    Look: a1, cut off, is fenced after the lease and soon cancels its load; only then, after the failure time-out, a2
    declares it dead and fetches. Back again, a1 goes on with nothing: as a1' it waits for *settled* like any newcomer.
    """
    s = Scene("a1 a2")
    s.slow = {"h12/1", "h12/2"}
    s.find("a1", "h12/1 h12/2")
    s.settle()
    s.cut_off("a1")
    s.wait("a2 fetch h12/1")
    s.in_order("a1 fenced", "a1 cancels h12/1", "a2 holds a1 dead", "a2 fetch h12/1")
    s.mend("a1")
    s.wait("a1 waits with h12")
    s.answer("h12/1")
    s.wait("a1 fetch h12/2")
    s.in_order("a1 begins anew as a1'", "a2 done h12/1", "a2 -> a1 state h12 done 1", "a1 fetch h12/2")
    s.slow.clear()
    s.end()
    return s


def two_join_at_once() -> Scene:
    """Two agents join at once, each next-nearest to the other for some host.

    Rule: state goes to the owner under the newest view; *settled* counts only for equal digests; no agent waits for a
    particular agent.
    Look: a1 sees a2 first and hands both hosts to it; a moment later h321 is for a3. Both newcomers fetch when three
    have settled for one and the same view.
    """
    s = Scene("a1")
    s.slow = {"h231/2", "h321/2"}
    s.find("a1", "h231/1 h231/2 h231/3 h321/1 h321/2 h321/3")
    s.turns(2)
    s.start("a2")
    s.beat("a2", "a1")
    s.flush("a1")
    s.start("a3")
    s.wait("a1 settled {a1 a2 a3}")
    s.slow.clear()
    s.end()
    for agent, host in (("a2", "h231"), ("a3", "h321")):
        for member in ("a1", "a2", "a3"):
            s.in_order(f"{member} settled {{a1 a2 a3}}", f"{agent} fetch {host}")
    return s


def paused_owner_wakes_beside_its_heir() -> Scene:
    """A paused owner wakes beside its heir.

    Rule: the lease is asked at the dispatch itself; then it finds itself declared dead, joins again, and merges.
    Look: a1 had taken h12/1 in hand before it was stopped. The first thing it does awake is to dispatch it, while a2
    loads it; it must not.
    """
    s = Scene("a1 a2")
    s.slow, s.hesitant = {"h12/1"}, {"a1"}
    s.find("a1", "h12/1 h12/2")
    s.settle()
    s.pause("a1")
    s.wait("a2 fetch h12/1")
    s.wake("a1")
    s.dispatch("a1")
    s.wait("a1 begins anew as a1'")
    s.in_order("a1 takes h12/1 in hand", "a2 fetch h12/1", "a1 must not fetch h12/1", "a1 begins anew")
    s.slow.clear()
    s.end()
    return s


def all_stood_still() -> Scene:
    """An observer wakes from a pause and sees only old beats.

    Rule: an agent that was away itself starts all ages again: it suspects no agent because of old beats. Who was asleep
    cancels no load unless it is dead to somebody.
    Look: the machine of all three was suspended. a1 wakes first and sees beats 20 s old; nobody is declared dead,
    nobody begins anew. Each has been fenced, and goes on when all have seen it since; h123/1 is loaded once.
    """
    s = Scene("a1 a2 a3")
    s.slow = {"h123/1"}
    s.find("a1", "h123/1 h123/2")
    s.settle()
    s.beat("a1")
    s.pause("a1", "a2", "a3")
    s.turns(20)
    s.wake("a1")
    s.turns(2)
    s.wake("a2", "a3")
    s.wait("a1 goes on")
    assert not s.count("dead") and not s.count("anew")
    s.slow.clear()
    s.end()
    s.in_order("a1 fenced", "a1 goes on", "a1 done h123/1", "a1 fetch h123/2")
    assert not s.count("cancels")
    return s


def last_two_leave() -> Scene:
    """The last two agents leave at once.

    Rule: no agent is left to hand over to, and none waits: their disks keep what they hold.
    Look: each is on its way when it sees the other go, and then has nobody left. When they come back with their disks
    what was not fetched is fetched, and h12/1 is not fetched again.
    """
    s = Scene("a1 a2")
    s.slow = {"h12/2"}
    s.find("a1", "h12/1 h12/2")
    s.settle()
    s.leave("a1")
    s.leave("a2")
    s.until(lambda: not s.agents)
    assert s.last("has left") <= s.last("is to leave") + 3
    s.slow.clear()
    s.start("a1", disk=True)
    s.start("a2", disk=True)
    s.end()
    return s
