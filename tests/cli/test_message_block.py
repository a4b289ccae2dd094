from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inspected_captures import CAPTURES
from message_cases import CASES
from session_factory import Conversation, record
from strength import a_few, every, times

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


BLOCKS = {
    ("maexchen-head-odd.pcap", 624, 40): """\
#624 ANNOUNCE: announces a roll
6.575902 s, stream 48, from byte 139
odd (127.0.0.1:49547) → 127.0.0.1:9000
  (c2s)
clause: Ablauf einer Spielrunde

message · ANNOUNCE;dice;token
 0  41 4e 4e 4f 55 4e 43 45  ANNOUNCE
delimiter
 8  3b                       ;
dice: not understood · two dice 1 to
  6, higher first, such as 5,3
 9  37 2c 37                 7,7
    ^^                       ^
    error[dice-out-of-range]:
        ANNOUNCE: a die does not show 7
      expected: two dice 1 to 6,
        higher first, such as 5,3
      clause: Ablauf einer Spielrunde
      blame: client (malformed)
not read, because of the error before
  it
12  3b 61 64 33 38 33 62 37  ;ad383b7
20  32 2d 39 38 31 37 2d 34  2-9817-4
28  62 30 34 2d 38 36 34 62  b04-864b
36  2d 33 33 31 39 65 36 32  -3319e62
44  64 38 30 65 34           d80e4
""",
    ("maexchen-head-odd.pcap", 624, 100): """\
#624 ANNOUNCE: announces a roll
6.575902 s, stream 48, from byte 139
odd (127.0.0.1:49547) → 127.0.0.1:9000 (c2s)
clause: Ablauf einer Spielrunde

 0  41 4e 4e 4f 55 4e 43 45  ANNOUNCE  message · ANNOUNCE;dice;token
 8  3b                       ;         delimiter
 9  37 2c 37                 7,7       dice: not understood · two dice 1 to 6, higher first, such
    ^^                       ^           as 5,3
    error[dice-out-of-range]: ANNOUNCE: a die does not show 7
      expected: two dice 1 to 6, higher first, such as 5,3
      clause: Ablauf einer Spielrunde
      blame: client (malformed)
12  3b 61 64 33 38 33 62 37  ;ad383b7  not read, because of the error before it
20  32 2d 39 38 31 37 2d 34  2-9817-4
28  62 30 34 2d 38 36 34 62  b04-864b
36  2d 33 33 31 39 65 36 32  -3319e62
44  64 38 30 65 34           d80e4
""",
    ("maexchen-head-tiny.pcap", 40, 80): """\
#40 PLAYER ROLLS: a player rolls
1.387224 s, stream 1, from byte 177, game 1
127.0.0.1:9000 → alice (127.0.0.1:40176) (s2c)
clause: Ablauf einer Spielrunde

 0  50 4c 41 59 45 52 20 52  PLAYER R  message · PLAYER ROLLS;name
 8  4f 4c 4c 53              OLLS
12  3b                       ;         delimiter
13  61 6c 69 63 65           alice     name = alice · text

event #17, 1.387224 s: alice rolls
  games.1.private: {"carl":{"dice":"3,3","bluff":false}} → (removed)
  games.1.rolling: alice

4 other copies
  #41 to bob (stream 2), 0.019 ms later
  #42 to carl (stream 3), 0.032 ms later
  #43 to dora (stream 4), 0.043 ms later
  #44 to zuschauer (stream 5), 0.053 ms later
""",
    ("schafkopf-1.3-badcard.pcap", 118, 80): """\
#118 KARTE: gives a card for a Hochzeit
11.752960 s, stream 2, from byte 78
Falsch (127.0.0.1:45246) → 127.0.0.1:35555 (c2s)
clause: Server-seitig: Daten

 0  21 4b 41 52 54 45 0a     !KARTE.   message · "!KARTE" Karte "!END"
                                       karte · Karte = Farbe Wert
 7  42 4c 41 55 0a           BLAU.       karte: not understood · Farbe = "§" |
    ^^^^^^^^^^^              ^^^^          "EICHEL" | "GRAS" | "HERZ" |
                                           "SCHELLEN"
    error[bad-field]: KARTE: "BLAU" is not known here
      expected: Farbe = "§" | "EICHEL" | "GRAS" | "HERZ" | "SCHELLEN"
      clause: Server-seitig: Daten
      blame: client (malformed)
12  53 41 55 0a              SAU.      not read, because of the error before
                                         it
16  21 45 4e 44 0a           !END.     "!END"
""",
    ("catan-niedlichepixel-framing.pcap.gz", 27, 80): """\
#27 unreadable
7.270631 s, stream 1, from byte 413
Jürgen (127.0.0.1:48142) → 127.0.0.1:8080 (c2s)

 0  7b                       {         object
 1  22 43 68 61 74 6e 61 63  "Chatnac  message · Chatnachricht senden:
 9  68 72 69 63 68 74 20 73  hricht s    {"Nachricht":…}
17  65 6e 64 65 6e 22 3a 7b  enden":{
25  22 4e 61 63 68 72 69 63  "Nachric  not understood
33  68 74 22 3a 22 67 72 fc  ht":"gr.
                         ^^         ^
    error[charset]: fc is not UTF-8
      expected: UTF-8
      clause: 2 Grundlagen
      blame: client (malformed)
41  6e 22 7d 7d 0a           n"}}.
""",
    ("okey-head-malformed.pcap.gz", 58, 40): """\
#58 JLOB: joins lobby ?
1.524762 s, stream 1, from byte 73
boran (127.0.0.1:47286) →
  127.0.0.1:8093 (c2s)
clause: Lobbyauswahl

message · JLOB <n>
 0  4a 4c 4f 42              JLOB
delimiter
 4  20
n: not understood · lobby number
 5  61 62 63                 abc
    ^^^^^^^^                 ^^^
    error[bad-number]: JLOB: "abc"
        is not a number
      expected: a whole number from
        -2147483648 to 2147483647
      clause: Lobbyauswahl
      blame: client (malformed)
line end
 8  0d 0a                    ..
""",
    ("cgml-malformed.pcap.gz", 38, 80): """\
#38 playcard: announces a played card
0.126883 s, stream 8, from byte 36
127.0.0.1:7002 → 127.0.0.1:51222 (s2c)
clause: 3 Průběh jednotlivých her: Hra -- informace o zahrané kartě

  0  3c 70 6c 61 79 63 61 72  <playcar  message · <playcard type="info">
  8  64 20                    d
 10  74 79 70 65 3d 22 69 6e  type="in  type · one of info
 18  66 6f 22 20              fo"
 22  66 72 6f 6d 3d 22 68 61  from="ha  from · one of hand
 30  6e 64 22 20              nd"
 34  74 6f 3d 22 64 65 73 6b  to="desk  to · one of desk, talon
 42  22 20                    "
 44  70 6c 61 79 65 72 69 64  playerid  playerid · whole number
 52  3d 22 36 35 33 33 22     ="6533"
 59  3e 0d 0a 20 20           >..       end of the tag
 64  3c 63 61 72 64 3e 52 30  <card>R0  card[0] · a card: R, B, G or A and 07,
 72  37 3c 2f 63 61 72 64 3e  7</card>    08, 09, 10, 0J, 0Q, 0K or 0A, or none
 80  0d 0a 20 20              ..
 84  3c 73 6f 75 6e 64 3e 70  <sound>p  no such element belongs here
     ^^^^^^^^^^^^^^^^^^^^     ^^^^^^^
     error[unknown-element]: no element "sound" belongs here
       expected: card
       clause: 3 Průběh jednotlivých her: Hra -- informace o zahrané kartě
       blame: server (malformed)
 92  6c 69 6e 6b 2e 77 61 76  link.wav
100  3c 2f 73 6f 75 6e 64 3e  </sound>
108  0d 0a                    ..
110  3c 2f 70 6c 61 79 63 61  </playca  </playcard>
118  72 64 3e                 rd>
121  0d 0a 0d 0a              ....      empty line
""",
}


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("name", "message", "columns"), every(3, BLOCKS))
def test_a_block_looks_so(name: str, message: int, columns: int) -> None:
    with kiebitz.open(str(CAPTURES / name)) as session:
        told = MessageDetails(session.timeline).message(message)
        assert told is not None
        assert shown(told, columns) == BLOCKS[name, message, columns]


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
