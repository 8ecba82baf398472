"""What the simulator found (docs/decisions/0003)."""

from __future__ import annotations

from tests.simulation.scene import Scene


def started_as_redis_forgot() -> Scene:
    """An agent starts a moment after Redis has forgotten everything, and sees no other agent.

    Rule: a new agent settles nothing and fetches nothing until a lease has passed since its first beat, or it sees an
    agent that has settled.
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

    Rule: a host is fetched at once only by the agent that was its owner in the last complete view *and in every view
    entered since*.
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

    Rule: deaths are passed on: beats name the incarnations their writer holds dead, and readers believe them.
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

    Rule: an agent that sees more than t agents lost between two complete views calls the crawl *lossy*, in its beat and
    at the end; an agent that comes back with work to the end of a lossy crawl goes on.
    Look: only a3 and a4 know h3412/2. They come back when a1 and a2 have closed, and fetch it all the same.
    """
    s = Scene("a1 a2 a3 a4")
    s.slow = {"h3412/1", "h1234/2"}
    s.find("a1", "h1234/1 h1234/2")
    s.find("a3", "h3412/1 h3412/2")
    s.settle()
    s.cut_off("a3", "a4")
    s.exhaust()
    s.wait("a1 calls the crawl lossy")
    s.answer("h1234/2")
    s.until(lambda: s.count("closes") == 2)
    s.slow.clear()
    s.mend("a3", "a4")
    s.end()
    s.in_order("a1 closes", "a3 reaches Redis again", "h3412/2", "a3 closes")
    return s


def leaver_keeps_its_copies() -> Scene:
    """An agent leaves, and the owner of a host of which it has the only copy dies before there is another one.

    Rule: an agent that leaves waits until all have settled without it; until then its copies count.
    Look: a1 has nothing to hand over, for a2, which owns h213, lives, and is to bring it to a3 itself. But a2 is killed
    before it hears of it. a1 is still there, and brings h213 to a3.
    """
    s = Scene("a1 a2 a3")
    s.slow = {"h213/1"}
    s.find("a2", "h213/1")
    s.settle()
    s.leave("a1")
    s.turn("a1")
    s.kill("a2")
    s.slow.clear()
    s.end()
    s.in_order("a1 is to leave", "a2 is killed", "a1 -> a3 state h213 new 1", "a1 has left", "a3 fetch h213/1")
    return s


def done_mark_stays_in_a_handoff() -> Scene:
    """A host is handed over while the done mark of a page may not leave yet.

    Rule: done marks come last, in a handoff too: the page is *closing*, and others are told its entry.
    Look: h312/1 is done, but its link lies unread in the inbox of a2. So a3 is told h312/1, as a page that waits. When
    a1 is killed and Redis emptied, a3 does the page again, and the link is found again.
    """
    s = Scene("a1 a2", web={"h312/1": "h213/1"})
    s.slow = {"h312/1"}
    s.find("a1", "h312/1")
    s.settle()
    s.deaf = {"a2"}
    s.answer("h312/1")
    s.wait("a1 done h312/1")
    s.start("a3")
    s.wait("a3 -> a1 ack state")
    s.kill("a1")
    s.forget(noticed=False)
    s.deaf.clear()
    s.end(again="h312/1")
    s.in_order("a1 -> a3 state h312 new 1", "a1 is killed", "a3 fetch h312/1", "a2 fetch h213/1")
    return s


def _forgotten_while_fenced() -> Scene:
    """While a1 is fenced Redis forgets it, and a2 crawls alone, loading h12/1; then a1 can reach Redis again."""
    s = Scene("a1")
    s.slow = {"h12/1"}
    s.find("a1", "h12/1 h12/2")
    s.turn()
    s.cut_off("a1")
    s.forget(noticed=False)
    s.start("a2")
    s.find("a2", "h12/1")
    s.wait("a2 fetch h12/1")
    s.mend("a1")
    return s


