"""`scrapy ubi wacz`: the referee finds no fault, and each line of the index reads its record."""

from __future__ import annotations

import gzip
import json
import random
import zipfile
from argparse import Namespace
from io import BytesIO
from pathlib import Path

import pytest
from scrapy.settings import Settings
from wacz.validate import Validation
from warcio.archiveiterator import ArchiveIterator

from scrapy_ubi.cli.commands import wacz as command
from scrapy_ubi.cli.commands.wacz import UbiOutputExists
from scrapy_ubi.outputs.warc.wacz_file import Wacz
from tests.outputs.test_warc_collect import Warcs

PAGES = 600


def made(output: Path, *warcs: Path, dirs: tuple[Path, ...] = (), force: bool = False) -> dict[str, object]:
    opts = Namespace(
        warc=[str(path) for path in warcs], output=str(output), force=force, dir=[str(path) for path in dirs],
        crawl=None, run=None,
    )  # fmt: skip
    return command.run(Settings(), opts).document


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    place = tmp_path_factory.mktemp("agents")
    one, other = Warcs(place / "a", size="100000"), Warcs(place / "b", agent="b")
    for number in range(PAGES):
        one.fetched(number, b"page %d " % number * (number % 300))
        if number % 3 == 0:
            other.fetched(number, b"page %d " % number * (number % 300))
    for kept in (one, other):
        kept.flush()
        kept.close()
    return place / "a", place / "b"


def validate(path: Path) -> None:
    """As `wacz validate` does, but for its comparison of indexes, which it leaves out, too."""
    found = Validation(str(path))
    assert found.version == "1.1.1" and found.hash_type == "sha256"
    assert found.check_required_contents() == 0
    assert found.frictionless_validate() and found.check_file_paths() and found.check_file_hashes()
    assert found.check_data_package_hash_and_sig()


def check_lines(path: Path) -> int:
    """1,000 lines of the index, by chance, read their records. How many lines there are."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.startswith("archive/")]
        assert all(archive.getinfo(name).compress_type == zipfile.ZIP_STORED for name in names)
        warcs = {name.removeprefix("archive/"): archive.read(name) for name in names}
        packed = archive.read("indexes/index.cdx.gz")
        lines = gzip.decompress(packed).splitlines()
        assert lines == sorted(lines)
        for line in archive.read("indexes/index.idx").splitlines()[1:]:
            said = json.loads(line.split(b" ", 2)[2])
            first = gzip.decompress(packed[said["offset"] :][: said["length"]]).splitlines()[0]
            assert first.startswith(b" ".join(line.split(b" ", 2)[:2]))
    for line in random.Random(seed).choices(lines, k=1000):
        fields = json.loads(line.split(b" ", 2)[2])
        data = warcs[fields["filename"]][int(fields["offset"]) :][: int(fields["length"])]
        (record,) = ArchiveIterator(BytesIO(data))
        assert record.rec_headers.get_header("WARC-Target-URI") == fields["url"]
        assert record.rec_headers.get_header("WARC-Payload-Digest") == fields["digest"]
    return len(lines)


def test_of_agents_each_page_once(agents: tuple[Path, ...], tmp_path: Path) -> None:
    found = made(tmp_path / "crawl.wacz", dirs=agents)
    assert found["records"] == found["pages"] == PAGES and found["broken"] == 0
    validate(tmp_path / "crawl.wacz")
    assert check_lines(tmp_path / "crawl.wacz") == PAGES
    assert [path.name for path in tmp_path.iterdir()] == ["crawl.wacz"]


def test_of_files_with_an_index_and_without(
    agents: tuple[Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_ubi.outputs.warc.wacz_file.LINES", 50)
    warcs = sorted((agents[0] / "out/warc").glob("*.warc.gz"))
    assert len(warcs) > 1
    found = made(tmp_path / "with.wacz", *warcs)
    assert (found["files"], found["records"]) == (len(warcs), PAGES)
    validate(tmp_path / "with.wacz")
    bare = tmp_path / "bare"
    bare.mkdir()
    for path in warcs:
        (bare / path.name).write_bytes(path.read_bytes())
    made(tmp_path / "without.wacz", bare / "*.warc.gz")
    validate(tmp_path / "without.wacz")
    assert check_lines(tmp_path / "without.wacz") == PAGES
    with zipfile.ZipFile(tmp_path / "with.wacz") as one, zipfile.ZipFile(tmp_path / "without.wacz") as other:
        assert one.read("indexes/index.cdx.gz") == other.read("indexes/index.cdx.gz")


def test_a_file_that_is_there_stays(agents: tuple[Path, ...], tmp_path: Path) -> None:
    output = tmp_path / "crawl.wacz"
    output.write_bytes(b"precious")
    with pytest.raises(UbiOutputExists, match="--force"):
        made(output, dirs=agents)
    assert output.read_bytes() == b"precious"
    made(output, dirs=agents, force=True)
    validate(output)


def test_progress_goes_to_its_end(agents: tuple[Path, ...], tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    warcs = sorted((agents[0] / "out/warc").glob("*.warc.gz"))
    with (tmp_path / "out").open("wb") as file:
        Wacz(warcs, tmp_path, lambda done, total: told.append((done, total))).write(file)
    assert told == sorted(told) and told[-1][0] == told[-1][1] and len(told) > len(warcs)
