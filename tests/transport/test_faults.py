"""One clear sentence for everything that keeps an agent from its Redis, and never a password in it."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import socketserver
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from scrapy_ubi.transport import Outgoing, TransportDown, TransportError, TransportFull, scripts
from scrapy_ubi.transport.address import address
from scrapy_ubi.transport.beat_connection import RedisLink
from scrapy_ubi.transport.faults import spoilt, unwrapped
from scrapy_ubi.transport.redis import RedisTransport
from scrapy_ubi.transport.redis_keys import RedisKeys
from tests.conftest import KINDS, no_server
from tests.support.server import Server, binary, free_port

PASSWORD = "s3cr3t+/w0rd"


def refusal(url: str, timeout: float = 5.0, *, passing: bool | None = False) -> str:
    """What `open` says. `passing`: that trying again may help; None: either."""

    async def run() -> str:
        transport = RedisTransport(url, "bot:spider", "a", timeout=timeout)
        with pytest.raises(TransportError) as error:
            await transport.open()
        assert passing in (None, isinstance(error.value, TransportDown))
        return str(error.value)

    sentence = asyncio.run(run())
    assert sentence.count("UBI_REDIS_URL") == 1
    assert sentence.startswith("UBI_REDIS_URL")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert ". " not in sentence  # one sentence
    assert PASSWORD not in sentence
    assert quote(PASSWORD, safe="") not in sentence
    return sentence


@contextlib.contextmanager
def listener(answer: bytes | None) -> Iterator[int]:
    """A port that answers so to whatever comes and hangs up; None: says nothing."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)

        def serve() -> None:
            kept = []
            while not stop.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                kept.append(connection)
                if answer is not None:
                    connection.settimeout(5)
                    with contextlib.suppress(OSError):
                        connection.recv(4096)
                        connection.sendall(answer)
                    connection.close()
            for one in kept:
                one.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            stop.set()
            thread.join()


BEAT, WHOLE = b"EVAL a beat", b"EVAL all beats"  # told apart by how their scripts begin
GOOD = {b"TIME": b"*2\r\n$1\r\n1\r\n$1\r\n1\r\n", b"CLIENT": b"+OK\r\n", b"HGET": b"$-1\r\n", b"INFO": b"$0\r\n\r\n"}
GOOD |= {b"HMGET": b"*2\r\n$-1\r\n$-1\r\n", b"GETRANGE": b"$0\r\n\r\n", b"SETRANGE": b":0\r\n"}
GOOD |= {BEAT: b"*2\r\n$1\r\nt\r\n:0\r\n", WHOLE: b"*3\r\n$0\r\n\r\n*0\r\n*0\r\n"}
GOOD |= {b"CLUSTER": b"-ERR This instance has cluster support disabled\r\n"}
GOOD |= dict.fromkeys((b"XLEN", b"XADD", b"XDEL", b"HDEL", b"HSET"), b":0\r\n") | dict.fromkeys(
    (b"EVAL", b"HGETALL"), b"*0\r\n"
)
UNKNOWN = (  # to a Sentinel
    *(b"SELECT", b"TIME", b"XLEN", b"HDEL", b"HSET", b"EVAL", b"HGETALL", b"XADD", b"XDEL", b"GETRANGE", b"SETRANGE"),
)
LIMIT = 60.0  # s
LINE = "5f01c2b9.0 1 200 - - - 0 - -"


