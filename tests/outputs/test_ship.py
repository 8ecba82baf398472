"""Sealed files are sent, once, whole, and none is lost in silence (UBI_SHIP)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scrapy import Spider
from scrapy.http import Response

from scrapy_ubi.outputs import ship_targets
from scrapy_ubi.outputs.ship_targets import DifferentFile, DirectoryTarget, ObjectTarget, target_of
from scrapy_ubi.outputs.shipping import LONGEST, Shipper
from tests.outputs.kept import Kept, collected
from tests.support.crawls import crawl
from tests.support.site import Site


class Objects:
    """An object store in memory, with what is used of obstore's functions. `fails`: how many calls of put fail."""

    class exceptions:
        AlreadyExistsError = FileExistsError

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.fails = 0
        self.modes: Counter[str] = Counter()

    def put(self, store: Any, name: str, data: Any, *, mode: str = "overwrite", use_multipart: bool) -> None:
        self.modes[mode if not use_multipart else "multipart"] += 1
        if self.fails:
            self.fails -= 1
            raise OSError("no way to the store")
        if mode == "create" and name in self.held:
            raise FileExistsError(name)
        self.held[name] = data.read_bytes() if isinstance(data, Path) else bytes(data)

    def head(self, store: Any, name: str) -> dict[str, Any]:
        if name not in self.held:
            raise FileNotFoundError(name)
        return {"size": len(self.held[name])}

    def get_range(self, store: Any, name: str, *, start: int, end: int) -> bytes:
        return self.held[name][start:end]


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    kept = Kept(tmp_path / "a", size=30)
    for number in range(10):
        kept.page(f"{number:016x}", f"line {number}", f"more {number}")
        kept.flush()
    kept.written()
    return kept


def shipper(kept: Kept, target: Any) -> Shipper:
    return Shipper(kept.directory, "a", target, lambda seconds: None)


def test_what_was_sent_to_a_directory_is_collected_as_the_directory_is(kept: Kept, tmp_path: Path) -> None:
    target = target_of(f"file://{tmp_path}/to%20here")
    one = shipper(kept, target)
    assert one.round()
    some = collected(tmp_path / "to here" / "a")
    assert 0 < len(some) < 20
    kept.close()
    assert one.round() and one.sent == len([*(kept.directory / "out").rglob("*.*")])
    assert collected(tmp_path / "to here" / "a") == collected(kept.directory)
    assert not [*(tmp_path / "to here").rglob("*.part")]


def test_a_process_that_begins_again_sends_what_is_not_there(kept: Kept, tmp_path: Path) -> None:
    kept.close()
    first = shipper(kept, DirectoryTarget(tmp_path / "to"))
    first.round()
    gone = sorted((tmp_path / "to").rglob("*.jsonl"))[2:4]
    for path in gone:
        path.unlink()
    second = shipper(kept, DirectoryTarget(tmp_path / "to"))
    assert second.round() and second.sent == 2
    assert collected(tmp_path / "to" / "a") == collected(kept.directory)


@pytest.mark.parametrize("there", [b"other", b""])
def test_another_file_of_that_name_is_kept_and_said(
    kept: Kept, tmp_path: Path, caplog: pytest.LogCaptureFixture, there: bytes
) -> None:
    kept.close()
    shipper(kept, DirectoryTarget(tmp_path / "to")).round()
    other = sorted((tmp_path / "to").rglob("*.jsonl"))[0]
    other.write_bytes(there)
    again = shipper(kept, DirectoryTarget(tmp_path / "to"))
    assert again.round() and again.refused == 1
    assert other.read_bytes() == there and "another file under that name" in caplog.text


def test_a_failure_is_said_and_tried_again_after_pauses_that_grow(kept: Kept) -> None:
    kept.close()
    objects = Objects()
    pauses: list[float] = []
    objects.fails = 12
    one = Shipper(kept.directory, "a", ObjectTarget(objects, None), pauses.append)
    one.start()
    assert one.finish(60.0) == 0
    assert one.failed == 12 and sorted(pauses) == pauses and max(pauses) == LONGEST
    assert one.sent == len(objects.held) == len([*(kept.directory / "out").rglob("*.*")])


def test_the_end_waits_with_a_bound(kept: Kept) -> None:
    kept.close()
    objects = Objects()
    objects.fails = 1 << 60
    one = Shipper(kept.directory, "a", ObjectTarget(objects, None))
    one.start()
    assert one.finish(0.2) > 0


def test_an_object_is_sent_under_a_condition_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects, file = Objects(), tmp_path / "file"
    file.write_bytes(b"x" * 10_000 + b"end")
    target = ObjectTarget(objects, None)
    assert target.send(file, "one") and not target.send(file, "one")
    assert objects.modes == {"create": 1}
    for changed in (b"y" + file.read_bytes()[1:], file.read_bytes()[:-1] + b"D", b"short"):
        objects.held["one"] = changed
        with pytest.raises(DifferentFile):
            target.send(file, "one")
    monkeypatch.setattr(ship_targets, "AT_ONCE", 100)
    assert target.send(file, "large") and objects.modes["multipart"] == 1


class Things(Spider):
    name = "things"
    start_urls = ["http://shop.example/"]  # noqa: RUF012 - as Spider has it

    def parse(self, response: Response) -> Any:
        yield {"url": response.url}


def test_a_crawl_that_has_ended_has_sent_all(site: Site, tmp_path: Path) -> None:
    site.page("http://shop.example/", "things")
    settings = {"UBI_STORES": ["items"], "UBI_SHIP": f"file://{tmp_path}/to", "UBI_DIR": str(tmp_path / "own")}
    (outcome,) = crawl(Things, site.proxy, settings=settings)
    (agent,) = (tmp_path / "to").iterdir()
    assert [json.loads(line) for line in collected(agent)] == outcome.items == [{"url": "http://shop.example/"}]
