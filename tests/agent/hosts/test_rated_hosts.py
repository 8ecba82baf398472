"""What waits for a rate of the group, and how it is said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from scrapy_ubi.agent.hosts.rated_hosts import RatedHosts
from scrapy_ubi.agent.profile.idle_reason import RATE, reason, sentence
from scrapy_ubi.protocol.memory_state import SetState
from scrapy_ubi.protocol.rates import GroupRates
from scrapy_ubi.settings.rates import read_rates


def test_a_host_beyond_its_rate_is_put_off_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    put_off: list[float] = []
    notes = cast("Any", SimpleNamespace(wait_until=lambda state, turn: put_off.append(turn)))
    hosts = RatedHosts(read_rates({"h.example": "1/m"}).named, notes, lambda: 5.0)
    hosts.rates = GroupRates(
        "a", hosts.named, 10.0, 15.0, lambda: "1", lambda name: ("a", "1"), lambda name, now: True, lambda: True
    )
    hosts.rates.fresh = True
    hosts.rates.check_lending(5.0)
    state, shard = SetState("h.example"), SetState("h.example#3")
    hosts.on_turn(state, 5.0)
    assert not put_off and not hosts.start_load(hosts.of_host(state.host), state.host)
    assert hosts.room_for("h.example#3", 5.0) == (60.0, 0) and hosts.room_for("other.example", 5.0) == (0.0, 0)
    hosts.on_turn(shard, 5.0)
    hosts.on_turn(SetState("other.example"), 5.0)
    assert len(put_off) == 1 and put_off[0] > 5.0
    assert hosts.why("h.example#3", 5.0) == "h.example: 1/m" and not hosts.why("h.example", 5.0)
    assert caplog.text.count("Something waits for the rate of h.example (UBI_RATES: 1/m)") == 1
    said = sentence(reason(RATE, ("h.example",), more="h.example: 1/m"), 0.0)
    assert said == "Nothing is fetched: h.example: waits for the rate that the group keeps (UBI_RATES, h.example: 1/m)."
