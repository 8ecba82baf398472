"""Tables for people: what they say, that they fit, and that nothing from outside reaches a terminal as it is."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from scrapy_ubi.agent.profile.profile import Profile, read_profile
from scrapy_ubi.agent.profile.summed_up import SummedUp, read_sum, sum_of
from scrapy_ubi.cli.commands import inbox_report
from scrapy_ubi.cli.monitor import document, headline, render_report, render_status
from scrapy_ubi.cli.monitor.inbox_text import Box, DeadLetter, read_letter
from scrapy_ubi.cli.monitor.status import AgentStatus, CrawlStatus
from scrapy_ubi.cli.monitor.url_owner import Ownership
from scrapy_ubi.ground.untrusted.terminal_text import width
from scrapy_ubi.protocol.beat import Beat
from tests.cli.monitor.by_hand import VIEW, letter, profile

HOSTILE = "\x1b[2J\u202e" + "日" * 200 + "\n"


def agent(name: str, state: str = "crawling", **changes: object) -> AgentStatus:
    read = read_profile(name, json.dumps(profile(name, **changes)).encode())
    assert isinstance(read, Profile), read
    return AgentStatus(name, state, read, Beat("0000aaaa", 0, 200, VIEW), inbox=4, dead_letters=1, age=1.0)


def crawl(*agents: AgentStatus, finished: str = "") -> CrawlStatus:
    return CrawlStatus(
        "demo:web",
        agents,
        control={"run": "77", "finished": finished},
        now=1_700_000_060.0,
        unreadable=sum(len(a.trouble) for a in agents),
    )


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 100 columns, where a test does not ask for another."""
    monkeypatch.setenv("COLUMNS", "100")


def fits(lines: list[str], columns: int = 100) -> bool:
    return all(width(line) <= columns and line.isprintable() for line in lines)


def test_live_has_a_row_an_agent_and_the_sum() -> None:
    lines = render_status.live(crawl(agent("a1"), agent("a2", state="waiting", counters={"pages": 1234})))
    assert lines == [
        "crawl demo:web: running, 2 of 2 agents at work",
        "",
        "agent  state     pages  pages/s  hosts  queue  inbox  forwarded",
        "a1     crawling    100      9.5     10     40      4        250",
        "a2     waiting   1,234      9.5     10     40      4        250",
        "all              1,334     19.0     20     80      8        500",
    ]


def test_live_within_a_terminal_leaves_out_the_last_agents() -> None:
    many = crawl(*(agent(f"a{i}") for i in range(10)))
    lines = render_status.live(many)
    assert render_status.live_within(many, 100, len(lines)) == lines
    assert render_status.live_within(many, 100, len(lines) - 1) == [*lines[:11], "... 2 more agents", lines[-1]]
    assert render_status.live_within(many, 100, 5) == [*lines[:3], "... 10 more agents", lines[-1]]
    assert render_status.live_within(many, 100, 3) == lines[:3]
    assert render_status.live_within(crawl(agent("a1")), 10, 1) == ["crawl dem…"]


def test_headings_hold_the_longest_name_of_a_crawl_and_fit() -> None:
    longest = replace(crawl(agent("a1"), agent("a2")), crawl="c" * 64)
    box = Box(12_345)
    heads = [render_status.live(longest), render_status.agents(longest), render_report.report(longest)]
    heads += [inbox_report.inbox_lines("a" * 64, box, 0.0, full=False), inbox_report.dead_lines("a" * 64, box, 0.0)]
    assert all(fits(lines) for lines in heads)
    assert render_status.live(longest)[:3] == [f"crawl {'c' * 64}: running, 2 of 2 agents at", "work", ""]


def test_headings_name_the_arguments_fit_to_be_seen() -> None:
    of = crawl(agent("a1", arguments={"site": "a", "n": "1"}), agent("a2", arguments={"site": "\x1b[2J" * 50}))
    head = headline.headline(of)
    assert head[1].startswith("arguments: site=a, n=1; site=\\x1b[2J") and fits(render_status.live(of))
    assert len(headline.headline(crawl(agent("a1")))) == 1


