"""Redo records: what an heir need not fetch again. And what others may know of a page that is closing (P5)."""

from __future__ import annotations

import pytest

from scrapy_ubi.ground.untrusted.checks import Malformed
from scrapy_ubi.protocol.host import MOST_REDO, Entry, Redo
from scrapy_ubi.protocol.memory_state import SetState
from scrapy_ubi.protocol.received import sift
from scrapy_ubi.protocol.records import MOST_OUTLINKS
from scrapy_ubi.protocol.wire import decode
from tests.support.views import ordered
from tests.support.village import Village, page


def redos(village: Village) -> dict[int, tuple[str, list[str]]]:
    """Every redo that was sent: key -> receiver, and the URLs in it."""
    return {
        redo.key: (to, [entry.url for _, entry in redo.outlinks])
        for to, letter in village.log
        for delta in letter.deltas
        for redo in delta.redo
    }


def begun() -> tuple[Village, str, str, str]:
    """a has one page to fetch, which b has, too; links go to hosts of d and of a itself."""
    village = Village("a", "b", "c", "d")
    own, far, near = ordered("a", "b", "c", "d"), ordered("d", "c", "b", "a"), ordered("a", "c", "b", "d")
    village.agents["a"].discovery.discover(own, page(own))
    village.settle()
    return village, own, far, near


def fetched(village: Village, *names: str) -> list[str]:
    """What these fetch until they have nothing left."""
    urls: list[str] = []
    for _ in range(12):
        urls += village.crawl(names)
        village.turn()
    return urls


def test_an_heir_finds_the_outlinks_of_a_page_whose_mark_had_not_left() -> None:
    village, own, far, near = begun()
    village.visit("a", page(far), page(near))
    village.flush("a")
    assert redos(village) == {page(own).key: ("b", [page(far).url, page(near).url])}
    village.inbox["c"].clear(), village.inbox["d"].clear()  # what a told them died with Redis's memory, say
    village.take("b")
    assert page(own).key in village.state("b", own).queued, "not done: a may tell it more"
    village.kill("a")
    village.settle()
    urls = fetched(village, "b", "c", "d")
    assert page(own).url not in urls, "b need not fetch it again"
    assert sorted(urls) == sorted([page(far).url, page(near).url]), "and nothing it linked to is lost"
    assert village.agents["b"].counters.redone == 1
    assert page(own).key in village.state("b", own).done


def test_an_heir_that_came_after_the_page_was_fetched_is_told_its_outlinks_with_the_host() -> None:
    """The one who kept the host is not who inherits it, when another one joins at the wrong moment."""
    village = Village("a", "b", "c")
    own, far = ordered("a", "d", "b", "c"), ordered("c", "b", "d", "a")
    village.agents["a"].discovery.discover(own, page(own))
    village.settle()
    village.visit("a", page(own, 5), page(far))
    village.flush("a")
    village.inbox["c"].clear()
    village.take("b")
    village.kill("a")
    village.start("d")
    village.settle()
    urls = fetched(village, "b", "c", "d")
    assert sorted(urls) == sorted([page(own, 5).url, page(far).url]), "d need not fetch the page again"
    assert village.agents["d"].counters.redone == 1


def test_outlinks_to_the_pages_own_host_are_keys_since_its_keepers_are_told_their_entries() -> None:
    village, own, far, _ = begun()
    village.visit("a", page(own, 5), page(far))
    village.flush("a")
    (redo,) = (redo for _, letter in village.log for delta in letter.deltas for redo in delta.redo)
    assert redo == Redo(page(own).key, ((far, page(far)),), (page(own, 5).key,), by="a")
    village.take("b")
    village.kill("a")
    village.settle()
    assert sorted(fetched(village, "b", "c", "d")) == sorted([page(own, 5).url, page(far).url])
    assert village.agents["b"].counters.redone == 1


def test_a_redo_that_names_a_page_nobody_here_has_heard_of_counts_for_nothing() -> None:
    """The letter with that entry was lost: the page is fetched again, and the link found again."""
    village, own, *_ = begun()
    village.visit("a", page(own, 5))
    village.flush("a")
    b = village.state("b", own)
    b.keep_redo(Redo(page(own).key, (), (page(own, 5).key,)))
    village.inbox["b"].clear()
    village.kill("a")
    village.settle()
    assert b.still(Redo(page(own).key, (), (page(own, 5).key,))) is None
    assert page(own).url in fetched(village, "b", "c", "d")
    assert village.agents["b"].counters.redone == 0


