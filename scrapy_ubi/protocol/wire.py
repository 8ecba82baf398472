"""Letters as text: how records travel, and how what arrives is validated.

Rules of this module:

* A letter is a stream entry or a part of one (`bundle`): short text fields and a JSON body, readable with redis-cli.
* Some entries in a row that differ in key and URL only, as most from one page do, are said together: as one list, with
  all their keys in one text, and a list of their URLs.
* Nothing that arrives is trusted: `decode` validates a letter whole and raises `Malformed` with the reason.
* A letter in a form that is not this one (`OtherVersion`) may hold for others: it is told apart from what is malformed.
* Most of what a letter has are keys and URLs: what each of them has to be is asked in place, not by a call.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping, Sequence
from itertools import groupby
from json.encoder import encode_basestring
from operator import itemgetter
from typing import Any

from scrapy_ubi.ground.untrusted.checks import HOST, KEY, NAME, Malformed, match
from scrapy_ubi.protocol.host import Entry, Redo, Summary, VisitRow
from scrapy_ubi.protocol.lane import DISCOVERY, STATE, Lane, Letter
from scrapy_ubi.protocol.notes import read_notes
from scrapy_ubi.protocol.received import Delta, Header, OtherVersion, Received
from scrapy_ubi.protocol.records import MOST_OUTLINKS, Record
from scrapy_ubi.protocol.request_table import RequestReader, Written
from scrapy_ubi.protocol.visit_wire import row_in, row_out

_is_key = KEY.fullmatch
_are_keys = re.compile(r"(?:[0-9a-f]{16})+").fullmatch

_SCHEMES = ("http://", "https://")
MOST_DEPTH = 10**9
_common = itemgetter(2, 3, 4)  # of an entry: depth, priority, request
TOGETHER = 3  # entries that are said together at least: two cost more so than one by one
HOSTS_KEPT = 10_000  # hosts read lately: they come again and again

_hosts: set[str] = set()
_made = tuple.__new__  # a named tuple of a tuple, in half the time
_quoted = encode_basestring  # what JSONEncoder(ensure_ascii=False).encode does with a text, without its questions


def encode(sender: str, lane: Lane, store: str, letter: Letter) -> dict[str, str]:
    """A letter as the fields of a stream entry, readable with redis-cli.

    The body is put together of texts: a request is one already, and nothing is gained by reading it to write it again.
    """
    hosts: dict[str, list[Record]] = {}
    for record in letter.records:
        hosts.setdefault(record.host, []).append(record)
    requests = Written()
    rows = [_row(host, records, requests) for host, records in hosts.items()]
    body = f"[{','.join(rows)}]"
    return {
        "from": sender,
        "store": store,
        "lane": lane.kind,
        "seq": str(letter.seq),
        "floor": str(lane.floor),
        "n": str(len(letter.records)),
        "view": letter.view,
        "enc": "json",
        "body": body,
    }


def _row(host: str, records: list[Record], requests: Written) -> str:
    """What is said of one host. Its entries come first, then redos, then visit rows: the order in which requests are
    numbered."""
    text = f'{{"host":{_quoted(host)}'
    if len(records) == 1 and (only := records[0].entry) is not None:  # most that travel to another host's owner
        return f'{text},"discovered":[[{_entry_out(only, requests)}]]}}'
    entries = [record.entry for record in records if record.entry is not None]
    if entries:
        text += f',"discovered":[{",".join(_entries_out(entries, requests))}]'
    return (text if len(entries) == len(records) else text + _rest(records, requests)) + "}"


def _rest(records: list[Record], requests: Written) -> str:
    """What is said of a host besides its entries."""
    done: list[str] = []
    redos: list[Redo] = []
    rows: list[VisitRow] = []
    last = ""
    for record in records:
        if record.entry is not None:
            continue
        if record.row is not None:
            rows.append(record.row)
        elif record.done is not None:
            done.append(f'"{record.done:016x}"')
        elif record.redo is not None:
            redos.append(record.redo)
        elif record.offer is not None:  # of several the last one counts
            known, known_xor, done_count, done_xor = record.offer
            last += f',"offer":[{known},"{known_xor:016x}",{done_count},"{done_xor:016x}"]'
        elif record.notes is not None:
            last += f',"notes":{record.notes.shown()}'
    text = f',"done":[{",".join(done)}]' if done else ""
    if redos:
        text += f',"redo":[{",".join([_redo_out(redo, requests) for redo in redos])}]'
    if rows:
        text += f',"visited":[{",".join([row_out(row, _entry_out(row.entry, requests)) for row in rows])}]'
    return text + last


def _entries_out(entries: list[Entry], requests: Written) -> list[str]:
    """The lists of entries, or of several together, in their order."""
    texts: list[str] = []
    for (depth, priority, request), together in groupby(entries, _common):
        run = list(together)
        if len(run) >= TOGETHER and requests.fits(request, len(run)):
            urls = ",".join([_quoted(entry[1]) for entry in run])
            text = f'"{_packed([entry[0] for entry in run])}",[{urls}],{depth}'
            if request:
                text += f",{priority},{requests.write(request, len(run))}"
            elif priority:
                text += f",{priority}"
            texts.append(f"[{text}]")
        else:
            texts += [f"[{_entry_out(entry, requests)}]" for entry in run]
    return texts


def _entry_out(entry: Entry, requests: Written) -> str:
    """The members of an entry's list."""
    key, url, depth, priority, request = entry
    text = f'"{key:016x}",{_quoted(url)},{depth}'
    if request:
        return f"{text},{priority},{requests.write(request)}"
    return f"{text},{priority}" if priority else text


