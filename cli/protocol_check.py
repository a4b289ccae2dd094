"""The report of `kiebitz protocols --check`: mistakes in a protocol file, and its coverage of captures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from importlib.util import find_spec
from tempfile import TemporaryDirectory

import click

from kiebitz.cli.options.session import open_session
from kiebitz.cli.status import FAILED, OK, VIOLATIONS
from kiebitz.cli.terminal.console import COLOURS, Styled, show_line
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.extras import install_command
from kiebitz.dissectors.grammar.grammar import sender_of
from kiebitz.dissectors.model import Direction, Severity
from kiebitz.dissectors.protocol_file.dissector import FileDissector, dissector_from, parts_of
from kiebitz.dissectors.protocol_file.reading.positions import Mistake, ProtocolFileError
from kiebitz.dissectors.protocol_file.reading.reader import Reading, read
from kiebitz.dissectors.protocol_file.reading.source import listed
from kiebitz.dissectors.protocol_file.reading.trial import Trial
from kiebitz.dissectors.protocol_file.specification import MessageSpec, Specification
from kiebitz.dissectors.registry import installed, remove_files
from kiebitz.services.evidence.excerpt import printable_bytes
from kiebitz.services.importing.packets import open_capture_in_memory
from kiebitz.services.protocol_files import add_protocol_files, read_protocol_file
from kiebitz.services.sessions import all_sessions, is_database, session_of, split_number
from kiebitz.services.standard_streams import warn
from kiebitz.services.wording import counted
from kiebitz.storage.read.dissection_coverage import Coverage
from kiebitz.storage.read.timeline import Timeline

_MAX_FAILURES = 10
"""Maximum number of different failures that are listed."""

_WAYS: dict[Direction, str] = {"c2s": "client → server", "s2c": "server → client"}


def check_protocol_file(path: str, captures: Sequence[str]) -> int:
    """Report mistakes in a protocol file, and its coverage of captures; return the exit status.

    The protocol file is registered for the current command. Raises KiebitzError.
    """
    text = read_protocol_file(path, may_be_standard_input=True)
    try:
        reading = read(text, path, lambda protocol: parts_of(installed().dissectors.get(protocol)))
    except ProtocolFileError as error:
        for mistake in error.all:
            _show(path, mistake, "error")
        show_line(f"{path}: {counted(len(error.all), 'error')}")
        return FAILED
    specification = reading.specification
    if specification.table is not None:
        return _show_packaged(path, reading, captures)
    dissector = dissector_from(specification)
    trial = Trial(reading, dissector, installed().dissectors.values())
    coverage = Coverage(specification.protocol)
    if captures:
        click.get_current_context().call_on_close(
            partial(remove_files, add_protocol_files([path], replaces=True))
        )
        for name in all_sessions(captures):
            with _opened(name, dissector) as timeline:
                coverage.add(timeline, name)
    remarks = [*reading.remarks, *trial.remarks, *_without_case(reading, dissector)]
    if coverage.messages:
        remarks += [*_unseen(reading, coverage), *_without_effect(reading, coverage, dissector)]
    for remark in sorted(remarks, key=lambda remark: remark.place):
        _show(path, remark, "warning")
    failed = _show_properties(trial)
    if captures:
        _show_coverage(coverage, captures, specification.protocol)
    _show_content(path, specification, failed, len(remarks))
    if failed or (captures and not coverage.messages):
        return FAILED
    return VIOLATIONS if coverage.failures else OK


def _show_packaged(path: str, reading: Reading, captures: Sequence[str]) -> int:
    """Show the content of a file that is a copy of an installed package's one."""
    specification = reading.specification
    if captures:
        problem = (
            f"{path} is a copy of the file of the installed {specification.protocol}, which reads captures"
        )
        raise click.UsageError(f"{problem}: kiebitz check {captures[0]}")
    for remark in sorted(reading.remarks, key=lambda remark: remark.place):
        _show(path, remark, "warning")
    show_line(f"the types in Python and the game are those of the installed {specification.protocol}")
    _show_content(path, specification, 0, len(reading.remarks))
    return OK


def _show_content(path: str, specification: Specification, errors: int, warnings: int) -> None:
    parts = {
        "message": len({row.name for row in specification.messages}),
        "event": len(specification.events),
        "rule": len(specification.rules),
    }
    content = ", ".join(_counted(count, title) for title, count in parts.items())
    found = f"{_counted(errors, 'error')}, {_counted(warnings, 'warning')}"
    show_line(f"{path}: {specification.protocol} has {content}: {found}")


def _without_case(reading: Reading, dissector: Dissector) -> Iterator[Mistake]:
    """Yield a warning for each pattern of an expectation that fits no test case."""
    if reading.specification.expectations:
        from kiebitz.dissectors.probing.case_generator import unmatched_patterns

        for expectation, pattern in unmatched_patterns(dissector):
            problem = f"no case for {expectation.role}s is called {pattern}: see kiebitz probe --list"
            yield Mistake(problem, reading.places.key(("expectations", expectation.cases)))


