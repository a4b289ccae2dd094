"""A real Chromium that looks at the page: one for all tests of a process, a fresh profile for each test.

Nothing passes in silence: a console error or warning, an exception, a request that failed or went elsewhere,
a dialog or something that the policy had to refuse fails the test, unless that expects it.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import descendants
import pytest
from served_pages import fragment

if TYPE_CHECKING:
    from playwright.sync_api import (
        Browser,
        BrowserContext,
        Dialog,
        Locator,
        Page,
        Playwright,
        Request,
        Response,
    )

ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--in-process-gpu", "--disable-software-rasterizer"),
)

SOON_S = 20.0
"""Time limit in seconds for something to appear on the page."""

_LOOK_MS = 40

_RAN = "ran"
"""Name of the function that a hostile text would call on the page."""

_WATCHED = f"""
    window.refused = [];
    document.addEventListener("securitypolicyviolation", (event) =>
        window.refused.push(`${{event.effectiveDirective}}: ${{event.blockedURI}} ${{event.sample}}`));
    window.{_RAN} = (...what) => console.error("it ran", ...what);
"""


# The browser.


class Eyes:
    """A browser that runs as long as the tests of this process.

    Playwright keeps an event loop of its own running in this thread. Tests that run one themselves must not
    meet it: it is there only while a page is looked at.
    """

    def __init__(self, playwright: Playwright, chromium: str) -> None:
        self.browser: Browser = playwright.chromium.launch(executable_path=chromium, args=[*ARGUMENTS])
        self._loop = asyncio.get_running_loop()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Yield the time in which pages are looked at."""
        asyncio._set_running_loop(self._loop)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def eyes() -> Iterator[Eyes]:
    # The same engine without what draws windows, which takes two thirds of the processor time.
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium here to look at the page with")
    # It takes its time to load, and most tests need none.
    from playwright.sync_api import sync_playwright

    before = descendants.children()
    playwright = sync_playwright().start()
    found = Eyes(playwright, chromium)
    asyncio._set_running_loop(None)
    # What conftest.py does for the fixtures of a module.
    descendants.staying.update(descendants.children() - before)
    try:
        yield found
    finally:
        with found.opened():
            found.browser.close()
            playwright.stop()


Look = Callable[..., "Sight"]


@pytest.fixture
def look(eyes: Eyes) -> Generator[Look, None, None]:
    """Opens a page at an address: `look(address, width=1280, height=800, **options of its context)`."""
    contexts: list[BrowserContext] = []
    sights: list[Sight] = []

    def opened(address: str, *, width: int = 1280, height: int = 800, **options: Any) -> Sight:
        context = eyes.browser.new_context(
            viewport={"width": width, "height": height}, reduced_motion="reduce", **options
        )
        contexts.append(context)
        sight = Sight(context)
        sights.append(sight)
        sight.go(address)
        return sight

    with eyes.opened():
        try:
            yield opened
            wrong = [fault for sight in sights for fault in sight.faults()]
        finally:
            for context in contexts:
                context.close()
    assert not wrong, "\n".join(wrong)


