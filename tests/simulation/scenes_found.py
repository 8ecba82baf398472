"""Hard cases beyond the table of DESIGN 2.5: what the simulator found (docs/decisions/0003), the usual accidents."""

from __future__ import annotations

from .scene import Scene

# ---------------------------------------------------------------------- decision 0003


def started_as_redis_forgot() -> Scene:
    """An agent starts a moment after Redis has forgotten everything, and sees nobody.

    Rule: a new agent settles nothing and fetches nothing until a lease has passed since its first beat, or it sees
    somebody who has settled.
    Look: a2 owns h21 and has found a page of it, in a view of its own. It waits, sees a1 at its next beat, and a1
    hands over first. Without the rule it would load h21/1 beside a1.
    """
    s = Scene("a1")
    s.slow = {"h21/1"}
    s.find("a1", "h21/1 h21/2")
    s.turns(2)
    s.forget()
    s.start("a2")
    s.find("a2", "h21/1")
    s.turn("a2")
    s.wait("a1 settled {a1 a2} but h21")
    s.in_order("a2 view {a2}", "a2 waits with h21", "a2 view {a1 a2}", "a1 settled {a1 a2} but h21")
    s.slow.clear()
    s.end()
    return s


def fence_seen_too_late() -> Scene:
    """A fenced agent comes back at the moment at which another declares it dead: the beats it reads are older.

    Rule: a gap in the lease raises the agent's epoch, which is part of the view; the fence ends when all have published
    the digest of a view that holds the new epoch.
    Look: a2 has just taken over h12 when a1 reads that a2 still publishes {a1 a2}. That is the view of before the
    fence, not {a1+ a2}, so a1 stays fenced; a moment later it finds itself declared dead.
    """
    s = Scene("a1 a2")
    s.slow = {"h12/1"}
    s.find("a1", "h12/1 h12/2")
    s.settle()
    s.cut_off("a1")
    s.turns(5)
    s.now += 1
    s.beat("a2")
    s.work("a2")
    s.mend("a1")
    s.beat("a1")
    s.flush("a1")
    s.work("a1")
    s.wait("a1 goes on")
    s.in_order("a2 holds a1 dead", "a2 fetch h12/1", "a1 view {a1+ a2}", "a1 begins anew as a1'", "a1 goes on")
    s.slow.clear()
    s.end()
    return s


def view_came_and_went() -> Scene:
    """An agent has settled for a view that it never saw complete; another did, and fetches; then the view changes back.

    Rule: a host is fetched at once only by who was its owner in the last complete view *and in every view entered
    since*.
    Look: a1 settles for {a1 a2} and does not hear the answer, so the last view it saw complete is {a1}, where h21 is
    its own. When the view is {a1} again a2 still loads h21/1. a1 waits until a2 lists h21 no more.
    """
    s = Scene("a1")
    s.find("a1", "h21/1 h21/2")
    s.hesitant = {"a1"}
    s.turn()
    s.start("a2")
    s.slow = {"h21/1", "h21/2"}
    s.wait("a2 -> a1 ack state")
    s.put_back("a1")
    s.turn()
    s.beat_unheard("a1")
    s.beat("a2")
    s.work("a2")
    s.leave("a2")
    s.flush("a2")
    s.beat("a2")
    s.turns(2)
    s.in_order("a2 sees {a1 a2} complete", "a2 fetch h21", "a1 view {a1}", "a1 waits with h21")
    s.slow.clear()
    s.end()
    return s


def death_is_told_on() -> Scene:
    """Two agents see the same death at different times.

    Rule: deaths are contagious: beats name the incarnations their writer holds dead, and readers believe them.
    Look: a2 was cut off itself and has started all ages anew; by itself it would wait 5 s more for a3. It believes a1,
    and both take over at once.
    """
    s = Scene("a1 a2 a3")
    s.slow = {"h321/1"}
    s.find("a3", "h321/1")
    s.settle()
    s.kill("a3")
    s.cut_off("a2")
    s.turns(4)
    s.mend("a2")
    s.wait("a2 holds a3 dead")
    assert s.last("a2 holds a3 dead") <= s.last("a1 holds a3 dead") + 1 <= s.last("a2 reaches Redis") + 5
    s.slow.clear()
    s.end()
    return s


def two_of_four_come_back_to_the_end() -> Scene:
    """Two of four agents are cut off; the others finish what they know and end the crawl.

    Rule: who sees more than t agents lost between two complete views calls the crawl *lossy*, in its beat and at the
    end; who comes back with work to the end of a lossy crawl goes on.
    Look: only a3 and a4 know h3412/2. They come back when a1 and a2 have closed, and fetch it all the same.
    """
    s = Scene("a1 a2 a3 a4")
    s.slow = {"h3412/1", "h1234/2"}
    s.find("a1", "h1234/1 h1234/2")
    s.find("a3", "h3412/1 h3412/2")
    s.settle()
    s.cut_off("a3", "a4")
    s.exhaust()
    s.wait("a1 knows that too many were lost at once")
    s.answer("h1234/2")
    s.until(lambda: s.count("closes") == 2)
    s.slow.clear()
    s.mend("a3", "a4")
    s.end()
    s.in_order("a1 closes", "a3 reaches Redis again", "h3412/2", "a3 closes")
    return s


# ---------------------------------------------------------------------- the usual accidents


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


def zombie() -> Scene:
    """A process is stopped in the middle of a load and wakes after its heir has taken over.

    Rule: its lease has ended before anybody else could fetch; it joins anew and merges what it has.
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
    """Redis is away for everybody, for longer than the failure time-out.

    Rule: everybody is fenced and suspects nobody on old news; all go on when all have seen all again.
    Look: the load under way is cancelled when the lease ends. When Redis is back both have a new epoch; nobody is dead,
    nobody begins anew, and nothing is fetched twice.
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


def clean_leave() -> Scene:
    """An agent is asked to leave.

    Rule: it is out of the views and beats on until it has handed over all it holds, and all have settled without it.
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
