"""Sessions: what a jar holds for a host is noted with it, and put into the next owner's jar."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.downloadermiddlewares import cookies
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from tldextract import TLDExtract

from scrapy_ubi.adapter.process.log_once import Notices
from scrapy_ubi.adapter.requests.check import BROUGHT
from scrapy_ubi.adapter.requests.inflight import Flight
from scrapy_ubi.adapter.requests.observers import PageObserver
from scrapy_ubi.adapter.scheduling.sessions import MOST, Sessions, read_row
from scrapy_ubi.protocol.host import Entry, Notes
from scrapy_ubi.protocol.memory_state import SetState
from scrapy_ubi.protocol.notes import canonical
from scrapy_ubi.settings import UbiSettings

NOW = 1_800_000_000.0
LATER = "Expires=Wed, 01 Jan 2098 00:00:00 GMT"


@pytest.fixture(autouse=True)
def _no_list_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrapy fetches the list of public suffixes with the first cookie."""
    monkeypatch.setattr(cookies, "_split_domain", TLDExtract(suffix_list_urls=(), include_psl_private_domains=True))


class Hosts:
    """The notes of hosts, without a node."""

    def __init__(self) -> None:
        self.changed: Any = None

    def on_change(self, callback: Any) -> None:
        self.changed = callback

    def get(self, state: SetState, section: str) -> object | None:
        return json.loads(state.notes.text or "{}").get(section)

    def put(self, state: SetState, section: str, value: object | None) -> None:
        notes = json.loads(state.notes.text or "{}")
        notes.pop(section, None)
        state.notes = Notes(state.notes.version + 1, canonical(notes | ({section: value} if value is not None else {})))


class Agent:
    """The sessions of one agent, its jars, and what it says."""

    def __init__(self, wall: Callable[[], float] = lambda: NOW, **settings: Any) -> None:
        self.cookies = CookiesMiddleware()
        self.hosts, self.counted = Hosts(), Counter[str]()
        crawler: Any = SimpleNamespace(get_downloader_middleware=lambda cls: self.cookies)
        node: Any = SimpleNamespace(hosts=self.hosts)
        chosen = UbiSettings(redis_url="redis://localhost", **settings)
        self.added: list[object] = []
        self.sessions = Sessions(crawler, node, chosen, Notices(), self._count, self.added.append, wall)

    def _count(self, stat: str) -> None:
        self.counted[stat] += 1

    def answered(self, url: str, *set_cookies: str, state: SetState, **meta: Any) -> None:
        """A page was loaded and set these cookies; Scrapy lets go of it."""
        request = Request(url, meta=meta)
        self.cookies.process_response(request, Response(url, headers={"Set-Cookie": list(set_cookies)}))
        self.sessions.keep(request, state)

    def sends(self, url: str, state: SetState | None = None, **meta: Any) -> str:
        """The Cookie header of a request for this page, of the host of this state."""
        if state is not None:
            visit: Any = SimpleNamespace(host=state.host, state=state, entry=Entry(1, url, 0))
            self.sessions.restore(visit)
        request = Request(url, meta=meta)
        self.cookies.process_request(request)
        return (request.headers.get("Cookie") or b"").decode()


def beside(agent: Agent, url: str, *set_cookies: str, **meta: Any) -> None:
    """A callback awaited a download that set these cookies."""
    request = Request(url, meta=meta)
    response = Response(url, headers={"Set-Cookie": list(set_cookies)})
    agent.sessions.received(Flight(request, "h1.example"), response)
    agent.cookies.process_response(request, response)


def yielded(agent: Agent, url: str, **meta: Any) -> Request:
    """A request as a page of this agent yields it."""
    request = Request(url, meta=meta)
    for observer in agent.added[:1]:
        assert isinstance(observer, PageObserver)
        assert not observer.refuses(Flight(Request("http://h0.example/"), "h0.example"), Response(url), request)
    return request


def fetched(agent: Agent, request: Request, state: SetState) -> str:
    """The Cookie header with which an owner fetches a request, up to the end of its page."""
    visit: Any = SimpleNamespace(host=state.host, state=state, entry=Entry(1, request.url, 0))
    flight = Flight(request, state.host, visit)
    agent.sessions.begun(flight)
    assert BROUGHT not in request.meta, "spiders see nothing of it"
    agent.cookies.process_request(request)
    agent.sessions.ended(flight)
    return (request.headers.get("Cookie") or b"").decode()