class Sight:
    """A page in a browser: its content, and actions on it."""

    def __init__(self, context: BrowserContext) -> None:
        context.set_default_timeout(SOON_S * 1000)
        context.add_init_script(_WATCHED)
        self.context = context
        self.page: Page = context.new_page()
        self.asked: list[str] = []
        """The addresses of all requests."""
        self._open: set[Request] = set()
        self._faults: list[str] = []
        self._expected: list[re.Pattern[str]] = []
        self._home = ""
        page = self.page
        page.on("console", lambda said: self._hear(said.type, said.text))
        page.on("pageerror", lambda error: self._faults.append(f"exception: {error}"))
        page.on("dialog", self._dismiss)
        page.on("request", self._ask)
        page.on("requestfinished", lambda request: self._open.discard(request))
        page.on("requestfailed", self._fail)
        page.on("response", self._answer)

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self._faults.append(f"console {kind}: {text}")

    def _dismiss(self, dialog: Dialog) -> None:
        self._faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _ask(self, request: Request) -> None:
        url = request.url
        self.asked.append(url)
        self._open.add(request)
        if not url.startswith("data:") and _origin(url.removeprefix("blob:")) != self._home:
            self._faults.append(f"asked elsewhere: {url}")

    def _fail(self, request: Request) -> None:
        self._open.discard(request)
        # A stream that the page closes, and what is under way when the page is left.
        if request.failure != "net::ERR_ABORTED":
            self._faults.append(f"failed: {request.url}: {request.failure}")

    def _answer(self, response: Response) -> None:
        # The console's message lacks the source.
        if response.status >= 400:
            self._faults.append(f"status of {response.status}: {response.url}")

    def expect(self, pattern: str) -> None:
        """Faults that this matches belong to the test."""
        self._expected.append(re.compile(pattern))

    def faults(self) -> list[str]:
        """Return all unexpected errors of the page."""
        if not self.page.is_closed():
            self._faults += [
                f"refused by the policy: {what}" for what in self.tell("window.refused.splice(0)")
            ]
        return [fault for fault in self._faults if not any(one.search(fault) for one in self._expected)]

    def leave(self) -> None:
        """Close it: from here on nothing is asked any more."""
        self._faults = self.faults()
        self.page.close()

    # Where one is.

    def go(self, address: str) -> None:
        """Open a page, until it shows something; of another page, until it is loaded."""
        self._home = _origin(address)
        if self.page.url != "about:blank":
            # Else another place on the same page would only be a link that is followed.
            self.page.goto("about:blank")
        self.page.goto(address, wait_until="load")
        self.until(
            lambda: (
                self.text("#latest") not in ("", "…")
                or self.tell("document.getElementById('latest') === null")
                or self.text("#notice") + self.text("#home-counts") + self.text("#opener-examples") != ""
            ),
            "it shows something",
        )

    def be(self, **place: Any) -> None:
        """Follow a link to another moment."""
        self.tell(f"void (location.hash = {fragment(place)!r})")

    @property
    def seq(self) -> int:
        """Return the event one is at, counted from 1."""
        found = _POSITION.search(self.text("#place"))
        return int(found.group(1)) if found else 0

    @property
    def count(self) -> int:
        """Return the number of events."""
        found = _POSITION.search(self.text("#place"))
        return int(found.group(2)) if found else 0

    @property
    def address(self) -> str:
        """The fragment of the address, without `#`."""
        found: str = self.tell("location.hash")
        return found

    # What is there.

    def tell(self, expression: str, *given: Any) -> Any:
        """Return the value of an expression of JavaScript on the page."""
        return self.page.evaluate(expression, *given)

    def one(self, selector: str) -> Locator:
        """Return the element that a selector finds."""
        return self.page.locator(selector)

    def text(self, selector: str) -> str:
        """Return the text of the first matching element, visible or not; empty if there is none."""
        found: str = self.tell("(at) => document.querySelector(at)?.textContent ?? ''", selector)
        return found.strip()

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all matching elements that are laid out."""
        return [
            text.strip()
            for text in self.tell(
                "(at) => [...document.querySelectorAll(at)].filter((one) => one.getClientRects().length)"
                ".map((one) => one.textContent)",
                selector,
            )
        ]

    def is_seen(self, selector: str) -> bool:
        """Return whether such an element is laid out."""
        return bool(self.texts(selector))

    def is_alone(self) -> bool:
        """Return whether the table is all that is seen, as on a projector."""
        return not self.is_seen(".head-buttons")

    def until(self, true: Callable[[], bool], what: str) -> None:
        """Wait for something that takes its time."""
        end = time.monotonic() + SOON_S
        while not true():
            assert time.monotonic() < end, f"{what}: it did not happen within {SOON_S} s; {self._faults}"
            self.page.wait_for_timeout(_LOOK_MS)

    def until_at(self, seq: int) -> None:
        """Wait until one is at an event, and its sentence is shown."""
        self.until(lambda: self.seq == seq, f"it is at event {seq}")
        self.settle()

    def tells(self, sentence: str) -> None:
        """Wait until this is the latest that has happened."""
        self.until(lambda: self.text("#latest") == sentence, f"it tells: {sentence}")

    def settle(self) -> None:
        """Wait until no picture is on its way."""
        self.until(lambda: bool(self.tell(_IS_COMPLETE)), "the picture is complete")

    def rest(self) -> None:
        """Wait until all that was asked is answered, but for what is listened to."""
        self.until(lambda: all("/live" in one.url for one in self._open), "all is answered")

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def pane(self, name: str) -> None:
        """Turn to a pane, until something is in it."""
        self.page.locator(f"#tab-{name}").click()
        self.until(lambda: self.text(f"#pane-{name}") != "", f"something is in {name}")

    # How it looks.

    def overflow(self) -> int:
        """Return the number of pixels by which the page is wider than its window."""
        found: int = self.tell("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        return found

    def violations(self) -> list[str]:
        """Return axe's serious and critical violations, with their places."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page, options={"resultTypes": ["violations"]}).response["violations"]
        return [
            f"{rule['id']} ({rule['impact']}): {node['html'][:200]}: {node['failureSummary'][:300]}"
            for rule in found
            if rule["impact"] in ("serious", "critical")
            for node in rule["nodes"]
        ]


_POSITION = re.compile(r"#?(\d+) of (\d+)")
"""The event's place at the table, in `#7 of 26` and in `#219 (200 of 1687)`."""

_IS_COMPLETE = """() => {
    const uses = [...document.querySelectorAll("#board use")];
    const isHere = uses.every((use) => document.getElementById(use.getAttribute("href").slice(1)) !== null);
    return isHere && (uses.length > 0 || document.getElementById("stage").classList.contains("is-empty"));
}"""


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def file_address(path: Path, **place: Any) -> str:
    """Return the address of a file that is opened from the disk."""
    return path.resolve().as_uri() + (fragment(place) if place else "")
