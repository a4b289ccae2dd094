"""Live output of a recording: one line per event, violation and alteration."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kiebitz.cli.configuration.file import named
from kiebitz.cli.terminal.console import Line, Styled, show_line
from kiebitz.cli.terminal.table import short_address
from kiebitz.dissectors.errors import KiebitzError, fault
from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.model import Altered, Diagnostic, Event, Findings, Message, TableInfo
from kiebitz.services.standard_streams import flush, has_output_failed, print_error_line, warn
from kiebitz.storage.read.alterations import ACTION_WORDS, original_message
from kiebitz.storage.read.conditions import compile_optional_filter
from kiebitz.storage.read.event_text import describe
from kiebitz.storage.recording.recorder import Recorder

# The filter language is slow to import, and most recordings are shown without a filter.
if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter, Predicate, Target

_COLOURS = {"error": "red", "warning": "yellow"}

_TARGETS: tuple[Target, ...] = ("events", "messages", "diagnostics")
"""The records that are shown, of which a filter selects."""


class LiveView:
    """Prints the findings of `recorder`, with times since the start of its session; nothing if `quiet`.

    Printing stops with a warning if the filter takes more than `patience_s` (CPU time in seconds) per batch:
    recording has priority. `tables` are those found before.
    """

    def __init__(
        self,
        recorder: Recorder,
        wanted: Filter | None,
        quiet: bool,
        tables: Iterable[TableInfo] = (),
        patience_s: float = 1.0,
    ) -> None:
        self._recorder = recorder
        self._quiet = quiet
        self._filter = wanted.text if wanted is not None else ""
        self._spent = 0.0
        self._patience_s = patience_s
        self._wanted: dict[Target, Predicate] = {}
        if wanted is not None:
            for target in _TARGETS:
                self._wanted[target] = wanted.predicate(target, recorder.numbers)
        self._tables = {table.id: table for table in tables}

    def show(self, found: Findings) -> None:
        """Print one line for each event, alteration, and diagnostic above a note."""
        if self._quiet:
            return
        try:
            for line in self._lines(found):
                show_line(*line)
            flush()
        except BrokenPipeError:
            # The reader closed the pipe, or writing failed; the recording continues.
            self._quiet = True
            if has_output_failed():
                print_error_line("output stopped; everything is still recorded")
        except KiebitzError as error:
            self._quiet = True
            warn(str(error), *error.excerpt(), "output stopped; everything is still recorded")
        except Exception as error:
            self._quiet = True
            warn(fault(error), "output stopped; everything is still recorded")

    def _meets(
        self,
        target: Target,
        messages: Sequence[Message],
        event: Event | None = None,
        diagnostics: Sequence[Diagnostic] = (),
        table: TableInfo | None = None,
    ) -> bool:
        """Return whether these match the filter, if any. Raises FilterError if it takes too long."""
        wanted = self._wanted.get(target)
        if wanted is None:
            return True
        from kiebitz.dissectors.filters import FilterError, Row

        begun = time.thread_time()
        session_id = self._recorder.session_id
        meets = wanted(Row(self._started_ns, messages, event, diagnostics, table, session_id))
        self._spent += time.thread_time() - begun
        if self._spent > self._patience_s:
            sentence = f"the filter takes too long: over {self._patience_s:g} s for one batch"
            raise FilterError(sentence, self._filter, 0, len(self._filter))
        return meets

    def _lines(self, found: Findings) -> Iterable[Line]:
        self._spent = 0.0
        for table in found.tables:
            self._tables[table.id] = table
        telling: dict[int, list[Message]] = defaultdict(list)
        about: dict[int, list[Diagnostic]] = defaultdict(list)
        by_id: dict[int, Message] = {}
        for message in found.messages:
            by_id[message.id] = message
            if message.event_id is not None:
                telling[message.event_id].append(message)
        for diagnostic in found.diagnostics:
            if diagnostic.message_id is not None:
                about[diagnostic.message_id].append(diagnostic)
        lines: list[tuple[int, Line]] = []
        for event in found.events:
            table = self._tables[event.table_id]
            messages = telling[event.id]
            diagnostics = [diagnostic for message in messages for diagnostic in about[message.id]]
            if self._meets("events", messages, event, diagnostics, table):
                sentence = describe(table.protocol, event)
                start = f"{self._time(event.ts_ns)}  {self._where(table.server)}"
                lines.append((event.ts_ns, [f"{start}{sentence}"]))
        named = {
            (message.stream.id, message.direction, message.offset): message.name
            for message in found.messages
            if message.altered is not None
        }
        for altered in found.altered:
            if self._meets("messages", [original_message(altered)]):
                # Only the resulting message of an insertion has a name.
                place = (altered.stream.id, altered.direction, altered.offset)
                name = altered.name or named.get(place) if altered.length else altered.name
                lines.append((altered.ts_ns, self._of_altered(altered, name)))
        events = {event.id: event for event in found.events}
        for diagnostic in found.diagnostics:
            about_message = by_id.get(diagnostic.message_id) if diagnostic.message_id is not None else None
            told = events.get(about_message.event_id or 0) if about_message is not None else None
            said = [about_message] if about_message else []
            is_much = bool(self._wanted) or diagnostic.severity != "note"
            if is_much and self._meets("diagnostics", said, told, [diagnostic]):
                label = Styled(f"{diagnostic.severity}[{diagnostic.code}]", _COLOURS.get(diagnostic.severity))
                start = f"{self._time(diagnostic.ts_ns)}  {self._where(diagnostic.stream.server)}"
                line: Line = [start, label, f" {self._sender(diagnostic)}: {diagnostic.text}"]
                lines.append((diagnostic.ts_ns, line))
        return [line for _, line in sorted(lines, key=lambda line: line[0])]

    def _of_altered(self, altered: Altered, name: str | None) -> Line:
        client = altered.stream.player or named(altered.stream.client)
        whose = f"from {client}" if altered.direction == "c2s" else f"to {client}"
        start = f"{self._time(altered.ts_ns)}  {self._where(altered.stream.server)}"
        deed = f"{ACTION_WORDS[altered.action]} {name or UNREADABLE} {whose}: {altered.rule}"
        return [start, Styled("altered", "magenta"), f"  {deed}"]

    def _where(self, server: str) -> str:
        return f"{short_address(server)}  " if len(self._tables) > 1 else ""

    def _sender(self, diagnostic: Diagnostic) -> str:
        if diagnostic.direction == "s2c":
            return named(diagnostic.stream.server)
        return diagnostic.stream.player or named(diagnostic.stream.client)

    @property
    def _started_ns(self) -> int:
        # The session may start with its first item; before that, there are no findings.
        return self._recorder.started_ns or 0

    def _time(self, ts_ns: int) -> str:
        return f"{(ts_ns - self._started_ns) / 1e9:12.6f}"


def live_view(wanted: str | None, recorder: Recorder, tables: Iterable[TableInfo]) -> LiveView:
    """Return the live view of a recording with the filter `wanted`. Raises FilterError."""
    return LiveView(recorder, compile_optional_filter(wanted), False, tables)
