"""What goes wrong with Redis, in one sentence: what happened where, and the remedy. No sentence holds a password."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import redis
from redis import exceptions as lib

from scrapy_ubi.transport.address import Address
from scrapy_ubi.transport.contract import TransportDown, TransportError, TransportFull
from scrapy_ubi.transport.credentials import CredentialsFailed


class NotReplicated(redis.RedisError):
    """Too few replicas have a beat."""


class RightsLacking(redis.RedisError):
    """The user may not send these commands."""


FAULTS = (redis.RedisError, OSError, TimeoutError)  # what a server, a network or a resolver may cause at any time

_REFUSED = "nothing listens at {at} (connection refused); start Redis or Valkey there, or correct the setting"
_RIGHTS = (
    "the keys ubi:* with hashes, strings, streams, connections and scripts (EVAL), and "
    "SCAN, TYPE, EXISTS, DEL, RENAME, EXPIRE, TIME, INFO"
)
_MORE_RIGHTS = {"single": "", "cluster": ", WAIT, CLUSTER SLOTS", "sentinel": ", WAIT, ROLE"}
_CLUSTERED = (
    "{at} belongs to a Redis Cluster; write redis+cluster:// and its servers, or name one that is not clustered"
)
_IN_SCRIPT = re.compile(r"Error running script .*: -([A-Z]+) (.*)", re.DOTALL)
_KINDS = {"OOM": lib.OutOfMemoryError, "READONLY": lib.ReadOnlyError}
_CLUSTER = (lib.MovedError, lib.AskError, lib.ClusterDownError, lib.ClusterCrossSlotError)
_LACKING = "this user lacks rights at {at} ({text}); allow {rights}"
_CHANGING = (lib.MovedError, lib.AskError, lib.TryAgainError, lib.ClusterDownError, lib.MasterDownError)


class _Case(NamedTuple):
    """An error of this class whose text holds this pattern means this; {at}, {text}, ... are filled in. `passing`: it
    may well be gone in a moment, with nothing done about it."""

    kind: type[BaseException] | tuple[type[BaseException], ...]
    pattern: str
    sentence: str
    passing: bool = False


_CAUSES = (  # of the operating system's
    _Case(socket.gaierror, r"", "the host name of {at} cannot be resolved; correct it, or the name service"),
    _Case(ConnectionRefusedError, r"", _REFUSED, True),
    _Case(FileNotFoundError, r"", "there is no {at}; start Redis or Valkey there, or correct the setting", True),
)
_OF_SEVERAL = (  # a cluster, or Sentinels: asked before the others
    _Case(lib.ReadOnlyError, r"", "{at} is a replica now; its master is looked for", True),
    _Case(
        _CHANGING,
        r"",
        "{at}: the cluster is not whole, or changes ({text}); wait, or look at it with redis-cli --cluster check",
        True,
    ),
    _Case(
        lib.ResponseError,
        r"^NOREPLICAS|good replicas to write",
        "{at} has fewer replicas than its min-replicas-to-write asks for; see to the replicas",
        True,
    ),
    _Case(lib.ResponseError, r"No such master", "{at}: the Sentinels know no master of that name; correct it"),
    _Case(
        lib.ResponseError,
        r"cluster support disabled",
        "{at} is not clustered; write redis:// for a single server",
    ),
    _Case(
        lib.ResponseError,
        r"unknown command.*sentinel",
        "{at} is no Sentinel; name the Sentinels (as a rule at port 26379), or write redis:// for a single server",
    ),
    _Case(
        lib.ConnectionError,
        r"No master found|reachable node",
        "no server of {at} answers, or knows what is asked for ({text}); start them, or correct the setting",
        True,
    ),
    _Case(lib.ResponseError, r"unknown command.*\bwait\b", "{at} does not know WAIT; name servers that do"),
)
_NO_TLS_FILE = _Case(
    FileNotFoundError, r"", "a file that the ssl_ options for {at} name does not exist; correct them, or put it there"
)
_REFUSED_LOGIN = _Case(
    lib.AuthenticationError,
    r"",
    "{at} refuses the user or password that the function of UBI_REDIS_CREDENTIALS gave ({text}); see to it",
)
_BAD_TLS = _Case(  # nothing was asked of the server yet; 13 and 21: no permission, a directory
    lib.ConnectionError,
    r"Error (13|21) connecting|\[X509:|PEM lib|No cipher can be selected",
    "the ssl_ options for {at} do not hold ({text}); correct them, or the files that they name",
)

_TLS = (  # what OpenSSL says, by this machine or by the server
    _BAD_TLS,
    _Case(
        lib.ConnectionError,
        r"alert (certificate|bad certificate|unknown ca)|certificate required",
        "{at} wants another client certificate ({text}); name one with ssl_certfile and ssl_keyfile that it takes",
    ),
    _Case(
        lib.ConnectionError,
        r"certificate has expired",
        "the certificate of {at} has expired, or this machine's clock is wrong; let it be renewed",
    ),
    _Case(
        lib.ConnectionError,
        r"not valid for|hostname mismatch|ip address mismatch|doesn't match",
        "the certificate of {at} is for another host ({text}); write a name that it holds (a cluster must tell names: "
        "cluster-preferred-endpoint-type hostname)",
    ),
    _Case(
        lib.ConnectionError,
        r"self.signed certificate|unable to get (local )?issuer|unable to verify the first",
        "the certificate of {at} is of an authority that this machine does not know ({text}); name that with "
        "ssl_ca_certs=/path/to/ca.pem",
    ),
    _Case(
        lib.ConnectionError,
        r"unsupported protocol|protocol version",
        "{at} speaks no version of TLS that is allowed here ({text}); see to ssl_min_version, or to that server",
    ),
    _Case(  # by TLS 1.3 a client's certificate is looked at after the handshake, and the reason may be lost
        lib.ConnectionError,
        r"connection reset|connection closed by server|connection lost",
        "{at} closed the connection ({text}); it may want a client certificate: name one with ssl_certfile and "
        "ssl_keyfile, else see that it has room for clients",
        True,
    ),
)

_CASES = (  # asked in this order
    _Case(
        CredentialsFailed,
        r"",
        "there is no user and password for {at}, as the function of UBI_REDIS_CREDENTIALS failed ({text}); see to it",
        True,
    ),
    _Case(RightsLacking, r"", _LACKING),
    _Case(
        NotReplicated,
        r"",
        "replicas of {at} lack the beat ({text}), and too few servers say that this one is the master: it may be cut "
        "off, so that this agent's lease is not renewed; see to the replicas (INFO replication)",
        True,
    ),
    _Case(Exception, r"Connect call failed|Connection refused", _REFUSED, True),
    _Case(
        lib.AuthenticationError,
        r"without any password|no password is set",
        "{at} has no password, but the setting gives one; take it out of the setting, or give the server one",
    ),
    _Case(
        lib.AuthenticationError,
        r"Authentication required",
        "{at} wants a password, and the setting gives none; write it as redis://:password@host:port/0",
    ),
    _Case(
        lib.AuthenticationError,
        r"",
        "{at} refuses this user or password; correct them (percent-encode what is not a letter or digit)",
    ),
    _Case(
        lib.BusyLoadingError,
        r"",
        "{at} is still loading its data; let it finish (an agent that starts waits for UBI_REDIS_WAIT seconds)",
        True,
    ),
    _Case(lib.ReadOnlyError, r"", "{at} is a read-only replica; name its primary"),
    _Case(_CLUSTER, r"", _CLUSTERED),  # as newer versions of redis-py say it; then as older ones do
    _Case(lib.ResponseError, r"^(CLUSTERDOWN|MOVED|ASK|CROSSSLOT)|not allowed in cluster mode", _CLUSTERED),
    _Case(lib.NoPermissionError, r"", _LACKING),
    _Case(lib.ResponseError, r"user executing the script can't|ACL failure in script", _LACKING),
    _Case(lib.OutOfMemoryError, r"", "{at} has reached its memory limit and refuses writes; raise its maxmemory", True),
    _Case(lib.ResponseError, r"^BUSY\b", "{at} is busy with a script of somebody's; see to that (SCRIPT KILL)", True),
    _Case(lib.ResponseError, r"unknown command.*\beval\b", "{at} has EVAL switched off; name a server that allows it"),
    _Case(
        lib.ResponseError,
        r"unknown command.*\b(time|select)\b",
        "{at} is a Sentinel, or keeps no data ({text}); name the primary itself, a Sentinel is not asked for it",
    ),
    _Case(
        lib.ResponseError,
        r"unknown .*command.*script",
        "{at} is too old to hand out seeds ({text}); name a Redis of version 6.2 or later, or a Valkey, or take "
        "UBI_SERVE out",
    ),
    _Case(
        lib.ResponseError,
        r"unknown .*command",
        "{at} is too old or lacks streams ({text}); name a Redis of version 5 or later, or a Valkey",
    ),
    _Case(
        lib.ResponseError,
        r"WRONGTYPE",
        "{at} has a key of another type than it should ({text}); look at it (redis-cli TYPE), and rename or delete it",
    ),
    _Case(lib.ResponseError, r"DB index", "{at}: there is no database of that number; correct the end of the setting"),
    _Case(
        lib.ResponseError,
        r"protected mode",
        "{at} is in protected mode and refuses other machines; give it a password, and write that in the setting",
    ),
    _Case(
        lib.ConnectionError, r"max number of clients", "{at} has all the clients it allows; raise its maxclients", True
    ),
    _Case(
        lib.ConnectionError,
        r"SSL|certificate",
        "no TLS with {at} ({text}); write redis:// for a server without TLS, else see to its certificate",
    ),
    _Case(lib.InvalidResponse, r"", "what answers at {at} is not a Redis ({text}); correct host and port"),
    _Case(
        (lib.TimeoutError, TimeoutError),
        r"",
        "{at} did not answer within {timeout} s; see that it runs, is a Redis (with TLS: rediss://), and no firewall "
        "stands between",
        True,
    ),
    _Case(
        lib.ConnectionError,
        r"",
        "{at} closed the connection ({text}); see that it is a Redis (with TLS: rediss://) and has room for clients, "
        "and its client-output-buffer-limit for a letter (UBI_MAX_LETTER_BYTES)",
        True,
    ),
    _Case(BaseException, r"", "{at} cannot be used ({text}); correct the setting, or see to that server"),
)


def explain(error: BaseException, at: Address, timeout: float) -> str:
    """One sentence that names the setting; `timeout` in seconds."""
    text = at.scrub(f"{type(error).__name__}: {error}")
    rights = _RIGHTS + _MORE_RIGHTS[at.kind]
    sentence = _case(error, at).sentence.format(at=at.shown, text=text, timeout=f"{timeout:g}", rights=rights)
    return f"UBI_REDIS_URL: {sentence}."


def _case(error: BaseException, at: Address) -> _Case:
    """What the operating system said, if it did: redis-py wraps that. Else what redis-py says."""
    for one in _chain(error):
        for case in _CAUSES:
            if isinstance(one, case.kind):
                return _NO_TLS_FILE if case.kind is FileNotFoundError and at.shown.startswith("rediss") else case
    if isinstance(error, lib.AuthenticationError) and at.credentials is not None:
        return _REFUSED_LOGIN
    asked: tuple[_Case, ...] = (
        *(_TLS if at.shown.startswith("rediss") else ()),
        *(_OF_SEVERAL if at.kind != "single" else ()),
        *_CASES,
    )
    return next(
        case
        for case in asked
        if isinstance(error, case.kind) and re.search(case.pattern, str(error), re.IGNORECASE | re.DOTALL)
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    at: BaseException | None = error
    while at is not None:
        yield at
        at = at.__cause__ or at.__context__


def fault_at_start(error: BaseException, at: Address, timeout: float) -> TransportError:
    """The contract's error for what goes wrong when the server is first asked: TransportDown when waiting may help."""
    sentence = explain(error, at, timeout)
    return TransportDown(sentence) if _case(error, at).passing else TransportError(sentence)


