"""What an owner does with what it learns: which entries are joined, on whose word, and what is given back."""

from __future__ import annotations

from itertools import count

import pytest

from scrapy_ubi.adapter.components import truncate
from scrapy_ubi.adapter.requests.check import NONCE
from scrapy_ubi.adapter.requests.identity import RequestKeys
from scrapy_ubi.agent.hosts import learned_forms
from scrapy_ubi.agent.hosts.host_notes import HostNotes
from scrapy_ubi.agent.hosts.learned_forms import LEARNED, MARK, NOT_FOUND, SAMPLE, LearnedForms, content_of
from scrapy_ubi.agent.profile.merged_urls import MergedUrls
from scrapy_ubi.frontier.memory import MemoryFrontier
from scrapy_ubi.protocol.agent import Agent
from scrapy_ubi.protocol.config import Config
from scrapy_ubi.protocol.host import Entry, HostState
from scrapy_ubi.settings import UbiSettings
from scrapy_ubi.urls import normal_form, url_key
from scrapy_ubi.urls.host_rules import read_rules
from scrapy_ubi.urls.learned import AGREE, MOST_SITES

HOST = "h.example"
KEYS = RequestKeys(UbiSettings())


def entry(url: str) -> Entry:
    return Entry(url_key("GET", normal_form(url) or ""), url, 0)


def unsampled(pattern: str) -> str:
    """A URL of this pattern that is no sample."""
    return next(url for number in count() if entry(url := pattern.format(number)).key % SAMPLE)


def sampled(pattern: str) -> str:
    """A URL of this pattern that is one."""
    return next(url for number in count() if not entry(url := pattern.format(number)).key % SAMPLE)


class House:
    """An owner that fetches what it is told to, from one host."""

    def __init__(self, normalise: str = "learned", **settings: object) -> None:
        wanted = UbiSettings(normalise=normalise, **settings)  # type: ignore[arg-type]
        self.agent = Agent("a", "5" * 8, Config(replication=0), MemoryFrontier(), lambda: "1" * 8, 0.0)
        self.agent.sure()
        self.hosts = HostNotes(lambda: 0.0, lambda: 0.0)
        self.hosts.work_for(self.agent, self.agent.frontier)
        self.tally = MergedUrls()
        self.again: list[Entry] = []
        self.host = HOST
        self.learner = LearnedForms(wanted, RequestKeys(wanted), lambda host, again: self.again.append(again))
        self.learner.work_for(self.agent, self.hosts, self.tally)

    @property
    def state(self) -> HostState:
        return self.agent.frontier.add(self.host, ())[0]

    @property
    def note(self) -> object:
        return self.hosts.get(self.state, LEARNED)

    def begin(self, url: str) -> Entry | None:
        """Hand a URL out; None when it was joined."""
        one = entry(url)
        state = self.agent.frontier.add(self.host, (one,))[0]
        state.hand_out(one.key)  # type: ignore[attr-defined]
        state.open_work += 1
        self.agent.work.out += 1
        if self.learner.joins(state, one):
            self.agent.work.ended(state, one.key, [])
            return None
        return one

    def end(self, one: Entry, content: int | None) -> None:
        self.agent.work.ended(self.state, one.key, [])
        self.learner.end_visit(self.state, one, content)
        self.state.check_invariants()

    def fetch(self, url: str, content: int | None) -> bool:
        """Whether the URL was fetched, with this content."""
        one = self.begin(url)
        if one is not None:
            self.end(one, content)
        return one is not None

    def learn(self, step: str = "path-case", pairs: int = AGREE) -> None:
        spelling = {"path-case": "http://h.example/L{}", "index": "http://h.example/l{}/index.html"}[step]
        plain = {"path-case": "http://h.example/l{}", "index": "http://h.example/l{}/"}[step]
        for number in range(pairs):
            assert self.fetch(plain.format(number), number) and self.fetch(spelling.format(number), number)


@pytest.fixture
def house() -> House:
    return House()


def test_a_step_is_on_after_enough_pairs_and_joins_what_comes_then(house: House) -> None:
    house.learn(pairs=AGREE - 1)
    assert house.note == {HOST: {"path-case": [*range(AGREE - 1)]}}
    assert house.fetch("http://h.example/x", 100) and house.fetch("http://h.example/X", 100)
    assert house.note == {HOST: {"path-case": 1}}
    url = unsampled("http://h.example/Y{}")
    assert house.fetch(url.lower(), 7) and not house.fetch(url, 7)
    assert house.tally.counts == {"path-case": 1}
    assert house.tally.examples == {"path-case": [(url, url.lower())]}
    assert house.learner.counted == {"agreed": AGREE, "on": 1}