@contextlib.contextmanager
def talker(answers: dict[bytes, bytes], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """A port that speaks the protocol, with TLS where that is given, and says so to each command."""

    class Talk(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while data := self.request.recv(1 << 16):
                for script, name in ((scripts.BEAT, BEAT), (scripts.WHOLE, WHOLE)):
                    data = data.replace(b"EVAL\r\n$%d\r\n%s" % (len(script), script.encode()), name + b"\r\n")
                names = re.findall(rb"\*\d+\r\n\$\d+\r\n([A-Z][A-Za-z ]+)\r\n", data)
                self.request.sendall(b"".join(answers[name] for name in names))

    class Talker(socketserver.ThreadingTCPServer):
        block_on_close, daemon_threads = False, True

        def get_request(self) -> tuple[socket.socket, Any]:
            plain, peer = super().get_request()
            return (plain if tls is None else tls.wrap_socket(plain, server_side=True)), peer

    with Talker(("127.0.0.1", 0), Talk) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


@pytest.fixture(params=KINDS or ["none"])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "none":
        no_server()
    return str(request.param)


@contextlib.contextmanager
def special(kind: str, options: Sequence[str]) -> Iterator[Server]:
    with Server(kind, options=options) as server:
        yield server


def needs(kind: str, version: int) -> None:
    """Skip where the server of this machine is older and does not know an option."""
    said = subprocess.run([str(binary(kind)), "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"v=(\d+)", said)
    assert found is not None, said
    if int(found[1]) < version:
        pytest.skip(f"needs version {version}: {said.strip()}")


def with_password(url: str, user: str = "") -> str:
    return url.replace("redis://", f"redis://{user}:{quote(PASSWORD, safe='')}@")


# -- the address -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "begins with none of"),
        ("localhost:6379", "begins with none of"),
        ("http://localhost:6379", "begins with none of"),
        ("valkey://localhost", "redis:// serves for Valkey"),
        ("redis://localhost:port", "cannot be read"),
        ("redis://localhost:99999", "cannot be read"),
        ("redis://[::1", "cannot be read"),
        (f"redis://:{PASSWORD}@localhost", "%-encoded"),
        ("redis://:12/34@localhost", "%2F"),
        ("redis://localhost/zero", "number of a database"),
        ("redis://:a#b@localhost", "cannot be read"),
        ("redis://localhost/#b", "%23"),
        ("redis://localhost/0?decode_responses=1", "'decode_responses' is not known"),
        ("redis://localhost/0?db=x", "'db' is no number"),
        ("redis://localhost/0?ssl_ca_certs=/ca.pem", "'ssl_ca_certs' is of TLS, which only rediss:// speaks"),
        ("unix:///run/redis.sock?ssl_ca_certs=/ca.pem", "'ssl_ca_certs' is of TLS, which only rediss:// speaks"),
        ("unix://", "names no socket"),
    ],
)
def test_malformed_address_is_refused_before_anything_connects(url: str, said: str) -> None:
    sentence = refusal(url)
    assert said in sentence
    assert "write it as redis://" in sentence


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://", "redis://localhost:6379/0"),
        ("redis://host", "redis://host:6379/0"),
        (" redis://user:pa%40ss@host:1/3\n", "redis://host:1/3"),
        ("rediss://:x@[::1]:2/", "rediss://[::1]:2/0"),
        ("rediss://h/1?password=hidden&ssl_cert_reqs=none", "rediss://h:6379/1"),
        ("redis://h/1?db=3", "redis://h:6379/3"),  # redis-py takes the option
        ("unix:///run/redis.sock?db=2", "unix:///run/redis.sock"),
        ("unix://user:x@/run/redis.sock", "unix:///run/redis.sock"),
    ],
)
def test_address_is_shown_without_user_and_password(url: str, shown: str) -> None:
    assert address(url).shown == shown


@given(st.text(min_size=8, max_size=20), st.sampled_from(["redis://:{}@127.0.0.1:1/0", "redis://u:{}@h", "redis://{}"]))
def test_no_sentence_about_an_address_shows_the_password(secret: str, form: str) -> None:
    """Whatever a password is made of, encoded or not."""
    try:
        shown = address(form.format(secret)).shown
    except TransportError as error:
        shown = str(error)
    if "@" in form:
        assert secret not in shown


def test_what_a_server_says_is_scrubbed() -> None:
    assert (
        address("redis://:p%40ss@h")
        .scrub("unknown command 'AUTH'\nwith 'p@ss' " + "x" * 500)
        .startswith("unknown command 'AUTH' with '***' xxx")
    )


# -- the start -------------------------------------------------------------------------------------------------------


def test_nothing_listens() -> None:
    sentence = refusal(f"redis://:{quote(PASSWORD, safe='')}@127.0.0.1:{free_port()}/0", passing=True)
    assert "nothing listens at redis://127.0.0.1:" in sentence
    assert "start Redis or Valkey" in sentence
    assert "nothing listens" in refusal(f"redis://localhost:{free_port()}", passing=True)


def test_host_name_unknown() -> None:
    assert "host name of redis://nowhere.invalid:6379/0 cannot be resolved" in refusal("redis://nowhere.invalid")


def test_socket_file_missing() -> None:
    assert "there is no unix:///nowhere/redis.sock" in refusal("unix:///nowhere/redis.sock", passing=True)


