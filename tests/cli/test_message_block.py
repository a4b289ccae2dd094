from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from command import kiebitz as run
from conversation_files import Block, blocks, check
from hypothesis import given
from hypothesis import strategies as st
from imported_databases import database_of
from inspected_captures import CAPTURES
from message_cases import CASES
from session_factory import Conversation, record
from snapshots import DATA
from strength import GAMES as OF_EACH
from strength import a_few, every, times
from terminals import OnTerminal

import kiebitz
from kiebitz.cli.terminal.byte_rows import ByteRows
from kiebitz.cli.terminal.message_block import NARROWEST, message_lines
from kiebitz.services.evidence.cells import cell_len
from kiebitz.storage.session.message_detail import DiagnosticDetail, MessageDetail, MessageDetails

WIDTHS = (NARROWEST, 40, 63, 80, 100, 200)
GAMES = sorted(path.name for path in CAPTURES.iterdir() if ".pcap" in path.name)


def shown(told: MessageDetail, columns: int) -> str:
    """The lines as text, after a look at what holds of all of them."""
    lines = message_lines(told, columns)
    for line in lines:
        assert line.cell_len <= columns, line.plain
        assert line.plain.isprintable(), line.plain
    return "\n".join(line.plain.rstrip() for line in lines) + "\n"


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    "block", every(3, blocks(DATA / "message_blocks.txt").values(), lambda block: block.title)
)
def test_a_block_looks_so(block: Block) -> None:
    name, message, _, columns = block.title.split()
    with kiebitz.open(str(CAPTURES / name)) as session:
        told = MessageDetails(session.timeline).message(int(message.removeprefix("#")))
        assert told is not None
        check(block, shown(told, int(columns)).rstrip("\n"))


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", a_few(GAMES, ["maexchen-head-tiny.pcap", "cgml-tiny.pcap.gz"]))
def test_each_byte_is_shown_and_each_diagnostic_in_any_width(name: str) -> None:
    with kiebitz.open(str(CAPTURES / name)) as session:
        full = MessageDetails(session.timeline)
        malformed = {diagnostic.message for diagnostic in session.diagnostics()}
        every = 97 if times(2) < 2 else 29
        for said in session.messages():
            if said.id not in malformed and said.id % every:
                continue
            told = full.message(said.id)
            assert told is not None
            for columns in WIDTHS:
                block = shown(told, columns)
                for diagnostic in told.diagnostics:
                    # A long code may take two lines.
                    assert f"{diagnostic.severity}[{diagnostic.code}]" in "".join(block.split())
                if len(told.data) <= 64 and "…" not in block:
                    assert "".join(hexadecimal(block, columns)) == told.data.hex()


@given(data=st.data())
def test_diagnostics_anywhere_are_each_told_once(data: st.DataObject) -> None:
    """At any offsets, as in a hostile database, and at any width of the terminal."""
    dissector = data.draw(st.sampled_from(sorted(CASES, key=lambda dissector: dissector.protocol)))
    case = data.draw(st.sampled_from(CASES[dissector]))
    place = st.integers(-5, len(case.data) + 20)
    diagnostics = [
        DiagnosticDetail(
            number,
            "warning",
            "rule",
            f"f{number}",
            "x",
            data.draw(place),
            data.draw(place),
            None,
            None,
            "server",
            None,
        )
        for number in range(data.draw(st.integers(0, 4)))
    ]
    columns = data.draw(st.integers(NARROWEST, 130))
    pieces = dissector.codec.anatomy(case.data, case.direction)
    lines = [line.plain for line in ByteRows(case.data, pieces, diagnostics, columns).lines()]
    assert max(map(cell_len, lines)) <= columns
    assert all(map(str.isprintable, lines))
    for number in range(len(diagnostics)):
        assert sum(line.strip() == f"warning[f{number}]: x" for line in lines) == 1


def hexadecimal(block: str, columns: int) -> list[str]:
    found = []
    for line in block.split("\n\n", 1)[1].split("\n\nevent")[0].splitlines():
        offset, _, row = line.lstrip().partition("  ")
        if offset.isdigit() and len(line) - len(line.lstrip()) + len(offset) == 2:
            found.append(row.split("  ")[0].replace(" ", ""))
    return found