def test_what_was_joined_with_a_page_that_is_a_redirect_to_it_is_fetched_after_all(house: House) -> None:
    """Between the end of a load and word of its redirect the host is free: its next page may be handed out."""
    house.learn("index")
    spelling = unsampled("http://h.example/z{}/index.html")
    target = spelling.removesuffix("index.html")
    out = house.begin(spelling)
    assert out is not None and house.begin(target) is None and not house.again
    house.learner.moved(house.state, out, target)
    assert [again.url for again in house.again] == [target]
    house.end(out, None)
    assert len(house.again) == 1


def test_a_disagreement_is_for_good(house: House) -> None:
    house.learn(pairs=1)
    assert house.fetch("http://h.example/x", 100) and house.fetch("http://h.example/X", 101)
    house.learn(pairs=0)
    for number in range(2 * AGREE):
        assert house.fetch(f"http://h.example/y{number}", number) and house.fetch(f"http://h.example/Y{number}", number)
    assert house.note == {HOST: {"path-case": 0}}
    assert house.learner.counted == {"agreed": 1, "disagreed": 1, "off": 1}


def test_not_found_beside_found_disagrees_and_beside_itself_says_nothing(house: House) -> None:
    for number in range(AGREE):
        house.fetch(f"http://h.example/x{number}", NOT_FOUND)
        house.fetch(f"http://h.example/X{number}", NOT_FOUND)
    assert house.note is None
    house.fetch("http://h.example/y", NOT_FOUND)
    house.fetch("http://h.example/Y", 1)
    assert house.note == {HOST: {"path-case": 0}}


def test_pages_that_are_all_alike_teach_nothing(house: House) -> None:
    for number in range(2 * AGREE):
        house.fetch(f"http://h.example/x{number}", 1)
        house.fetch(f"http://h.example/X{number}", 1)
    assert house.note == {HOST: {"path-case": [1]}}


def test_what_waits_for_the_page_fetched_first_is_joined_with_it_under_any_spelling(house: House) -> None:
    house.learn()
    assert house.fetch("http://h.example/Zzz", 1), "this one stands for its class"
    assert house.state.is_done(url_key("GET", "http://h.example/zzz", b"", MARK))
    for url in ("http://h.example/zzZ", "http://h.example/zzz", "http://h.example/ZZZ"):
        assert house.fetch(url, 1) == (entry(url).key % SAMPLE == 0)
    assert house.tally.counts["path-case"] >= 2


def test_while_a_page_is_out_its_spellings_are_joined_and_come_back_if_it_fails(house: House) -> None:
    house.learn()
    url = unsampled("http://h.example/Q{}")
    other = unsampled("http://h.example/R{}")
    out, another = house.begin(url.lower()), house.begin(other.lower())
    assert out is not None and another is not None
    assert house.begin(url) is None and house.begin(other) is None
    house.end(out, 1)
    assert not house.again
    house.end(another, None)
    assert [again.url for again in house.again] == [other]
    assert house.again[0].key != entry(other).key and NONCE in house.again[0].request


def test_they_come_back_though_more_was_learned_meanwhile(house: House) -> None:
    house.learn()
    url = unsampled("http://h.example/Q{}/index.html")
    out = house.begin(url.lower())
    assert out is not None and house.begin(url) is None
    house.learn("index")
    house.end(out, None)
    assert [again.url for again in house.again] == [url]
    assert not house.learner._out


def test_what_was_put_back_stands_for_nothing(house: House) -> None:
    house.learn()
    url = unsampled("http://h.example/Q{}")
    out = house.begin(url.lower())
    assert out is not None
    house.agent.work.put_back(house.state, out.key)
    house.learner.put_back(out)
    assert house.begin(url) is not None


def test_nothing_is_joined_with_a_page_of_which_no_more_is_known_than_that_it_is_done(house: House) -> None:
    house.learn()
    for number in range(3):
        url = f"http://h.example/Q{number}"
        house.agent.frontier.add_done(house.state, [entry(url.lower()).key])
        assert house.fetch(url, 1)


def test_nothing_is_joined_with_a_page_that_was_not_found(house: House) -> None:
    house.learn()
    url = unsampled("http://h.example/Q{}")
    assert house.fetch(url.lower(), NOT_FOUND) and house.fetch(url, NOT_FOUND)


