"""Firefox without a window, driven by WebDriver BiDi: what Playwright does for Chromium."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from processes_and_rows import PATIENCE_S

_LISTENING = re.compile(rb"WebDriver BiDi listening on (ws://\S+)")


class Firefox:
    """A tab of Firefox."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._numbers = count(1)
        self._ask("session.new", capabilities={})
        self._tab = self._ask("browsingContext.getTree")["contexts"][0]["context"]

    def _ask(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while (answer := json.loads(self._socket.recv(timeout=PATIENCE_S))).get("id") != number:
            # An event.
            pass
        assert answer["type"] == "success", answer
        return answer["result"]

    def go(self, address: str) -> None:
        """Open a page."""
        self._ask("browsingContext.navigate", context=self._tab, url=address, wait="complete")

    def tell(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript: a text, a number, a truth value."""
        return self._evaluated(expression).get("value")

    def _evaluated(self, expression: str) -> Any:
        target = {"context": self._tab}
        answer = self._ask("script.evaluate", expression=expression, target=target, awaitPromise=True)
        assert answer["type"] == "success", answer
        return answer["result"]

    def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + 2 * PATIENCE_S
        while not self.tell(f"Boolean({expression})"):
            assert time.monotonic() < end, f"{expression}: {self.tell('document.body.innerText')}"
            time.sleep(0.1)

    def choose(self, selector: str, *files: Path) -> None:
        """Choose files in an input."""
        element = {"sharedId": self._evaluated(f"document.querySelector({selector!r})")["sharedId"]}
        self._ask("input.setFiles", context=self._tab, element=element, files=[str(file) for file in files])


@contextmanager
def firefox(profile: Path) -> Iterator[Firefox]:
    """Run Firefox with a new profile for a block."""
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        pytest.skip("there is no firefox here")
    from websockets.sync.client import connect

    words = ["--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
    process = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        found = next(filter(None, map(_LISTENING.search, process.stderr)), None)
        assert found is not None, "Firefox does not listen"
        with connect(f"{found[1].decode()}/session", max_size=None) as socket:
            yield Firefox(socket)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