def test_cookies_of_a_login_that_a_callback_awaits_go_with_the_requests_of_that_host() -> None:
    first, owner, heir = Agent(), Agent(), Agent()
    state = SetState("h1.example")
    beside(first, "http://h1.example/login", "session=a1; Path=/")
    assert BROUGHT not in yielded(first, "http://h2.example/a").meta, "those of no other host"
    assert BROUGHT not in yielded(first, "http://h1.example/a", cookiejar="b").meta, "those of no other jar"
    request = yielded(first, "http://h1.example/a")
    assert fetched(owner, request, state) == "session=a1"
    assert heir.sends("http://h1.example/b", handed_over(state)) == "session=a1", "they are noted with the host"


def test_what_the_owner_has_itself_counts() -> None:
    first, owner = Agent(), Agent()
    state = SetState("h1.example")
    beside(first, "http://h1.example/login", "session=old; Path=/", "theme=dark; Path=/")
    owner.answered("http://h1.example/", "session=new; Path=/", state=state)
    assert fetched(owner, yielded(first, "http://h1.example/a"), state) == "session=new; theme=dark"


def test_who_owns_the_host_notes_what_came_beside_the_scheduler_with_its_next_page() -> None:
    owner, heir = Agent(), Agent()
    state = SetState("h1.example")
    beside(owner, "http://h1.example/login", "session=a1; Path=/")
    assert fetched(owner, Request("http://h1.example/a"), state) == "session=a1"
    assert heir.sends("http://h1.example/b", handed_over(state)) == "session=a1"
    assert BROUGHT not in yielded(owner, "http://h1.example/c").meta, "its notes have them"


@pytest.mark.parametrize("text", ["", "{", 7, "[]", '{"cookies":1}', '{"cookies":[[null,"a","b",".other.example"]]}'])
def test_what_is_brought_and_does_not_hold_is_counted_and_left(text: object) -> None:
    owner, state = Agent(), SetState("h1.example")
    assert fetched(owner, Request("http://h1.example/a", meta={BROUGHT: text}), state) == ""
    assert owner.counted["ubi/cookies/refused"] == 1


def test_cookies_of_a_robots_txt_are_no_session() -> None:
    first = Agent()
    meta = {"dont_obey_robotstxt": True}
    request = Request("http://h1.example/robots.txt", callback=NO_CALLBACK, meta=meta)
    first.sessions.received(Flight(request, "h1.example"), Response(request.url, headers={"Set-Cookie": "a=1"}))
    assert not first.added


def test_an_odd_jar_and_too_many_cookies_are_brought_nowhere() -> None:
    first = Agent()
    beside(first, "http://h1.example/login", "session=a1; Path=/", cookiejar=(1, 2))
    beside(first, "http://h1.example/login", f"session={'a' * MOST}; Path=/")
    assert BROUGHT not in yielded(first, "http://h1.example/a", cookiejar=[1]).meta
    assert BROUGHT not in yielded(first, "http://h1.example/a").meta
    assert first.counted["ubi/cookies/unkept/size"] == 1


def handed_over(state: SetState) -> SetState:
    """The same host at another agent."""
    other = SetState(state.host)
    other.notes = state.notes
    return other


def test_the_next_owner_goes_on_with_the_session() -> None:
    first, second = Agent(), Agent()
    state = SetState("h1.example")
    first.answered("http://h1.example/login", "session=a1; Path=/", f"seen=1; Path=/; {LATER}", state=state)
    assert second.sends("http://h1.example/a") == ""
    there = handed_over(state)
    assert second.sends("http://h1.example/a", there) == "session=a1; seen=1"
    assert second.counted["ubi/cookies/restored"] == 2
    assert second.sends("http://h1.example/b", there) == "session=a1; seen=1"
    assert second.counted["ubi/cookies/restored"] == 2, "once"


def test_of_a_cookie_the_last_value_counts_on_the_way_back_too() -> None:
    first, second = Agent(), Agent()
    state = SetState("h1.example")
    first.answered("http://h1.example/", "n=1", state=state)
    there = handed_over(state)
    second.sends("http://h1.example/", there)
    second.answered("http://h1.example/", "n=2", state=there)
    state.notes = there.notes
    first.hosts.changed(state)
    assert first.sends("http://h1.example/", state) == "n=2"


def test_each_jar_is_a_session_of_its_own() -> None:
    first, second = Agent(), Agent()
    state = SetState("h1.example")
    for jar in ("ada", 2, None):
        first.answered("http://h1.example/", f"who={jar}", state=state, **({} if jar is None else {"cookiejar": jar}))
    there = handed_over(state)
    assert second.sends("http://h1.example/", there) == "who=None"
    assert [second.sends("http://h1.example/", cookiejar=jar) for jar in ("ada", 2)] == ["who=ada", "who=2"]