def test_a_sample_that_differs_switches_off_and_gives_back(house: House) -> None:
    house.learn()
    url = unsampled("http://h.example/Q{}")
    assert house.fetch(url.lower(), 1) and not house.fetch(url, 2)
    sample = sampled("http://h.example/S{}")
    assert house.fetch(sample.lower(), 3) and house.fetch(sample, 4)
    assert house.note == {HOST: {"path-case": 0}}
    assert [again.url for again in house.again] == [url]
    assert house.learner.counted["off"] == house.learner.counted["unjoined"] == house.learner.counted["sampled"] == 1


def test_a_sample_of_several_steps_that_differs_switches_them_all_off(house: House) -> None:
    house.learn()
    house.learn("index")
    sample = sampled("http://h.example/S{}/index.html")
    plain = sample.lower().removesuffix("index.html")
    assert house.fetch(plain, 3) and house.fetch(sample, 4)
    assert house.note == {HOST: {"path-case": 0, "index": 0}}


def test_an_heir_goes_on_with_what_was_learned_and_marked(house: House) -> None:
    """The note and the done keys are all that travels."""
    house.learn()
    house.fetch("http://h.example/Zzz", 1)
    heir = House()
    heir.agent.frontier.add_done(heir.state, house.state.told_done())
    heir.agent.frontier.add_done(heir.state, house.state.closing)
    heir.hosts.put(heir.state, LEARNED, house.note)
    for url in ("http://h.example/zzZ", "http://h.example/zzz", "http://h.example/ZZZ"):
        assert heir.fetch(url, 1) == (entry(url).key % SAMPLE == 0)


def test_requests_that_are_not_plain_are_never_judged(house: House) -> None:
    house.learn()
    url = unsampled("http://h.example/Q{}")
    house.fetch(url.lower(), 1)
    posted = Entry(url_key("POST", url, b"a"), url, 0, 0, '{"method":"POST"}')
    assert not house.learner.joins(house.state, posted)
    house.learner.end_visit(house.state, posted, 5)


def test_www_is_learned_where_both_names_are_one_host() -> None:
    def fetch_pairs(house: House) -> None:
        for number in range(AGREE):
            assert house.fetch(f"http://h.example/{number}", number)
            assert house.fetch(f"http://www.h.example/{number}", number)

    rules = read_rules(["startsWith(www.) ="])
    house = House(host_rules=rules)
    fetch_pairs(house)
    assert house.note == {HOST: {"www": 1}}
    url = unsampled("http://www.h.example/x{}")
    assert house.fetch(url.replace("www.", ""), 1) and not house.fetch(url, 1)
    house = House()  # www.h.example is another host: what is there is not known here
    house.host = "www.h.example"
    fetch_pairs(house)
    assert house.note is None


def test_a_step_that_is_taken_away_is_not_tried() -> None:
    house = House("learned -path-case")
    house.learn()
    assert house.note is None


def test_only_so_many_sites_of_one_partition_key_are_learned() -> None:
    house = House(partition="domain")
    for number in range(MOST_SITES + 2):
        for path in "ab":
            house.fetch(f"http://n{number}.h.example/{path}", 1)
            house.fetch(f"http://n{number}.h.example/{path.upper()}", 1)
    assert isinstance(house.note, dict) and len(house.note) == MOST_SITES


def test_what_is_remembered_is_bounded(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned_forms, "MOST_PAGES", 10)
    monkeypatch.setattr(learned_forms, "MOST_JOINED", 5)
    house.learn()
    for number in range(60):
        house.fetch(f"http://h.example/q{number}", number)
        house.fetch(f"http://h.example/Q{number}", number)
    pages, joined = house.learner.kept
    assert pages == 10 and joined <= 5


def test_a_note_of_another_agent_that_does_not_hold_is_as_none(house: House) -> None:
    house.fetch("http://h.example/q", 1)
    house.hosts.put(house.state, LEARNED, {HOST: {"path-case": "on"}})
    assert house.fetch("http://h.example/Q", 1)
    assert house.note == {HOST: {"path-case": [1]}}


def test_contents() -> None:
    assert truncate.FLAG in learned_forms.CUT
    assert content_of(200, b"a") == content_of(200, b"a") != content_of(200, b"b")
    assert content_of(404, b"a") == content_of(410, b"b") == NOT_FOUND
    assert content_of(503, b"a") is None and content_of(301, b"") is None
    assert KEYS.normal_form("http://h.example/A#b") == "http://h.example/A"
