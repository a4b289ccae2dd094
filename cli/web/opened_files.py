"""Files that the user of the full link opens on the page: captures, databases and protocol files.

A file may be a stranger's. It is received into a temporary folder, and read by another process, both within
limits of size and time.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tomllib
from collections.abc import AsyncIterable
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from kiebitz.cli.web.admission import BusyError
from kiebitz.cli.web.held_api import RequestTooLargeError, SlowRequestError
from kiebitz.cli.web.request_params import BadRequestError
from kiebitz.dissectors.escaping import printable
from kiebitz.services.sessions import is_database

OCTETS = "application/octet-stream"
"""Media type of a file's content."""

MAX_BYTES = 100 << 20
"""Maximum size of a file, in bytes."""

_TOO_LARGE = f"a file has at most {MAX_BYTES >> 20} MiB here: use kiebitz serve with a larger one"

MAX_BYTES_IN_ALL = 500 << 20
"""Maximum size of all files of a server, in bytes."""

MAX_FILES = 50
"""Maximum number of files of a server."""

_MAX_DATABASE = "2GB"
"""Maximum size of the database of a capture: one that expands to more is cut there."""

RECEIVE_S = 120.0
READ_S = 60.0
"""Time limits in seconds for receiving a file, and for reading it."""

_MAX_NAME = 100
_MAX_SENTENCE = 4000


class OpenedFiles:
    """The opened files of a server, one received and read at a time; they are removed by `close`."""

    def __init__(self) -> None:
        self._folder = ""
        self._turn = asyncio.Lock()
        self._files = 0
        self._bytes = 0
        self._protocols: dict[str, str] = {}
        """Paths of protocol files by protocol; the latest one of a protocol counts."""

    def close(self) -> None:
        """Remove all files."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def open(
        self, name: str, announced: int, body: AsyncIterable[bytes]
    ) -> tuple[str, list[int]] | list[str]:
        """Return the path of a file's database and the ids of its sessions, or the names of all protocols.

        `announced` is its size in bytes as far as known.

        Raises:
            BadRequestError: The file cannot be read; the message says where it is wrong.
            BusyError: Another file is being opened, or too many have been.
            RequestTooLargeError: The file is too large.
            SlowRequestError: The file was not complete in time.
        """
        if announced > MAX_BYTES:
            raise RequestTooLargeError(_TOO_LARGE)
        if self._turn.locked():
            raise BusyError("another file is being opened: try again in a moment")
        if self._files >= MAX_FILES or self._bytes >= MAX_BYTES_IN_ALL:
            raise BusyError("too many files have been opened here: start kiebitz serve again")
        async with self._turn:
            self._folder = self._folder or mkdtemp(prefix="kiebitz-")
            folder = mkdtemp(dir=self._folder)
            path = os.path.join(folder, _file_name(name))
            try:
                await self._receive(path, body)
                opened = await self._read(path)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            self._files += 1
            self._bytes += sum(file.stat().st_size for file in Path(folder).rglob("*"))
            return opened

    async def _receive(self, path: str, body: AsyncIterable[bytes]) -> None:
        size = 0
        try:
            with open(path, "xb") as file:
                async with asyncio.timeout(RECEIVE_S):
                    async for piece in body:
                        size += len(piece)
                        if size > MAX_BYTES:
                            raise RequestTooLargeError(_TOO_LARGE)
                        file.write(piece)
        except TimeoutError:
            raise SlowRequestError(f"the file was not complete after {RECEIVE_S:g} s") from None

    async def _read(self, path: str) -> tuple[str, list[int]] | list[str]:
        name = os.path.basename(path)
        if name.endswith(".toml"):
            await self._run(path, "protocols", "--check", name)
            protocol = tomllib.loads(Path(path).read_text())["protocol"]
            self._protocols[protocol] = path
            return sorted(self._protocols)
        database = path
        if not is_database(path):
            database = os.path.join(os.path.dirname(path), "of", "capture.db")
            os.mkdir(os.path.dirname(database))
            own = [word for file in self._protocols.values() for word in ("-P", file)]
            await self._run(
                path, "import", "-w", database, "--jobs", "1", "--max-size", _MAX_DATABASE, *own, "--", name
            )
            os.unlink(path)
        listed = await self._run(database, "sessions", "--json", "--", os.path.basename(database))
        found = [session["id"] for session in json.loads(listed)]
        if not found:
            raise BadRequestError(f"{name}: there is no session in it yet")
        return database, found

    async def _run(self, path: str, *words: str) -> str:
        """Return the output of a command in a file's folder. Raises BadRequestError with its message."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "kiebitz", *words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=os.path.dirname(path),
            # Neither Ctrl-C nor the terminal is its own.
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(READ_S):
                out, err = await process.communicate()
        except TimeoutError:
            raise BadRequestError(f"reading it took longer than {READ_S:g} s: use kiebitz import") from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if process.returncode:
            said = (err or out).decode(errors="replace").removeprefix("kiebitz: ")
            said = said.replace(f"{self._folder}/", "")
            raise BadRequestError(said.strip()[:_MAX_SENTENCE] or "it cannot be read")
        return out.decode()


def _file_name(given: str) -> str:
    """Return the name of a file in its folder, as near to the given one as is safe, with its ending."""
    name = printable(given[-_MAX_NAME:].replace("\\", "/").rpartition("/")[2])
    while len(name.encode()) > _MAX_NAME:
        name = name[1:]
    return name.lstrip("-.") or "file"