def test_cookies_of_the_domain_path_and_scheme_keep_their_meaning() -> None:
    first, second = Agent(), Agent()
    state = SetState("www.h1.example")
    for cookie in ("wide=1; Path=/; Domain=.h1.example", "deep=1; Path=/deep", "safe=1; Secure"):
        first.answered("https://www.h1.example/deep/", cookie, state=state)
    there = handed_over(state)
    assert second.sends("http://www.h1.example/", there) == "wide=1"
    assert "deep=1" in second.sends("http://www.h1.example/deep/x")
    assert "safe=1" in second.sends("https://www.h1.example/deep/")
    assert second.sends("http://other.h1.example/") == "wide=1"


def test_a_host_without_a_dot_and_one_with_a_port_have_sessions(caplog: pytest.LogCaptureFixture) -> None:
    for host in ("localhost", "localhost:8080", "127.0.0.1:8080"):
        first, second = Agent(), Agent()
        state = SetState(host)
        first.answered(f"http://{host}/", "n=1", state=state)
        assert second.sends(f"http://{host}/", handed_over(state)) == "n=1"
    assert not caplog.records


NAMES = st.sampled_from(("a", "b", "sid", "log-in", "$x", "é", "\u2003"))
VALUES = (
    st.none()
    | st.sampled_from(("", "1", "x y", '"q"', '"a;b"', "é", "=", "\t", "\x7f", "\u00a0", "a,b", "%3B"))
    | st.text(st.characters(exclude_characters="\r\n\0;", exclude_categories=("Cs",)), max_size=6)
)
ATTRIBUTES = st.lists(
    st.sampled_from(
        ("Path=/", "Path=/a", "Path=", "Path=/a b", "Path=rel", "Path=/%61", "Domain=h1.example", "Domain=.h1.example",
         "Domain=www.h1.example", "Domain=", "Port", 'Port="80,8080"', "Port=80", "Port=8080", "Secure", "HttpOnly",
         "SameSite=None", "Version=1", "Version=0", "Discard", "Comment=c", "Max-Age=0", "Max-Age=6000", "Max-Age=x",
         f"Max-Age={10**12}", f"Max-Age={10**30}", "Expires=0", "Expires=never",
         "Expires=Thu, 01 Jan 1970 00:00:00 GMT",
         "Expires=Fri, 31 Dec 9999 23:59:59 GMT", "Expires=Wed, 01 Jan 2098 00:00:00 GMT", "Priority=High")
    ),
    max_size=3,
)  # fmt: skip
SET = st.tuples(NAMES, VALUES, ATTRIBUTES).map(
    lambda one: "; ".join([one[0] if one[1] is None else f"{one[0]}={one[1]}", *one[2]])
)
ASKED = [f"{at}{path}" for at in ("http://www.h1.example", "https://www.h1.example", "http://www.h1.example:8080")
         for path in ("/", "/a", "/a/b", "/a b")]  # fmt: skip


@given(st.lists(st.tuples(SET, st.sampled_from(ASKED)), max_size=6))
@example([("loggedin", ASKED[0]), ("sid=1; Path=/", ASKED[0])])
@example([("a=", ASKED[0])])
@example([("a=1; Port=80", ASKED[0])])
@example([("b=1", ASKED[0]), ("a=1", ASKED[0]), ("b=; Max-Age=0", ASKED[0]), ("b=1", ASKED[0])])
def test_the_next_owners_jar_sends_what_the_jar_before_would(answers: list[tuple[str, str]]) -> None:
    first, second, state = Agent(wall=time.time), Agent(wall=time.time), SetState("www.h1.example")
    for cookie, url in answers:
        first.answered(url, cookie, state=state)
    there = handed_over(state)
    for url in ASKED:
        assert second.sends(url, there) == first.sends(url), url
    assert not second.counted["ubi/cookies/refused"]