def test_live_counts_pages_of_the_dead_but_not_their_hosts() -> None:
    lines = render_status.live(crawl(agent("a1"), agent("a2", state="dead")))
    assert lines[0].endswith("1 of 2 agents at work")
    assert lines[-1].split() == ["all", "200", "9.5", "10", "40", "8", "500"]


def test_live_says_that_redis_is_full_and_the_remedy() -> None:
    lines = render_status.live(crawl(agent("a1", state="blocked"), agent("a2", state="blocked")))
    assert "maxmemory" in " ".join(lines)
    assert fits(lines)


def test_live_says_when_views_differ_and_what_is_unreadable() -> None:
    other = AgentStatus("a2", "crawling", beat=Beat("0000bbbb", 0, 200, "f" * 16), trouble=("profile: not JSON",))
    lines = render_status.live(crawl(agent("a1"), other))
    assert lines[0].endswith(", 2 different views")
    assert lines[-2:] == ["1 values in Redis are unreadable:", "  a2: profile: not JSON"]


@pytest.mark.parametrize("columns", [80, 90, 100])
@pytest.mark.parametrize("text", [render_status.live, render_status.agents, render_report.report])
def test_hostile_values_fit_and_are_printable(text: object, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    nasty = agent(
        "a" * 64,
        host_name=HOSTILE,
        spider=HOSTILE,
        counters={
            "failed_at": {HOSTILE: {HOSTILE: 1}},
            "failed": {HOSTILE: 1} | {f"reason {i}": 1 for i in range(100)},
            "pages": 2**62,
            "bytes_sent": 2**62,
        },
    )
    broken = AgentStatus(HOSTILE, "unreadable", trouble=(HOSTILE,))
    lines = text(crawl(nasty, broken))  # type: ignore[operator]
    assert fits(lines, columns)


def test_in_80_columns_what_can_be_spared_is_left_out_and_names_stay_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "crawler-box-3f2a91c4"
    busy = {"pages": 123_456, "forwarded": 234_567, "suppressed": 345_678}
    of = crawl(agent(name, counters=busy), agent("a2"))
    tables = [render_status.agents(of), render_report.report(of), render_status.live(of)]
    assert all(fits(lines, 80) for lines in tables)
    assert tables[0][2].split() == "agent state capacity machine pid up seen dead".split()
    shares = next(line for line in tables[1] if line.startswith("agent "))
    assert shares.split() == "agent state pages share average/s hosts forwarded failed".split()
    assert all(any("craw" in line and "91c4" in line for line in lines) for lines in tables)


def test_agents_names_machine_process_and_view() -> None:
    lines = render_status.agents(crawl(agent("a1", capacity=2.0)))
    assert lines[2].split() == "agent state capacity replicas machine pid up seen view dead".split()
    assert lines[3].split("  ")[0] == "a1"
    for part in ("2", "200", "machine-1", "4711", "1 min 0 s", "1.0 s", VIEW[:8]):
        assert part in lines[3]


def test_what_lossy_steps_joined_is_summed_up_with_an_example() -> None:
    one = {
        "joined": {"index": 1, "path-case": 2},
        "examples": {"path-case": [["http://h/A", "http://h/a"]], "index": []},
    }
    other = {"joined": {"index": 4}, "examples": {"index": [["http://h/\x1b[31mindex.html", "http://h/"]]}}
    of = crawl(agent("a1", counters=one), agent("a2", counters=other))
    text = "\n".join(render_report.report(of))
    assert "joined by lossy step  URLs\nindex                    5\npath-case                2\n" in text
    assert "path-case: not fetched, for the second has the same normal form:\n  http://h/A\n  http://h/a" in text
    assert "\x1b" not in text
    assert "URLs joined by lossy steps: index 5, path-case 2 (scrapy ubi report" in "\n".join(render_status.live(of))
    assert document.report(of)["measures"]["joined"] == {"index": 5, "path-case": 2}
    assert document.report(of)["agents"][0]["profile"]["counters"]["joined"] == {"index": 1, "path-case": 2}


def test_report_gives_every_measure() -> None:
    of = crawl(
        agent("a1", state="finished"),
        agent(
            "a2",
            state="finished",
            counters={"pages": 120, "done": 120, "noted": {"truncated": 5, "download/given_up": 3}},
        ),
        finished="77 a1",
    )
    text = "\n".join(render_report.report(of))
    for line in (
        "crawl demo:web: finished, 0 of 2 agents at work",
        "pages done (n)                220 in 10 s",
        "pages fetched                 220, retries included",
        "unique pages (u)              200",
        "overlap (n-u)/u               0.1000",
        "communication overhead (e/n)  2.2727 URLs forwarded a page",
        "pages a second                22.0 on average, 0.0 now",
        "balance of pages              highest 1.09 x fair, mean deviation 9.1%",
        "balance of hosts              highest 1.00 x fair, mean deviation 0.0%",
        "URLs forwarded, suppressed    500, 140",
        "failed URLs by reason  URLs",
        "http 404                  6",
        "failed downloads by reason  downloads",
        "given_up                            3",
        "what else happened  times",
        "truncated               5",
    ):
        assert line in text.splitlines(), text
    assert fits(text.splitlines())


def test_report_says_who_was_lost() -> None:
    assert "lost with" not in " ".join(render_report.report(crawl(agent("a1"), agent("a2"))))
    of = crawl(*(agent(name, counters={"lost_agents": lost}) for name, lost in (("a1", 0), ("a2", 2), ("a3", 2))))
    lines = render_report.report(of)
    assert "2 agents were lost with what no copy (UBI_REPLICATION) may be left of" in " ".join(lines)
    assert fits(lines)


def test_report_says_at_which_hosts() -> None:
    one = {
        "failed": {"http/404": 20, "limit/host_pages": 7, "x": 1},
        "failed_at": {"http/404": {f"h{i}.example": 1 for i in range(20)}, "limit/host_pages": {"calendar.example": 7}},
        "noted": {"truncated": 2},
        "noted_at": {"truncated": {"\x1b[31m.example": 1, "b" * 200: 1}},
    }
    other = {"failed": {"http/404": 3}, "failed_at": {"http/404": {"h7.example": 3}}}
    of = crawl(agent("a1", counters=one), agent("a2", counters=other))
    lines = render_report.report(of)
    assert "failed URLs by reason  URLs  hosts, most first" in lines
    assert "http/404                 23  h7.example, h0.example, h1.example, h10.example, h11.example" in lines
    assert "limit/host_pages          7  calendar.example" in lines
    assert "x                         1" in lines
    assert fits(lines)
    measures = document.report(of)["measures"]
    assert measures["failed_at"]["http/404"][:2] == ["h7.example", "h0.example"]
    assert document.report(of)["agents"][1]["profile"]["counters"]["failed_at"] == {"http/404": {"h7.example": 3}}


def test_report_of_agents_that_all_are_unreadable_knows_nothing() -> None:
    lines = render_report.report(crawl(AgentStatus("a1", "unreadable", trouble=("profile: not JSON",))))
    assert "overlap (n-u)/u               not known" in lines


def _fields(body: object) -> dict[bytes, bytes]:
    return {name.encode(): value.encode() for name, value in letter(body).items()}


def test_inbox_shows_hosts_and_first_urls() -> None:
    found = [[f"{i:016x}", f"http://h1.example/{i}", i] for i in range(5)]
    body = [{"host": "h1.example", "discovered": found}] + [
        {"host": f"h{i}.example", "done": ["0" * 16]} for i in range(2, 7)
    ]
    body[-1]["notes"] = [3, {"robots": 1}]
    box = Box(7, (read_letter("a1", b"1700000000000-0", _fields(body)),))
    lines = inbox_report.inbox_lines("a1", box, 1_700_000_005.0, full=False)
    assert lines[0] == "inbox of a1: 7 letters, the oldest 1 of them:"
    assert lines[2].startswith("1700000000000-0  5.0 s old  ")
    assert lines[2].endswith("from a2  discovery 17  11 records")
    assert lines[3].startswith("  hosts: h1.example (5), h2.example (1), h3.example (1), ")
    assert lines[3].endswith("h5.example (1), and 1 more")
    assert lines[4:] == [f"     {i}  http://h1.example/{i}" for i in range(3)] + ["        and 2 more URLs"]
    full = "\n".join(inbox_report.inbox_lines("a1", box, 1_700_000_005.0, full=True))
    assert "http://h1.example/4" in full
    assert "done at h6.example: 0000000000000000" in full
    assert 'notes of h6.example, version 3: {"robots":1}' in full


def test_inbox_of_garbage_and_long_urls_fits() -> None:
    url = "http://h1.example/" + "日\x1b" * 300
    box = Box(
        2,
        (
            read_letter("a1", b"1-1", {b"\x1b": b"\xff" * 1000}),
            read_letter("a1", b"1-2", _fields([{"host": "h1.example", "discovered": [["0" * 16, url, 1]]}])),
        ),
    )
    lines = inbox_report.inbox_lines("a1", box, 5.0, full=False)
    assert fits(lines)
    assert any("unreadable: " in line for line in lines)
    assert all(line.isprintable() for line in inbox_report.inbox_lines("a1", box, 5.0, full=True))


def test_dead_letters_give_the_reason() -> None:
    lines = inbox_report.dead_lines(
        "a1", Box(1, dead=(DeadLetter("1-1", 0.0, "body is not JSON", "a2", "12", "x" * 256),)), 5.0
    )
    assert lines[0] == "dead letters of a1: 1 letter"
    assert lines[3] == "  body is not JSON"
    assert fits(lines)


def test_owner_names_owner_then_successors_then_the_rest() -> None:
    answer = Ownership("http://h1.example/x", "h1.example", "host", 1, ("a3", "a1", "a2"))
    assert render_status.owner(answer) == [
        "url         http://h1.example/x",
        "host        h1.example",
        "owner       a3",
        "then        a1 (keeps a copy)",
        "after them  a2",
    ]


def test_documents_are_json_without_control_characters() -> None:
    nasty = agent("a1", host_name=HOSTILE, counters={"failed": {HOSTILE: 1}})
    body = [{"host": "h1.example", "discovered": [["0" * 16, "http://h1.example/\x1b\x7f", 1, 5, {"meta": 1}]]}]
    box = Box(1, (read_letter("a1", b"1-1", _fields(body)),))
    for data in (
        document.status(crawl(nasty)),
        document.report(crawl(nasty)),
        document.inbox("c", "a1", box),
        document.dead("c", "a1", Box(0)),
    ):
        text = json.dumps(data)
        assert "\x1b" not in text and text.isascii()
    assert document.inbox("c", "a1", box)["letters"][0]["deltas"][0]["discovered"][0]["priority"] == 5


def test_live_of_a_finished_crawl_sums_what_the_agents_had() -> None:
    lines = render_status.live(crawl(agent("a1", state="finished"), agent("a2", state="finished"), finished="77 a1"))
    assert lines[-1].split() == ["all", "200", "0.0", "20", "80", "8", "500"]


def test_those_who_are_long_gone_have_a_row_and_are_in_the_sums() -> None:
    gone = {name: json.dumps(profile(name, counters={"pages": 450})) for name in ("old1", "old2")}
    found = read_sum(sum_of(None, gone | {"odd": "{"}, {}).encode())
    assert isinstance(found, SummedUp)
    status = replace(crawl(agent("a1")), summed_up=found)
    assert render_status.live(status)[2:] == [
        "agent        state     pages  pages/s  hosts  queue  inbox  forwarded",
        "a1           crawling    100      9.5     10     40      4        250",
        "3 long gone              900                                      500",
        "all                    1,000      9.5     10     40      4        750",
        "",
        "Agents long gone without figures that could be read: 1.",
    ]
    lines = render_report.report(status)
    assert fits(lines)
    assert any(line.split()[:5] == ["3", "long", "gone", "900", "90.0%"] for line in lines)
    assert any(line.startswith("pages fetched") and "1,000" in line for line in lines)
    for written in (document.report(status), document.status(status)):
        assert (written["summed_up"]["agents"], written["summed_up"]["counters"]["pages"]) == (3, 900)
    assert document.status(crawl(agent("a1")))["summed_up"] is None
    broken = replace(crawl(agent("a1")), sum_trouble="not JSON", unreadable=1)
    assert headline.remarks(broken)[-1] == "  the sum of those long gone: not JSON"
