"""The timeline of an agent: thinned with age, bounded, and judged line by line where it is read."""

from __future__ import annotations

import json
import random
import time
from math import inf

import pytest

from scrapy_ubi.agent.report import timeline
from scrapy_ubi.agent.report.timeline import DAY, HOUR, Event, Sample, Timeline, line_of, read_line, thinned
from scrapy_ubi.ground.untrusted.checks import Malformed

NOW = 1_800_000_000


def every_ten_seconds(span: int) -> Timeline:
    begin = NOW - span
    return Timeline(Sample(at, pages=at - begin, queued=at % 97) for at in range(begin, NOW, 10))


def test_the_last_hour_is_as_it_was_taken() -> None:
    line = every_ten_seconds(3000)
    before = line.samples[:]
    line.thin(NOW)
    assert line.samples == before


def test_of_a_step_the_last_stands_for_all_and_the_longest_stays() -> None:
    minute = (NOW - 2 * HOUR) // 60 * 60
    samples = [Sample(minute + at, pages=at, lag=lag, least=least) for at, lag, least in
               ((0, 0.1, 0.0), (10, 2.5, 1.5), (20, 0.2, 1.2), (50, 0.3, 0.0))]  # fmt: skip
    assert list(thinned(samples, NOW)) == [Sample(minute + 50, pages=50, lag=2.5, least=1.2)]


def test_thinning_again_changes_nothing() -> None:
    line = every_ten_seconds(3 * DAY)
    line.thin(NOW)
    once = line.samples[:]
    line.thin(NOW)
    assert line.samples == once
    assert len(once) < 360 + 24 * 60 + 2 * 144 + 10
    assert once[-1].pages == 3 * DAY - 10  # the newest is never thinned away


def test_it_is_bounded_however_long_a_crawl_is() -> None:
    line = Timeline(Sample(at) for at in range(NOW - 5 * 365 * DAY, NOW, 3600))
    line.thin(NOW)
    assert len(line.samples) == timeline.MOST_SAMPLES
    assert line.samples[-1].time > NOW - 2 * HOUR
    for number in range(2 * timeline.MOST_EVENTS):
        line.add(Event(NOW + number, "joined", f"a{number}"))
    assert len(line.events) == timeline.MOST_EVENTS
    assert line.events[-1].who == f"a{2 * timeline.MOST_EVENTS - 1}"


@pytest.mark.parametrize("most", [1, 2, 7, 360])
def test_no_more_rows_are_given_than_asked_for(most: int) -> None:
    line = every_ten_seconds(9000)
    step, rows = line.since(0, most)
    assert len(rows) <= most
    assert rows[-1] == line.samples[-1]
    assert (step == 0) == (len(line.samples) <= most)
    if most > 2:
        assert len(rows) > most // 2  # and hardly fewer


def test_only_what_is_late_enough_is_given() -> None:
    step, rows = every_ten_seconds(9000).since(NOW - 100, 360)
    assert (step, [row.time - NOW for row in rows]) == (0, list(range(-100, 0, 10)))


def test_lines_say_what_is_not_at_its_default_and_are_read_back() -> None:
    sample = Sample(NOW, pages=3, lag=0.25, state="crawling")
    assert json.loads(line_of(sample)) == {"time": NOW, "pages": 3, "lag": 0.25, "state": "crawling"}
    line = Timeline([sample, Sample(NOW + 10)], [Event(NOW + 5, "dead", "a2"), Event(NOW, "settled", "", "2 agents")])
    again, bad = Timeline.read(line.lines())
    assert (again.samples, again.events, bad) == (line.samples, line.events, 0)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", "7", '{"pages":3}', '{"time":-1}', '{"time":1.5}', '{"time":true}'),
        *('{"time":1,"pages":-3}', '{"time":1,"pages":"3"}', '{"time":1,"lag":NaN}', '{"time":1,"lag":-1}'),
        *('{"time":1,"state":"<b>"}', '{"time":1,"state":7}', '{"time":1,"what":"exploded"}'),
        *('{"time":1,"what":"dead","who":7}', '{"time":1,"what":["dead"]}', '{"time":1e400}'),
        '{"time":1,"what":"dead","who":"' + 65 * "a" + '"}',
        '{"time":1,"why":"' + 5000 * "a" + '"}',
        '{"time":99999999999999999999}',
        "[" * 3000,
    ],
)
def test_a_line_that_does_not_hold_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        read_line(text)


def test_what_a_newer_agent_says_beyond_is_ignored() -> None:
    assert read_line('{"time":5,"pages":1,"colour":"red"}') == Sample(5, pages=1)


def test_random_bytes_never_stop_the_reading() -> None:
    seed = int(time.time())
    print(f"seed {seed}")
    chance = random.Random(seed)
    whole = [line_of(Sample(NOW + at, pages=at)).encode() for at in range(200)]
    for line in whole:
        broken = bytearray(line)
        for _ in range(chance.randrange(1, 4)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        read, bad = Timeline.read([bytes(broken), line], now=inf)
        assert len(read) + bad == 2
        assert len(read) >= 1


def test_what_is_later_than_now_is_of_a_clock_that_was_wrong() -> None:
    read, bad = Timeline.read([line_of(Sample(NOW + DAY)), line_of(Sample(NOW))], now=NOW)
    assert (read.samples, bad) == ([Sample(NOW)], 0)