def newcomer_was_alone() -> Scene:
    """While an agent is fenced Redis forgets it, and a newcomer crawls alone, sure that no other agent lives.

    Rule: when a fence ends, members of the view whom the last complete one did not have may have fetched: nothing is
    fetched at once.
    Look: to a2 nobody has ever died, so a1 is not declared dead, and goes on. By what it saw complete h12 is its own;
    but a2 loads h12/1. a1 waits until a2 lists h12 no more.
    """
    s = _forgotten_while_fenced()
    s.wait("a1 waits with h12")
    s.slow.clear()
    s.end()
    s.in_order("a2 fetch h12/1", "a1 goes on", "a1 waits with h12", "a2 done h12/1", "a1 fetch h12/2")
    assert not s.count("dead")
    return s


def came_back_between_two_beats() -> Scene:
    """An agent that Redis has forgotten while it was fenced comes back between two beats of a newcomer that was alone.

    Rule: who comes back from a fence in which Redis has forgotten everything is not sure who lives.
    Look: what a1 finds of a2 is a line that may be of long ago, and counts for nothing. All whom a1 knows to live,
    itself, publish its view; but a2 loads h12/1. a1 waits until a2, whose lease holds, has settled in a view with it.
    """
    s = _forgotten_while_fenced()
    for _ in range(3):
        s.turn("a1", seconds=0.3)
    s.wait("a2 settled {a1+ a2} but h12")
    s.slow.clear()
    s.end()
    s.in_order("a1 reaches Redis again", "a1 view {a1+}", "a1 view {a1+ a2}", "a1 is sure who lives", "a1 goes on")
    s.in_order("a1 goes on", "a2 done h12/1", "a1 fetch h12/2")
    return s


def more_pending_than_a_beat_lists() -> Scene:
    """A leaver has more pending hosts than a beat lists, and was in a view with too few members; then a newcomer comes.

    Rule: done marks wait until all have handed over everything but what is pending, not until all pending hosts are
    named: those wait for the marks.
    Look: a beat lists none here, so a1 cannot settle; when {a2} was all that was left of the group its done mark had to
    stay. It says in its beat that only pending hosts are left, and that is enough: the mark leaves, a1 settles, goes.
    """
    s = Scene("a1 a2", most_pending=0)
    s.slow = {"h123/1"}
    s.find("a1", "h123/1 h123/2")
    s.settle()
    s.leave("a1")
    s.turn()
    s.start("a3")
    s.answer("h123/1")
    s.wait("a2 fetch h123/2")
    s.in_order("a1 view {a2}", "a1 done h123/1", "a1 has handed on all but", "h123 done 1", "a1 settled {a2 a3}")
    s.in_order("a1 settled {a2 a3}", "a2 fetch h123/2")
    s.end()
    return s


def leaver_outlives_its_heir() -> Scene:
    """The only agent to whom a leaver has handed over crashes, and starts again with nothing, before the leaver is
    gone.

    Rule: a leaver that leaves fewer than t + 1 agents drops no copy: the last words of one that has crashed are read as
    those of a living one.
    Look: a1 has handed h12 over, and sees {a2} complete by the last beat of a2; but a page that it has found lies
    unread in the inbox of a2. It is still there when a2 begins anew, and brings h12 once more.
    """
    s = Scene("a1 a2")
    s.slow = {"h12/2"}
    s.find("a1", "h12/1")
    s.wait("a1 done h12/1")
    s.settle()
    s.find("a1", "h12/2")
    s.hesitant = {"a1"}
    s.settle()
    s.put_back("a1")
    s.deaf = {"a2"}
    s.find("a1", "h21/1")
    s.leave("a1")
    s.wait("a2 fetch h12/2")
    s.kill("a2")
    s.turns(2)
    s.start("a2")
    s.deaf.clear()
    s.slow.clear()
    s.end()
    s.in_order("a1 sees {a2} complete", "a1 -> a2 state h12 new 2 done 1", "a1 has left", "a2 fetch h12/2")
    return s


def letter_of_a_former_life() -> Scene:
    """An owner tells its successor of a page, crashes, and starts again with nothing before the successor has read
    that.

    Rule: a copy is covered by its owner's own words only in the life in which the owner wrote them; what a former life
    wrote is brought to all keepers, the owner included.
    Look: the letter of a1 is read when a1' owns h12. Only a2 knows h12/1, and offers it to a1', which fetches it.
    """
    s = Scene("a1 a2")
    s.hesitant = {"a1"}
    s.deaf = {"a2"}
    s.find("a1", "h12/1")
    s.turn()
    s.kill("a1")
    s.start("a1")
    s.beat("a1")
    s.beat("a2")
    s.hesitant.clear()
    s.flush("a2")
    s.deaf.clear()
    s.end()
    s.in_order("a1 -> a2 state h12 new 1", "a1 is killed", "a2 view {a1' a2}", "a2 -> a1 state h12", "a1 fetch h12/1")
    return s


