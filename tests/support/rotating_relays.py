"""Relays that divide what they record."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from processes_and_rows import KIEBITZ, PATIENCE_S, free_port, kill_all, until

from kiebitz.dissectors.model import Transport


class Relay:
    """A relay on `port`; its output is collected in `said`."""

    def __init__(self, transport: Transport, server_port: int, database: Path, *options: str) -> None:
        self.port = free_port(transport)
        mode = f"reverse:{transport}://127.0.0.1:{server_port}@{self.port}"
        self.process = subprocess.Popen(
            [*KIEBITZ, "relay", "-m", mode, "-w", str(database), "-q", *options],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.wait_for("listening on")

    @property
    def said(self) -> str:
        return "".join(self._lines)

    def wait_for(self, words: str, times: int = 1) -> None:
        until(lambda: self.said.count(words) >= times, f"the relay says {words!r}")

    def stop(self) -> int:
        """Ctrl-C; the exit status."""
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(30)
        self._reader.join(PATIENCE_S)
        return status

    def _read(self) -> None:
        assert self.process.stderr is not None
        self._lines.extend(self.process.stderr)


@contextmanager
def relaying(transport: Transport, server_port: int, database: Path, *options: str) -> Iterator[Relay]:
    relay = Relay(transport, server_port, database, *options)
    try:
        yield relay
    finally:
        kill_all(relay.process)


@contextmanager
def listening() -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(PATIENCE_S)
        yield listener
