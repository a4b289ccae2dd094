"""A relay in a child process, for programs that need one for a while."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import Transport
from kiebitz.proxy.system.deferred_signals import PARENT
from kiebitz.proxy.system.descendants import MARK, Descendants, subreaper

HOST = "127.0.0.1"
"""Address at which the relay listens."""

_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 30.0
_RECORDER_TIMEOUT_S = 5.0
_CHECK_INTERVAL_S = 0.02

_MAX_LINES = 100
"""Maximum number of lines of a relay's output that are kept."""


class RelayProcessError(KiebitzError):
    """The relay could not be started; the text has its output."""


def free_port(transport: Transport, count: int = 1) -> int:
    """Return the first of `count` consecutive ports of this machine at which nothing listens."""
    kind = socket.SOCK_DGRAM if transport == "udp" else socket.SOCK_STREAM
    while True:
        with ExitStack() as stack:
            first, *others = (stack.enter_context(socket.socket(socket.AF_INET, kind)) for _ in range(count))
            first.bind((HOST, 0))
            port: int = first.getsockname()[1]
            # Only what another program holds is looked past: any other error would recur for ever.
            with suppress(OSError, OverflowError):
                for each, sock in enumerate(others, port + 1):
                    sock.bind((HOST, each))
                return port


class RelayProcess:
    """`kiebitz relay` as a child process, which ends with this process.

    Args:
        modes: Its modes.
        database: The database for the recording.
        options: Further options of `kiebitz relay`.
        tell: Receives each line that it prints, in a thread.
    """

    def __init__(
        self,
        modes: Sequence[str],
        database: str,
        options: Sequence[str] = (),
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        # Not from the current folder, which may contain anything.
        kiebitz = [sys.executable, "-P", "-m", "kiebitz"]
        self._command = [*kiebitz, "relay", "-q", *(f"-m{mode}" for mode in modes), "-w", database, *options]
        self._count = len(modes)
        self._tell = tell
        self._lines: deque[str] = deque(maxlen=_MAX_LINES)
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens. Raises RelayProcessError; then it is stopped."""
        mark = secrets.token_hex(16)
        self._lines.clear()
        self._ready = threading.Event()
        life, self._life = os.pipe()
        subreaper.acquire()
        # Ctrl-C is for this process, which ends the relay.
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
            pass_fds=(life,),
            env={**os.environ, MARK: mark, PARENT: str(life)},
        )
        os.close(life)
        self._descendants = Descendants(self._process.pid, mark)
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()
        if not self._ready.wait(_START_TIMEOUT_S) or not self.is_running:
            self.stop()
            output = " ".join(self._lines) or " ".join(self._command)
            raise RelayProcessError(f"the relay does not start: {output}")

    @property
    def is_running(self) -> bool:
        """True if it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End it, if it was started; everything is recorded then."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(self._life)
        # Its recorder may hang, as over a database that was replaced by a pipe.
        end = time.monotonic() + _RECORDER_TIMEOUT_S
        while self._descendants.find() and time.monotonic() < end:
            time.sleep(_CHECK_INTERVAL_S)
        self._descendants.kill(_RECORDER_TIMEOUT_S)
        subreaper.release()
        self._reader.join(_RECORDER_TIMEOUT_S)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        listening = 0
        with process.stderr:
            for line in process.stderr:
                self._lines.append(line.strip())
                self._tell(line.strip())
                listening += "listening on" in line
                if listening == self._count:
                    self._ready.set()
        # Its end is no reason to wait, either.
        self._ready.set()


@contextmanager
def running_relay(
    transport: Transport,
    host: str,
    server_port: int,
    database: str,
    options: Sequence[str] = (),
    count: int = 1,
) -> Iterator[int]:
    """Relay clients to a server until the end of the `with` statement; everything is recorded then.

    Args:
        transport: The transport of the protocol.
        host: Address of the server.
        server_port: Port of the server, which need not listen yet.
        database: The database for the recording.
        options: Further options of `kiebitz relay`.
        count: Number of consecutive ports of the server.

    Yields:
        The first of as many ports at which the relay listens.

    Raises:
        RelayProcessError: It cannot be started.
    """
    port = free_port(transport, count)
    modes = [
        f"reverse:{transport}://{host}:{server_port + each}@{HOST}:{port + each}" for each in range(count)
    ]
    relay = RelayProcess(modes, database, options)
    relay.start()
    try:
        yield port
    finally:
        relay.stop()


def decoding_options(
    transport: Transport, port: int, protocol: str, file: str | None, count: int = 1
) -> list[str]:
    """Return the options to decode a server's `count` ports as a protocol, or one from a file."""
    options = [f"-d{transport}.port=={each},{protocol}" for each in range(port, port + count)]
    return options if file is None else [*options, "-P", file]
