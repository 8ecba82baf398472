"""The sitemap rule: believed where it predicted changes, adaptive elsewhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.policy.recrawl import NEVER, Past, VisitSeen, read_recrawl
from scrapy_ubi.policy.recrawl.sitemap_rule import MOST_JUDGED, Belief, Sitemap, read_belief

HOUR, DAY = 3600, 86_400
NOW = 1_800_000_000
PAST = Past(4, 1, NOW - 2 * DAY, 2 * DAY, 8 * DAY)


def rule() -> Sitemap:
    found = read_recrawl("sitemap(1d, 1h, 30d)")
    assert isinstance(found, Sitemap)
    return found


def test_where_it_is_not_believed_the_rule_is_adaptive() -> None:
    adaptive = read_recrawl("adaptive(1d, 1h, 30d)")
    assert adaptive is not None
    for changed in (True, False):
        assert rule().plan_next(PAST, VisitSeen(NOW, changed)) == adaptive.plan_next(PAST, VisitSeen(NOW, changed))
    assert rule().announced(PAST, NOW - DAY, NOW, believed=False) == NEVER


def test_where_it_is_believed_a_page_waits_for_its_word() -> None:
    plan = rule().plan_next(PAST, VisitSeen(NOW, True, believed=True))
    assert plan.due == NOW + 30 * DAY
    assert plan.past.interval == DAY  # that of adaptive goes on behind it
    assert rule().announced(plan.past, NOW + DAY, NOW + 2 * DAY, believed=True) == NOW + 2 * DAY


def test_what_was_changed_before_the_last_visit_or_tomorrow_is_no_news() -> None:
    assert rule().announced(PAST, PAST.last, NOW, believed=True) == NEVER
    assert rule().announced(PAST, NOW + DAY, NOW, believed=True) == NEVER


def test_a_page_that_is_announced_all_the_time_is_visited_no_more_than_at_its_least_interval() -> None:
    past = PAST._replace(last=NOW - 60)
    assert rule().announced(past, NOW - 1, NOW, believed=True) == past.last + HOUR


def test_a_sitemap_that_predicts_changes_is_believed_after_three() -> None:
    belief = Belief()
    for _ in range(3):
        assert not belief.holds
        belief = belief.judged(PAST, VisitSeen(NOW, True), listed=NOW - HOUR)
    assert belief == Belief(3, 0) and belief.holds
    assert belief.judged(PAST, VisitSeen(NOW, False), listed=PAST.last - DAY) == belief  # no change, and none said
    assert belief.judged(PAST, VisitSeen(NOW, failed=True), listed=NOW) == belief


def test_one_that_always_says_today_is_not_believed() -> None:
    belief = Belief()
    for visit in range(200):  # a change at every third visit
        belief = belief.judged(PAST, VisitSeen(NOW, visit % 3 == 0), listed=NOW)
        assert not belief.holds or visit < 1


def test_one_that_says_nothing_of_changes_is_not_believed_any_more() -> None:
    belief = Belief(8, 0)
    for _ in range(4):
        belief = belief.judged(PAST, VisitSeen(NOW, True), listed=0)
    assert not belief.holds


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=300))
def test_a_belief_is_bounded_and_reads_back(visits: list[tuple[bool, bool]]) -> None:
    belief = Belief()
    for changed, said in visits:
        belief = belief.judged(PAST, VisitSeen(NOW, changed), listed=NOW if said else 0)
    assert sum(belief) <= MOST_JUDGED and read_belief(list(belief)) == belief


beliefs = st.builds(Belief, st.integers(0, MOST_JUDGED), st.integers(0, MOST_JUDGED))


@given(beliefs, beliefs, beliefs)
def test_beliefs_merge_in_any_order(one: Belief, two: Belief, three: Belief) -> None:
    assert one.merged(two) == two.merged(one) and one.merged(one) == one
    assert one.merged(two).merged(three) == one.merged(two.merged(three))


def test_beliefs_from_outside_are_judged() -> None:
    for wrong in (None, "x", [1], [1, -1], [1.5, 0], [True, 0], [MOST_JUDGED + 1, 0], [1, 2, 3]):
        assert read_belief(wrong) == Belief(), wrong