def test_the_outlinks_of_a_redo_are_what_the_owner_found_but_for_what_is_done_everywhere() -> None:
    state = SetState("h.example")
    waits, out, closing, done = (page("h.example", number) for number in range(4))
    for entry in (waits, out, closing, done):
        state.learn(entry)
    state.hand_out(out.key)
    state.mark_done(closing.key)
    state.mark_done(done.key)
    state.close(closing)
    link = ("g.example", page("g.example"))
    redo = Redo.from_outlinks("h.example", 9, [("h.example", e) for e in (waits, out, closing, done)] + [link])
    assert redo == Redo(9, (link,), (waits.key, out.key, closing.key, done.key))
    assert state.still(redo) == Redo(9, (link,), (waits.key, out.key, closing.key))
    assert state.still(redo._replace(own=(1,))) is None


def test_the_heirs_mark_waits_for_the_outlinks_as_the_owners_did() -> None:
    village, own, far, near = begun()
    village.visit("a", page(far), page(near))
    village.flush("a")
    village.inbox["c"].clear(), village.inbox["d"].clear()
    village.take("b")
    village.kill("a")
    village.settle()
    village.log.clear()
    assert village.agents["b"].work.next(village.now) is None
    assert village.state("b", own).closing.keys() == {page(own).key}
    village.flush("b")
    marks = {key for _, letter in village.log for delta in letter.deltas for key in delta.done}
    assert page(own).key not in marks
    assert redos(village)[page(own).key] == ("c", [page(far).url, page(near).url]), "b's heir need not fetch it either"


def test_a_done_mark_ends_the_redo() -> None:
    village, own, far, _ = begun()
    village.visit("a", page(far))
    village.flush("a")
    village.take("b")
    assert village.state("b", own).redo
    village.until(lambda: not village.state("b", own).redo)
    assert page(own).key in village.state("b", own).done


def test_no_redo_where_the_mark_may_leave_at_once() -> None:
    village, own, *_ = begun()
    village.visit("a")
    village.flush("a")
    assert redos(village) == {}
    village.take("b")
    assert page(own).key in village.state("b", own).done


def test_a_link_that_came_from_nowhere_is_in_the_redo_of_every_page_that_has_it() -> None:
    """A seed dies with its agent; a page whose redo lacked it would be done without it."""
    village, own, far, _ = begun()
    village.agents["a"].discovery.discover(far, page(far))
    village.visit("a", page(far))
    village.flush("a")
    assert redos(village)[page(own).key] == ("b", [page(far).url])


def test_a_link_of_another_page_is_in_that_pages_redo_only() -> None:
    village, _, far, near = begun()
    village.agents["a"].discovery.discover(near, page(near, 7))
    village.settle()
    village.visit("a", page(far))
    village.visit("a", page(far))
    village.flush("a")
    assert sorted(urls for _, urls in redos(village).values()) == [[], [page(far).url]]


def test_a_page_with_very_many_links_has_no_redo() -> None:
    village, _, far, _ = begun()
    village.visit("a", *(page(far, number) for number in range(MOST_OUTLINKS + 1)))
    village.flush("a")
    assert redos(village) == {}


def test_a_page_whose_links_may_not_be_all_has_no_redo() -> None:
    village, _, far, _ = begun()
    a = village.agents["a"]
    found = a.work.next(village.now)
    assert found is not None
    a.discovery.discover(far, page(far))
    a.work.ended(found[0], found[1].key)
    village.flush("a")
    assert redos(village) == {}


def test_a_state_brought_during_closing_brings_the_entry_and_no_mark() -> None:
    """P5 in a handoff: the newcomer must not take a page for done whose outlinks nobody else has."""
    village = Village("a", "b", "c")
    own, far = ordered("a", "d", "b", "c"), ordered("c", "b", "a", "d")
    village.agents["a"].discovery.discover(own, page(own))
    village.settle()
    village.visit("a", page(far))
    village.inbox["c"].clear()
    village.flush("a")
    village.inbox["c"].clear()
    village.start("d")
    for _ in range(3):  # c takes no mail: the link stays open
        village.turn("a", "b", "d")
    state = village.state("d", own)
    assert page(own).key in state.queued or page(own).key in state.closing
    assert page(own).key not in set(state.told_done())


