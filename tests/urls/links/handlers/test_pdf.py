"""PDF: what is read of one, and what the child that reads it may cost."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_ubi.urls.links.handlers import pdf_child, pdf_worker
from scrapy_ubi.urls.links.handlers.pdf_child import PdfAnswer, PdfChild
from tests.support import pdfs

LIMIT = 60.0  # s that a test waits
READY = "import sys, os, time\nout = lambda data: os.write(1, len(data).to_bytes(4, 'big') + data)\nout(b'{}')\n"
LINKS = [pdfs.URL, "http://a.example/?a=1"]


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def read(data: bytes) -> tuple[list[str], str | None, str | None]:
    answer = pdf_worker.read(data, LIMIT)
    return answer["links"], answer["cut"], answer["refused"]


def test_links_of_annotations_and_text() -> None:
    made = pdfs.plain(LINKS, text="see http://b.example/x, and (https://c.example/y).")
    assert read(made) == ([*LINKS, "http://b.example/x", "https://c.example/y"], None, None)
    relative = pdfs.plain(["a", "www.b.example/c"], catalog=b"/URI << /Base (http://a.example/dir/) >>")
    assert read(relative)[0] == ["http://a.example/dir/a", "http://www.b.example/c"]


def test_what_is_wrong_with_one_is_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(b"no PDF") == ([], None, "malformed")
    secret = dict(pdfs.encrypted())["encrypted: with a password"]
    assert read(secret)[1:] in ((None, "encrypted"), (None, "malformed"))
    monkeypatch.setattr(pdf_worker, "MOST_LINKS", 2)
    many = pdfs.plain([f"http://a.example/{number}" for number in range(5)])
    assert read(many) == (["http://a.example/0", "http://a.example/1"], "links", None)


def test_what_was_found_when_the_time_is_over_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def gather(data: bytes, found: pdf_worker.PdfUrls) -> None:
        if data:
            found.add("http://a.example/")
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            try:
                time.sleep(0.001)
            except Exception:  # noqa: BLE001 - as a library may do it
                continue

    monkeypatch.setattr(pdf_worker, "gather", gather)
    answer = pdf_worker.read(b"x", 0.01)
    assert answer == {"links": ["http://a.example/"], "cut": "time", "refused": None}
    assert pdf_worker.read(b"", 0.01)["refused"] == "time"


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.binary(max_size=200))
def test_whatever_the_bytes_nothing_is_raised(seed: int, more: bytes) -> None:
    for _, data in pdfs.broken(2, seed):
        answer = pdf_worker.read(data + more, LIMIT)
        assert len(answer["links"]) <= pdf_worker.MOST_LINKS


@pytest.mark.processes
def test_hostile_files_cost_their_own_links_only() -> None:
    child = PdfChild()
    plain = pdfs.plain(LINKS)
    assert child.read(plain) == PdfAnswer(LINKS)
    chosen = dict([*pdfs.circles(), *pdfs.deep(), *pdfs.encrypted(), *pdfs.broken(3)])
    try:
        for name in (
            "circle: two nodes of the tree have each other",
            "encrypted: in a circle",
            "broken: at random, 1 of seed 0",
            "deep: brackets that are closed",
            "wide: a tree of ten billion pages",
        ):
            answer = child.read(chosen[name])
            assert len(answer.links) <= pdf_worker.MOST_LINKS, name
            assert child.read(plain) == PdfAnswer(LINKS), name
        assert child.read(b"%PDF-" + bytes(pdf_child.MOST_BYTES)) == PdfAnswer(refused="bytes")
    finally:
        child.close()
        child.end()
    assert child.read(plain) == PdfAnswer(refused="closed")


@pytest.mark.processes
def test_a_child_that_fails_is_replaced() -> None:
    def answer(script: str) -> PdfAnswer:
        child = PdfChild((sys.executable, "-S", "-c", READY + script), 1.0)
        first = child.read(b"%PDF-")
        assert child.pid is None and child.read(b"%PDF-").refused is not None and child.started == 2
        child.end()
        return first

    assert answer("time.sleep(99)") == PdfAnswer(refused="time")
    assert answer("sys.exit(3)") == PdfAnswer(refused="died")
    assert answer("os.read(0, 9); out(b'[]')") == PdfAnswer(refused="died")
    assert answer("os.read(0, 9); out(b'{\"links\": [1]}')") == PdfAnswer(refused="died")
    assert answer("os.read(0, 9); os.write(1, b'\\xff' * 9); time.sleep(99)") == PdfAnswer(refused="died")
    assert PdfChild(("/no/such/program",)).read(b"").refused == "unstarted"
    assert PdfChild((sys.executable, "-c", "")).read(b"").refused == "unstarted"


@pytest.mark.processes
def test_the_child_ends_with_a_parent_that_is_killed() -> None:
    script = (
        "import sys, time\nfrom scrapy_ubi.urls.links.handlers.pdf_child import PdfChild\n"
        "child = PdfChild(); child.read(b'%PDF-'); print(child.pid, flush=True); time.sleep(99)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        os.kill(pid, 0)
        parent.send_signal(signal.SIGKILL)

    def is_gone() -> bool:
        try:
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    until(is_gone)


def test_the_queue_is_bounded_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stub(PdfChild):
        def read(self, body: bytes) -> PdfAnswer:
            go.wait(LIMIT)
            return PdfAnswer([body.decode()])

        def prepare(self) -> None:
            """No process."""

    go = threading.Event()
    monkeypatch.setattr(pdf_child, "MOST_WAITING", 2)

    async def run() -> list[PdfAnswer]:
        queue = pdf_child.PdfQueue(Stub())
        tasks = [asyncio.create_task(queue.read(body)) for body in (b"a", b"b", b"c")]
        await tasks[2]  # is not waited for
        go.set()
        answers = list(await asyncio.gather(*tasks))
        queue.close()
        queue.close()
        return [*answers, await queue.read(b"d")]

    assert asyncio.run(run()) == [
        PdfAnswer(["a"]), PdfAnswer(["b"]), PdfAnswer(refused="queue"), PdfAnswer(refused="closed"),
    ]  # fmt: skip
