"""Every hard case is answered as its golden transcript says, and by the rule it names: without that, it goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from scrapy_ubi.protocol.beat import Beat
from scrapy_ubi.protocol.detector import Detector
from scrapy_ubi.protocol.handover import Handover
from scrapy_ubi.protocol.loss_counter import LossCounter
from scrapy_ubi.protocol.membership import Membership
from scrapy_ubi.protocol.outbox import Outbox
from scrapy_ubi.protocol.view_change import Alive, ViewHistory
from tests.simulation.mutations import MUTATIONS
from tests.simulation.transcripts import GOLDEN, SCENES, row, text

HARD_CASES = Path(__file__).parents[2] / "docs" / "explanation" / "hard-cases.md"


@pytest.mark.parametrize("name", SCENES)
def test_transcript(name: str) -> None:
    told = f"read the difference; if it is meant: python -m tests.simulation.transcripts {name} --write"
    assert text(name) == (GOLDEN / f"{name}.txt").read_text(), told


def test_every_transcript_has_a_scene_and_a_line() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(SCENES)
    told = HARD_CASES.read_text()
    assert [name for name in SCENES if row(name) not in told] == [], "python -m tests.simulation.transcripts --list"


# -- mistakes too rarely decisive for the simulator's seeds (mutations.py), which a scene shows at once


def _no_epochs() -> Any:
    def notice(self: Membership) -> bool:
        gap, self._gaps = self.lease.gaps != self._gaps, self.lease.gaps
        return gap

    return patch.object(Membership, "notice_gaps", notice)


def _only_the_last_complete_view_counts() -> Any:
    free = ViewHistory.may_fetch

    def forgetful(self: ViewHistory, host: str, alive: Alive) -> bool:
        with patch.object(self, "entered", self.entered[-1:]):
            return free(self, host, alive)

    return patch.object(ViewHistory, "may_fetch", forgetful)


def _nothing_doubted_after_a_fence() -> Any:
    return patch.object(ViewHistory, "doubt", lambda self, view: None)


def _deaths_not_told_on() -> Any:
    return patch.object(Detector, "dead", property(lambda self: ()))


def _never_lossy() -> Any:
    return patch.object(LossCounter, "lossy", property(lambda self: False, lambda self, value: None), create=True)


def _many_pending_hosts_not_told() -> Any:
    return patch.object(Beat, "has_brought", lambda self, digest: self.settled == digest)


def _leavers_drop_where_too_few_are_left() -> Any:
    drop = Handover._drop

    def dropped(self: Handover, host: str) -> None:
        with patch.object(self.view_history, "replication", 0):
            drop(self, host)

    return patch.object(Handover, "_drop", dropped)


def _acknowledged_for_ever() -> Any:
    return patch.object(Outbox, "take_thin", lambda self: [])


def _acknowledged_before_all_know_how_few() -> Any:
    return patch.object(ViewHistory, "few_unheard", False)


def _an_owner_is_the_same_in_every_life() -> Any:
    return patch.object(ViewHistory, "is_former", lambda self, agent, digest: False)


WITHOUT: list[tuple[str, Callable[[], Any]]] = [
    ("acknowledged_before_the_finder_knew_how_few", _acknowledged_before_all_know_how_few),
    ("acknowledged_by_the_only_one_left", _acknowledged_for_ever),
    ("all_killed", MUTATIONS["restored_done_marks_early"]),
    ("all_killed", MUTATIONS["restored_outbox_thrown_away"]),
    ("all_killed", MUTATIONS["lane_numbers_not_restored"]),
    ("all_stood_still", MUTATIONS["ages_kept_after_own_pause"]),
    ("came_back_between_two_beats", MUTATIONS["back_from_a_fence_as_sure_as_before"]),
    ("crashed_returns_without_its_disk", MUTATIONS["nobody_answers_for_the_dead"]),
    ("crashed_returns_with_its_disk", MUTATIONS["copies_not_dirty_after_restart"]),
    ("death_is_told_on", _deaths_not_told_on),
    ("death_known_to_one_only", MUTATIONS["mail_of_the_dead_forgotten"]),
    ("declared_dead_beats_again", MUTATIONS["dead_may_come_back"]),
    ("done_mark_stays_in_a_handoff", MUTATIONS["done_marks_in_handoffs_early"]),
    ("fence_seen_too_late", MUTATIONS["fence_ends_by_itself"]),
    ("fence_seen_too_late", _no_epochs),
    ("leaver_keeps_its_copies", MUTATIONS["leaver_gone_before_the_others_are_settled"]),
    ("leaver_is_killed", MUTATIONS["pending_hosts_not_listed"]),
    ("leaver_still_loads", MUTATIONS["pending_hosts_not_listed"]),
    ("leaver_outlives_its_heir", _leavers_drop_where_too_few_are_left),
    ("letter_of_a_former_life", _an_owner_is_the_same_in_every_life),
    ("more_pending_than_a_beat_lists", _many_pending_hosts_not_told),
    ("newcomer_was_alone", _nothing_doubted_after_a_fence),
    ("one_comes_back_later", MUTATIONS["absent_peers_not_missed"]),
    ("old_beats_say_passive", MUTATIONS["one_wave_of_quiescence"]),
    ("owner_dies_before_its_successor_knows", MUTATIONS["acknowledged_before_successors"]),
    ("owner_sender_and_redo_are_lost", MUTATIONS["done_mark_early"]),
    ("owner_dies_in_handoff", MUTATIONS["no_wait_for_settled"]),
    ("paused_owner_wakes_beside_its_heir", MUTATIONS["no_lease_at_dispatch"]),
    ("pending_load_ends", MUTATIONS["done_mark_early"]),
    ("pending_load_ends", MUTATIONS["pending_hosts_not_listed"]),
    ("redis_away", MUTATIONS["ages_kept_after_own_pause"]),
    ("redis_forgets_letters_and_acks", MUTATIONS["resent_never"]),
    ("settled_says_handed_on", MUTATIONS["no_wait_for_settled"]),
    ("started_as_redis_forgot", MUTATIONS["sure_at_once"]),
    ("two_join_at_once", MUTATIONS["no_wait_for_settled"]),
    ("two_of_four_come_back_to_the_end", _never_lossy),
    ("view_came_and_went", _only_the_last_complete_view_counts),
    ("windows_full_both_ways", MUTATIONS["one_window_for_both_lanes"]),
    ("word_of_one_that_was_killed", MUTATIONS["word_of_the_killed_stands"]),
    ("zombie", MUTATIONS["dead_may_come_back"]),
]


@pytest.mark.parametrize(("name", "mistake"), WITHOUT)
def test_a_hard_case_goes_wrong_without_its_rule(name: str, mistake: Callable[[], Any]) -> None:
    with mistake(), pytest.raises(AssertionError):
        SCENES[name]()
