"""Requests as text, and back.

A request travels, and waits, as an `Entry`: URL, depth and priority, and one JSON object with all else. The object is
left out where there is nothing else: a plain GET that the spider's default callback parses. Rules of this module:

* What the middlewares put on a request while it is fetched, and are sure to put on it again (depth, download slot and
  latency, default headers, the environment's proxy, the cookie jar's Cookie header), does not travel (`made_again`).
* A proxy that the spider has chosen (meta `proxy`) travels, but is obeyed by an agent whose UBI_PROXIES names it only:
  a person who can write to the Redis could send pages, and passwords, through any. Where it is not named the request is
  kept as the object it is, and an agent without that fails the page (`codec/proxy`) rather than fetch it another way.
* Which proxy a Proxy-Authorization is for (`_auth_proxy`) travels with it: else another one would be sent the password.
* How often a request was retried stands before all else (`protocol.host.retried`), and is no part of the request.
* A value travels exactly (`values`) or not at all. `encode` names what does not; the scheduler then keeps the
  original object for as long as the request stays at this agent, where nothing is lost.
* No text leaves that its receivers would refuse: what `check` has against it is left out, and named as well.
  Without the method that it has a request is another one, so its callback is lost with it.
* Meta whose key has a codec (UBI_CODECS, `meta_codecs`) travels by it, or is lost.
* Bytes that are UTF-8, of body and headers, stand as they are, readable in Redis; others in base64, marked as such.
* A header without a value travels: middlewares do not set theirs then.
* A callback travels by its name among the spider's methods (`callbacks`). One that has none is lost.
* A text says what its request lacks (`untravelled`): an agent that has not the original object fails that page with
  the reason `codec/callback`, `codec/meta`, ... rather than fetch something else, or call with less.
* FormRequest, JsonRequest and XmlRpcRequest arrive as such, as spiders make the next one of the last by `replace`. What
  they do when they are made is done: body, headers and method are those that were sent. So do classes of the project's
  own (`known_classes`), with what their requests hold besides; their constructor is not called. Others do not travel.
* Nothing is imported or called because the data names it: a callback is one of the spider's own methods, out of a table
  made beforehand; classes are known ones. What comes from outside is checked whole by `check` before.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from scrapy import Request, Spider
from scrapy.http import FormRequest, JsonRequest, XmlRpcRequest
from scrapy.settings import BaseSettings

from scrapy_ubi.adapter.requests.callbacks import CallbackTexts
from scrapy_ubi.adapter.requests.check import LOST_NAME, RequestCheck, is_derived, parse_object
from scrapy_ubi.adapter.requests.item_classes import Untravelled, class_name
from scrapy_ubi.adapter.requests.known_classes import KnownClasses, is_request_class, is_state_name
from scrapy_ubi.adapter.requests.made_again import MadeAgain, host_name
from scrapy_ubi.adapter.requests.meta_codecs import CodecFailure, MetaCodecs, make_codecs
from scrapy_ubi.adapter.requests.scalars import is_encoded
from scrapy_ubi.adapter.requests.shared_objects import holds_objects
from scrapy_ubi.adapter.requests.untravelled import LOST, CodecError, Loss, mark, refused_loss
from scrapy_ubi.adapter.requests.values import pack, unpack
from scrapy_ubi.protocol.host import Entry

CLASSES: dict[str, type[Request]] = {cls.__name__: cls for cls in (FormRequest, JsonRequest, XmlRpcRequest)}
NAMES = {cls: name for name, cls in CLASSES.items()}
USUAL_JSON = JsonRequest("http://usual.invalid/").dumps_kwargs


def proxy_host(proxy: object) -> str:
    """The host of a proxy, as UBI_PROXIES names it; never its password."""
    return host_name(proxy if "://" in proxy else f"http://{proxy}") if isinstance(proxy, str) else ""


def base_of(cls: type[Request]) -> type[Request]:
    """The class of Scrapy's that a class of requests is made of."""
    return next(base for base in cls.__mro__ if base in NAMES or base is Request)