def test_what_has_expired_or_was_deleted_does_not_come_back() -> None:
    first, second = Agent(), Agent()
    state = SetState("h1.example")
    gone = "c=1; Expires=Wed, 01 Jan 2025 00:00:00 GMT"
    first.answered("http://h1.example/", "a=1", f"b=1; {LATER}", gone, state=state)
    first.answered("http://h1.example/", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT", state=state)
    assert [row[1] for row in json.loads(state.notes.text)["cookies"]] == ["b"]
    row = json.loads(state.notes.text)["cookies"][0]
    row[6] = int(NOW) - 1
    there = handed_over(state)
    second.hosts.put(there, "cookies", [row])
    assert second.sends("http://h1.example/", there) == ""


def test_a_host_whose_last_cookie_goes_has_no_section() -> None:
    agent, state = Agent(), SetState("h1.example")
    agent.answered("http://h1.example/", "a=1", state=state)
    agent.answered("http://h1.example/", "a=; Max-Age=0", state=state)
    assert "cookies" not in json.loads(state.notes.text)


def test_nothing_is_noted_again_that_is_noted() -> None:
    agent, state = Agent(), SetState("h1.example")
    agent.answered("http://h1.example/", "a=1", state=state)
    version = state.notes.version
    agent.answered("http://h1.example/", "a=1", state=state)
    assert state.notes.version == version


@pytest.mark.parametrize(
    ("cookie", "meta", "why", "said"),
    [
        ("a=" + "x" * MOST, {}, "size", f"take more than {MOST} characters"),
        ("a=1", {"cookiejar": ("ada", 1)}, "jar", "is no text and no whole number"),
    ],
)
def test_what_cannot_go_along_is_counted_and_said_once(
    caplog: pytest.LogCaptureFixture, cookie: str, meta: dict[str, Any], why: str, said: str
) -> None:
    agent, state = Agent(), SetState("h1.example")
    for _ in range(2):
        agent.answered("http://h1.example/", cookie, state=state, **meta)
    assert agent.counted[f"ubi/cookies/unkept/{why}"] == 2
    (record,) = caplog.records
    assert said in record.message and "begins without them" in record.message
    assert "cookies" not in json.loads(state.notes.text or "{}")


@pytest.mark.parametrize(("partition", "lines"), [("host", 1), ("domain", 0)])
def test_a_session_over_several_hosts_is_told_of_the_setting(
    caplog: pytest.LogCaptureFixture, partition: Any, lines: int
) -> None:
    caplog.set_level("INFO")
    agent = Agent(partition=partition)
    for _ in range(2):
        agent.answered("http://www.h1.example/", "a=1; Domain=.h1.example", state=SetState("www.h1.example"))
    assert [("UBI_PARTITION = 'domain'" in record.message) for record in caplog.records] == [True] * lines


@pytest.mark.parametrize(
    ("method", "status", "location", "level"),
    [
        ("GET", 200, None, "INFO"),
        ("POST", 200, None, "WARNING"),
        ("GET", 302, "http://www.h1.example/", "WARNING"),
        ("GET", 302, "//www.h1.example:8080/", "WARNING"),
        ("GET", 302, "/home", "INFO"),
        ("GET", 302, "http://login.h1.example/home", "INFO"),
        ("GET", 302, "http://[", "INFO"),
        ("GET", 200, "http://www.h1.example/", "INFO"),
    ],
)
def test_of_a_login_for_a_whole_domain_is_warned(
    caplog: pytest.LogCaptureFixture, method: str, status: int, location: str | None, level: str
) -> None:
    caplog.set_level("INFO")
    agent, url = Agent(), "http://login.h1.example/"
    request = Request(url, method=method)
    headers = {"Set-Cookie": "a=1; Domain=.h1.example"} | ({} if location is None else {"Location": location})
    response = Response(url, status=status, headers=headers)
    agent.cookies.process_response(request, response)
    visit: Any = SimpleNamespace(state=SetState("login.h1.example"))
    flight = Flight(request, "login.h1.example", visit)
    agent.sessions.received(flight, response)
    agent.sessions.ended(flight)
    assert [record.levelname for record in caplog.records] == [level]


ROW = [None, "a", "1", "h1.example", "/", False, None, False, "80"]


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, 1.5), (0, True), (1, 3), (1, "a\nb"), (2, 3), (2, "\ud800"), (3, "h2.example"), (3, ""), (3, "xh1.example"),
     (4, None), (5, 1), (6, "soon"), (6, True), (7, 0), (8, 80)],
)  # fmt: skip
def test_a_row_that_does_not_hold_is_refused_alone(place: int, value: object) -> None:
    assert read_row(ROW, "h1.example") is not None
    agent, state = Agent(), SetState("h1.example")
    wrong = [*ROW]
    wrong[place] = value
    agent.hosts.put(state, "cookies", [wrong, [None, "b", *ROW[2:]]])
    assert agent.sends("http://h1.example/", state) == "b=1"
    assert agent.counted["ubi/cookies/refused"] == 1


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), st.lists, max_leaves=12))
def test_whatever_is_noted_it_is_read(value: Any) -> None:
    agent, state = Agent(), SetState("h1.example")
    agent.hosts.put(state, "cookies", value)
    agent.sends("http://h1.example/", state)
