"""A real Chromium that looks at the page, and what tests ask of it.

It loads nothing but the page, and every wait has a limit. Whatever the page's console says is kept: a test
ends with `Look.check_quiet`.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command import spawn
from live import PATIENCE_S

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed here (apt-get install chromium)"
)

_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

WIDE, PROJECTOR, PHONE, NARROW = (1440, 900), (1024, 768), (390, 844), (320, 640)
"""Windows in which the page is looked at: width and height."""

_PATIENCE_S = 15.0

_WHERE = "Object.fromEntries(new URLSearchParams(location.hash.slice(1)))"


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, until the end of the block."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_OPTIONS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def serving(*arguments: str, port: int = 0) -> Iterator[str]:
    """`kiebitz serve` with these arguments, on any free port or on this one: gives the page's address."""
    process = spawn("serve", "--port", str(port), *arguments)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith(b"http://"):
                yield line.decode().strip()
                break
        else:
            assert process.stderr is not None
            raise AssertionError(process.stderr.read().decode())
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


class Look:
    """A window with the page in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.console: list[str] = []
        """What the console says, other than that a filter was none, which the page itself tells."""
        page.set_default_timeout(_PATIENCE_S * 1000)
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.on("pageerror", lambda error: self._hear("error", str(error)))

    def _hear(self, kind: str, text: str) -> None:
        if "400 (Bad Request)" not in text:
            self.console.append(f"{kind}: {text}")

    def go(self, address: str) -> None:
        """Open the page, and wait until it shows something."""
        self.page.goto("about:blank")
        self.page.goto(address)
        self.until("document.getElementById('latest').textContent.length > 1")

    def until(self, true: str, argument: Any = None) -> None:
        """Wait until an expression of JavaScript, or a function of one argument, gives what is true."""
        end = time.monotonic() + _PATIENCE_S
        # Playwright's own waiting evaluates texts in the page, which the page's policy forbids.
        while not self.page.evaluate(true, argument):
            assert time.monotonic() < end, f"in vain: {true} {argument or ''}; the console: {self.console}"
            self.page.wait_for_timeout(20)

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def at(self, event: int) -> None:
        """Wait until one is at an event, and its picture is there."""
        self.until(f"document.getElementById('place').textContent.startsWith('event {event} ')")

    def says(self, words: str, where: str) -> None:
        """Wait until an element, by its id, has these words in it."""
        self.until("([id, words]) => document.getElementById(id).textContent.includes(words)", [where, words])

    def text(self, selector: str) -> str:
        """What an element says."""
        return self.page.locator(selector).first.inner_text()

    def where(self) -> dict[str, str]:
        """What the address says."""
        found: dict[str, str] = self.page.evaluate(_WHERE)
        return found

    def ask(self, expression: str, argument: Any = None) -> Any:
        """The value of an expression of JavaScript, or of a function of one argument."""
        return self.page.evaluate(expression, argument)

    def check_quiet(self) -> None:
        """Nothing was said on the console."""
        assert self.console == []


@contextmanager
def looking(
    browser: Browser, size: tuple[int, int] = WIDE, *, dark: bool = False, axe: bool = False
) -> Iterator[Look]:
    """A new window of this size; `axe` lets a script into it that the page's own policy keeps out."""
    viewport: ViewportSize = {"width": size[0], "height": size[1]}
    context = browser.new_context(
        viewport=viewport, color_scheme="dark" if dark else "light", bypass_csp=axe, reduced_motion="reduce"
    )
    try:
        yield Look(context.new_page())
    finally:
        context.close()


def serious_findings(look: Look) -> list[str]:
    """What axe finds fault with, in a few words each; what is minor is left out."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(look.page).response["violations"]
    return [
        f"{each['impact']}: {each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical", "moderate")
    ]


STATIC = Path(__file__).parent.parent / "cli" / "web" / "static"
"""The page's own files."""
