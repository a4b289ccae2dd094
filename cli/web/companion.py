"""`--serve`: the table in the browser while something is recorded, served by a process of its own.

So no byte waits for a page, and what is passed on goes on if the page's server fails.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from threading import Thread
from types import TracebackType
from typing import Self

import click

from kiebitz.cli.param_type import ParamType
from kiebitz.cli.spawn import start_command
from kiebitz.proxy.relay.modes import parse_endpoint
from kiebitz.services.standard_streams import warn

HOST, PORT = "127.0.0.1", 8765
"""Where the page is served where nobody says otherwise."""

RECORDER = "KIEBITZ_RECORDER_LIVES"
"""In the environment: a descriptor that is at its end when the recording process is."""

_PATIENCE_S = 3.0
"""So long the other process may take to end."""


class _Place(ParamType[tuple[str, int]]):
    name = "place"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        try:
            host, port = parse_endpoint(value)
        except ValueError as error:
            self.fail(f"{error}, as in {HOST}:{PORT}", param, ctx)
        return host or HOST, port


serve_option = click.option(
    "--serve",
    "place",
    type=_Place(),
    is_flag=False,
    flag_value=f"{HOST}:{PORT}",
    metavar="[HOST:PORT]",
    help=f"Show the table in the browser meanwhile, as kiebitz serve does, on {HOST}:{PORT} or here.",
)


class PageBeside:
    """As a context: the page is there from `start` on, until the recording is over."""

    def __init__(self, place: tuple[str, int]) -> None:
        self._host, self._port = place
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False
        self._life = -1
        """Closed when this process ends, however it does: the other one has the end that is read."""

    def __enter__(self) -> Self:
        return self

    def start(self, session: str, on_left: Callable[[], None]) -> None:
        """Serve this session, `DB:N`. Who leaves a page ends nothing: `on_left` is never called."""
        where = ("--host", self._host, "--port", str(self._port))
        read, self._life = os.pipe()
        self._process = start_command(
            "serve",
            session,
            *where,
            variable=RECORDER,
            descriptor=read,
            stdin=subprocess.DEVNULL,
            # Its address is no line of what happens.
            stdout=2,
            # Ctrl-C is for the recording, which ends this in its time.
            start_new_session=True,
        )
        os.close(read)
        Thread(target=self._wait, name="serve", daemon=True).start()

    def stop(self) -> None:
        """End with the recording."""
        self._is_over = True
        if self._process is not None:
            self._process.terminate()

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.stop()
        if self._process is not None:
            try:
                self._process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            os.close(self._life)

    def _wait(self) -> None:
        """Wait until the other process is gone."""
        assert self._process is not None
        status = self._process.wait()
        if not self._is_over:
            warn(f"the page is not served any more (status {status}); the recording goes on")