def acknowledged_by_the_only_one_left() -> Scene:
    """A link is acknowledged by its owner, the only one that is not leaving, which crashes before all have settled.

    Rule: an outlink that was acknowledged while too few agents were there for all copies is told again when one of them
    is gone.
    Look: a3 stands still with h312 on its way, so {a2} is not settled, and the done mark of h123/1 waits; but a2 alone
    has h213/1. When a2 begins anew a1 tells it h213/1 once more.
    """
    s = Scene("a1 a2 a3", web={"h123/1": "h213/1"})
    s.slow = {"h123/1"}
    s.find("a1", "h123/1")
    s.find("a3", "h312/1")
    s.settle()
    s.leave("a1")
    s.wait("a3 view {a2 a3}")
    s.leave("a3")
    s.turns(2, "a3")
    s.pause("a3")
    s.hesitant = {"a2"}
    s.answer("h123/1")
    s.wait("a2 -> a1 ack discovery")
    s.kill("a2")
    s.hesitant.clear()
    s.start("a2")
    s.wake("a3")
    s.end()
    s.in_order("a1 view {a2}", "a2 -> a1 ack discovery", "a2 is killed", "a1 -> a2 discovery h213 new 1", "a1 has left")
    return s


def acknowledged_before_the_finder_knew_how_few() -> Scene:
    """An agent leaves, and a link is acknowledged by the only one left; its finder, a leaver, does not know that yet.

    Rule: where there are too few members for all copies, an outlink is acknowledged when all have published that view.
    Look: to a1 the view is {a2 a3}, all have settled, and acknowledged is what two have; but a2 alone has h213/1, and
    waits until a1 has {a2}, too. So it is still open when a2 crashes, and the done mark of h132/1 with it.
    """
    s = Scene("a1 a2 a3", web={"h132/1": "h213/1"})
    s.slow = {"h132/1"}
    s.find("a1", "h132/1")
    s.settle()
    s.leave("a1")
    s.wait("a3 sees all settled but h132")
    s.leave("a3")
    for name in ("a3", "a3", "a2", "a2"):
        s.turn(name, seconds=0.5)
    s.hesitant = {"a2"}
    s.answer("h132/1")
    s.hear("a1", seconds=0.5)
    for part, name in ((s.flush, "a1"), (s.take, "a2"), (s.flush, "a2"), (s.take, "a1"), (s.flush, "a1")):
        part(name)
    s.kill("a2")
    s.hesitant.clear()
    s.start("a2")
    s.end()
    s.in_order("a2 view {a2}", "a1 done h132/1", "a2 is killed", "a1 view {a2}", "a1 -> a2 discovery h213 new 1")
    return s


def word_of_one_that_was_killed() -> Scene:
    """Redis has forgotten an agent that cannot beat; a newcomer has the word of another, which is killed at once.

    Rule: who is sure of who lives by the word of another is sure no longer than that one lives.
    Look: a3 is sure by a2's line, and a2 is killed. It begins again with its disk, and both would settle without a1,
    whose lease has not ended. They wait, hear a1 again, and it goes on.
    """
    s = Scene("a1 a2")
    s.slow = {"h123/1"}
    s.find("a1", "h123/1 h123/2")
    s.turn(seconds=0.5)
    s.turn(seconds=0.1)
    s.cut_off("a1")
    s.forget()
    s.turn("a2", seconds=0.2)
    s.start("a3")
    s.beat("a3")
    s.flush("a3")
    s.kill("a2")
    s.start("a2", disk=True)
    for _ in range(14):
        s.turn("a2", "a3", seconds=0.1)
    s.mend("a1")
    s.wait("a1 view {a1 a2' a3}")
    s.answer("h123/1")
    s.end()
    s.in_order("a3 is sure who lives", "a2 is killed", "a1 reaches Redis again", "a3 is sure who lives")
    return s
