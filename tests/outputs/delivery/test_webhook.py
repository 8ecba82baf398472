"""The store `webhook`: batches in their order, signed, tried again until they are taken."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_ubi.errors import UbiSettingError
from scrapy_ubi.outputs.delivery.delivering import Entry, NotTaken, Place
from scrapy_ubi.outputs.delivery.webhook_store import WebhookStore, read_key, sign
from scrapy_ubi.outputs.stores import make
from scrapy_ubi.settings import UbiSettings
from tests.support.receivers import KEY, Hook, key_file

AFTER = Place("part", 9)


STORES: list[WebhookStore] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while STORES:
        STORES.pop().close()


@pytest.fixture
def hook() -> Iterator[Hook]:
    with closing(Hook()) as made:
        yield made


def store_of(url: str, **arguments: Any) -> WebhookStore:
    texts = "".join(f', {key}="{value}"' for key, value in arguments.items())
    (store,) = make([f'webhook("{url}"{texts})'], Settings())
    assert isinstance(store, WebhookStore)
    STORES.append(store)
    store.connect(UbiSettings(crawl="shop", agent_id="a1"))
    return store


def entries(*names: str) -> list[Entry]:
    return [Entry(name, json.dumps({"url": name}).encode()) for name in names]


def test_items_are_posted_in_batches_and_signed(hook: Hook, tmp_path: Path) -> None:
    store = store_of(hook.url, key=key_file(tmp_path), batch=2)
    assert store.batch == 2 and store.send(entries("a", "b"), "run", AFTER) and store.send(entries("c"), "run", AFTER)
    assert [*hook.got.urls] == ["a", "b", "c"] and not hook.wrong and store.low == {"part": 9}
    assert {key: hook.last[key] for key in ("crawl", "agent", "run")} == {"crawl": "shop", "agent": "a1", "run": "run"}


def test_the_same_items_have_the_same_name(hook: Hook) -> None:
    store = store_of(hook.url)
    for _ in range(2):
        store.send(entries("a", "b"), "run", AFTER)
    store.send(entries("a"), "run", AFTER)
    assert hook.names[0] == hook.names[1] != hook.names[2]


def test_what_is_not_taken_raises_with_the_reason(hook: Hook) -> None:
    store = store_of(hook.url)
    hook.away = True
    with pytest.raises(NotTaken, match=rf"The webhook {hook.url} answers with 503: pages whose items"):
        store.send(entries("a"), "run", AFTER)
    hook.retry_after = "7"
    with pytest.raises(NotTaken) as caught:
        store.send(entries("a"), "run", AFTER)
    assert caught.value.pause == 7 and not store.low


def test_one_that_is_away_is_a_sentence(hook: Hook) -> None:
    store = store_of(hook.url)
    hook.close()
    with pytest.raises(NotTaken, match="does not answer"):
        store.send(entries("a"), "run", AFTER)


def test_too_large_a_batch_is_halved(hook: Hook) -> None:
    hook.most = 3
    store = store_of(hook.url)
    for _ in range(2):
        with pytest.raises(NotTaken, match="answers with 413"):
            store.send(entries(*"abcdefgh"), "run", AFTER)
    assert store.send(entries(*"abcdefgh"), "run", AFTER)
    assert hook.largest == 2 and len(hook.got.urls) == 8


def test_a_connection_that_was_closed_meanwhile_is_made_anew(hook: Hook) -> None:
    store = store_of(hook.url)
    hook.hangs_up = True
    for name in "abc":
        store.send(entries(name), "run", AFTER)
    assert [*hook.got.urls] == ["a", "b", "c"]


def test_keys_and_signatures_are_those_of_standard_webhooks() -> None:
    """The example of the specification's test vectors."""
    key = read_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    assert key == base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    signed = sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert read_key(" a text ") == b"a text" and KEY


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("webhook", "has the URL '': give one of http or https"),
        ('webhook("ftp://a.example/")', "has the URL 'ftp://a.example/'"),
        ('webhook("http://user:secret@a.example/")', "has the URL"),
        ('webhook("http://a.example/", seconds=60)', "has seconds=60: give at most 10"),
        ('webhook("http://a.example/", batch=0)', "has batch='0': give a number above 0"),
    ],
)
def test_what_is_malformed_is_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UbiSettingError) as caught:
        make([text], Settings())
    assert sentence in str(caught.value)


@pytest.mark.parametrize("text", [None, "", "whsec_?"])
def test_a_key_that_cannot_be_read_is_a_sentence(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "key"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UbiSettingError, match="names a key for 'webhook' that cannot be read"):
        store_of("http://127.0.0.1:1/", key=path)
