"""Letters and answers as text: what is written is read back, and everything else is refused with a reason."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_ubi.ground.untrusted.checks import Malformed
from scrapy_ubi.protocol import request_table, wire
from scrapy_ubi.protocol.answer import Outcome, read_answer
from scrapy_ubi.protocol.host import Entry, Redo, Summary
from scrapy_ubi.protocol.lane import DISCOVERY, STATE, Bounds, Lane, LaneIn, Letter
from scrapy_ubi.protocol.received import Delta, Header
from scrapy_ubi.protocol.records import Record
from scrapy_ubi.protocol.wire import decode, decode_header, encode
from scrapy_ubi.transport.wire_text import encode as to_bytes

KEY, VIEW = "0123456789abcdef", "00000000000000ff"
MOST, LONGEST = 100, 200
EXAMPLES = 50  # of each law, in every run: what one run does not find another will
BOUNDS = Bounds(window=8, records=500, size=150_000, resend=5.0)


def made(records: list[Record], kind: str = DISCOVERY, sender: str = "a") -> dict[str, str]:
    """The fields of a letter with these records."""
    lane = Lane("store", "b", kind, "01234567")
    letter = Letter(lane.next_seq, VIEW, [])
    for record in records:
        letter.add(record, BOUNDS)
    return encode(sender, lane, "store", letter)


def travelled(fields: dict[str, str]) -> dict[str, str]:
    """What becomes of fields on their way through Redis."""
    return {name: to_bytes(value).decode() for name, value in fields.items()}


def fields(value: Any = (), **rest: str) -> dict[str, str]:
    """A letter by hand: its body as a value, or any field replaced."""
    good = {
        "from": "a",
        "store": "0badcafe",
        "lane": DISCOVERY,
        "seq": "7",
        "floor": "5",
        "n": "1",
        "view": VIEW,
        "enc": "json",
        "body": json.dumps(value),
    }
    return {**good, **rest}


def read(letter: dict[str, str]) -> Any:
    return decode(letter, "b", MOST, LONGEST)


# -- round trips

keys = st.integers(0, 2**64 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
hosts = st.sampled_from(["h1.example", "h2.example:8080", "bücher.example", "[::1]"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
requests = st.sampled_from(["", '{"a":1}', '{"method":"POST"}']) | st.dictionaries(texts, json_values, max_size=3).map(
    lambda value: json.dumps(value, separators=(",", ":"))  # as codec.py writes it
)
entries = st.builds(
    Entry,
    key=keys,
    url=st.tuples(st.sampled_from(["http://", "https://", "HTTP://", " http://"]), texts).map("".join),
    depth=st.integers(0, 10**9 - 1),
    priority=st.just(0) | st.integers(-(10**12), 10**12),
    request=requests,
)
summaries = st.builds(Summary, st.integers(0, 2**40), keys, st.integers(0, 2**40), keys)


@st.composite
def records(draw: st.DrawFn) -> Record:
    host, flush = draw(hosts), draw(st.integers(0, 9))
    kind = draw(st.sampled_from(["entry", "done", "offer", "redo"]))
    if kind == "entry":
        return Record(host, flush, entry=draw(entries))
    if kind == "done":
        return Record(host, flush, done=draw(keys))
    if kind == "redo":
        outlinks = tuple(draw(st.lists(st.tuples(hosts, entries), max_size=3)))
        return Record(host, flush, redo=Redo(draw(keys), outlinks, tuple(draw(st.lists(keys, max_size=3)))))
    return Record(host, flush, offer=draw(summaries))


@settings(max_examples=EXAMPLES)
@given(st.lists(records(), max_size=12), st.sampled_from([DISCOVERY, STATE]))
def test_what_is_written_is_read_back(told: list[Record], kind: str) -> None:
    letter = read(travelled(made(told, kind)))
    assert (letter.sender, letter.lane, letter.kind) == ("a", f"store/b/{kind}", kind)
    assert (letter.seq, letter.floor, letter.view) == (1, 1, VIEW)
    assert letter.deltas == tuple(
        Delta(
            host,
            tuple(r.entry for r in told if r.host == host and r.entry is not None),
            tuple(r.done for r in told if r.host == host and r.done is not None),
            next((r.offer for r in reversed(told) if r.host == host and r.offer is not None), None),
            tuple(r.redo._replace(by="a") for r in told if r.host == host and r.redo is not None),
        )
        for host in dict.fromkeys(r.host for r in told)
    )


@settings(max_examples=EXAMPLES)
@given(st.lists(records(), max_size=12))
def test_a_letter_is_text_that_a_person_can_read(told: list[Record]) -> None:
    letter = made(told)
    assert list(letter) == ["from", "store", "lane", "seq", "floor", "n", "view", "enc", "body"]
    assert letter["n"] == str(len(told))
    body = json.loads(letter["body"])
    assert [delta["host"] for delta in body] == list(dict.fromkeys(r.host for r in told))


@settings(max_examples=EXAMPLES)
@given(st.lists(records(), max_size=12))
def test_a_body_is_at_most_six_bytes_for_a_character_of_its_size(told: list[Record]) -> None:
    """Whoever bounds the bytes of a letter divides them by six (node/config.LETTER_BYTES_A_CHARACTER)."""
    letter = Letter(1, VIEW, [])
    for record in told:
        letter.add(record, BOUNDS)
    assert len(to_bytes(made(told)["body"])) <= 6 * letter.size + 2


ODD = [None, True, 3, -1, 2.0, 10**9, "", KEY, KEY.upper(), KEY[1:], f" {KEY}", f"{KEY}\n", "٠" * 16, [KEY]]


@settings(max_examples=4 * EXAMPLES)
@given(
    st.sampled_from(ODD) | keys.map("{:016x}".format),
    st.sampled_from(
        [*ODD, "http://h/", "https://h/a", "HTTP://h/", " http://h/", "ftp://h/", "http://" + "a" * LONGEST]
    ),
    st.sampled_from(ODD) | st.integers(0, 5),
)
def test_what_is_an_entry_at_one_look_is_one_by_all_questions(key: Any, url: Any, depth: Any) -> None:
    """All are asked of an entry that says its priority."""

    def found(row: list[Any], redone: bool) -> Any:
        told = {"redo": [[KEY, ["h", *row]]]} if redone else {"discovered": [row]}
        try:
            return read(fields([{"host": "h", **told}])).deltas
        except Malformed as refusal:
            return str(refusal)

    for redone in (False, True):
        assert found([key, url, depth], redone) == found([key, url, depth, 0], redone)


def test_a_letter_by_hand() -> None:
    told = [
        Record("h1.example", 1, entry=Entry(255, "http://h1.example/a", 3)),
        Record("h2.example", 1, done=254),
        Record("h1.example", 1, entry=Entry(16, "http://h1.example/b", 0, -5)),
        Record("h1.example", 1, entry=Entry(17, "http://h1.example/c", 0, 0, '{"method":"POST"}')),
        Record("h2.example", 1, offer=Summary(3, 15, 2, 1)),
    ]
    assert json.loads(made(told)["body"]) == [
        {
            "host": "h1.example",
            "discovered": [
                ["00000000000000ff", "http://h1.example/a", 3],
                ["0000000000000010", "http://h1.example/b", 0, -5],
                ["0000000000000011", "http://h1.example/c", 0, 0, {"method": "POST"}],
            ],
        },
        {"host": "h2.example", "done": ["00000000000000fe"], "offer": [3, "000000000000000f", 2, "0000000000000001"]},
    ]


def test_entries_that_differ_in_key_and_url_only_are_said_together() -> None:
    def of(number: int, *rest: Any) -> Record:
        return Record("h.example", 1, entry=Entry(number, f"http://h.example/{number}", *rest))

    told = [*(of(n, 2) for n in (1, 2, 3)), of(4, 2, 1), of(5, 2), of(6, 2)]
    told += [of(n, 2, 0, '{"method":"PUT"}') for n in (7, 8, 9)] + [of(n, 3, 1) for n in (10, 11, 12)]

    def key(*numbers: int) -> str:
        return "".join(f"{number:016x}" for number in numbers)

    assert json.loads(made(told)["body"])[0]["discovered"] == [
        [key(1, 2, 3), ["http://h.example/1", "http://h.example/2", "http://h.example/3"], 2],
        [key(4), "http://h.example/4", 2, 1],
        [key(5), "http://h.example/5", 2],
        [key(6), "http://h.example/6", 2],
        [key(7, 8, 9), ["http://h.example/7", "http://h.example/8", "http://h.example/9"], 2, 0, {"method": "PUT"}],
        [key(10, 11, 12), ["http://h.example/10", "http://h.example/11", "http://h.example/12"], 3, 1],
    ]
    assert read(travelled(made(told))).deltas[0].discovered == tuple(record.entry for record in told)


def test_a_request_too_long_to_be_said_for_many_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_table, "MOST_REPEATED", 40)
    told = [Record("h", 1, entry=Entry(n, f"http://h/{n}", 0, 0, '{"meta":{"a":"bcde"}}')) for n in (1, 2, 3)]
    found = json.loads(made(told)["body"])[0]["discovered"]
    assert [row[1] for row in found] == ["http://h/1", "http://h/2", "http://h/3"]
    assert read(made(told)).deltas[0].discovered == tuple(record.entry for record in told)
    together = [KEY * 3, ["http://h/"] * 3, 0, 0, {"meta": {"a": "bcde"}}]
    with pytest.raises(Malformed, match="repeated to more than 40"):
        read(fields([{"host": "h", "discovered": [together]}]))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ([KEY * 2, ["http://h/"], 1], "as many keys as URLs"),
        ([KEY, [], 1], "as many keys as URLs"),
        (["", [], 1], "look like keys"),
        ([[KEY], ["http://h/"], 1], "look like keys"),
        ([KEY[1:] + "g", ["http://h/"], 1], "look like keys"),
        ([KEY * 2, ["http://h/", 1], 1], "sensible length"),
        ([KEY * 2, ["http://h/", ""], 1], "sensible length"),
        ([KEY * 2, ["http://h/", "http://h/" + "a" * LONGEST], 1], "sensible length"),
        ([KEY * 2, ["http://h/", "file:///etc/passwd"], 1], "neither http nor https"),
        ([KEY * 2, ["http://h/", ["http://h/"]], 1], "sensible length"),
        ([KEY, ["http://h/"]], "3 to 5"),
        ([KEY, ["http://h/"], 1, 0, {}, 1], "3 to 5"),
        ([KEY, ["http://h/"], -1], "in bounds"),
        ([KEY, ["http://h/"], 1, 0, 0], "no request before it"),
    ],
)
def test_entries_said_together_that_do_not_hold_are_malformed(row: list[Any], reason: str) -> None:
    with pytest.raises(Malformed, match=reason):
        read(fields([{"host": "h", "discovered": [row]}]))


def test_a_url_written_oddly_is_taken_among_others() -> None:
    row = [KEY * 3, ["http://h/", " HTTPS://h/", "http://h/\nx"], 1]
    (delta,) = read(fields([{"host": "h", "discovered": [row]}])).deltas
    assert [entry.url for entry in delta.discovered] == row[1]


def test_an_outlink_of_a_redo_is_one_entry() -> None:
    with pytest.raises(Malformed):
        read(fields([{"host": "h", "redo": [[KEY, ["g", KEY, ["http://g/"], 1]]]}]))


@pytest.mark.parametrize("url", ["http://h1.example/\ud800", "http://h1.example/\\\udfff", "http://h1.example/\x00\n"])
def test_odd_characters_of_a_url_arrive(url: str) -> None:
    """A page may hold half an escape in its JSON; it must not stop the mail."""
    letter = read(travelled(made([Record("h1.example", 1, entry=Entry(1, url, 0))])))
    assert letter.deltas[0].discovered[0].url == url


def test_a_letter_without_records_is_one() -> None:
    assert read(made([])).deltas == ()


def test_floor_of_the_lane_travels_with_each_letter() -> None:
    lane = Lane("store", "b", STATE, "01234567")
    for number in range(3):
        lane.put(Record("h", 1, done=number))
    letters = lane.post(0.0, VIEW, BOUNDS._replace(records=1))
    lane.settle(1)
    again = [read(encode("a", lane, "store", letter)) for letter in letters[1:]]
    assert [(letter.seq, letter.floor) for letter in again] == [(2, 2), (3, 2)]


# -- what is refused


def entry(*change: Any) -> list[Any]:
    """A discovered entry with some places changed: (index, value), ..."""
    row: list[Any] = [KEY, "http://h.example/", 0, 0, {}]
    for index, value in change:
        row[index] = value
    return row


def body(**delta: Any) -> list[Any]:
    return [{"host": "h.example", **delta}]


MALFORMED: list[tuple[str, dict[str, str], str]] = [
    ("no fields", {}, "missing"),
    *((f"no {name}", {k: v for k, v in fields().items() if k != name}, "") for name in fields() if name != "n"),
    ("sender with a space", fields(**{"from": "a b"}), "look like"),
    ("sender with a slash", fields(**{"from": "a/b"}), "look like"),
    ("sender too long", fields(**{"from": "a" * 65}), "look like"),
    ("sender with a line end", fields(**{"from": "a\n"}), "look like"),
    ("empty store", fields(store=""), "look like"),
    ("unknown lane", fields(lane="gossip"), "lane is neither"),
    ("negative seq", fields(seq="-1"), "not a number"),
    ("seq of words", fields(seq="seven"), "not a number"),
    ("seq in other digits", fields(seq="٧"), "not a number"),
    ("seq too large", fields(seq="9" * 16), "not a number"),
    ("fractional floor", fields(floor="1.5"), "not a number"),
    ("floor above seq", fields(seq="7", floor="8"), "floor"),
    ("view in capitals", fields(view="ABCDEF0123456789"), "look like"),
    ("short view", fields(view="ff"), "look like"),
    ("another encoding", fields(enc="pickle"), "enc is not json"),
    ("pickle", fields(body="\x80\x04\x95K\x01."), "not JSON"),
    ("empty body", fields(body=""), "not JSON"),
    ("half a body", fields(body='[{"host":'), "not JSON"),
    ("a number without end", fields(body="9" * 5000), "not JSON"),
    ("deep body", fields(body="[" * 100_000), "not JSON"),
    ("body an object", fields({"host": "h.example"}), "body is not a list"),
    ("body a text", fields("h.example"), "body is not a list"),
    ("delta a list", fields([["h.example"]]), "a delta is not an object"),
    ("delta with more", fields(body(forget=True)), "a delta is not an object"),
    ("no host", fields([{"done": []}]), "missing"),
    ("host a number", fields([{"host": 5}]), "look like"),
    ("empty host", fields([{"host": ""}]), "look like"),
    ("host with a space", fields([{"host": "h example"}]), "look like"),
    ("host with a control character", fields([{"host": "h\x00example"}]), "look like"),
    ("host too long", fields([{"host": "h" * 301}]), "look like"),
    ("discovered an object", fields(body(discovered={})), "not a list"),
    ("discovered null", fields(body(discovered=None)), "not a list"),
    ("done a text", fields(body(done=KEY)), "not a list"),
    ("entry an object", fields(body(discovered=[{}])), "not a list of 3 to 5"),
    ("entry too short", fields(body(discovered=[[KEY, "http://h.example/"]])), "not a list of 3 to 5"),
    ("entry too long", fields(body(discovered=[[*entry(), 1]])), "not a list of 3 to 5"),
    ("key a number", fields(body(discovered=[entry((0, 5))])), "look like"),
    ("key null", fields(body(discovered=[entry((0, None))])), "missing"),
    ("key in capitals", fields(body(discovered=[entry((0, KEY.upper()))])), "look like"),
    ("key too long", fields(body(discovered=[entry((0, KEY + "0"))])), "look like"),
    ("url a number", fields(body(discovered=[entry((1, 5))])), "sensible length"),
    ("empty url", fields(body(discovered=[entry((1, ""))])), "sensible length"),
    ("url too long", fields(body(discovered=[entry((1, "http://" + "h" * LONGEST))])), "sensible length"),
    ("file", fields(body(discovered=[entry((1, "file:///etc/passwd"))])), "neither http nor https"),
    ("javascript", fields(body(discovered=[entry((1, "javascript:alert(1)"))])), "neither http nor https"),
    ("relative url", fields(body(discovered=[entry((1, "/a"))])), "neither http nor https"),
    ("depth a text", fields(body(discovered=[entry((2, "0"))])), "depth or priority"),
    ("depth a truth", fields(body(discovered=[entry((2, True))])), "depth or priority"),
    ("depth a fraction", fields(body(discovered=[entry((2, 1.0))])), "depth or priority"),
    ("negative depth", fields(body(discovered=[entry((2, -1))])), "depth or priority"),
    ("depth too large", fields(body(discovered=[entry((2, 10**9))])), "depth or priority"),
    ("priority null", fields(body(discovered=[entry((3, None))])), "depth or priority"),
    ("priority too large", fields(body(discovered=[entry((3, -(10**12) - 1))])), "depth or priority"),
    ("request a text", fields(body(discovered=[entry((4, "GET"))])), "request is not an object"),
    ("request a list", fields(body(discovered=[entry((4, []))])), "request is not an object"),
    ("request with a number that is none", fields(body(discovered=[entry((4, {"a": float("nan")}))])), "not JSON"),
    (
        "request beyond numbers",
        fields(body=json.dumps(body(discovered=[entry()])).replace("{}", '{"a":1e999}')),
        "not JSON",
    ),
    ("request a number that none has", fields(body(discovered=[entry(), entry((4, 1))])), "no request before it"),
    ("request a truth", fields(body(discovered=[entry(), entry((4, True))])), "request is not an object"),
    ("done a number", fields(body(done=[5])), "look like"),
    ("offer an object", fields(body(offer={})), "an offer is not"),
    ("offer too short", fields(body(offer=[1, KEY, 1])), "an offer is not"),
    ("offer of texts", fields(body(offer=["1", KEY, "1", KEY])), "an offer is not"),
    ("offer without keys", fields(body(offer=[1, 2, 3, 4])), "look like"),
    ("too many records", fields(body(done=[KEY] * (MOST + 1))), "more than 100"),
    (
        "too many records of all kinds",
        fields([{"host": "h", "done": [KEY] * MOST}, {"host": "i", "offer": [1, KEY, 1, KEY]}]),
        "more than 100",
    ),
]


@pytest.mark.parametrize("met", [False, True], ids=["", "of a host met before"])
@pytest.mark.parametrize(("letter", "reason"), [case[1:] for case in MALFORMED], ids=[case[0] for case in MALFORMED])
def test_malformed_letter_is_refused_with_a_reason(
    letter: dict[str, str], reason: str, met: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(wire, "HOSTS_KEPT", 0)
        read(fields([{"host": "another.example", "done": []}]))  # no other host is remembered after it
    if met:
        read(fields([{"host": "h.example", "discovered": []}, {"host": "h", "done": []}]))
    with pytest.raises(Malformed) as refusal:
        read(letter)
    assert reason in str(refusal.value)
    assert 0 < len(str(refusal.value)) < 200
    assert str(refusal.value).isprintable(), "people read it in a terminal"


def test_what_the_malformed_letters_are_made_of_holds() -> None:
    good = fields(body(discovered=[entry()], done=[KEY], offer=[1, KEY, 0, KEY]))
    assert read(good).deltas == (
        Delta(
            "h.example",
            (Entry(int(KEY, 16), "http://h.example/", 0, 0, "{}"),),
            (int(KEY, 16),),
            Summary(1, int(KEY, 16), 0, int(KEY, 16)),
        ),
    )
    assert len(read(fields(body(done=[KEY] * MOST))).deltas[0].done) == MOST
    assert read(fields(seq="7", floor="7")).floor == 7
    assert read({**good, "more": "is not minded"}).sender == "a"


def test_a_request_that_several_entries_have_is_written_once() -> None:
    post = '{"method":"POST"}'
    told = [
        Record("h1.example", 1, entry=Entry(1, "http://h1.example/a", 0, 0, post)),
        Record("h2.example", 1, redo=Redo(2, (("h3.example", Entry(3, "http://h3.example/", 0, 0, post)),))),
        Record("h2.example", 1, entry=Entry(4, "http://h2.example/b", 0, 0, "{}")),
        Record("h1.example", 1, entry=Entry(5, "http://h1.example/c", 0, 0, post)),
        Record("h3.example", 1, entry=Entry(6, "http://h3.example/", 0, 0, "{}")),
    ]
    letter = made(told)
    assert letter["body"].count(post) == letter["body"].count("{}") == 1
    first, second, third = read(travelled(letter)).deltas
    assert [entry.request for entry in first.discovered] == [post, post]
    assert [entry.request for entry in second.discovered] == ["{}"]
    assert [entry.request for _, entry in second.redo[0].outlinks] == [post]
    assert [entry.request for entry in third.discovered] == ["{}"]


def test_header_of_a_malformed_letter_is_enough_to_answer_it() -> None:
    assert decode_header(fields(body="garbage"), "b") == Header("a", "0badcafe/b/discovery", DISCOVERY, 7, 5)
    with pytest.raises(Malformed):
        decode_header(fields(lane="gossip"), "b")


# -- fuzz: Malformed or a value, never another exception

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([KEY, "h.example", "http://h.example/", "host", "acked", 0, 1, {}, []]),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.sampled_from(["host", "discovered", "done", "offer", "acked", "refused", "want", "1"]), inner, max_size=4
        )
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=20,
)
near_letters = st.lists(
    st.fixed_dictionaries(
        {"host": st.just("h.example") | anything},
        optional={
            "discovered": st.lists(
                st.tuples(st.just(KEY) | anything, st.just("http://h/") | anything, st.just(1) | anything).map(list)
                | anything
            ),
            "done": st.lists(st.just(KEY) | anything) | anything,
            "offer": st.tuples(st.just(1), st.just(KEY), st.just(1) | anything, anything).map(list) | anything,
        },
    ),
    max_size=3,
)


@settings(max_examples=EXAMPLES)
@given(near_letters | anything)
def test_any_json_is_a_letter_or_malformed(value: Any) -> None:
    try:
        letter = read(fields(value))
    except Malformed:
        return
    assert len(letter.deltas) == len(value)


@settings(max_examples=EXAMPLES)
@given(st.dictionaries(st.sampled_from([*fields()]) | st.text(max_size=5), st.text(max_size=30)), st.text())
def test_any_fields_are_a_letter_or_malformed(rest: dict[str, str], text: str) -> None:
    for letter in (rest, {**fields(), **rest}, {**fields(), "body": text}):
        try:
            read(letter)
        except Malformed as refusal:
            assert str(refusal)


@settings(max_examples=EXAMPLES)
@given(st.lists(records(), min_size=1, max_size=3), st.data())
def test_a_damaged_letter_is_a_letter_or_malformed(told: list[Record], data: st.DataObject) -> None:
    text = made(told)["body"]
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 3))
    damaged = text[:at] + data.draw(st.text(max_size=3) | st.sampled_from(list('[]{}",:0-\\'))) + text[at + cut :]
    try:
        read(fields(body=damaged))
    except Malformed:
        return


def test_deep_json_is_a_letter_or_malformed() -> None:
    """At every depth up to what the interpreter bears, wherever the parser still takes it and the rest may not."""
    limit = sys.getrecursionlimit()
    for depth in [*range(1, limit, 97), *range(max(1, limit - 80), limit + 5)]:
        lists, objects = "[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth
        for text in (
            lists,
            f'[{{"host":{lists}}}]',
            f'[{{"host":"h","done":[{lists}]}}]',
            f'[{{"host":"h","offer":[1,{lists},1,"{KEY}"]}}]',
            f'[{{"host":"h","discovered":[["{KEY}","http://h/",0,0,{objects}]]}}]',
        ):
            try:
                read(fields(body=text))
            except Malformed:
                pass
        for text in (lists, f'{{"acked":[1],"refused":{{"1":{{"h":{lists}}}}}}}', f'{{"acked":[{lists}]}}'):
            with pytest.raises(Malformed):
                read_answer(text)


# -- answers


@settings(max_examples=EXAMPLES)
@given(
    st.dictionaries(
        st.integers(0, 10**15),
        st.builds(
            Outcome,
            st.dictionaries(st.sampled_from(["h1.example", "h2.example"]), st.sampled_from(["", "a", "b.c:1"])),
            st.lists(st.sampled_from(["h1.example", "bücher.example"]), unique=True).map(tuple),
        ),
        max_size=5,
    )
)
def test_answer_is_what_the_receiver_says(outcomes: dict[int, Outcome]) -> None:
    lane = LaneIn("a")
    lane.outcomes.update(outcomes)
    assert read_answer(travelled({"answer": lane.text()})["answer"]) == outcomes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '"acked"',
        '{"acked": 5}',
        '{"acked": null}',
        '{"acked": [-1]}',
        '{"acked": [1.0]}',
        '{"acked": [true]}',
        '{"acked": ["1"]}',
        '{"acked": [1], "refused": []}',
        '{"acked": [1], "refused": {"1": ["h"]}}',
        '{"acked": [1], "refused": {"1": {"h h": "a"}}}',
        '{"acked": [1], "refused": {"1": {"h": "a b"}}}',
        '{"acked": [1], "refused": {"1": {"h": 5}}}',
        '{"acked": [1], "refused": {"1": {"h": []}}}',
        '{"acked": [1], "refused": {"1": {"h": null}}}',
        '{"acked": [1], "want": 5}',
        '{"acked": [1], "want": {"1": 5}}',
        '{"acked": [1], "want": {"1": [5]}}',
        '{"acked": [1], "want": {"1": ["h h"]}}',
    ],
)
def test_malformed_answer_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        read_answer(text)


@settings(max_examples=EXAMPLES)
@given(anything)
@example({"acked": [1], "want": {"1": [None]}})
@example({"acked": [1], "refused": {"1": {"h": [[]]}}})
def test_any_json_is_an_answer_or_malformed(value: Any) -> None:
    try:
        outcomes = read_answer(json.dumps(value))
    except Malformed:
        return
    assert all(type(seq) is int and isinstance(outcome, Outcome) for seq, outcome in outcomes.items())


@settings(max_examples=EXAMPLES)
@given(st.text())
def test_any_text_is_an_answer_or_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        read_answer(text)