HOSTILE = (
    b"REGISTER;\x1b[2J\x1b]0;owned\x07",
    "REGISTER;\u202eevil\u2066".encode(),
    "REGISTER;e\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301".encode(),
    "REGISTER;شالوم".encode(),
    "REGISTER;日本語日本語日本語日本語".encode(),
    "REGISTE;日本語日本語日本語日本語".encode(),
    "REGISTER;\U0001f3b2\U0001f3b2\U0001f3b2\U0001f469\u200d\U0001f469".encode(),
    b"REGISTER;\xff\xfe\r\n\t\0\x7f",
    b"REGISTER;" + b"x" * 5000,
    b"",
    b"\n",
)


@pytest.mark.full(but=4)
@pytest.mark.parametrize("said", HOSTILE, ids=ascii)
def test_anything_that_is_sent_is_shown_in_its_place(said: bytes, tmp_path: Path) -> None:
    items = Conversation().says(said).hears(b"REGISTERED;0").says(b"REGISTER;alice").items
    with kiebitz.open(record(tmp_path / "hostile.db", items)) as session:
        for number in (1, 3):
            told = MessageDetails(session.timeline).message(number)
            assert told is not None
            for columns in WIDTHS:
                block = shown(told, columns)
                assert block.count("\n") < 60 * WIDTHS[-1] / columns


def test_letters_that_run_leftwards_do_not_turn_a_row_round(tmp_path: Path) -> None:
    items = Conversation().says("REGISTER;سx".encode()).items
    with kiebitz.open(record(tmp_path / "leftwards.db", items)) as session:
        told = MessageDetails(session.timeline).message(1)
        assert told is not None
        assert "\n 9  d8 b3 78                 ..x\n" in shown(told, 40)


def test_wide_letters_take_their_own_cells(tmp_path: Path) -> None:
    """In the text a letter is at its first byte, so carets are below the right letters."""
    items = Conversation().says("REGISTER;日ö\N{GAME DIE}x".encode()).says(b"JOIN").items
    with kiebitz.open(record(tmp_path / "wide.db", items)) as session:
        told = MessageDetails(session.timeline).message(1)
        assert told is not None
        assert " 9  e6 97 a5 c3 b6 f0 9f 8e  日.ö.\N{GAME DIE}.\n17  b2 78  " in shown(told, 40)
        assert " 9  e6 97 a5 c3 b6 f0 9f 8e b2 78" in shown(told, 120)
        assert "  日.ö.\N{GAME DIE}..x " in shown(told, 120)


# `kiebitz show`.

DECK = (
    "8:BLACK,10:RED,4:YELLOW,6:YELLOW,9:YELLOW,12:BLUE,3:YELLOW,11:YELLOW,2:RED,8:YELLOW,5:BLACK,6:BLACK,"
    "10:BLUE,9:YELLOW,6:BLACK"
)


@pytest.mark.parametrize("protocol", OF_EACH)
def test_json_is_what_the_page_gets(protocol: str) -> None:
    path = database_of(OF_EACH[protocol])
    done = run("show", path, "#2", "#9", "--json")
    with kiebitz.open(path) as session:
        told = [MessageDetails(session.timeline).message(number) for number in (2, 9)]
    assert done.json == json.loads(msgspec.json.encode(told))


@pytest.mark.full
@pytest.mark.parametrize("columns", a_few([40, 60, 80, 160], [60]))
def test_no_line_is_wider_than_the_terminal_and_no_tile_is_torn(columns: int) -> None:
    capture = str(CAPTURES / "okey-head-game-win.pcap.gz")
    with OnTerminal("show", capture, "#105", columns=columns) as terminal:
        assert terminal.ended() == 0
    assert all(cell_len(line) <= columns for line in terminal.lines)
    deck = next(place for place, line in enumerate(terminal.lines) if "private.boran.deck" in line)
    end = next(place for place, line in enumerate(terminal.lines) if "seats.0.tiles" in line)
    tiles = [tile for line in terminal.lines[deck:end] for tile in re.split(r"[,\s]+", line) if ":" in tile]
    assert ",".join(tile for tile in tiles if "deck" not in tile) == DECK
