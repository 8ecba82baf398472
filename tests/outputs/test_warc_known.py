"""Payloads of earlier crawls are not archived again, and SHA-256 in the place of SHA-1."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.outputs import stores
from scrapy_ubi.outputs.replay.archive import Archive
from scrapy_ubi.outputs.warc import cdxj, known, members
from scrapy_ubi.outputs.warc.foreign import files_of
from scrapy_ubi.outputs.warc.known import KnownPayloads, Refused, read_line
from scrapy_ubi.outputs.warc.met import PROFILE
from tests.outputs.test_warc import check, records
from tests.outputs.test_warc_collect import Warcs, collected, lines

SAME = b"the same in two crawls " * 100
URL = "http://h.example/"
BAD = [
    b"no line at all\n",
    b"example,h)/ 20200101000000 {}\n",
    b'example,h)/ 20201301000000 {"url": "http://h.example/", "digest": "sha1:' + b"A" * 32 + b'"}\n',
    b'example,h)/ 20200101000000 {"url": "ftp://h.example/", "digest": "sha1:' + b"A" * 32 + b'"}\n',
    b'example,h)/ 20200101000000 {"url": "http://h.example/\\r\\nX: y", "digest": "sha1:' + b"A" * 32 + b'"}\n',
    b'example,h)/ 20200101000000 {"url": "http://h.example/", "digest": "sha1:short"}\n',
    b'example,h)/ 20200101000000 {"url": "http://h.example/", "digest": 7}\n',
    b'example,h)/ 20200101000000 ' + b"[" * 60_000 + b"\n",
    b'example,h)/ 20200101000000 {"url": "http://h.example/", "digest": "sha1:' + b"A" * 32 + b'"}',  # cut
]  # fmt: skip

OBJECTS = st.recursive(
    st.none() | st.text(max_size=3) | st.integers(),
    lambda value: st.dictionaries(st.sampled_from(["url", "digest", "mime"]), value),
).map(lambda value: b"a 20200101000000 " + json.dumps(value).encode() + b"\n")


def kept(directory: Path, bodies: dict[int, bytes], **arguments: str) -> Warcs:
    """An archive of these pages, sealed."""
    warcs = Warcs(directory, **arguments)
    for number, body in bodies.items():
        warcs.fetched(number, body)
    warcs.flush()
    warcs.close()
    return warcs


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_what_an_earlier_crawl_has_is_a_revisit_of_its_record(tmp_path: Path, algorithm: str) -> None:
    first = kept(tmp_path / "a", {1: SAME, 2: b"other " * 500, 3: b"small"}, digest=algorithm)
    indexes = str(tmp_path / "a/out/warc/*.cdxj")
    second = kept(
        tmp_path / "b", {4: SAME, 5: SAME, 6: b"new " * 500, 7: b"small"}, digest=algorithm, known=indexes
    )  # fmt: skip
    (old,), (new,) = first.warcs, second.warcs
    for path in (old, new):
        check(path)
    (record,) = (one for one in records(old) if one.kind == "response" and one.body == SAME)
    revisits = [one for one in records(new) if one.kind == "revisit"]
    assert len(revisits) == 2 and Counter(one.kind for one in records(new))["response"] == 2
    for one in revisits:
        assert one.head["WARC-Profile"] == PROFILE and "WARC-Refers-To" not in one.head
        assert one.head["WARC-Refers-To-Target-URI"] == record.head["WARC-Target-URI"]
        assert one.head["WARC-Refers-To-Date"] == record.head["WARC-Date"][:19] + "Z"
        assert one.head["WARC-Payload-Digest"] == record.head["WARC-Payload-Digest"]
    archive = Archive(files_of([str(old), str(new)])[0], 1 << 20)
    archive.build_index()
    for number in (4, 5):
        answer = archive.find_answer("GET", f"http://h{number % 7}.example/p{number}", b"")
        assert answer is not None and answer.message.body == SAME
    archive.close()
    assert not second.warc.refused


def test_sha256_stands_in_records_and_index_and_in_what_is_collected(tmp_path: Path) -> None:
    one, other = Warcs(tmp_path / "a", digest="sha256"), Warcs(tmp_path / "b", agent="b", digest="sha256")
    one.fetched(1, SAME)
    one.fetched(2, SAME)
    other.fetched(1, SAME, attempt=1)  # counts, so that page 2 is a response again
    for warcs in (one, other):
        warcs.flush()
        warcs.close()
    collected(tmp_path / "all.warc.gz", tmp_path / "a", tmp_path / "b")
    check(tmp_path / "all.warc.gz")
    said = f"sha256:{hashlib.sha256(SAME).hexdigest()}"
    assert {fields["digest"] for fields, _ in lines(tmp_path / "all.warc.gz")} == {said}
    found = [one for one in records(tmp_path / "all.warc.gz") if one.kind == "response"]
    assert len(found) == 2 and all(one.head["WARC-Payload-Digest"] == said for one in found)
    assert all(one.head["WARC-Block-Digest"].startswith("sha256:") for one in found)


def index(path: Path, *bodies: bytes, digest: Any = members.digest) -> KnownPayloads:
    """An index of these bodies."""
    text = [
        cdxj.line(f"{URL}{n}", "2020-01-02T03:04:05Z", 200, "a/b", digest(body), 1, 0, "x")
        for n, body in enumerate(bodies)
    ]
    path.write_bytes(b"".join(text))
    return KnownPayloads([path], "sha1")


@given(st.lists(st.binary(max_size=2), max_size=30), st.binary(max_size=2))
def test_all_that_is_in_the_indexes_is_found_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, bodies: list[bytes], other: bytes
) -> None:
    place = tmp_path_factory.mktemp("known")
    payloads = index(place / "a.cdxj", *bodies)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "MOST_ROWS", 7)
        payloads.read_indexes(place)
    for body in {*bodies, other}:
        met = payloads.find(members.digest(body))
        assert (met is not None) == (body in bodies)
        if met is not None:
            assert met.date == "2020-01-02T03:04:05Z" and bodies[int(met.url.removeprefix(URL))] == body
    assert not payloads.refused


def test_lines_that_do_not_hold_are_refused_and_counted(tmp_path: Path) -> None:
    payloads = index(tmp_path / "a.cdxj", b"good")
    sha256 = cdxj.line(URL, "2020-01-02T03:04:05Z", 200, "a/b", members.digest_sha256(b"x"), 1, 0, "x")
    revisit = cdxj.line(URL, "2020-01-02T03:04:05Z", 200, cdxj.REVISIT, members.digest(b"x"), 1, 0, "x")
    with (tmp_path / "a.cdxj").open("ab") as file:
        file.writelines([b"!meta {}\n", sha256, revisit, b"x" * 200_000 + b"\n", *BAD])
    payloads.read_indexes(tmp_path)
    assert payloads.find(members.digest(b"good")) and payloads.find(members.digest(b"x")) is None
    assert payloads.refused == {"algorithm": 1, "malformed": len(BAD) + 4}  # the long line is read in four pieces


@given(st.binary(max_size=100) | OBJECTS)
def test_whatever_a_line_is_it_is_read_or_refused(line: bytes) -> None:
    try:
        found = read_line(line, "sha1")
    except Refused:
        return
    assert found is None or len(found.digest) == 20


def test_a_line_that_is_there_no_longer_is_not_referred_to(tmp_path: Path) -> None:
    payloads = index(tmp_path / "a.cdxj", SAME)
    payloads.read_indexes(tmp_path)
    (tmp_path / "a.cdxj").write_bytes(b"x" * 1000)
    assert payloads.find(members.digest(SAME)) is None
    (tmp_path / "a.cdxj").unlink()
    assert payloads.find(members.digest(SAME)) is None


@pytest.mark.parametrize(
    ("argument", "why"),
    [('known="nowhere/*.cdxj"', "is no file"), ("digest=md5", "give sha1"), ("requisites=many", "give yes or no")],
)
def test_arguments_that_do_not_hold_are_refused(argument: str, why: str) -> None:
    with pytest.raises(UbiSettingError, match=why):
        stores.make([f"warc({argument})"], {})  # type: ignore[arg-type]