def fault(error: BaseException, at: Address, timeout: float) -> TransportError:
    """The contract's error for what went wrong after the start."""
    sentence = explain(error, at, timeout)
    return TransportFull(sentence) if isinstance(error, lib.OutOfMemoryError) else TransportDown(sentence)


def unwrapped(error: lib.ResponseError) -> lib.ResponseError:
    """What went wrong inside a script: servers before Redis 7 say that in the text of another error."""
    said = _IN_SCRIPT.match(str(error))
    return _KINDS[said[1]](said[2]) if said is not None and said[1] in _KINDS else error


def is_elsewhere(result: object) -> bool:
    """Whether a server says that it is not, or not any longer, the one that takes writes for this crawl."""
    return isinstance(result, lib.ReadOnlyError | lib.MovedError | lib.ClusterDownError | lib.MasterDownError)


def moved_to(results: Iterable[object]) -> lib.MovedError | None:
    """The first of these that says where the slot is now."""
    return next((one for one in results if isinstance(one, lib.MovedError)), None)


def need_master(role: object) -> None:
    """Raises ReadOnlyError when that, the answer to ROLE, says something else than `master`."""
    if not isinstance(role, list) or not role or role[0] != b"master":
        raise lib.ReadOnlyError("it is no master")


def allowed(result: object) -> bool:
    """Whether a command was refused only because a word is missing, or because there is no memory (a finished crawl
    that is cleared makes room): this user may send it."""
    incomplete = isinstance(result, lib.ResponseError) and "wrong number of arguments" in str(result)
    return incomplete or isinstance(result, lib.OutOfMemoryError)


def spoilt(result: object) -> bool:
    """Whether a command failed because of its key: that has a wrong type, or is a stream that has used up its ids
    (somebody appended an entry with the highest one; nothing can be appended after it, even when it is deleted)."""
    return isinstance(result, lib.ResponseError) and bool(re.search(r"WRONGTYPE|exhausted the last", str(result)))