def _redo_out(redo: Redo, requests: Written) -> str:
    outlinks = [f',"{_packed(redo.own)}"'] if redo.own else []
    outlinks += [f",[{_quoted(host)},{_entry_out(entry, requests)}]" for host, entry in redo.outlinks]
    return f'["{redo.key:016x}"{"".join(outlinks)}]'


def decode_header(fields: Mapping[str, str], receiver: str) -> Header:
    """The header of a stream entry. Raises Malformed."""
    sender, store = match(NAME, fields.get("from")), match(NAME, fields.get("store"))
    kind = fields.get("lane")
    if kind not in (DISCOVERY, STATE):
        raise Malformed("lane is neither discovery nor state")
    seq, floor = _number(fields.get("seq")), _number(fields.get("floor"))
    if floor > seq:
        raise Malformed("floor is above seq")  # a letter that is sent is not acknowledged
    return Header(sender, f"{store}/{receiver}/{kind}", kind, seq, floor)


def decode(fields: Mapping[str, str], receiver: str, most: int, longest_url: int) -> Received:
    """A letter from the fields of a stream entry, validated whole. Raises Malformed with the reason, OtherVersion where
    it is in another form.

    `most` bounds the number of records, `longest_url` the characters of a URL.
    """
    header = decode_header(fields, receiver)
    view = match(KEY, fields.get("view"))
    if fields.get("enc") != "json":
        raise OtherVersion("enc is not json")
    try:
        body = json.loads(fields.get("body", ""))
    except (ValueError, RecursionError) as error:
        raise Malformed("body is not JSON") from error
    if not isinstance(body, list):
        raise Malformed("body is not a list")
    requests = RequestReader()
    deltas = tuple([_delta(row, longest_url, requests, header.sender) for row in body])
    records = sum([len(delta[1]) for delta in deltas]) + sum([_besides(delta) for delta in deltas if any(delta[2:])])
    if records > most:
        raise Malformed(f"{records} records, more than {most}")
    return Received(header.sender, header.lane, header.kind, header.seq, header.floor, view, deltas)


def _besides(delta: Delta) -> int:
    """How many records a delta is besides its entries."""
    redone = sum([1 + len(redo.outlinks) for redo in delta.redo])
    return len(delta.done) + len(delta.visited) + redone + (delta.offer is not None) + (delta.notes is not None)


_NO_DELTA = "a delta is not an object of host, discovered, done, offer, redo, notes, visited"
_DELTA = frozenset(("host", "discovered", "done", "offer", "redo", "notes", "visited"))


def _delta(row: object, longest_url: int, requests: RequestReader, sender: str) -> Delta:
    if not isinstance(row, dict):
        raise Malformed(_NO_DELTA)
    host = row.get("host")
    if type(host) is str and host in _hosts and len(row) == 2 and type(alone := row.get("discovered")) is list:
        entries = _entries_in(alone, longest_url, requests)  # nothing but entries, as most
        return _made(Delta, (host, entries, (), None, (), None, ()))
    return _whole_delta(row, longest_url, requests, sender)


def _whole_delta(row: dict[str, Any], longest_url: int, requests: RequestReader, sender: str) -> Delta:
    if not row.keys() <= _DELTA:
        raise Malformed(_NO_DELTA)
    host = _host(row.get("host"))
    discovered, done, offer, notes = row.get("discovered", []), row.get("done", []), row.get("offer"), row.get("notes")
    redo, visited = row.get("redo", []), row.get("visited")
    if not isinstance(discovered, list) or not isinstance(done, list) or not isinstance(redo, list):
        raise Malformed("discovered, done or redo is not a list")
    if visited is not None and not isinstance(visited, list):
        raise Malformed("visited is not a list")
    return Delta(
        host,
        _entries_in(discovered, longest_url, requests),
        tuple([_key(text) for text in done]),
        None if offer is None else _summary(offer),
        tuple([_redo(item, longest_url, requests, sender) for item in redo]),
        None if notes is None else read_notes(notes),
        tuple([_visit(item, longest_url, requests) for item in visited or ()]),
    )


def _redo(row: object, longest_url: int, requests: RequestReader, sender: str) -> Redo:
    if not isinstance(row, list) or not 1 <= len(row) <= MOST_OUTLINKS + 1:
        raise Malformed("a redo is not a list of a key and outlinks")
    own: list[int] = []
    outlinks: list[tuple[str, Entry]] = []
    for item in row[1:]:
        if type(item) is str:
            own += _unpacked(item)
        elif type(item) is list and len(item) == 4 and (entry := _plain(item[1], item[2], item[3], longest_url)):
            outlinks.append((_host(item[0]), entry))
        else:
            outlinks.append(_outlink(item, longest_url, requests))
    if len(own) + len(outlinks) > MOST_OUTLINKS:
        raise Malformed("a redo has more outlinks than one may have")
    return _made(Redo, (_key(row[0]), tuple(outlinks), tuple(own), sender))


