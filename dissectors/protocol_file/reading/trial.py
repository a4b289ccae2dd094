"""The trial of a protocol file: sample messages are written and read, and properties are checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from kiebitz.dissectors.dissector import Dissector, recognise
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.protocol_file.reading.errors import Mistake
from kiebitz.dissectors.protocol_file.reading.reader import Reading
from kiebitz.dissectors.protocol_file.reading.samples import Unsampled, samples_of

_SAMPLES = 6
"""Number of sample messages per row."""

_MAX_FRAMES = 200
"""Maximum number of sample messages with which properties are checked."""

_EXAMPLES = 6
"""Number of random conversations per property."""


class Trial:
    """The sample messages of a protocol file: their frames, and remarks on rows that do not fit them.

    `others` are protocols that may be confused with it.
    """

    def __init__(self, reading: Reading, dissector: Dissector, others: Iterable[Dissector] = ()) -> None:
        self._reading = reading
        self._dissector = dissector
        self._random = Random(0)
        self.frames: list[bytes] = []
        self.remarks: list[Mistake] = []
        for index in range(len(reading.specification.messages)):
            problem = self._problem(index)
            if problem is not None:
                self.remarks.append(Mistake(problem, reading.place_of_row(index)))
        self._alike = self._confused(others)
        if self._alike:
            names = ", ".join(self._alike)
            problem = f"its messages can be those of {names}, too: -d says which protocol a port has"
            self.remarks.append(Mistake(problem, reading.places.value(("protocol",))))

    def _confused(self, others: Iterable[Dissector]) -> list[str]:
        """Return the names of other protocols that sample messages certainly seem to be."""
        transport = self._reading.specification.transport
        dissectors = [other for other in others if other.protocol != self._dissector.protocol]
        found = {
            other.protocol: None
            for frame in self.frames[:_MAX_FRAMES]
            for other, _, likeness in recognise(dissectors, transport, frame)
            if likeness == "certain"
        }
        return [*found]

    def _problem(self, index: int) -> str | None:
        """Write and read samples of a row; return why no sample is read as it was written, or None."""
        specification = self._reading.specification
        message, row = specification.messages[index], self._dissector.grammar.rows[index]
        problem = None
        try:
            for fields in samples_of(
                message, specification.format_of(message.direction).kind, self._random, _SAMPLES
            ):
                try:
                    frame = self._dissector.codec.encode(row.name, row.direction, fields)
                except ValueError as error:
                    if len(self._dissector.grammar.rows_named(row.direction, row.name)) > 1:
                        problem = f"no message is read as this row of {row.name}: another row fits before it"
                    else:
                        shown = to_json(fields)
                        problem = problem or f"a sample of {row.name}, {shown}, cannot be written: {error}"
                    continue
                self.frames.append(frame)
                decoded = self._dissector.codec.decode(frame, row.direction)
                if not decoded.valid:
                    shown = ascii(frame)[1:]
                    found = "; ".join(violation.text for violation in decoded.violations) or "it is not valid"
                    problem = problem or f"the sample {shown} of {row.name} is not read as written: {found}"
                elif decoded.row is row and to_json(decoded.fields) == to_json(fields):
                    return None
                elif decoded.row is not row:
                    problem = f"no message is read as this row of {row.name}: another row fits before it"
                else:
                    problem = problem or (
                        f"the sample {to_json(fields)} of {row.name} is read as {to_json(decoded.fields)}"
                    )
        except Unsampled:
            return None
        return problem

    def failed_properties(self) -> Iterator[str]:
        """Yield a sentence for each property of all protocols that does not hold. Raises ImportError."""
        # Loads hypothesis, which only this needs.
        from hypothesis import Phase, settings

        from kiebitz.dissectors.testing import CHECKS, findings_are_consistent

        frames: Sequence[bytes] = self._random.sample(self.frames, min(len(self.frames), _MAX_FRAMES))
        settings.register_profile("before", settings())
        # It writes no files, and finds the same each time; the search for the smallest example takes minutes.
        settings.register_profile("trial", database=None, derandomize=True, phases=[Phase.generate])
        settings.load_profile("trial")
        try:
            for check in CHECKS:
                try:
                    check(self._dissector, frames, _EXAMPLES)
                # A defect may raise anything.
                except Exception as error:
                    if self._alike and check is findings_are_consistent:
                        # Other protocols report events of their own.
                        continue
                    title = getattr(check, "__name__", "a property").replace("_", " ")
                    reason = " ".join(str(error).split())[:300]
                    yield f"{title}: {reason or type(error).__name__}"
        finally:
            settings.load_profile("before")