def test_redo_is_kept_for_what_waits_and_has_a_bound() -> None:
    state = SetState("h.example")
    link = ("g.example", page("g.example"))
    state.keep_redo(Redo(1, (link,)))
    assert not state.redo, "it does not wait here"
    for key in range(MOST_REDO + 5):
        state.learn(Entry(key, f"http://h.example/{key}", 0))
        state.keep_redo(Redo(key, (link,)))
    assert len(state.redo) == MOST_REDO
    state.mark_done(3)
    assert 3 not in state.redo
    state.check_invariants()


def test_others_may_not_know_that_a_closing_page_is_done() -> None:
    state, other = SetState("h.example"), SetState("h.example")
    entry = page("h.example")
    for one in (state, other):
        one.learn(entry)
    state.hand_out(entry.key)
    assert state.finish(entry.key)
    assert state.summary() != other.summary()
    state.close(entry)
    assert state.summary() == other.summary()
    assert list(state.undone()) == [entry] and list(state.told_done()) == []
    state.check_invariants()


GOOD = '[{"host":"h.example","redo":[["00000000000000aa","00000000000000ff",["g.example","00000000000000bb","http://g.example/",1]]]}]'


def fields(body: str) -> dict[str, str]:
    head = {"from": "a", "store": "s", "lane": "state", "seq": "1", "floor": "1", "view": "0" * 16, "enc": "json"}
    return {**head, "body": body}


def test_a_redo_travels() -> None:
    (delta,) = decode(fields(GOOD), "b", 10, 100).deltas
    link = Entry(0xBB, "http://g.example/", 1)
    assert delta.redo == (Redo(0xAA, (("g.example", link),), (0xFF,), "a"),)
    (delta,) = decode(
        fields('[{"host":"h.example","redo":[["00000000000000aa","00000000000000ff00000000000000fe"]]}]'), "b", 10, 100
    ).deltas
    assert delta.redo == (Redo(0xAA, (), (0xFF, 0xFE), "a"),)


@pytest.mark.parametrize(
    "redo",
    [
        "7",
        "[7]",
        "[[]]",
        '[["short"]]',
        '[["00000000000000aa","x"]]',
        '[["00000000000000aa",""]]',
        '[["00000000000000aa","00000000000000ff0"]]',
        '[["00000000000000aa","00000000000000f\u0661"]]',
        '[["00000000000000aa","%s"]]' % ("00000000000000ff" * (MOST_OUTLINKS + 1)),
        '[["00000000000000aa","%s",["g.example","00000000000000bb","http://g.example/",1]]]'
        % ("00000000000000ff" * MOST_OUTLINKS),
        '[["00000000000000aa",[]]]',
        '[["00000000000000aa",["g.example","00000000000000bb"]]]',
        '[["00000000000000aa",["g example","00000000000000bb","http://g.example/",1]]]',
        '[["00000000000000aa",["g.example","00000000000000bb","ftp://g.example/",1]]]',
        '[["00000000000000aa"%s]]' % (',["g.example","00000000000000bb","http://g.example/",1]' * (MOST_OUTLINKS + 1)),
    ],
)
def test_a_malformed_redo_is_refused(redo: str) -> None:
    with pytest.raises(Malformed):
        decode(fields(f'[{{"host":"h.example","redo":{redo}}}]'), "b", 100_000, 100)


def test_entries_that_a_receiver_cannot_take_are_sifted_and_a_redo_with_one_goes_whole() -> None:
    body = '[{"host":"h.example","discovered":[["00000000000000cc","http://h.example/",0]],"done":["00000000000000ee"],'
    body += (
        '"redo":[["00000000000000aa",["g.example","00000000000000bb","http://g.example/",1]],["00000000000000dd"]]}]'
    )
    letter = decode(fields(body), "b", 10, 100)
    assert sift(letter, lambda host, entry: None) == (letter, [])
    rest, refused = sift(letter, lambda host, entry: f"not {host}" if host == "g.example" else None)
    assert [(one.host, one.entry.url, one.reason) for one in refused] == [
        ("g.example", "http://g.example/", "not g.example")
    ]
    (before,), (after,) = letter.deltas, rest.deltas
    assert after == before._replace(redo=(Redo(0xDD, (), by="a"),))
    rest, refused = sift(letter, lambda host, entry: "all")
    assert rest.deltas[0].discovered == () and rest.deltas[0].done == (0xEE,) and len(refused) == 2
