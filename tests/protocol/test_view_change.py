"""Who may fetch a host from when: the rules of docs/explanation/protocol.md#view-change, one by one.

Hosts are named by the order of their agents: `ordered("c", "a", "b")` is c's while c is there, else a's, else b's.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from scrapy_ubi.protocol.beat import FEW, MANY, Beat
from scrapy_ubi.protocol.ring import point as ring_point
from scrapy_ubi.protocol.view import View
from scrapy_ubi.protocol.view_change import MOST_ENTERED, Alive, ViewHistory, point
from tests.support.views import incarnation, ordered, view


def said(agents: Iterable[str], of: View, settled: bool = True, pending: tuple[str, ...] = ()) -> dict[str, Beat]:
    """The beats of these agents, all in that view."""
    return {
        agent: Beat(incarnation(agent), 0, 20, of.digest, of.digest if settled else "", pending=pending)
        for agent in agents
    }


def alive(*agents: str, **lives: int) -> Alive:
    """Only these live."""
    living = {incarnation(agent, lives.get(agent, 0)) for agent in agents}
    return lambda agent, one: one in living


def view_history(me: str, *views: View, replication: int = 1) -> ViewHistory:
    """`me` has entered these views; everybody has settled in the first, so it is complete for `me`."""
    made = ViewHistory(me, replication)
    made.enter(views[0], 0.0)
    assert made.read(said(views[0].members, views[0]))
    assert made.complete is views[0]
    for number, one in enumerate(views[1:]):
        made.enter(one, 1.0 + number)
    return made


# -- names of hosts in beats


def test_point_is_the_ring_point_in_hex() -> None:
    assert point("h1.example") == f"{ring_point('h1.example'):016x}"
    assert len(point("h.example")) == 16


# -- waiting for everybody


def test_a_newcomer_fetches_nothing_at_once() -> None:
    made = ViewHistory("a", 1)
    made.enter(view("a", "b"), 0.0)
    assert not made.may_fetch(ordered("a", "b"), alive("a", "b"))
    assert not made.may_fetch(ordered("a", "b"), alive("a")), "nor when it believes itself alone"


def test_released_when_everybody_has_settled() -> None:
    made, present = ViewHistory("a", 1), view("a", "b")
    made.enter(present, 0.0)
    assert not made.read({**said("a", present), **said("b", present, settled=False)})
    assert not made.released
    assert made.read(said("ab", present))
    assert made.released
    assert made.complete is present
    assert made.may_fetch(ordered("a", "b"), alive("a", "b"))


def test_everybody_counts_the_leaving_too() -> None:
    """They are in no view, and read for all that."""
    made, present = ViewHistory("a", 1), view("a", "b")
    made.enter(present, 0.0)
    assert not made.read({**said("ab", present), **said("c", present, settled=False)})
    assert not made.read({**said("ab", present), **said("c", view("a", "b", "c"))})
    assert made.read(said("abc", present))


def test_settled_for_another_view_counts_for_nothing() -> None:
    made, present, other = ViewHistory("a", 1), view("a", "b"), view("a", "b", "c")
    made.enter(present, 0.0)
    moved = Beat(incarnation("b"), 0, 20, other.digest, present.digest)
    assert not made.read({**said("a", present), "b": moved})
    behind = Beat(incarnation("b"), 0, 20, present.digest, other.digest)
    assert not made.read({**said("a", present), "b": behind})
    assert not made.released


def test_a_pending_host_waits_and_the_others_do_not() -> None:
    present = view("a", "b", "c")
    listed, free = ordered("a", "b", "c", nth=0), ordered("a", "b", "c", nth=1)
    made = ViewHistory("a", 1)
    made.enter(present, 0.0)
    assert made.read({**said("ac", present), **said("b", present, pending=(point(listed),))})
    assert made.released
    assert made.complete is None, "not while anything is pending"
    assert not made.may_fetch(listed, alive("a", "b", "c"))
    assert made.may_fetch(free, alive("a", "b", "c"))
    assert made.read(said("abc", present))
    assert made.may_fetch(listed, alive("a", "b", "c"))
    assert made.complete is present


def test_pending_hosts_of_all_are_listed() -> None:
    present, hosts = view("a", "b", "c"), [ordered("a", "b", "c", nth=n) for n in range(3)]
    made = ViewHistory("a", 1)
    made.enter(present, 0.0)
    beats = said("a", present)
    beats |= said("b", present, pending=(point(hosts[0]), point(hosts[2])))
    beats |= said("c", present, pending=(point(hosts[1]),))
    assert made.read(beats)
    assert not any(made.may_fetch(host, alive("a", "b", "c")) for host in hosts)


def test_what_was_free_once_is_not_listed_again() -> None:
    """Once everybody has let go of a host under this view, its owner alone can begin anything there."""
    present, host = view("a", "b"), ordered("a", "b")
    made = ViewHistory("a", 1)
    made.enter(present, 0.0)
    assert made.read(said("ab", present))
    assert not made.read({**said("a", present), **said("b", present, pending=(point(host),))})
    assert made.may_fetch(host, alive("a", "b"))
    assert not made.read(said("ab", present, settled=False)), "nor does it hang on what is published afterwards"
    assert made.may_fetch(host, alive("a", "b"))


def test_the_list_only_gets_shorter() -> None:
    present, hosts = view("a", "b"), [ordered("a", "b", nth=n) for n in range(2)]
    made = ViewHistory("a", 1)
    made.enter(present, 0.0)
    made.read({**said("a", present), **said("b", present, pending=(point(hosts[0]),))})
    assert made.read({**said("a", present), **said("b", present, pending=(point(hosts[1]),))})
    assert made.may_fetch(hosts[0], alive("a", "b"))
    assert made.may_fetch(hosts[1], alive("a", "b"))


def test_read_says_whether_more_may_be_fetched_than_before() -> None:
    present, host = view("a", "b"), point(ordered("a", "b"))
    made = ViewHistory("a", 1)
    made.enter(present, 0.0)
    assert made.read(said("ab", present, pending=(host,)))
    assert not made.read(said("ab", present, pending=(host,)))
    assert made.read(said("ab", present))
    assert not made.read(said("ab", present))


def test_after_the_handoff_timeout_everything_is_free() -> None:
    present, host = view("a", "b"), ordered("a", "b")
    made = ViewHistory("a", 1)
    made.enter(present, 7.0)
    assert made.since == 7.0
    made.read(said("ab", present, settled=False))
    made.force()
    assert made.may_fetch(host, alive("a", "b"))
    assert made.complete is None, "that it is complete is another matter"


def test_a_host_that_is_listed_waits_whatever_time_has_passed() -> None:
    present, host = view("a", "b"), ordered("a", "b")
    made = ViewHistory("a", 1)
    made.enter(present, 0.0)
    made.force()
    made.read({**said("a", present), **said("b", present, pending=(point(host),))})
    assert not made.may_fetch(host, alive("a", "b")), "b says that it may be loading one of its pages"
    assert made.may_fetch(ordered("a", "b", nth=1), alive("a", "b"))
    made.read(said("ab", present))
    assert made.may_fetch(host, alive("a", "b"))


def test_no_copy_is_counted_on_because_time_has_passed() -> None:
    made = view_history("a", view("a", "b"), view("a"), view("a", "b", b=1))
    assert made.waits and not made.enough
    made.force()
    assert made.may_fetch("h.example", alive("a", "b", b=1)) and not made.waits
    assert not made.released and not made.enough


def test_the_handoff_timeout_is_for_what_still_waits() -> None:
    """The whole view; once everybody has settled, nothing is forced."""
    present = view("a", "b")
    made = ViewHistory("a", 1)
    made.enter(present, 0.0)
    assert made.waits
    made.read(said("ab", present, pending=(point("h.example"),)))
    assert made.released and not made.waits


def test_copies_are_enough_when_everybody_has_handed_on_all_whatever_is_pending() -> None:
    present = view("a", "b", b=1)
    made = view_history("a", view("a", "b"), view("a"), present)
    many = {agent: Beat(incarnation(agent), 0, 20, present.digest, flags=MANY) for agent in "ab"}
    assert not made.read({**many, **said("b", present, settled=False)}) and not made.enough, "b is still at it"
    assert not made.read(many) and made.enough
    assert not made.released, "that is for those with few pending hosts"
    assert not made.read(said("ab", present, settled=False)) and made.enough, "what was copied stays"
    made.enter(view("a"), 9.0)
    assert not made.enough


def test_a_new_view_starts_anew() -> None:
    one, two = view("a", "b"), view("a", "b", "c")
    made = view_history("a", one, two)
    assert not made.released
    assert made.since == 1.0
    assert made.view is two
    assert made.complete is one
    made.force()
    made.enter(one, 2.0)
    assert not made.released, "force counted for that view only"


# -- at once


def test_at_once_what_was_ones_own() -> None:
    """A newcomer takes some hosts; the others go on without a pause."""
    made = view_history("a", view("a", "b"), view("a", "b", "c"))
    assert made.may_fetch(ordered("a", "b", "c"), alive("a", "b", "c"))
    assert made.may_fetch(ordered("a", "c", "b"), alive("a", "b", "c"))


def test_not_at_once_what_a_newcomer_takes() -> None:
    made = ViewHistory("c", 1)
    made.enter(view("a", "b", "c"), 0.0)
    assert not made.may_fetch(ordered("c", "a", "b"), alive("a", "b", "c"))


def test_at_once_as_the_successor_of_a_dead_owner() -> None:
    made = view_history("b", view("a", "b", "c"), view("b", "c"))
    assert made.may_fetch(ordered("a", "b", "c"), alive("b", "c"))


def test_not_at_once_while_the_former_owner_lives() -> None:
    """It is on its way out, or only out of this view, and may still be loading."""
    made = view_history("b", view("a", "b", "c"), view("b", "c"))
    assert not made.may_fetch(ordered("a", "b", "c"), alive("a", "b", "c"))


def test_alive_means_that_very_incarnation() -> None:
    made = view_history("b", view("a", "b", "c"), view("a", "b", "c", a=1), view("b", "c"))
    assert not made.may_fetch(ordered("a", "b", "c"), alive("a", "b", "c", a=1)), (
        "in one of the views it is still alive"
    )
    made = view_history("b", view("a", "b", "c"), view("b", "c"))
    assert made.may_fetch(ordered("a", "b", "c"), alive("a", "b", "c", a=1)), "the one that was owner then is gone"


@pytest.mark.parametrize("replication", [0, 1, 2])
def test_at_once_only_within_the_successors(replication: int) -> None:
    """Whoever comes later in the order has no copy."""
    for place, me in enumerate("abcd"):
        made = view_history(me, view("a", "b", "c", "d"), view(*"abcd"[place:]), replication=replication)
        assert made.may_fetch(ordered("a", "b", "c", "d"), alive(*"abcd"[place:])) == (place <= replication)


def test_not_at_once_when_an_earlier_successor_lives() -> None:
    """The new view may lack it for the moment: it may be fetching under a view of its own."""
    made = view_history("c", view("a", "b", "c"), view("c"), replication=2)
    assert not made.may_fetch(ordered("a", "b", "c"), alive("b", "c"))
    assert made.may_fetch(ordered("a", "b", "c"), alive("c"))


def test_at_once_holds_in_every_view_entered_since() -> None:
    """The design's rule is stricter in the code (decision 0003): others may think a view complete that this one left.

    c came, took the host, and died: its successor then was a. d came as well, and was between the two: for all a knows
    d was owner for a moment.
    """
    host = ordered("c", "d", "a", "b")
    one = view("a", "b")
    assert view_history("a", one, view("a", "b", "c"), one).may_fetch(host, alive("a", "b"))
    assert not view_history("a", one, view("a", "b", "c"), one).may_fetch(host, alive("a", "b", "c")), "c lives"
    assert not view_history("a", one, view("a", "b", "c", "d"), one).may_fetch(host, alive("a", "b")), (
        "a had no copy of c's"
    )
    assert view_history("a", one, view("a", "b", "c", "d"), one, replication=2).may_fetch(host, alive("a", "b"))


def test_not_at_once_when_one_was_in_no_view_in_between() -> None:
    """It was leaving, or fenced out."""
    made = view_history("a", view("a", "b"), view("b"), view("a", "b"))
    assert not made.may_fetch(ordered("a", "b"), alive("a", "b"))


def test_a_complete_view_forgets_those_before() -> None:
    one, two = view("a", "b"), view("a", "b", "c")
    made = view_history("a", one, two)
    host = ordered("c", "a", "b")
    assert made.read(said("abc", two))
    assert made.complete is two
    assert made.entered == [two]
    made.enter(one, 5.0)
    assert made.may_fetch(host, alive("a", "b"))


def test_a_settled_view_of_the_past_is_not_the_last_complete_one() -> None:
    """Settled says: I have handed on all I hold, not: my copy is whole (docs/explanation/hard-cases.md)."""
    two, three = view("a", "b"), view("b")
    made = ViewHistory("b", 1)
    made.enter(two, 0.0)
    made.read({**said("b", two), **said("a", two, settled=False)})
    made.enter(three, 1.0)
    assert not made.may_fetch(ordered("a", "b"), alive("b")), "a died in the middle of handing over to b"
    assert made.read(said("b", three))
    assert made.may_fetch(ordered("a", "b"), alive("b"))


def test_too_many_views_and_nothing_is_at_once() -> None:
    one, two = view("a", "b"), view("a", "b", "c")
    made = view_history("a", one)
    host = ordered("a", "b", "c")
    for number in range(MOST_ENTERED - 1):
        made.enter((two, one)[number % 2], float(number))
        assert made.may_fetch(host, alive("a", "b", "c"))
    made.enter(two, 99.0)
    assert made.complete is None
    assert not made.may_fetch(host, alive("a", "b", "c"))
    assert made.read(said("abc", two))
    assert made.may_fetch(host, alive("a", "b", "c"))


def test_a_new_incarnation_has_been_in_no_view() -> None:
    made = view_history("a", view("a", "b"))
    host = ordered("a", "b")
    assert made.may_fetch(host, alive("a", "b"))
    made.forget()
    made.enter(view("a", "b", a=1), 5.0)
    assert made.complete is None
    assert not made.released
    assert not made.may_fetch(host, alive("a", "b", a=1))


def test_a_new_incarnation_waits_even_where_the_view_does_not_change() -> None:
    """Who is leaving is in no view, its own neither. What its former life was allowed there ends all the same."""
    made, present = view_history("a", view("a", "b"), view("b")), view("b")
    host = ordered("a", "b")
    assert made.read(said("ab", present))
    made.forget()
    assert not made.may_fetch(host, alive("b")) and not made.enough and made.waits
    made.force()
    made.forget()
    assert not made.may_fetch(host, alive("b"))


def test_alone_in_a_view_one_still_waits_for_oneself() -> None:
    made, alone = ViewHistory("a", 1), view("a")
    made.enter(alone, 0.0)
    assert not made.may_fetch("h.example", alive("a"))
    assert made.read(said("a", alone))
    assert made.may_fetch("h.example", alive("a"))


# -- who brings a host's state to its new keepers


def test_owner_of_the_last_complete_view_answers_for_its_hosts() -> None:
    made = view_history("a", view("a", "b"), view("a", "b", "c"))
    assert made.answers_for(ordered("c", "a", "b"), alive("a", "b", "c"))
    assert made.answers_for(ordered("a", "b", "c"), alive("a", "b", "c"))


def test_a_successor_leaves_it_to_the_living_owner() -> None:
    made = view_history("b", view("a", "b"), view("a", "b", "c"))
    assert not made.answers_for(ordered("a", "b", "c"), alive("a", "b", "c"))
    assert not made.answers_for(ordered("c", "a", "b"), alive("a", "b", "c"))


def test_every_holder_answers_when_the_owner_is_dead() -> None:
    for me in "bc":
        made = view_history(me, view("a", "b", "c"), view("b", "c"))
        assert made.answers_for(ordered("a", "b", "c"), alive("b", "c"))
        # While it is leaving it hands over itself, and the present owner makes sure of the others besides.
        assert made.answers_for(ordered("a", "b", "c"), alive("a", "b", "c")) == (me == "b")


def test_whoever_was_owner_since_answers_too() -> None:
    """It acted as owner, and has news that the owner of the complete view has not."""
    made = view_history("b", view("a", "b"), view("b"), view("a", "b", a=1))
    assert made.answers_for(ordered("a", "b"), alive("a", "b"))


def test_who_was_owner_since_and_is_dead_is_stood_in_for() -> None:
    """What it learned while another one was leaving, that one does not know."""
    host, leaving = ordered("a", "b", "c", "d"), (view("a", "b", "c", "d"), view("b", "c", "d"))
    assert not view_history("c", *leaving).answers_for(host, alive("a", "b", "c", "d"))
    assert view_history("c", *leaving, view("b", "c", "d", b=1)).answers_for(host, alive("a", "b", "c", "d", b=1))


def test_who_has_seen_no_complete_view_answers_for_all_it_holds() -> None:
    made = ViewHistory("c", 1)
    made.enter(view("a", "b", "c"), 0.0)
    assert made.answers_for(ordered("a", "b", "c"), alive("a", "b", "c"))


def test_everybody_answers_after_a_complete_view_of_nobody() -> None:
    made, nobody = ViewHistory("a", 1), view()
    made.enter(nobody, 0.0)
    made.read(said("a", nobody))
    made.enter(view("b"), 1.0)
    assert made.answers_for("h.example", alive("a", "b"))


# -- what a keeper surely has


def test_a_successor_that_stays_has_all_of_its_owner() -> None:
    made = view_history("a", view("a", "b", "c"), view("a", "b"))
    assert made.has_copy(ordered("a", "b", "c"), "b", incarnation("b")) is True


def test_a_newcomer_has_nothing() -> None:
    made = view_history("a", view("a", "b"), view("a", "b", "c"))
    assert made.has_copy(ordered("a", "c", "b"), "c", incarnation("c")) is False
    assert made.has_copy(ordered("c", "a", "b"), "c", incarnation("c")) is False


def test_one_that_kept_it_in_some_view_has_something() -> None:
    host = ordered("a", "c", "b")
    made = view_history("a", view("a", "b"), view("a", "b", "c"), view("a", "b"))
    assert made.has_copy(host, "b", incarnation("b")) is None, "c was the successor in between"
    made = view_history("b", view("a", "b"), view("b", "c"))
    assert made.has_copy(ordered("a", "b", "c"), "c", incarnation("c")) is False
    made = view_history("c", view("a", "b", "c"), view("c", "b"))
    assert made.has_copy(ordered("a", "b", "c"), "b", incarnation("b")) is None, "it was a's to tell b, not c's"


def test_another_incarnation_has_nothing() -> None:
    made = view_history("a", view("a", "b"), view("a", "b", b=1))
    assert made.has_copy(ordered("a", "b"), "b", incarnation("b", 1)) is False


def test_without_a_complete_view_nothing_is_sure() -> None:
    made = ViewHistory("a", 1)
    made.enter(view("a", "b"), 0.0)
    assert made.has_copy(ordered("a", "b"), "b", incarnation("b")) is None


# -- too few for all copies


def test_where_members_are_too_few_all_must_know_that() -> None:
    made = view_history("a", view("a", "b", "c"), view("a"))
    assert made.few_unheard
    made.read(said("a", made.view, settled=False) | said("b", view("a", "b")))
    assert made.few_unheard, "b is leaving, and has not seen that c is, too"
    made.read(said("ab", made.view, settled=False))
    assert not made.few_unheard
    made.enter(view("a", "d", "e"), 9.0)
    assert not made.few_unheard, "they are two at least"


@pytest.mark.parametrize("members", [(), ("a", "b")])
def test_nobody_waits_where_none_or_enough_are_there(members: tuple[str, ...]) -> None:
    assert not view_history("a", view("a", "b", "c"), view(*members)).few_unheard


# -- former lives


def test_what_was_written_in_a_view_with_another_incarnation_is_of_a_former_life() -> None:
    before, left, now = view("a", "b"), view("b"), view("a", "b", a=1)
    made = view_history("b", before, left, now)
    assert made.is_former("a", before.digest)
    assert made.is_former("a", left.digest), "nor was its present incarnation there"
    assert not made.is_former("a", now.digest)
    assert not made.is_former("b", before.digest)


def test_in_a_view_not_known_here_it_may_have_been_any_life_of_late() -> None:
    elsewhere = view("a", "b", "d", a=1).digest
    assert view_history("b", view("a", "b"), view("a", "b", a=1)).is_former("a", elsewhere)
    assert not view_history("b", view("a", "b"), view("a", "b", "c")).is_former("a", elsewhere), "it had but one"
    assert not view_history("b", view("a", "b", a=1), view("a", "b", "c", a=1)).is_former("a", elsewhere)


# -- a fence that ends


def test_after_a_fence_a_view_with_a_newcomer_is_doubted() -> None:
    made = view_history("a", view("a", "b"), view("a", "b", "c"))
    host = ordered("a", "b", "c")
    assert made.may_fetch(host, alive("a", "b", "c"))
    made.doubt(made.view)
    assert not made.may_fetch(host, alive("a", "b", "c")), "c may have crawled alone meanwhile"


def test_after_a_fence_a_view_without_newcomers_is_as_good_as_before() -> None:
    made = view_history("a", view("a", "b", "c"), view("a", "b"))
    made.doubt(made.view)
    assert made.may_fetch(ordered("a", "b"), alive("a", "b"))


# -- few hosts left


def few(agents: Iterable[str], of: View, *hosts: str) -> dict[str, Beat]:
    """The beats of these agents, which have still to hand on these hosts."""
    listed = tuple(map(point, hosts))
    return {agent: Beat(incarnation(agent), 0, 20, of.digest, "", FEW, pending=listed) for agent in agents}


def test_where_all_list_what_they_have_still_to_hand_on_the_other_hosts_are_free() -> None:
    present = view("a", "b", "c")
    made = ViewHistory("a", 1)
    made.enter(present, 0.0)
    large, small = ordered("a", "b", "c"), ordered("a", "c", "b")
    living = alive("a", "b", "c")
    assert not made.read({**few("ab", present, large), **said("c", present, settled=False)})
    assert not made.may_fetch(small, living), "c has not said which hosts it has still to hand on"
    assert made.read({**few("ab", present, large), **said("c", present)})
    assert made.may_fetch(small, living) and not made.may_fetch(large, living)
    assert not made.released and made.complete is None and not made.copied, "no view is complete by it"
    assert made.read(few("abc", present))
    assert made.may_fetch(large, living)
    assert made.read(said("abc", present)) and made.complete is present


def test_a_host_that_was_free_is_not_listed_again_and_another_view_begins_anew() -> None:
    present = view("a", "b")
    made = ViewHistory("a", 1)
    made.enter(present, 0.0)
    host, living = ordered("a", "b"), alive("a", "b")
    assert made.read(few("ab", present))
    assert not made.read(few("ab", present, host))
    assert made.may_fetch(host, living)
    assert made.read(said("ab", present, pending=(point(host),)))
    assert made.may_fetch(host, living), "nor when all have settled"
    made.enter(view("a", "b", "c"), 1.0)
    assert not made.is_brought(host)


def test_nobody_waits_for_what_it_has_itself_to_tell_of_a_host_that_it_owns() -> None:
    present = view("a", "b")
    host, living = ordered("a", "b"), alive("a", "b")
    beats = few("a", present, host) | few("b", present)
    owner, other = ViewHistory("a", 1), ViewHistory("b", 1)
    for made in (owner, other):
        made.enter(present, 0.0)
        assert made.read(beats)
    assert owner.may_fetch(host, living)
    assert not other.may_fetch(host, living)
    assert not owner.released and not owner.copied, "copies are complete when it has told"
    assert owner.read(said("a", present, pending=(point(host),)) | said("b", present))
    assert owner.released and owner.complete is None, "what it lists itself counts for that, too"


def test_beats_of_another_view_list_nothing_for_this_one() -> None:
    present = view("a", "b")
    made = ViewHistory("a", 1)
    made.enter(present, 0.0)
    assert not made.read({**few("a", present), **few("b", view("b"))})
    assert not made.may_fetch(ordered("a", "b"), alive("a", "b"))
