from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from cleanup import close_after_test
from command import kiebitz
from inspected_captures import CAPTURES, errors, inspected
from session_factory import record
from strength import few_captures, times

from kiebitz.dissectors.dissector import recognise
from kiebitz.dissectors.inspection.inspector import GUESS_WITHDRAWN, Inspector
from kiebitz.dissectors.inspection.recognition import ENOUGH_MESSAGES
from kiebitz.dissectors.model import Chunk, Direction, Findings, Ids, Item, Stream, Transport
from kiebitz.dissectors.registry import BUILT_IN
from kiebitz.proxy.capture.files import open_capture
from kiebitz.services.importing.packets import PacketRecording
from kiebitz.storage.database.schema import MEMORY
from kiebitz.storage.read.recorded_items import RecordedItems
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.recorder import Recorder

Said = tuple[Direction, bytes]

JOINS: Said = ("c2s", b"JOIN;x")
RUBBISH: Said = ("c2s", b"rubbish")
HELLO: Said = ("c2s", b"HELLO;1")
SCORES: Said = ("s2c", b"SCORE;5")
SCHAFKOPF = b"!DRAN\n2\n!END\n"


def talk(said: Iterable[Said], transport: Transport = "udp", number: int = 1) -> Iterator[Item]:
    """Yield a conversation with a server on port 8000, a millisecond between two messages."""
    stream = Stream(number, transport, f"127.0.0.1:{number}", "127.0.0.1:8000", 0)
    offsets: Counter[Direction] = Counter()
    for now, (direction, data) in enumerate(said):
        yield Chunk(stream, direction, now * 1_000_000, offsets[direction], data)
        offsets[direction] += len(data)


def other_program(count: int, joins: int = 500) -> Iterator[Said]:
    for number in range(count):
        yield ("c2s", b"JOIN;%d" % number) if number % joins == 0 else ("s2c", b"MOVE;%d;7" % number)


def a_round() -> list[Said]:
    return [
        ("c2s", b"REGISTER;alice"),
        ("s2c", b"REGISTERED"),
        ("s2c", b"ROUND STARTING;t1"),
        ("c2s", b"JOIN;t1"),
        ("s2c", b"ROUND STARTED;1;alice"),
        ("s2c", b"ROUND CANCELED;ONLY_ONE_PLAYER"),
        ("s2c", b"SCORE;alice:1"),
    ]


def protocols(found: Findings) -> set[str | None]:
    return {stream.protocol for stream in found.streams}


@pytest.mark.parametrize("first", [[], [HELLO] * 20], ids=["at first", "later"])
def test_another_program_that_says_join_is_not_blamed(first: list[Said]) -> None:
    found = inspected(talk([*first, JOINS, *other_program(10_000)]))
    assert errors(found) == []
    assert protocols(found) == {None}
    assert [diagnostic.code for diagnostic in found.diagnostics if diagnostic.severity != "note"] == []
    [note] = [diagnostic for diagnostic in found.diagnostics if diagnostic.code == GUESS_WITHDRAWN]
    assert note.text == "this is not Mäxchen after all: JOIN could be read, the rest is another program's"
    assert len(found.messages) <= len(first) + ENOUGH_MESSAGES + 2
    blamed = {diagnostic.blame for diagnostic in found.diagnostics}
    assert blamed == {"unknown"}


def test_a_short_talk_of_another_program_is_not_accused_either() -> None:
    found = inspected(talk([JOINS, *[HELLO, RUBBISH] * 3]))
    assert errors(found) == []
    assert protocols(found) == {None}


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("word", "line"),
    [
        (b"LOGI x\r\n", b"MOVE a b c\r\n"),
        (b'{"Hallo":{"Version":"1"}}\n', b'{"move":[1,2]}\n'),
        (SCHAFKOPF, b"MOVE\n1\n"),
        (b"<?xml version='1.0'?>\n<login-ok/>\n\n", b"<move to='3'/>\n\n"),
    ],
    ids=["okey", "catan", "schafkopf", "cgml"],
)
def test_another_program_over_tcp_is_not_accused(word: bytes, line: bytes) -> None:
    rest: list[Said] = [("c2s", line), ("s2c", line)]
    found = inspected(talk([("c2s", word), *rest * times(500, quick=100)], "tcp"))
    assert errors(found) == []
    assert protocols(found) == {None}


