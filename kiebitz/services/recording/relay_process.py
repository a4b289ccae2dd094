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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import Transport
from kiebitz.proxy.system.descendants import MARK, Descendants, subreaper

HOST = "127.0.0.1"
"""Address at which the relay listens."""

_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 30.0
_RECORDER_TIMEOUT_S = 5.0
_CHECK_INTERVAL_S = 0.02


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
        f"-mreverse:{transport}://{host}:{server_port + each}@{HOST}:{port + each}" for each in range(count)
    ]
    # Not from the current folder, which may contain anything.
    command = [sys.executable, "-P", "-m", "kiebitz", "relay", "-q", *modes, "-w", database, *options]
    # Ctrl-C is for this process, which ends the relay.
    mark = secrets.token_hex(16)
    subreaper.acquire()
    relay = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, MARK: mark},
    )
    descendants = Descendants(relay.pid, mark)
    lines: list[str] = []
    is_ready = threading.Event()
    reader = threading.Thread(target=_read, args=(relay, lines, count, is_ready), daemon=True)
    reader.start()
    try:
        if not is_ready.wait(_START_TIMEOUT_S) or relay.poll() is not None:
            raise RelayProcessError(f"the relay does not start: {' '.join(lines) or ' '.join(command)}")
        yield port
    finally:
        relay.send_signal(signal.SIGINT)
        try:
            relay.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            relay.kill()
            relay.wait()
        # Its recorder may hang, as over a database that was replaced by a pipe.
        end = time.monotonic() + _RECORDER_TIMEOUT_S
        while descendants.find() and time.monotonic() < end:
            time.sleep(_CHECK_INTERVAL_S)
        descendants.kill(_RECORDER_TIMEOUT_S)
        subreaper.release()
        reader.join(_RECORDER_TIMEOUT_S)


def decoding_options(
    transport: Transport, port: int, protocol: str, file: str | None, count: int = 1
) -> list[str]:
    """Return the options to decode a server's `count` ports as a protocol, or one from a file."""
    options = [f"-d{transport}.port=={each},{protocol}" for each in range(port, port + count)]
    return options if file is None else [*options, "-P", file]


def _read(relay: subprocess.Popen[str], lines: list[str], count: int, is_ready: threading.Event) -> None:
    assert relay.stderr is not None
    with relay.stderr:
        for line in relay.stderr:
            lines.append(line.strip())
            if sum("listening on" in each for each in lines) == count:
                is_ready.set()
    # Its end is no reason to wait, either.
    is_ready.set()