@contextmanager
def _opened(name: str, dissector: Dissector) -> Iterator[Timeline]:
    """Open a session; of a capture, the servers at the protocol's ports are taken for its servers."""
    path, _ = split_number(name)
    if is_database(path):
        yield open_session(name)
        return
    ports: dict[tuple[str, int], Dissector | None] = {
        (dissector.transport, port): dissector for port in dissector.default_ports
    }
    connection, lacks = open_capture_in_memory(path, ports)
    if lacks is not None:
        warn(f"{name}: {lacks}")
    with closing(connection):
        yield session_of(connection, path, None)[0]


def _show(path: str, mistake: Mistake, severity: Severity) -> None:
    where = f"{path}:{mistake.place.number}:{mistake.place.position + 1}"
    show_line(
        Styled(where, bold=True), ": ", Styled(severity, COLOURS[severity], bold=True), f": {mistake.message}"
    )
    for line in mistake.excerpt():
        show_line(line)


def _show_properties(trial: Trial) -> int:
    """Check the properties of all protocols; return the number of those that do not hold."""
    if find_spec("hypothesis") is None:
        warn(
            "the properties of all protocols are not checked: hypothesis is not installed:",
            f"    {install_command('test')}",
        )
        return 0
    from hypothesis.configuration import set_hypothesis_home_dir

    failed = 0
    with TemporaryDirectory() as folder:
        # Else it writes to the current folder.
        set_hypothesis_home_dir(folder)
        try:
            for failure in trial.failed_properties():
                failed += 1
                show_line(Styled("error", COLOURS["error"], bold=True), f": a property fails: {failure}")
        finally:
            set_hypothesis_home_dir(None)
    if not failed:
        show_line(f"the properties of all protocols hold for {counted(len(trial.frames), 'sample message')}")
    return failed


def _unseen(reading: Reading, coverage: Coverage) -> Iterator[Mistake]:
    """Yield remarks on messages and rows that no capture contains."""
    messages = reading.specification.messages
    for index, message in enumerate(messages):
        shapes = coverage.shapes.get((message.direction, message.name))
        if shapes is None:
            text = f"no capture contains {message.name} from {sender_of(message.direction)}"
        elif not any(_fits(message, shape) for shape in shapes):
            text = f"no message in the captures has the fields of this row of {message.name}"
        else:
            continue
        yield Mistake(text, reading.place_of_row(index))


def _without_effect(reading: Reading, coverage: Coverage, dissector: FileDissector) -> Iterator[Mistake]:
    """Yield remarks on events that never happen, and on a grid that is empty, in all captures."""
    seen = {name for (_, name), shapes in coverage.shapes.items() if shapes}
    for event in reading.specification.events:
        if event.key not in coverage.kinds and not event.silent and seen & {*event.on}:
            text = f"{event.key} never happens, although the captures have {listed([*seen & {*event.on}])}"
            yield Mistake(text, reading.places.key(("events", event.key)))
    problem = dissector.file_presentation.empty_grid(coverage.states)
    if problem is not None:
        yield Mistake(problem, reading.places.key(("board", "grid")))


def _fits(message: MessageSpec, shape: frozenset[str]) -> bool:
    """Return whether a message with these fields may be of a row."""
    required = {field.name for field in message.fields if not field.optional}
    return required <= shape <= {field.name for field in message.fields}


def _show_coverage(coverage: Coverage, captures: Sequence[str], protocol: str) -> None:
    if not coverage.messages:
        ports = ", ".join(
            f"{transport} {port} ({counted(size, 'byte')})"
            for (transport, port), size in coverage.others.most_common(_MAX_FAILURES)
        )
        there = (
            f"; there are servers at {ports}: is framing right, and is port one of these?" if ports else ""
        )
        show_line(f"nothing in {', '.join(captures)} is {protocol}{there}")
        return
    for direction, covered in coverage.directions.items():
        if not covered.messages:
            show_line(f"{_WAYS[direction]}: no messages")
            continue
        shares = [
            f"{sound:,} of {counted(count, what)} ({_percent(sound, count)})"
            for sound, count, what in (
                (covered.sound_messages, covered.messages, "message"),
                (covered.sound_bytes, covered.bytes, "byte"),
            )
        ]
        show_line(f"{_WAYS[direction]}: {', '.join(shares)} without a diagnostic")
    failures = sorted(coverage.failures, key=lambda failure: -failure.count)
    for failure in failures[:_MAX_FAILURES]:
        first = f"{failure.session} #{failure.number}" if len(captures) > 1 else f"#{failure.number}"
        way = _WAYS[failure.direction]
        show_line(f"{failure.count:,} × {way}: {failure.text} [{failure.code}], first in {first}")
        show_line(f"  {printable_bytes(failure.sent)}")
    if len(failures) > _MAX_FAILURES:
        show_line(f"and {len(failures) - _MAX_FAILURES:,} more kinds: kiebitz check shows all")
    for (transport, port), size in coverage.others.most_common(_MAX_FAILURES):
        show_line(f"{counted(size, 'byte')} of the server at {transport} {port} are not {protocol}")


def _counted(count: int, what: str) -> str:
    return counted(count, what) if count else f"no {what}s"


def _percent(part: int, whole: int) -> str:
    """Return a share, which is 100 % only if nothing is missing."""
    return f"{min(part / whole, 0.999 if part < whole else 1):.1%}"
