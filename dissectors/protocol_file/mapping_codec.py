"""The parts of codecs that formats with named fields share: JSON, pairs, and XML."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kiebitz.dissectors.grammar.field_type import FieldType, Mismatch
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Grammar,
    MessageType,
    Violation,
    shortened,
    to_json,
    unreadable,
)
from kiebitz.dissectors.grammar.layout_codec import MAX_QUOTED
from kiebitz.dissectors.grammar.patching import Place
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.file_codec import FileCodec
from kiebitz.dissectors.protocol_file.specification import Specification

Read = Callable[[Any], Any]
"""Returns the value of a field, or raises Mismatch."""


class Reader(NamedTuple):
    """A row with the functions that read its fields: name, function, and True if it may be absent."""

    row: MessageType
    steps: tuple[tuple[str, Read, bool], ...]
    names: frozenset[str]


class MappingCodec(FileCodec):
    """A codec of messages whose fields have names, in any order."""

    def __init__(self, specification: Specification, grammar: Grammar) -> None:
        super().__init__(specification, grammar)
        self._readers: dict[tuple[Direction, str], tuple[Reader, ...]] = {}
        for row in grammar.rows:
            key = row.direction, row.name
            self._readers[key] = (*self._readers.get(key, ()), self._reader(row))

    @abstractmethod
    def reader_of(self, kind: FieldType) -> Read:
        """Return the function that reads a value of this type."""

    @abstractmethod
    def place_of_error(self, frame: bytes, name: str, error: Mismatch | None) -> Place:
        """Return the place of an invalid field, or, if there is no error, where a missing one belongs."""

    @abstractmethod
    def place_of_name(self, frame: bytes, name: str) -> Place:
        """Return the place of a field's name."""

    def _reader(self, row: MessageType) -> Reader:
        steps = tuple((field.name, self.reader_of(field.type), field.optional) for field in row.fields)
        return Reader(row, steps, frozenset(field.name for field in row.fields))

    def read(
        self,
        frame: bytes,
        direction: Direction,
        name: str,
        values: Mapping[str, Any],
        reserved: Sequence[str] = (),
        notes: tuple[Violation, ...] = (),
    ) -> Decoded:
        """Return the decoded message of a known name.

        Args:
            frame: Its bytes.
            direction: Its direction.
            name: Its name.
            values: The fields as they were sent.
            reserved: Keys of `values` that are not fields.
            notes: What else is to be reported.
        """
        readers = self._readers[direction, name]
        others = len(values) - len(reserved)
        found: tuple[Reader, dict[str, Any]] | None = None
        for reader in readers:
            fields: dict[str, Any] = {}
            try:
                for key, read, optional in reader.steps:
                    if key in values:
                        fields[key] = read(values[key])
                    elif not optional:
                        break
                else:
                    if len(fields) >= others:
                        return Decoded(reader.row, fields, to_json(fields), True, notes)
                    found = found or (reader, fields)
            except Mismatch:
                continue
        if found is None:
            return self._misfit(frame, readers, values, notes)
        reader, fields = found
        unknown = next((key for key in values if key not in reader.names and key not in reserved), None)
        if unknown is not None:
            notes = (*notes, self.unknown_field(reader.row, unknown))
        return Decoded(reader.row, fields, to_json(fields), True, notes)

    def unknown_field(self, row: MessageType, name: str) -> Violation:
        """Return the note on a field that no row of the message has."""
        text = f'{row.name} has a field "{shortened(name, MAX_QUOTED)}", which is not specified'
        return Violation(
            "note",
            "malformed",
            "unknown-field",
            text,
            0,
            0,
            self.notation(row),
            row.clause,
            habit=True,
            locate=lambda frame: self.place_of_name(frame, name),
        )

    def _misfit(
        self,
        frame: bytes,
        readers: Sequence[Reader],
        values: Mapping[str, Any],
        notes: tuple[Violation, ...],
    ) -> Decoded:
        """Return the first error of the row that fits best."""
        best: tuple[int, Reader, dict[str, Any], str, Mismatch | None] | None = None
        for reader in readers:
            fields: dict[str, Any] = {}
            wrong: list[tuple[str, Mismatch | None]] = []
            for key, read, optional in reader.steps:
                if key not in values:
                    if not optional:
                        wrong.append((key, None))
                    continue
                try:
                    fields[key] = read(values[key])
                except Mismatch as error:
                    wrong.append((key, error))
            nearness = len(fields) - len(wrong)
            if best is None or nearness > best[0]:
                best = nearness, reader, fields, *wrong[0]
        assert best is not None
        _, reader, fields, key, mismatch = best
        place = self.place_of_error(frame, key, mismatch)
        if mismatch is None:
            violation = self.missing_error(reader.row, key, place)
        else:
            violation = self.field_error(reader.row, key, mismatch, place)
        return Decoded(reader.row, fields, to_json(fields), False, (violation, *notes))

    def unknown(self, sent: Any, direction: Direction, place: Place) -> Decoded:
        """Return the error of a message whose name is not known."""
        return unreadable(self.unknown_message(sent, direction, place))