def _visit(row: object, longest_url: int, requests: RequestReader) -> VisitRow:
    if not isinstance(row, list) or not row:
        raise Malformed("a visit is not a list of an entry and what is known of it")
    return row_in(_entry_in(row[0], longest_url, requests), row[1:])


def _outlink(row: object, longest_url: int, requests: RequestReader) -> tuple[str, Entry]:
    if not isinstance(row, list) or not row:
        raise Malformed("an outlink is not a list of a host and an entry")
    return _host(row[0]), _entry_in(row[1:], longest_url, requests)


def _entries_in(items: list[object], longest_url: int, requests: RequestReader) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for item in items:
        if type(item) is list and len(item) == 3 and (entry := _plain(item[0], item[1], item[2], longest_url)):
            entries.append(entry)
        elif type(item) is list and len(item) > 1 and type(item[1]) is list:
            entries += _together(item, longest_url, requests)
        else:
            entries.append(_entry_in(item, longest_url, requests))
    return tuple(entries)


def _plain(key: object, url: object, depth: object, longest_url: int) -> Entry | None:
    """The entry of a key, a URL and a depth that are as most are, all of it in one look; None where one of them is not:
    `_entry_in` says what is wrong with it, if anything."""
    if (
        type(url) is str
        and url.startswith(_SCHEMES)
        and len(url) <= longest_url
        and type(depth) is int
        and 0 <= depth < MOST_DEPTH
        and type(key) is str
        and _is_key(key) is not None
    ):
        return _made(Entry, (int(key, 16), url, depth, 0, ""))
    return None


def _together(row: list[Any], longest_url: int, requests: RequestReader) -> list[Entry]:
    """Entries that are said together: what the first one has besides key and URL, all have."""
    keys, urls = _unpacked(row[0]), row[1]
    if len(keys) != len(urls):
        raise Malformed("there are not as many keys as URLs")
    first = _entry_in([row[0][:16], urls[0], *row[2:]], longest_url, requests)
    _, _, depth, priority, request = first
    requests.repeat(request, len(keys) - 1)
    # Nearly all are as they should be: those that are not, or are written oddly, are looked at one by one.
    for url in [url for url in urls if type(url) is not str or not url.startswith(_SCHEMES) or len(url) > longest_url]:
        _entry_in([row[0][:16], url, depth], longest_url, requests)
    return [_made(Entry, (key, url, depth, priority, request)) for key, url in zip(keys, urls, strict=True)]


def _entry_in(row: object, longest_url: int, requests: RequestReader) -> Entry:
    if type(row) is not list or not 3 <= (parts := len(row)) <= 5:
        raise Malformed("a discovered entry is not a list of 3 to 5")
    url, depth, priority = row[1], row[2], row[3] if parts > 3 else 0
    if type(url) is not str or not url or len(url) > longest_url:
        raise Malformed("a URL is not text of a sensible length")
    if not url.startswith(_SCHEMES) and not url.lstrip()[:8].lower().startswith(_SCHEMES):
        raise Malformed("a URL is neither http nor https")
    if type(depth) is not int or type(priority) is not int or not 0 <= depth < MOST_DEPTH or abs(priority) > 10**12:
        raise Malformed("depth or priority is not a number in bounds")
    request = requests.read(row[4]) if parts == 5 else ""
    return _made(Entry, (_key(row[0]), url, depth, priority, request))


def _summary(row: object) -> Summary:
    if not isinstance(row, list) or len(row) != 4 or type(row[0]) is not int or type(row[2]) is not int:
        raise Malformed("an offer is not a list of two numbers and two keys")
    return Summary(row[0], _key(row[1]), row[2], _key(row[3]))


def _key(text: object) -> int:
    # Most of what arrives are keys: what is called for each of them is half of what a letter costs.
    if type(text) is str and _is_key(text) is not None:
        return int(text, 16)
    return int(match(KEY, text), 16)  # which says what is wrong with it


def _packed(keys: Sequence[int]) -> str:
    """Keys one after the other, without a gap: a page has many, and so they cost a third."""
    return struct.pack(f">{len(keys)}Q", *keys).hex()


def _unpacked(text: object) -> tuple[int, ...]:
    if type(text) is not str or _are_keys(text) is None:
        raise Malformed(f"{str(text)[:40]!r} does not look like keys")
    return struct.unpack(f">{len(text) // 16}Q", bytes.fromhex(text))


def _host(text: object) -> str:
    if type(text) is str and text in _hosts:
        return text
    host = match(HOST, text)
    if len(_hosts) >= HOSTS_KEPT:
        _hosts.clear()
    _hosts.add(host)
    return host


def _number(text: object) -> int:
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 15:
        raise Malformed("seq or floor is not a number")
    return int(text)
