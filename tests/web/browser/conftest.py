"""A headless Chromium, and the page of a made-up crawl in it.

Rules of this module:

* Without Chromium, its driver or selenium every test here is skipped, and a warning in the summary says so.
* One browser for all tests of a process; each test gets a new tab whose storage, logs and emulation are its own.
* A test waits for a condition (`Tab.until`), and never for a time.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiohttp import web

from tests.web.browser.made_up import MadeUp
from tests.web.browser.stub_server import application

LIMIT = 60.0  # seconds a condition may take on a busy machine
CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("chromedriver")
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
)


class Tab:
    """A tab of the browser with one page in it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.address = ""

    def open(self, address: str, view: str = "crawl") -> None:
        """Open the page at this address, and wait until it shows figures."""
        self.address = address
        self.driver.get(f"{address}/#/{view}")
        self.until(
            "return document.getElementById('fresh').textContent === 'live' && document.querySelector('#main h1')"
        )

    def show(self, view: str) -> None:
        """Go to another view by its address."""
        self.run("location.hash = arguments[0]", f"#/{view}")
        self.until("return !document.querySelector('[aria-busy]')")

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def until(self, condition: str | Callable[[], Any], limit: float = LIMIT) -> Any:
        """What the condition (a script that returns something, or a function) gives once it is true."""
        end = time.monotonic() + limit
        while True:
            found = self.run(condition) if isinstance(condition, str) else condition()
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(
                    f"not within {limit:g} s: {condition}\nthe page says:\n{self.text[:1500]}\n...\n{self.text[-700:]}"
                )
            time.sleep(0.05)

    def until_says(self, *texts: str) -> None:
        """Wait until all of these stand on the page."""
        self.until(lambda: all(text in self.text for text in texts))

    @property
    def text(self) -> str:
        """What the page says, with plain spaces."""
        said = str(self.run("return document.body.innerText"))
        return said.replace("\u202f", " ").replace("\xa0", " ")

    def painted(self) -> None:
        """Wait until the page has been painted as it is now: tables look for room just before."""
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
        )

    def press(self, name: str, within: str = "body") -> None:
        """Press the first button or link that begins with this text."""
        script = (
            "return [...document.querySelectorAll(arguments[1] + ' button, ' + arguments[1] + ' a')]"
            ".find(one => one.textContent.trim().startsWith(arguments[0]) && one.offsetParent)"
        )
        self.until(lambda: self.run(script, name, within)).click()

    def type(self, name: str, text: str) -> None:
        """Type into the field of this name."""
        self.until(lambda: self.run("return document.querySelector(`[name='${arguments[0]}']`)", name))
        self.run("const f = document.querySelector(`[name='${arguments[0]}']`); f.value = ''; f.focus()", name)
        self.keys(text)

    def keys(self, *keys: str) -> None:
        """Keys, to whatever has the focus."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def look(self, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    @property
    def nodes(self) -> int:
        return int(self.run("return document.querySelectorAll('*').length"))

    def complaints(self) -> list[str]:
        """What the console holds, since the last look."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses of all requests that this tab has made, since the last look."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                parameters = message["params"]
                found.append(parameters["request"]["url"] if "request" in parameters else parameters["url"])
        return found


@pytest.fixture(scope="session")
def _driver() -> Iterator[Any]:
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        webdriver = None  # type: ignore[assignment]
    if webdriver is None or not CHROMIUM or not DRIVER:
        missing = "selenium" if webdriver is None else "chromium" if not CHROMIUM else "chromedriver"
        warnings.warn(f"THE PAGE IS NOT TESTED: {missing} is not installed", stacklevel=1)
        pytest.skip(f"{missing} is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER, env={**os.environ, "LANG": "C.UTF-8"}))
    yield driver
    driver.quit()


@pytest.fixture
def tab(_driver: Any) -> Iterator[Tab]:
    first = _driver.current_window_handle
    _driver.switch_to.new_window("tab")
    one = Tab(_driver)
    one.look()
    one.complaints(), one.requests()
    yield one
    _driver.close()
    _driver.switch_to.window(first)


@pytest.fixture
def serve() -> Iterator[Callable[[MadeUp], str]]:
    """Serves made-up crawls, each at an address of its own, until the test ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runners = []

    async def start(app: web.Application) -> str:
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    def at(crawl: MadeUp) -> str:
        return asyncio.run_coroutine_threadsafe(start(application(crawl)), loop).result(10)

    yield at
    for runner in runners:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()