def test_another_program_with_several_words_of_the_protocol() -> None:
    found = inspected(talk([JOINS, *[SCORES] * 1000]))
    assert errors(found) == []
    assert protocols(found) == {None}


def test_unreadable_data_in_a_game_is_reported_once_proven() -> None:
    found = inspected(talk([JOINS, *[RUBBISH] * 10, *a_round()]))
    assert [diagnostic.code for diagnostic in errors(found)] == ["unknown-message"] * 10
    assert protocols(found) == {"maexchen"}
    # And a flood does not change it any more.
    found = inspected(talk([*a_round(), *[RUBBISH] * 1000]))
    assert [diagnostic.code for diagnostic in errors(found)] == ["unknown-message"] * 1000


def test_a_game_that_begins_on_the_port_later_is_recognised() -> None:
    found = inspected(talk([JOINS, *[RUBBISH] * (ENOUGH_MESSAGES + 20), *a_round()]))
    assert protocols(found) == {"maexchen"}
    assert [event.kind for event in found.events][:2] == ["registered", "round_starting"]
    assert errors(found) == []


def test_the_same_word_does_not_lead_to_the_same_guess_again() -> None:
    found = inspected(talk([JOINS, *other_program(ENOUGH_MESSAGES * 4, joins=ENOUGH_MESSAGES)]))
    assert sum(diagnostic.code == GUESS_WITHDRAWN for diagnostic in found.diagnostics) == 1
    assert len(found.tables) == 1


def test_slips_alone_are_reported() -> None:
    found = inspected(talk([("c2s", b"register;klein"), ("c2s", b"REGISTER")]))
    assert [diagnostic.code for diagnostic in errors(found)] == ["unknown-message", "missing-field"]


@pytest.mark.parametrize("capture", few_captures(sorted(path.name for path in CAPTURES.glob("*.pcap*"))))
def test_each_capture_is_recognised_at_its_first_sound_message(capture: str) -> None:
    recorder = Recorder(MEMORY, "import", capture)
    close_after_test(recorder.connection)
    recording = PacketRecording(recorder, {})
    with open_capture(str(CAPTURES / capture)) as packets:
        recording.take(packets)
    recording.close()
    timeline = Timeline(recorder.connection, sessions(recorder.connection)[-1])
    inspector = Inspector(BUILT_IN, Ids())
    known: set[str] = set()
    for item in RecordedItems(timeline).items():
        inspector.feed(item)
        known |= {table.server for table in inspector.drain().tables}
        if item.stream.transport == "udp" and isinstance(item, Chunk):
            likely = [seen for _, *seen in recognise(BUILT_IN, "udp", item.data)]
            assert [item.direction, "certain"] not in likely or item.stream.server in known
    inspector.finish()
    found = inspector.drain()
    assert GUESS_WITHDRAWN not in {diagnostic.code for diagnostic in found.diagnostics}
    assert known | {table.server for table in found.tables} == {
        server for (server,) in recorder.connection.execute("SELECT server FROM tables")
    }


def test_held_data_is_bounded() -> None:
    inspector = Inspector(BUILT_IN, Ids())
    # An echo server: half of what comes are words of the game, from the wrong side.
    said: list[Said] = [
        ("c2s", b"REGISTER;x"),
        ("s2c", b"REGISTER;x"),
        ("c2s", b"JOIN;1"),
        ("s2c", b"JOIN;1"),
    ]
    for item in talk([*said, *said[:2] * 1000]):
        inspector.feed(item)
    assert inspector.is_settled
    waited: list[Said] = [HELLO] * 62
    found = inspected(talk([*waited, JOINS, *other_program(1000)]))
    assert errors(found) == []


def test_a_session_whose_guess_was_withdrawn_can_lead_nowhere(tmp_path: Path) -> None:
    """Its streams have messages, but no protocol."""
    database = record(tmp_path / "x.db", [*talk([JOINS, *other_program(ENOUGH_MESSAGES * 4)])])
    assert kiebitz("messages", database, "--json").json
    for arguments in (
        ["probe", "server", "9", "-d", "maexchen", "--via-session", database],
        ["replay", database, "--connect", "127.0.0.1:9"],
    ):
        done = kiebitz(*arguments)
        assert done.status == 1
        assert "was recognised in" in done.err
