"""The usual accidents: crashes, restarts, a Redis that forgets or is away, and page recovery."""

from __future__ import annotations

from tests.simulation.scene import Scene


def crashed_returns_without_its_disk() -> Scene:
    """An agent crashes and returns a moment later, with nothing.

    Rule: it is another incarnation, and a newcomer like any other; its successor's copy is whole.
    Look: a1' sees a2 settled, and a2 sees that a1 is no more: an identifier has one living incarnation. a2 brings the
    whole host; h12/1, done before, is not fetched again.
    """
    s = Scene("a1 a2")
    s.slow = {"h12/2"}
    s.find("a1", "h12/1 h12/2 h12/3")
    s.wait("h12 done 1")
    s.settle()
    s.kill("a1")
    s.slow.clear()
    s.start("a1")
    s.wait("a1 fetch h12")
    s.in_order("a2 view {a1' a2}", "a2 -> a1 state h12", "a2 settled {a1' a2}", "a1 fetch h12")
    s.end()
    return s


def crashed_returns_with_its_disk() -> Scene:
    """An agent crashes and returns with its disk, after its heir has taken over.

    Rule: it is a newcomer even so: it offers what it has, both merge, and it waits for *settled*.
    Look: its disk knows of h12/3, which it had found a moment before it crashed and told nobody, for it could not reach
    Redis. h12/1 and h12/2, done by a1 and by a2, are not fetched again by anybody.
    """
    s = Scene("a1 a2")
    s.slow = {"h12/2"}
    s.find("a1", "h12/1 h12/2")
    s.wait("h12 done 1")
    s.settle()
    s.cut_off("a1")
    s.find("a1", "h12/3")
    s.turn()
    s.kill("a1")
    s.mend("a1")
    s.wait("a2 fetch h12/2")
    s.answer("h12/2")
    s.turns(2)
    s.start("a1", disk=True)
    s.wait("a1 fetch h12/3")
    s.in_order("a2 fetch h12/2", "starts with its disk", "a1 -> a2 state h12", "settled {a1' a2}", "a1 fetch h12/3")
    s.end()
    return s


def all_killed() -> Scene:
    """Every agent is killed, and all are started again with their disks.

    Rule: outlinks and done marks that are not acknowledged are on the disk with the pages they belong to; restored
    outlinks are sent when the agent is sure who is there.
    Look: h12/1 was done and its link to h21/1 lay in Redis, which is replaced by an empty one. Nothing is fetched
    again, and h21/1 is found.
    """
    s = Scene("a1 a2", web={"h12/1": "h21/1"})
    s.slow = {"h12/1"}
    s.find("a1", "h12/1 h12/2")
    s.settle()
    s.deaf = {"a2"}
    s.answer("h12/1")
    s.wait("a1 -> a2 discovery h21 new 1")
    s.kill("a1")
    s.kill("a2")
    s.forget()
    s.deaf.clear()
    s.start("a1", disk=True)
    s.start("a2", disk=True)
    s.end()
    s.in_order("a1 done h12/1", "a1 is killed", "is sure who lives", "discovery h21 new 1", "a2 fetch h21/1")
    assert s.first("h12 done 1") > s.first("a2 -> a1 ack discovery"), "done marks come last"
    return s


def one_comes_back_later() -> Scene:
    """Every agent is killed; one comes back with its disk and finishes what it knows, another comes later.

    Rule: an agent misses those whom its disk knows. When a view is complete without them it calls the crawl *lossy*:
    its end is not the end of their work.
    Look: Redis is empty, so a1 sees nobody die. h21/2 is on the disk of a2 only. a1 ends the crawl, and says so
    with that word; a2 fetches h21/2 nevertheless, and h21/1 again, for nobody is left to tell it.
    """
    s = Scene("a1 a2")
    s.slow = {"h21/1"}
    s.find("a2", "h21/1")
    s.settle()
    s.cut_off("a2")
    s.find("a2", "h21/2")
    s.turn()
    s.mend("a2")
    s.kill("a1")
    s.kill("a2")
    s.forget()
    s.slow.clear()
    s.exhaust()
    s.start("a1", disk=True)
    s.until(lambda: not s.agents)
    s.start("a2", disk=True)
    s.end(again="h21/1")
    s.in_order("a1 calls the crawl lossy", "a1 done h21/1", "a1 closes", "a2 fetch h21/2")
    return s


def zombie() -> Scene:
    """A process is stopped in the middle of a load and wakes after its heir has taken over.

    Rule: its lease has ended before any other agent could fetch; it joins again and merges what it has.
    Look: what a1 was loading when it was stopped, a2 fetches again: the one page that may be. The second load of a1
    comes after everybody has settled for a view that holds a1'.
    """
    s = Scene("a1 a2", web={"h12/1": "h12/3"})
    s.slow = {"h12/1"}
    s.find("a1", "h12/1 h12/2")
    s.settle()
    s.pause("a1")
    s.slow.clear()
    s.wait("a2 fetch h12/1")
    s.slow = {"h12/2", "h12/3"}
    s.turns(2)
    s.wake("a1")
    s.wait("a1 waits with h12")
    s.slow.clear()
    s.end(again="h12/1")
    s.in_order("a1 stands still", "a2 holds a1 dead", "a2 fetch h12/1", "a1 begins anew as a1'")
    s.in_order("a1 begins anew as a1'", "a2 settled {a1'+ a2}", "a1 fetch h12")
    return s