def state_of(request: Request) -> dict[str, Any] | None:
    """What a request of a class of somebody's own holds besides what Scrapy's class does; None where that cannot be
    told: in slots, or among what Scrapy's class holds."""
    cls, base = type(request), base_of(type(request))
    more = (vars(one).get("__slots__") for one in cls.__mro__[: cls.__mro__.index(base)])
    state: dict[str, Any] = getattr(request, "__dict__", {})
    if any(slots not in (None, (), []) for slots in more) or (state and base.__dictoffset__):
        return None
    return state if all(map(is_state_name, state)) else None


class Encoded(NamedTuple):
    """A request as it waits and travels. `text` is '' for a plain GET."""

    text: str
    depth: int
    priority: int
    losses: tuple[Loss, ...]
    objects: bool = False  # whether meta or cb_kwargs hold objects that other requests may hold as well


class Codec:
    """Requests of one spider as text, and back. Tables are made once; nothing is looked up by a name from outside."""

    def __init__(
        self,
        spider: Spider,
        settings: BaseSettings,
        proxies: Collection[str] = ("*",),
        codecs: MetaCodecs | None = None,
    ) -> None:
        """`proxies`: those that requests may go through, by host, `host:port` or URL (UBI_PROXIES); `*` is any."""
        self._spider = spider
        self._proxies = frozenset("*" if proxy == "*" else proxy_host(proxy) for proxy in proxies)
        self._items = KnownClasses(type(spider), settings)
        self._callbacks = CallbackTexts(spider, self._items)
        self._check = RequestCheck(self._callbacks.names, self._items)
        self._held = self._check.held
        self._codecs = codecs or make_codecs({})
        self.made_again = MadeAgain(spider, settings)
        self._is_made_again = self.made_again.holds

    # Requests to text

    def encode(self, request: Request) -> Encoded:
        """The request as text, with what of it cannot travel. Never raises."""
        losses: list[Loss] = []
        fields = self._fields(request, losses)
        if not (depth := depth_of(request)) and request.meta.get("depth") == 0:  # by `depth_reset`; a seed has none
            fields["reset"] = True
        said = {name: value for name, value in fields.items() if value and value is not _NOTHING}
        text = _to_json(said) if said else ""
        if text and text not in self._held:  # most texts were seen to hold
            text = self._acceptable(text, said, losses)
        if losses and (lacks := mark(losses)) is not None:
            text = _to_json({**{name: value for name, value in said.items() if value}, LOST: lacks})
        return _new(Encoded, (text, depth, request.priority, tuple(losses), text != "" and holds_objects(said)))

    def _fields(self, request: Request, losses: list[Loss]) -> dict[str, Any]:
        """What a request says beside its URL, depth and priority; what of it cannot travel is added to the losses."""
        # Called for every link that is found: a field that is not there costs nothing but the look.
        fields: dict[str, Any] = {}
        if request.method != "GET":
            fields["method"] = request.method
        if request.body:
            fields["body"] = pack_bytes(request.body)
        if request.headers:
            fields["headers"] = self._pack_headers(request)
        if request.cookies:
            fields["cookies"] = self._pack(request.cookies, "cookies", "cookies", losses)
        if request.meta:
            fields["meta"] = self._pack_meta(request, losses)
        if request.cb_kwargs:
            fields["cb_kwargs"] = self._pack_each(request.cb_kwargs, "cb_kwargs", losses)
        if request.callback is not None:
            fields["callback"] = self._callbacks.pack(request.callback, "callback", losses)
        if request.errback is not None:
            fields["errback"] = self._callbacks.pack(request.errback, "errback", losses)
        if request.encoding != "utf-8":
            fields["encoding"] = request.encoding
        if request.flags:
            fields["flags"] = self._pack(request.flags, "flags", "flags", losses)
        if request.dont_filter:
            fields["dont_filter"] = True
        if type(request) is not Request:
            fields["class"] = name = self._class_name(request, losses)
            if name is not None and type(request) not in NAMES and (state := state_of(request)):
                fields["state"] = self._pack_each(state, "class", losses)
        return fields

    def _acceptable(self, text: str, fields: dict[str, Any], losses: list[Loss]) -> str:
        """The text of these fields without what its receivers would refuse."""
        refused = self._check.refused(text, fields)
        for name, key in refused:
            if key is None:
                del fields[name]
            else:
                fields[name] = {other: value for other, value in fields[name].items() if other != key}
            losses.append(refused_loss(name, key))
        return _to_json({name: value for name, value in fields.items() if value}) if refused else text

    def _pack(self, value: object, kind: str, what: str, losses: list[Loss]) -> Any:
        try:
            return pack(value, self._items)
        except Untravelled as untravelled:
            losses.append(Loss(f"{kind}/{untravelled.kind}", f"{what} (a {untravelled.kind})"))
            return _NOTHING

    def _pack_each(self, values: Mapping[str, Any], kind: str, losses: list[Loss]) -> dict[str, Any]:
        out = {}
        for key, value in values.items():
            if type(key) is not str:
                losses.append(Loss(f"{kind}/{type(key).__name__} key", f"{kind}[{key!r}]"))
            elif (packed := self._pack(value, kind, f"{kind}[{key!r}]", losses)) is not _NOTHING:
                out[key] = packed
        return out

    def _pack_meta(self, request: Request, losses: list[Loss]) -> dict[str, Any]:
        meta = request.meta
        travels = {
            key: value
            for key, value in meta.items()
            if not is_derived(key, value) and not self._is_made_again(key, value, request)
        }
        if not self._obeys(travels.get("proxy")):
            losses.append(Loss("proxy", f"meta['proxy'] ({proxy_host(travels['proxy'])})"))
        if not travels:
            return travels
        if self._codecs.keys.isdisjoint(travels):
            return self._pack_each(travels, "meta", losses)
        coded = self._codecs.extract(travels, self._items, losses)
        return self._pack_each(travels, "meta", losses) | coded

    def _obeys(self, proxy: object) -> bool:
        """Whether a request may go through this proxy; None and "" are none."""
        return not proxy or "*" in self._proxies or proxy_host(proxy) in self._proxies

    def _pack_headers(self, request: Request) -> dict[str, Any]:
        made_again = self.made_again
        from_jar = made_again.cookie_header and not request.meta.get("dont_merge_cookies")
        out = {}
        for name, values in request.headers.items():
            if made_again.headers.get(name) == values or (name == b"Cookie" and from_jar):
                continue
            if name == b"Proxy-Authorization" and made_again.has_password_of_environment(request):
                continue
            packed = [pack_bytes(value) for value in values]
            out[name.decode("latin-1")] = packed[0] if len(packed) == 1 else packed
        return out

    def _class_name(self, request: Request, losses: list[Loss]) -> str | None:
        """The name of a class that travels."""
        cls = type(request)
        if isinstance(request, JsonRequest) and request.dumps_kwargs != USUAL_JSON:
            losses.append(Loss("dumps_kwargs", "its dumps_kwargs"))
        if (name := NAMES.get(cls)) is not None:
            return name
        if self._items.get(name := class_name(cls)) is cls and state_of(request) is not None:
            return name
        losses.append(Loss(f"class/{cls.__name__}", f"its class {name}"))
        return None

    def methods(self, request: Request) -> tuple[str | None, str | None] | None:
        """The names of its callback and errback, None for a default one; None where one of them has no name."""
        names = self._callbacks.name(request.callback), self._callbacks.name(request.errback, "errback")
        return None if LOST_NAME in names else names

    # Text to requests

    def check(self, text: str) -> str | None:
        """None when `text`, which came from outside, can become a request of this spider, else the reason why not."""
        return self._check(text)

    def decode(self, entry: Entry) -> Request:
        """The request that `entry` stands for. Raises `CodecError`.

        The entry has been checked when it came; it is refused here if its URL is none of http or https, if the callback
        is none of the spider's (any more), if it lacks a part that could not travel, and if a value cannot be made.
        """
        if not entry.url[:8].lower().startswith(("http://", "https://")):
            raise CodecError("scheme", f"{entry.url[:200]!r} is no http or https URL")
        try:
            if not entry.request:  # as most plain links: `_build` would come to the same
                meta = {"depth": entry.depth} if entry.depth else None
                return Request(entry.url, priority=entry.priority, meta=meta)
            return self._build(entry, parse_object(entry.request))
        except CodecError:
            raise
        # Items are built by the user's own classes, which may raise anything.
        except Exception as error:
            raise CodecError("value", f"The request for {entry.url} cannot be made: {error}") from error

    def _build(self, entry: Entry, fields: Mapping[str, Any]) -> Request:
        if LOST in fields:
            part, what = fields[LOST]
            raise CodecError(part, f"The request for {entry.url} lacks what could not travel to this agent: {what}")
        meta = {
            key: self._unpack_meta(key, value) if type(value) is dict else unpack(value, self._items)
            for key, value in fields.get("meta", {}).items()
        }
        if not self._obeys(meta.get("proxy")):
            raise CodecError(
                "proxy",
                f"{entry.url:.200} is to go through the proxy {proxy_host(meta['proxy'])}, which UBI_PROXIES does "
                "not name",
            )
        if entry.depth or "reset" in fields:
            meta["depth"] = entry.depth
        name = fields.get("class")
        cls, base = (Request, Request) if name is None else self._class_of(name)
        headers = unpack_headers(fields.get("headers", {}))
        request = cls.__new__(cls)  # the constructor of a class of somebody's own may want anything
        base.__init__(
            request,
            entry.url,
            callback=self._callbacks.unpack(fields.get("callback"), "callback", entry.url),
            errback=self._callbacks.unpack(fields.get("errback"), "errback", entry.url),
            method=fields.get("method", "GET"),
            headers=headers,
            body=unpack_bytes(fields.get("body", "")),
            encoding=fields.get("encoding", "utf-8"),
            priority=entry.priority,
            dont_filter=fields.get("dont_filter", False),
            meta=meta,
            cookies=unpack(fields.get("cookies"), self._items),
            flags=unpack(fields.get("flags")),
            cb_kwargs={key: unpack(value, self._items) for key, value in fields.get("cb_kwargs", {}).items()},
        )
        if name is not None:
            request.headers = headers  # without those that its class has added
        if state := fields.get("state"):
            vars(request).update({key: unpack(value, self._items) for key, value in state.items()})
        return request

    def _unpack_meta(self, key: str, packed: Any) -> Any:
        if not is_encoded(packed):
            return unpack(packed, self._items)
        try:
            return self._codecs.unpack(key, packed["v"], self._items)
        except CodecFailure as failure:
            raise CodecError("meta", str(failure)) from failure

    def _class_of(self, name: str) -> tuple[type[Request], type[Request]]:
        """The class of requests of this name, and Scrapy's class that it is made of."""
        cls = CLASSES.get(name) or self._items.get(name)
        if cls is None or not is_request_class(cls):
            raise CodecError("class", f"{name} is no class of requests here")
        return cls, base_of(cls)


_to_json = json.JSONEncoder(separators=(",", ":")).encode
_new = tuple.__new__  # half the time of calling the class


class _Nothing:
    """Stands for a value that does not travel."""


_NOTHING = _Nothing()


def depth_of(request: Request) -> int:
    """How many links lead to this request, 0 where that is not known."""
    depth = request.meta.get("depth", 0)
    return depth if type(depth) is int and depth >= 0 else 0


def pack_bytes(value: bytes) -> Any:
    """Bytes as what JSON can express."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return pack(value)


def unpack_bytes(value: Any) -> bytes:
    """What `pack_bytes` was given. Never text: the request would encode it its own way."""
    unpacked: str | bytes = unpack(value)
    return unpacked.encode() if isinstance(unpacked, str) else unpacked


def unpack_headers(headers: Mapping[str, Any]) -> dict[str, list[bytes]]:
    """Headers, each with all its values."""
    return {
        name: [unpack_bytes(one) for one in (values if isinstance(values, list) else [values])]
        for name, values in headers.items()
    }