def test_web_server_instead() -> None:
    with listener(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n") as port:
        for scheme, said in (("redis", "is not a Redis"), ("rediss", "no TLS with")):
            assert said in refusal(f"{scheme}://127.0.0.1:{port}")


def test_other_servers_instead() -> None:
    for answer in (b"SSH-2.0-OpenSSH_9.2\r\n", b"220 mail ESMTP\r\n", b"\x00\x01\x02", b"*x\r\n", b"$-9\r\n", b":\r\n"):
        with listener(answer) as port:
            sentence = refusal(f"redis://127.0.0.1:{port}/0", timeout=2)
            assert "Redis" in sentence or "cannot be used" in sentence


ODD = (
    b"+OK\r\n",
    b":7\r\n",
    b"*1\r\n$1\r\nx\r\n",
    b"*2\r\n:1\r\n:2\r\n",
    b"*2\r\n*0\r\n$1\r\na\r\n",
    b"*1\r\n*1\r\n:1\r\n",
)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("command", [b"HGETALL", b"EVAL", b"HMGET", BEAT, WHOLE])
def test_answers_that_are_none_of_a_redis_in_mid_crawl_are_an_absence(command: bytes, odd: bytes) -> None:
    """Something else listens there now: a proxy, or a server that is only like Redis."""

    async def exchange(url: str) -> None:
        transport = RedisTransport(url, "bot:spider", "a", timeout=2.0)
        await transport.open()
        answers[command] = odd
        carried = command in (b"HGETALL", b"EVAL")
        with pytest.raises(TransportDown, match="not a Redis") if carried else contextlib.nullcontext():
            await transport.exchange(Outgoing(consumed=["1-0"]))
        answers.update(GOOD)
        assert (await transport.exchange(Outgoing())).control == {}, "it is asked anew"
        await transport.close()

    answers = {**GOOD, b"XDEL": b":1\r\n"}
    with talker(answers) as port:
        url = f"redis://127.0.0.1:{port}"
        asyncio.run(exchange(url))
        link = RedisLink(address(url), RedisKeys("bot:spider"), "a", 2.0, 1000, Counter())
        link.write(LINE)
        answers[command] = odd
        for ask in (link.look, lambda: link.beat(LINE)):
            with contextlib.suppress(TransportDown):
                ask()
        answers.update(GOOD)
        assert link.look() is None, "it is asked anew"
        link.close()


def test_server_that_hangs_up_or_says_nothing() -> None:
    with listener(b"") as port:
        said = refusal(f"redis://127.0.0.1:{port}", passing=True)
        assert "closed the connection" in said
        assert "client-output-buffer-limit" in said, "a letter that is larger than that is never read"
    with listener(None) as port:
        assert "did not answer within 0.3 s" in refusal(f"redis://127.0.0.1:{port}", timeout=0.3, passing=True)


def test_server_that_loads_its_data_is_waited_for_by_those_who_have_joined_as_well() -> None:
    with listener(b"-LOADING Redis is loading the dataset in memory\r\n" * 20) as port:
        said = refusal(f"redis://127.0.0.1:{port}", passing=True)
    assert "loading its data" in said and "UBI_REDIS_WAIT" in said
    assert "start again" not in said, "an agent that crawls goes on by itself"


def test_bad_tls_option() -> None:
    assert "'ssl_nonsense' is not known" in refusal("rediss://127.0.0.1:1/0?ssl_nonsense=1")
    assert "'ssl_cert_reqs' is none of" in refusal("rediss://127.0.0.1:1/0?ssl_cert_reqs=perhaps")


def test_certificates_that_are_not_there() -> None:
    with listener(None) as port:
        for option in ("ssl_ca_certs=/nowhere/ca.pem", "ssl_certfile=/nowhere/c.pem&ssl_keyfile=/nowhere/k.pem"):
            url = f"rediss://127.0.0.1:{port}/0"
            assert f"a file that the ssl_ options for {url} name does not exist" in refusal(f"{url}?{option}")


def test_tls_options_that_do_not_hold(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    with listener(None) as port:
        url = f"rediss://127.0.0.1:{port}/0"
        for option in (
            f"ssl_ca_certs={empty}",
            f"ssl_ca_certs={tmp_path}",
            f"ssl_certfile={empty}&ssl_keyfile={empty}",
            "ssl_ciphers=NOPE",
        ):
            assert f"the ssl_ options for {url} do not hold (" in refusal(f"{url}?{option}")


def certified(file: Path, host: str) -> ssl.SSLContext:
    """A server's context, with a certificate for that host; the file is written and holds it, as its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(secret + certificate.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def test_a_certificate_of_another_host_is_refused(tmp_path: Path) -> None:
    """redis-py before 6 took any that its authorities had signed, for whomever."""

    async def opened(url: str) -> None:
        transport = RedisTransport(url, "bot:spider", "a")
        await transport.open()
        await transport.close()

    for host in ("localhost", "elsewhere.example"):
        file = tmp_path / f"{host}.pem"
        with talker(GOOD, certified(file, host)) as port:
            url = f"rediss://localhost:{port}/0?ssl_ca_certs={file}"
            link = RedisLink(address(url), RedisKeys("bot:spider"), "a", 2.0, 1000, Counter())
            if host == "localhost":
                asyncio.run(opened(url))
                link.write(LINE)
            else:
                assert "is for another host" in refusal(url)
                with pytest.raises(TransportDown, match="is for another host"):
                    link.write(LINE)
            link.close()


def test_password_wanted_wrong_or_needless(kind: str) -> None:
    with special(kind, ("--requirepass", "another")) as server:
        assert "wants a password, and the setting gives none" in refusal(server.url)
        assert "wants a password" in refusal(server.url[:-1] + "3")
        assert "refuses this user or password" in refusal(with_password(server.url))
        assert "refuses this user or password" in refusal(with_password(server.url, "nobody"))
    with special(kind, ()) as server:
        assert "has no password, but the setting gives one" in refusal(with_password(server.url))
        assert "no database of that number" in refusal(server.url[:-1] + "99")


def test_right_password_opens(kind: str) -> None:
    async def run(url: str) -> None:
        transport = RedisTransport(url, "bot:spider", "a")
        await transport.open()
        assert await transport.claim("a", None, "line")
        await transport.close()

    with special(kind, ("--requirepass", PASSWORD)) as server:
        asyncio.run(run(with_password(server.url)))


def test_replica_and_missing_commands(kind: str) -> None:
    with special(kind, ()) as primary, special(kind, ("--replicaof", "127.0.0.1", str(primary.port))) as replica:
        assert "read-only replica; name its primary" in refusal(replica.url)
    with special(kind, ("--rename-command", "EVAL", "")) as server:
        assert "EVAL switched off" in refusal(server.url)
    with special(kind, ("--rename-command", "XLEN", "")) as server:  # what a Redis 4 says
        assert "too old or lacks streams" in refusal(server.url)


def test_cluster(kind: str) -> None:
    needs(kind, 7)
    with special(kind, ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))) as server:
        assert "belongs to a Redis Cluster" in refusal(server.url)
        if kind == "redis":  # a cluster of Valkeys may have several databases
            assert "belongs to a Redis Cluster" in refusal(server.url.removesuffix("/0") + "/1")
        with server.client() as client:  # a single server that has all keys
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            end = time.monotonic() + LIMIT
            while client.execute_command("CLUSTER INFO")["cluster_state"] != "ok":
                assert time.monotonic() < end, "the cluster is not whole"
                time.sleep(0.01)  # the condition is probed
        assert "belongs to a Redis Cluster" in refusal(server.url)


def test_a_sentinel() -> None:
    answers = {
        **GOOD,
        **{name: b"-ERR unknown command '%s', with args beginning with: \r\n" % name for name in UNKNOWN},
    }
    with talker(answers) as port:
        for number in (0, 1):
            sentence = refusal(f"redis://127.0.0.1:{port}/{number}")
            assert "Sentinel" in sentence
            assert "primary" in sentence


def test_missing_rights(kind: str) -> None:
    rights = ("--user", "bob", "on", f">{PASSWORD}", "~other:*", "+@all")
    needs(kind, 6)
    with special(kind, rights) as server:
        sentence = refusal(with_password(server.url, "bob"))
        assert "lacks rights" in sentence
        assert "ubi:*" in sentence


@pytest.mark.parametrize(
    "command",
    ["xadd", "xdel", "xlen", "xrange", "hset", "hdel", "hgetall", "getrange", "setrange", "eval", "time"],
)
def test_a_missing_right_is_said_at_the_start_and_not_in_mid_crawl(kind: str, command: str) -> None:
    needs(kind, 6)
    with special(kind, ("--user", "bob", "on", f">{PASSWORD}", "~ubi:*", "+@all", f"-{command}")) as server:
        sentence = refusal(with_password(server.url, "bob"))
        assert "lacks rights" in sentence
        with server.client() as client:
            assert not client.keys("*"), "nothing is changed by trying"


def test_all_rights_that_lack_are_named_those_of_scripts_as_well(kind: str) -> None:
    needs(kind, 7)
    lack = ("-xadd", "-rename", "-expire", "-hkeys")
    with special(kind, ("--user", "bob", "on", f">{PASSWORD}", "~ubi:{bot:*", "+@all", *lack)) as server:
        assert "(RightsLacking: not allowed: EXPIRE, HKEYS, RENAME, XADD)" in refusal(with_password(server.url, "bob"))


def test_trying_what_is_needed_changes_nothing(kind: str) -> None:
    async def run(url: str) -> None:
        transport = RedisTransport(url, "bot:spider", "a")
        await transport.open()
        await transport.close()

    with special(kind, ()) as server, server.client() as client:
        asyncio.run(run(server.url))
        assert not client.keys("*")


def test_the_rights_that_the_sentence_names_are_enough(kind: str) -> None:
    needs(kind, 6)
    user, asked = ("--user", "bob", "on", f">{PASSWORD}", "~ubi:*", "-@all"), "0" * 16
    with special(kind, user) as server:
        remedy = refusal(with_password(server.url, "bob")).split("; allow the keys ubi:* with ")[1]
    groups, commands = remedy.split(", and ")
    assert groups == "hashes, strings, streams, connections and scripts (EVAL)"
    single = [f"+{name.lower()}" for name in commands.removesuffix(".").split(", ")]

    async def run(url: str) -> None:
        transport = RedisTransport(url, "bot:spider", "a", timeout=5.0)
        await transport.open()
        await transport.exchange(Outgoing(replies={asked: "{}"}))
        await transport.close()

    with special(kind, (*user, "+@hash", "+@string", "+@stream", "+@connection", "+eval", *single)) as server:
        asyncio.run(run(with_password(server.url.removesuffix("0") + "1", "bob")))
        with redis.Redis(port=server.port, db=1) as client:
            assert client.hgetall(RedisKeys("bot:spider").answers(asked)) == {b"a": b"{}"}


def test_what_servers_before_7_say_of_a_script_is_understood() -> None:
    where = "Error running script (call to f_0123): @user_script:10: @user_script: 10: "
    full = unwrapped(redis.ResponseError(where + "-OOM command not allowed when used memory > 'maxmemory'."))
    assert isinstance(full, redis.OutOfMemoryError)
    replica = unwrapped(redis.ResponseError(where + "-READONLY You can't write against a read only replica."))
    assert isinstance(replica, redis.ReadOnlyError)
    other = redis.ResponseError(where + "-WRONGTYPE Operation against a key")
    assert unwrapped(other) is other
    assert spoilt(other)


def test_server_without_room_for_clients(kind: str) -> None:
    with special(kind, ("--maxclients", "1")) as server, server.client() as client:
        client.ping()
        assert "client" in refusal(server.url, passing=True)


def test_socket_file_opens(kind: str, tmp_path: Path) -> None:
    async def run(url: str) -> None:
        transport = RedisTransport(url, "bot:spider", "a")
        await transport.open()
        got = asyncio.Event()
        transport.start_beating("a", 1, str, lambda sent: None, lambda *read: got.set(), time.monotonic, lambda: False)
        await asyncio.wait_for(got.wait(), 20)
        assert await transport.beats() == {"a": "1"}
        await transport.close()

    path = tmp_path / "redis.sock"
    with special(kind, ("--unixsocket", str(path))):
        asyncio.run(run(f"unix://{path}?db=2"))


def test_a_server_that_is_full_lets_a_finished_crawl_be_cleared_and_nobody_begin(kind: str) -> None:
    """What fills it may be what that crawl has left, which the next start removes."""

    async def run(url: str) -> None:
        transport = RedisTransport(url, "bot:spider", "a")
        await transport.open()
        try:
            with pytest.raises(TransportFull, match="memory limit"):
                await transport.claim("a", None, "line")
            assert await transport.clear("r1 b", {"past": "r1"})
            assert (await transport.exchange(Outgoing())).control == {"past": "r1"}
        finally:
            await transport.close()

    with special(kind, ()) as server, server.client() as client:
        client.hset(RedisKeys("bot:spider").control, "finished", "r1 b")
        client.config_set("maxmemory", "1")
        asyncio.run(run(server.url))


def test_a_server_that_is_busy_at_the_start_may_be_waited_for(kind: str) -> None:
    with special(kind, ("--lua-time-limit", "5")) as server, server.client() as client:
        endless = threading.Thread(target=run_killed, args=(server.client(), "while true do end"))
        endless.start()
        deadline = time.monotonic() + 20
        while not is_busy(client):
            assert time.monotonic() < deadline
        assert "busy with a script" in refusal(server.url, passing=True)
        client.script_kill()
        endless.join()


def run_killed(client: redis.Redis, script: str) -> None:
    """Run a script that somebody kills."""
    with client, contextlib.suppress(redis.ResponseError):
        client.eval(script, 0)


def is_busy(client: redis.Redis) -> bool:
    try:
        client.ping()
    except redis.ResponseError:
        return True
    return False