def redis_emptied() -> Scene:
    """Redis is emptied, or replaced by an empty one, with letters in it.

    Rule: Redis carries mail only; agents find the token gone that they left there, and send at once what was under way.
    Look: the letter with h21/1 is lost, and sent again without waiting for the time-out. Beats are there again at the
    next beat, so no view changes and nobody is fenced.
    """
    s = Scene("a1 a2")
    s.find("a1", "h21/1 h12/1")
    s.flush("a1")
    s.forget()
    s.turn()
    s.in_order("Redis forgets", "a1 -> a2 discovery again h21 new 1", "a2 fetch h21/1")
    s.end()
    assert not s.count("view") and not s.count("fenced")
    return s


def redis_away() -> Scene:
    """Redis is away for all agents, for longer than the failure time-out.

    Rule: every agent is fenced and suspects no other because of old beats; all go on when all have seen all again.
    Look: the load under way is cancelled a moment after the lease. When Redis is back both have a new epoch; nobody is
    dead, nobody begins anew, and nothing is fetched twice.
    """
    s = Scene("a1 a2")
    s.slow = {"h12/1"}
    s.find("a1", "h12/1 h12/2 h21/1")
    s.turn()
    s.beat("a1")
    s.redis(up=False)
    s.turns(20)
    s.redis(up=True)
    s.slow.clear()
    s.end()
    assert not s.count("dead") and not s.count("anew")
    s.in_order("a1 fenced", "a1 cancels h12/1", "Redis is back", "a1 goes on", "a1 fetch h12")
    return s


def load_outlasts_the_lease() -> Scene:
    """Redis is away a little longer than the lease, and a load is under way.

    Rule: no load starts without the lease, but one under way may go on a moment longer; no other agent may fetch yet.
    Look: h12/1 ends after a1 was fenced and is done all the same. The next one, h12/2, waits until a1 goes on.
    """
    s = Scene("a1 a2")
    s.slow = {"h12/1"}
    s.find("a1", "h12/1 h12/2")
    s.settle()
    s.redis(up=False)
    s.wait("a1 fenced")
    s.answer("h12/1")
    s.turn()
    s.redis(up=True)
    s.end()
    s.in_order("a1 fenced", "a1 done h12/1", "Redis is back", "a1 goes on", "a1 fetch h12/2")
    assert not s.count("cancels")
    return s


def clean_leave() -> Scene:
    """An agent is asked to leave.

    Rule: it is in no view, but it beats until it has handed over all it holds, and all have settled without it.
    Look: a2 is the next owner and has a copy, a3 becomes a keeper. The done mark of a1 has arrived everywhere, and
    h123/1 is not fetched again.
    """
    s = Scene("a1 a2 a3")
    s.find("a1", "h123/1 h123/2 h123/3")
    s.turn()
    s.hesitant = {"a1"}
    s.turn()
    s.put_back("a1")
    s.leave("a1")
    s.end()
    s.in_order("a1 is to leave", "a1 -> a3 state h123", "a3 -> a1 ack", "a1 has left", "a2 fetch h123/2")
    return s


def leaver_is_killed() -> Scene:
    """An agent is killed while it leaves, in the middle of a load.

    Rule: it counts as alive until the failure time-out; then what it listed no longer counts.
    Look: a2 and a3 have settled without a1 long before, but a1 may still load h123/1. After the time-out a2 fetches it.
    """
    s = Scene("a1 a2 a3")
    s.slow = {"h123/1"}
    s.find("a1", "h123/1 h123/2")
    s.settle()
    s.leave("a1")
    s.wait("a2 sees all settled but h123")
    s.kill("a1")
    s.slow.clear()
    s.end()
    s.in_order("a2 settled {a2 a3}", "a1 is killed", "a2 holds a1 dead", "a2 fetch h123/1")
    return s


def page_recovery() -> Scene:
    """A page was crawled; since then one agent was started (t is 1), and all the others have crashed.

    Rule: no refetch as long as no more than t agents were started since the page was crawled, whatever the number that
    crashed (UbiCrawler, section 5.1.1).
    Look: h312/1 is done by a1. Its done mark goes to a2, to a3, and is there when nobody else is left. UbiCrawler asks
    the next-nearest agents for the page at that moment; here they were told before.
    """
    s = Scene("a1 a2")
    s.find("a1", "h312/1")
    s.wait("done 1")
    s.settle()
    s.start("a3")
    s.settle()
    for name in ("a1", "a2"):
        s.kill(name)
        s.settle()
    s.find("a3", "h312/1 h312/2")
    s.end()
    assert not s.count("a3 fetch h312/1") and s.count("a3 fetch h312/2") == 1
    return s
