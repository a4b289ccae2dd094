"""The page's sessions and the answers to its requests where Kiebitz runs in the browser, without a server.

A worker of the page calls this; see `in_browser/worker.js`.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable
from itertools import chain
from urllib.parse import parse_qsl

import msgspec

from kiebitz.cli.web import records
from kiebitz.cli.web.grants import Grant
from kiebitz.cli.web.html_export import write_html
from kiebitz.cli.web.reader import NotThereError, Reader, ServedSession, explain_error
from kiebitz.cli.web.request_params import ApiRequest
from kiebitz.cli.web.routes import ENDPOINTS, MAX_SHOWN, STATUS, answered, path_numbers, refusal, session_info
from kiebitz.dissectors.errors import KiebitzError, fault
from kiebitz.dissectors.protocol_file.reading.positions import ProtocolFileError
from kiebitz.dissectors.version import kiebitz_version
from kiebitz.services.anonymizing import pseudonyms_if
from kiebitz.services.importing.packets import import_capture
from kiebitz.services.protocol_files import add_protocol_files
from kiebitz.services.sessions import apply_protocol_files, is_database, load
from kiebitz.storage.database.schema import MEMORY, StorageError
from kiebitz.storage.derived.derived_session import anonymize_session
from kiebitz.storage.export.export import FORMATS
from kiebitz.storage.filters.sql import original_error
from kiebitz.storage.read.timeline import Timeline, sessions

_PATHS = [(re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", one.path)), one) for one in ENDPOINTS]

_STEPS = 1 << 20
"""Steps of SQLite, some milliseconds, after which it lets Python look for signals."""

OnProgress = Callable[[int, int | None], None]
"""Called with the number of bytes read, and of all."""


class LocalSessions:
    """The sessions of the files that the user opened.

    `answer` never raises; the other methods raise KiebitzError with a sentence for the user.
    """

    def __init__(self) -> None:
        self._readers: dict[int, Reader] = {}

    def add(self, path: str, on_progress: OnProgress = lambda done, of: None) -> int:
        """Open a capture or a database and return the number of its first session; the path is its name."""
        first = len(self._readers) + 1
        folder, name = os.path.split(path)
        # Messages name the file as the user knows it.
        os.chdir(folder)
        if is_database(name):
            connection, lacks = load(name)
        else:
            recording, lacks = import_capture(name, MEMORY, {}, on_progress)
            connection = recording.recorder.connection
        rows = sessions(connection)
        if not rows:
            raise KiebitzError(f"{name}: there is no session in it yet")
        for number, row in enumerate(rows, first):
            shown = name if len(rows) == 1 else f"{name}:{row.id}"
            served = ServedSession(number, path, row.id, shown, lacks)
            timeline = apply_protocol_files(Timeline(connection, row))
            timeline.connection.set_progress_handler(lambda: False, _STEPS)
            self._readers[number] = Reader(served, timeline)
        return first

    def add_protocol(self, name: str, text: str) -> list[str]:
        """Use a protocol file for what is opened from now on, and return the names of its protocols."""
        try:
            # A text of one line would be taken for a path.
            return sorted(add_protocol_files([f"{text}\n"], replaces=True))
        except ProtocolFileError as error:
            lines = ((mistake.text(name), *mistake.excerpt()) for mistake in error.all)
            raise KiebitzError("\n".join(chain.from_iterable(lines))) from error

    def export(self, number: int, form: str, is_anonymized: bool) -> bytes:
        """Return a session in one of the formats of `kiebitz export`, or as an HTML page."""
        reader = self._readers[number]
        timeline = reader.timeline
        stand_ins = pseudonyms_if(is_anonymized)
        if stand_ins is not None:
            timeline = anonymize_session(timeline, stand_ins, lambda done, of: None)
        file = io.BytesIO()
        if form == "html":
            served = msgspec.structs.replace(reader.served, name=timeline.session.name)
            write_html(Reader(served, timeline), None, file, lambda done, of: None)
        else:
            FORMATS[form](timeline, file)
        return file.getvalue()

    def answer(self, path: str, query: str) -> tuple[int, bytes]:
        """Return the status and the body of the response to a request."""
        served: ServedSession | None = None
        try:
            given = dict(parse_qsl(query, keep_blank_values=True))
            if path == "/api/sessions":
                return 200, msgspec.json.encode(self._sessions())
            found, endpoint = next(
                ((found, one) for pattern, one in _PATHS if (found := pattern.fullmatch(path))), (None, None)
            )
            if found is None or endpoint is None:
                raise NotThereError(f"there is nothing at {path[:MAX_SHOWN]}")
            params = ApiRequest(given, endpoint.known, Grant(), path_numbers(found.groupdict()))
            number = params.number("session") or 1
            reader = self._readers.get(number)
            if reader is None:
                raise NotThereError(f"there is no session {number} here; there are {len(self._readers)}")
            served = reader.served
            found = answered(endpoint, params, reader)
            return 200, found if isinstance(found, bytes) else msgspec.json.encode(found)
        except KeyboardInterrupt:
            # The worker's clock rang; a statement of SQLite obeys it, too.
            return _refused(StorageError("the query was cancelled: request less"), None)
        except Exception as error:
            original = original_error(error)
            return _refused(original if isinstance(original, Exception) else error, served)

    def _sessions(self) -> records.Sessions:
        infos = [session_info(reader, live=False) for reader in self._readers.values()]
        return records.Sessions(kiebitz_version(), None, infos, False, None, sys.maxsize)


def _refused(error: Exception, served: ServedSession | None) -> tuple[int, bytes]:
    if not isinstance(error, tuple(STATUS)) and served is not None:
        error = explain_error(served, error)
    if isinstance(error, tuple(STATUS)):
        status, record = refusal(error)
    else:
        status, record = 500, records.Refusal(fault(error))
    return status, msgspec.json.encode(record)
