"""`scrapy ubi ...` as a person uses it: what it answers, and what it says when it cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from scrapy.cmdline import execute
from scrapy.settings import Settings

from scrapy_ubi.cli.commands import answering
from scrapy_ubi.cli.monitor.status import CrawlStatus
from scrapy_ubi.protocol.ring import Ring
from scrapy_ubi.urls.host_rules import name_of, read_properties
from tests.cli.monitor.by_hand import CRAWL, CrawlByHand, letter
from tests.support.server import Server, free_port

LIMIT = 150  # seconds for a sub-process on a busy machine
ADDONS = 'ADDONS = {"scrapy_ubi.Addon": 500}'


class Shell:
    """Runs `scrapy ubi ...` in this process, as cmdline does, and keeps what it said."""

    def __init__(self, capsys: pytest.CaptureFixture[str], settings: dict[str, Any]) -> None:
        self.capsys = capsys
        self.settings = settings
        self.out = ""
        self.err = ""

    def __call__(self, *arguments: str) -> int:
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            execute(["scrapy", "ubi", *arguments], Settings({"ADDONS": {"scrapy_ubi.Addon": 500}, **self.settings}))
        self.out, self.err = self.capsys.readouterr()
        assert "Traceback" not in self.err
        return int(ended.value.code or 0)

    def json(self, *arguments: str) -> Any:
        assert self(*arguments, "--json") == 0, self.err
        return json.loads(self.out)


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Scrapy project here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)


@pytest.fixture
def crawl(one_server: Server) -> Iterator[CrawlByHand]:
    """A crawl of two agents with a letter."""
    with one_server.client() as client:
        by_hand = CrawlByHand(client)
        by_hand.agent("a1")
        by_hand.agent("a2", {"state": "waiting"})
        body = [{"host": "h1.example", "discovered": [["0" * 16, "http://h1.example/x", 2]]}]
        by_hand.post("a1", letter(body))
        by_hand.refuse("a1", reason="body is not JSON", head="\x80\x04")
        yield by_hand


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], outside: None, one_server: Server) -> Shell:
    return Shell(capsys, {"UBI_REDIS_URL": one_server.url})


def test_status_finds_the_only_crawl(shell: Shell, crawl: CrawlByHand) -> None:
    assert shell("status") == 0
    assert shell.out.splitlines()[0] == f"crawl {CRAWL}: running, 2 of 2 agents at work"
    data = shell.json("status")
    assert (data["crawl"], data["state"], [a["agent"] for a in data["agents"]]) == (CRAWL, "running", ["a1", "a2"])
    assert data["agents"][0]["profile"]["counters"]["pages"] == 100
    assert data["agents"][0]["inbox"] == 1


def test_agents_and_report_answer(shell: Shell, crawl: CrawlByHand) -> None:
    assert shell("agents") == 0
    assert "machine-1" in shell.out
    assert shell("report") == 0
    assert "communication overhead (e/n)" in shell.out
    assert shell.json("report")["measures"]["overhead"] == 2.5


def test_report_after_the_end(shell: Shell, crawl: CrawlByHand) -> None:
    for name in ("a1", "a2"):
        crawl.agent(name, {"state": "finished", "updated": 5.0}, flags="L")
    crawl.finish()
    data = shell.json("report")
    assert (data["state"], data["measures"]["agents"], data["measures"]["totals"]["pages"]) == ("finished", 2, 200)


def test_inbox_shows_letters_and_dead_letters(shell: Shell, crawl: CrawlByHand) -> None:
    assert shell("inbox", "a1") == 0
    assert "http://h1.example/x" in shell.out
    assert shell.json("inbox", "a1", "--full")["letters"][0]["hosts"] == {"h1.example": 1}
    assert shell("inbox", "a1", "--dead") == 0
    assert "body is not JSON" in shell.out
    assert shell.json("inbox", "a1", "--dead")["total"] == 1
    assert shell("inbox", "a2", "--limit", "1") == 0
    assert shell.out == "inbox of a2: 0 letters\n"


def test_inbox_of_an_unknown_agent_names_the_nearest(shell: Shell, crawl: CrawlByHand) -> None:
    assert shell("inbox", "a11") == 1
    assert shell.err == f"scrapy ubi: There is no agent 'a11' in crawl {CRAWL}; did you mean 'a1'?\n"
    assert shell("inbox", "zebra\x1b") == 1
    assert shell.err == f"scrapy ubi: There is no agent 'zebra\\x1b' in crawl {CRAWL}; there are a1, a2.\n"


def test_owner_is_the_rings(shell: Shell, crawl: CrawlByHand) -> None:
    ring = Ring.of({"a1": 200, "a2": 200})
    for number in range(10):
        data = shell.json("owner", f"http://h{number}.example/x")
        assert data["owner"] == ring.owner(f"h{number}.example")
        assert tuple(data["order"]) == ring.order(f"h{number}.example")


def test_owner_takes_a_url_as_requests_have_it(shell: Shell, crawl: CrawlByHand) -> None:
    assert shell.json("owner", "http://straße.example/x")["host"] == "strasse.example"


def test_owner_leaves_out_the_dead_and_the_leaving(shell: Shell, crawl: CrawlByHand) -> None:
    crawl.agent("a3", flags="l")
    crawl.agent("a4", dead=("00006132",))  # a2's incarnation
    data = shell.json("owner", "http://h1.example/")
    assert sorted(data["order"]) == ["a1", "a4"]


def test_owner_uses_the_crawls_partition(shell: Shell, crawl: CrawlByHand) -> None:
    for name in ("a1", "a2"):
        crawl.agent(name, {"partition": "domain"})
    assert shell.json("owner", "http://www.h1.example.co.uk/x")["host"] == "example.co.uk"


def test_owner_goes_by_the_rules_for_hosts_and_wants_them_to_be_the_crawls(
    shell: Shell, crawl: CrawlByHand, tmp_path: Path
) -> None:
    rules = tmp_path / "hosts.properties"
    rules.write_text("startsWith(www,) =\n")
    for name in ("a1", "a2"):
        crawl.agent(name, {"host_rules": name_of(read_properties(rules.read_text()))})
    asked = ("owner", "http://www.h1.example/x")
    assert shell.json(*asked, "-s", f"UBI_HOST_RULES={rules}")["host"] == "h1.example"
    for arguments in (asked, (*asked, "--json"), ("url", "http://www.h1.example/x")):
        assert shell(*arguments) == 1
        assert "UBI_HOST_RULES is 'none' here, and '1 rule, " in shell.err
    assert shell.json(*asked, "--agents", "a,b", "-s", f"UBI_HOST_RULES={rules}")["host"] == "h1.example"


def test_owner_offline_needs_no_redis(capsys: pytest.CaptureFixture[str], outside: None) -> None:
    shell = Shell(capsys, {})
    data = shell.json("owner", "http://h1.example/x", "--agents", "a,b=2,c", "--replicas", "100", "--replication", "0")
    assert tuple(data["order"]) == Ring.of({"a": 100, "b": 200, "c": 100}).order("h1.example")
    assert data["successors"] == []
    assert shell("owner", "http://h1.example/x", "--agents", "a,b") == 0
    assert shell.out.startswith("url    http://h1.example/x\nhost   h1.example\nowner  ")


@pytest.mark.parametrize("url", ["h1.example/x", "file:///etc/passwd", "http://", "mailto:a@b", ""])
def test_owner_of_what_is_no_url(capsys: pytest.CaptureFixture[str], outside: None, url: str) -> None:
    shell = Shell(capsys, {})
    assert shell("owner", url, "--agents", "a,b") == 1
    assert shell.err == f"scrapy ubi: {url!r} is not an absolute http or https URL, so no agent owns it.\n"


def test_owner_offline_takes_no_more_replicas_than_an_agent_may_have(
    capsys: pytest.CaptureFixture[str], outside: None
) -> None:
    shell = Shell(capsys, {})
    assert shell("owner", "http://h1.example/x", "--agents", "a,b=1000", "--replicas", "100000") == 1
    assert shell.err.startswith("scrapy ubi: --replicas times the capacity of 'b' is 100000000: ")


def test_owner_when_nobody_is_alive(shell: Shell, crawl: CrawlByHand) -> None:
    for name in ("a1", "a2"):
        crawl.agent(name, {"state": "left"}, flags="L")
    assert shell("owner", "http://h1.example/") == 1
    assert shell.err == f"scrapy ubi: No agent of crawl {CRAWL} is alive; name some with --agents a,b,c.\n"


def test_several_crawls_are_listed_and_one_must_be_named(shell: Shell, crawl: CrawlByHand, one_server: Server) -> None:
    CrawlByHand(crawl.client, "demo:news").agent("n1")
    at = f"{one_server.url}"
    assert shell("status") == 1
    assert shell.err == f"scrapy ubi: There are 2 crawls in {at}: demo:news, demo:web; name one with --crawl.\n"
    assert shell.json("status", "--crawl", "demo:news")["crawl"] == "demo:news"
    assert shell.json("status", "-s", "UBI_CRAWL=demo:news")["crawl"] == "demo:news"
    shell.settings["UBI_CRAWL"] = "demo:web"
    assert shell.json("status")["crawl"] == "demo:web"
    assert shell("status", "--crawl", "demo:newz") == 1
    assert shell.err == f"scrapy ubi: There is no crawl 'demo:newz' in {at}; did you mean 'demo:news'?\n"


def test_no_crawl_at_all(shell: Shell, one_server: Server) -> None:
    assert shell("status") == 1
    assert shell.err.startswith(f"scrapy ubi: There is no crawl in {one_server.url}: ")
    assert shell("status", "--crawl", "x") == 1
    assert shell.err == f"scrapy ubi: There is no crawl 'x' in {one_server.url}, nor any other.\n"


def test_no_project_and_no_redis_url(capsys: pytest.CaptureFixture[str], outside: None) -> None:
    shell = Shell(capsys, {})
    assert shell("status") == 1
    assert shell.err.startswith("scrapy ubi: UBI_REDIS_URL is not known, and there is no Scrapy project here: ")
    assert "--redis-url redis://" in shell.err


@pytest.mark.parametrize("named", ["UBI_REDIS_URL", "--redis-url"])
def test_redis_away_is_one_sentence_that_names_the_culprit(
    capsys: pytest.CaptureFixture[str], outside: None, named: str
) -> None:
    url = f"redis://:secret@127.0.0.1:{free_port()}/0"
    shell = Shell(capsys, {"UBI_REDIS_URL": url} if named == "UBI_REDIS_URL" else {})
    assert shell("status", *(["--redis-url", url] if named == "--redis-url" else [])) == 1
    assert shell.err.startswith(f"scrapy ubi: {named}: nothing listens at redis://127.0.0.1:")
    assert shell.err.count("\n") == 1
    assert "secret" not in shell.err


def test_wrong_password_and_bad_url(capsys: pytest.CaptureFixture[str], outside: None, one_server: Server) -> None:
    shell = Shell(capsys, {})
    with Server(one_server.kind, options=("--requirepass", "right")) as locked:
        assert shell("status", "--redis-url", locked.url) == 1
        assert "wants a password" in shell.err
        wrong = locked.url.replace("redis://", "redis://:wrong@")
        assert shell("status", "--redis-url", wrong) == 1
        assert "refuses this user or password" in shell.err
        assert shell("status", "--redis-url", locked.url.replace("redis://", "redis://:right@")) == 1
        assert "There is no crawl" in shell.err
    assert shell("status", "--redis-url", "http://x") == 1
    assert shell.err.startswith("scrapy ubi: --redis-url is malformed")
    assert shell("status", "--redis-url", one_server.url.replace("redis:", "rediss:") + "?ssl_nonsense=1") == 1
    assert shell.err.startswith("scrapy ubi: --redis-url is malformed: ") and "ssl_nonsense" in shell.err


def test_bad_crawl_name_is_a_setting_error(shell: Shell, crawl: CrawlByHand) -> None:
    assert shell("status", "--crawl", "no spaces") == 1
    assert shell.err.startswith("scrapy ubi: --crawl is 'no spaces': ")
    assert shell("status", "-s", "UBI_CRAWL=no spaces") == 1
    assert shell.err.startswith("scrapy ubi: UBI_CRAWL is 'no spaces': ")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("dance",),
        ("inbox",),
        ("status", "--loud"),
        ("inbox", "a1", "--limit", "0"),
        ("owner", "http://x/", "--agents", "a=-1"),
        ("owner", "http://x/", "--agents", "a=x"),
        ("owner", "http://x/", "--agents", "a,b,a=2"),
        ("status", "-s", "novalue"),
    ],
)
def test_a_wrong_command_line_is_status_2(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert shell(*arguments) == 2


@pytest.mark.parametrize("what", ["status", "agents", "inbox", "owner", "report"])
def test_every_sub_command_has_help(shell: Shell, what: str) -> None:
    assert shell(what, "--help") == 0
    assert shell.out.startswith(f"usage: scrapy ubi {what} ")
    for part in ("--json", "--crawl", "--redis-url", "examples:", "Shows "):
        assert part in shell.out


def test_garbage_everywhere_is_shown_not_raised(shell: Shell, crawl: CrawlByHand) -> None:
    crawl.client.hset(crawl.keys.agents, mapping={"a1": b"\xff\x80", "x\x1b]0;evil\x07": "{}"})
    crawl.client.hset(crawl.keys.beats, "a2", "\x1b[2J")
    crawl.post("a1", {b"body": b"\x80\x04", b"\x1b": b"\x1b"})
    for arguments in (("status",), ("agents",), ("report",), ("inbox", "a1", "--full"), ("owner", "http://h/")):
        assert shell(*arguments) == 0
        assert "\x1b" not in shell.out + shell.err
        shell.json(*arguments)
    assert shell.json("status")["unreadable"] == 3


def _process(*arguments: str, cwd: Path, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "scrapy", *arguments],
        cwd=cwd,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.processes
@pytest.mark.parametrize("watch", [(), ("--watch",)])
def test_a_disk_that_is_full_of_answers_is_said(
    crawl: CrawlByHand, one_server: Server, tmp_path: Path, watch: tuple[str, ...]
) -> None:
    command = [sys.executable, "-m", "scrapy", "ubi", "status", "--redis-url", one_server.url, *watch]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT)
    assert ended.stderr.strip() == (
        "scrapy ubi: The answer cannot be written to standard output (No space left on device)."
    )
    assert ended.returncode == 1


@pytest.mark.processes
def test_command_runs_in_a_project_with_its_settings(crawl: CrawlByHand, one_server: Server, tmp_path: Path) -> None:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "settings.py").write_text(f"{ADDONS}\nBOT_NAME = 'shop'\nUBI_REDIS_URL = {one_server.url!r}\n")
    run = _process("ubi", "status", cwd=tmp_path, PYTHONIOENCODING="ascii")
    out, err = run.communicate(timeout=LIMIT)
    assert (run.returncode, err) == (0, "")
    assert out.startswith(f"crawl {CRAWL}: running")
    listing = _process(cwd=tmp_path)
    listed = listing.communicate(timeout=LIMIT)[0]
    assert "  ubi           Crawl a site; run agents of a spider; look at a crawl" in listed


@pytest.mark.processes
def test_watch_draws_until_the_crawl_is_finished(crawl: CrawlByHand, one_server: Server, tmp_path: Path) -> None:
    run = _process("ubi", "status", "--watch", "--json", "--redis-url", one_server.url, cwd=tmp_path)
    guard = threading.Timer(LIMIT, run.kill)
    guard.start()
    try:
        assert run.stdout is not None
        assert json.loads(run.stdout.readline())["state"] == "running"
        crawl.finish()
        states = [json.loads(line)["state"] for line in run.stdout]
        assert states[-1] == "finished"
        assert run.wait(LIMIT) == 0
    finally:
        guard.cancel()
        run.kill()
        run.communicate()


def test_a_misspelt_setting_on_the_command_line_is_refused(shell: Shell, crawl: CrawlByHand) -> None:
    for words in (["status", "-s", "UBI_CRAWLL=another"], ["-s", "UBI_CRAWLL=another", "reset", "--yes"]):
        assert shell(*words) == 1
        assert shell.err == "scrapy ubi: UBI_CRAWLL is not a setting of scrapy_ubi: did you mean UBI_CRAWL.\n"
    shell.settings["UBI_OF_ANOTHER_VERSION"] = 1
    assert shell("status", "-s", "LOG_LEVEL=INFO") == 0


def test_what_a_server_says_while_one_watches_moves_no_cursor(
    shell: Shell, crawl: CrawlByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, reads = answering.read_status, []

    def refused_once(client: redis.Redis, name: str) -> CrawlStatus:
        reads.append(name)
        if len(reads) == 1:
            crawl.finish()
            raise redis.ResponseError("\x1b[2J")
        return read(client, name)

    monkeypatch.setattr(answering, "read_status", refused_once)
    monkeypatch.setattr(answering, "WATCH_EVERY", 0.0)
    assert shell("status", "--watch") == 0
    assert "\\x1b[2J" in shell.err and "\x1b" not in shell.err


def test_watch_draws_no_more_than_the_terminal_has_room_for(
    shell: Shell, crawl: CrawlByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(100):
        crawl.agent(f"b{i:02}")
    crawl.finish()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("COLUMNS", "40")
    assert shell("status", "--watch") == 0
    drawn = shell.out.removeprefix(answering.CLEAR).splitlines()
    assert len(drawn) == 23 and max(map(len, drawn)) == 40  # the cursor needs the last row
    assert drawn[0].startswith(f"crawl {CRAWL}: finished") and drawn[-1].startswith("all ")


@pytest.mark.processes
def test_watch_waits_for_a_redis_that_went_away(crawl: CrawlByHand, one_server: Server, tmp_path: Path) -> None:
    run = _process("ubi", "status", "--watch", "--redis-url", one_server.url, cwd=tmp_path)
    guard = threading.Timer(LIMIT, run.kill)
    guard.start()
    try:
        assert run.stdout is not None and run.stderr is not None
        assert run.stdout.readline().startswith("crawl")
        one_server.kill()
        assert run.stderr.readline().rstrip().endswith("Trying again.")
        one_server.start()
        crawl.agent("a1", {"state": "finished"})
        crawl.finish()
        assert "finished" in run.stdout.read()
        assert run.wait(LIMIT) == 0
    finally:
        guard.cancel()
        run.kill()
        run.communicate()


@pytest.mark.processes
def test_output_into_a_closed_pipe_is_no_traceback(crawl: CrawlByHand, one_server: Server, tmp_path: Path) -> None:
    run = _process("ubi", "status", "--redis-url", one_server.url, cwd=tmp_path)
    assert run.stdout is not None and run.stderr is not None
    run.stdout.close()
    err = run.stderr.read()
    run.wait(LIMIT)
    run.stderr.close()
    assert "Traceback" not in err and "Exception ignored" not in err


@pytest.mark.processes
@pytest.mark.parametrize(
    ("arguments", "closed", "status"),
    [(("status", "--watch"), ">&-", 0), (("inbox", "nobody"), "2>&-", 1), (("reset",), "<&-", 1)],
)
def test_a_stream_that_is_closed_is_one_at_which_nobody_is(
    crawl: CrawlByHand, one_server: Server, tmp_path: Path, arguments: tuple[str, ...], closed: str, status: int
) -> None:
    crawl.finish()
    crawl.client.delete(crawl.keys.agents, crawl.keys.beats)
    words = [sys.executable, "-m", "scrapy", "ubi", *arguments, "--redis-url", one_server.url, "--crawl", CRAWL]
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *words]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert "Traceback" not in ended.stderr
