"""`kiebitz protocols NAME -T lua`: the dissector as tshark runs it, compared with Kiebitz's own messages."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from command import CAPTURES, ODD, ROOT, TINY, kiebitz
from drafted_protocols import SOCKET_FILE, WIRES, Game
from file_conversations import DATA as FILES
from file_formats import (
    IN_ORDER,
    PAIRS,
    USUAL,
    messages,
    protocol,
    sent_by,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import a_few, times
from wireshark_comparison import Talk, compare, script_of, tshark, write_capture, write_conversations

from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.protocol_file.dissector import FileDissector
from kiebitz.dissectors.registry import BUILT_IN, installed, plugins
from kiebitz.dissectors.wireshark.script import ascii_name, lua_value

EXPECTED = {
    # A line end or text between messages is a message of its own to one of the two.
    "catan-niedlichepixel-framing.pcap.gz": 3,
    "okey-head-malformed.pcap.gz": 6,
    "okey-seed-malformed.pcap.gz": 6,
    # Misprints, which Kiebitz repairs, and errors of envelopes.
    "cgml-malformed.pcap.gz": 116,
    "cgml-styles.pcap.gz": 3,
}
"""Number of messages, of Kiebitz and of tshark, that differ."""

ROWS = sorted(
    (path.name.split("-")[0], path.name)
    for path in (*CAPTURES.glob("*.pcap*"), *CAPTURES.glob("probe/*.pcap*"))
    if path.name.split("-")[0] in {dissector.protocol for dissector in BUILT_IN}
)
QUICK = {("maexchen", "maexchen-head-tiny.pcap"), ("catan", "catan-yaks-lobby.pcap.gz")}


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("protocol", "name"), a_few(ROWS, QUICK))
def test_names_fields_and_errors_are_those_of_kiebitz(protocol: str, name: str, tmp_path: Path) -> None:
    path = next(each for each in (CAPTURES / name, CAPTURES / "probe" / name) if each.exists())
    found = compare(path, protocol, tmp_path)
    assert found.messages
    assert len(found.differences) == EXPECTED.get(name, 0), "\n".join(found.differences[:20])


EMPTY = "§\n" * 28
MODEL = f"!MODEL\n!UPDATE\n{EMPTY}".encode()
DEALT = f"!MODEL\n!SPIEL\nEICHEL\nSAU\n{EMPTY[:-4]}".encode()
DRAN = b"!DRAN\n1\n!END\n"
SEATS = b"!MITSPIELER\nAnna\nBert\nCarl\nDora\n!END\n"

PAKETE: dict[str, bytes] = {
    "several in one segment": MODEL + DRAN + SEATS + DEALT,
    "CRLF": (MODEL + DRAN + SEATS).replace(b"\n", b"\r\n"),
    "mixed line ends": MODEL.replace(b"\n", b"\r\n", 9) + DRAN.replace(b"\n", b"\r\n", 1) + DRAN,
    "CR alone": DRAN.replace(b"\n", b"\r"),
    "§ in Windows-1252": MODEL.decode().encode("cp1252"),
    "§ encoded twice": MODEL.decode().encode().decode("latin-1").encode(),
    "§ in two encodings": MODEL.replace("§".encode(), b"\xa7", 5),
    "names in two encodings": SEATS.replace(b"Anna", "Jürgen".encode()).replace(b"Bert", b"J\xfcrg"),
    "MODEL with !END": MODEL + b"!END\n",
    "short MODEL with !END": DEALT[:40] + b"\n!END\n",
    "MODEL with a line too many": DEALT.replace(b"SAU", b"SAU\nHERZ") + DRAN,
    "MODEL with a line too few": DEALT.replace(b"SAU\n", b"") + DRAN,
    "MODEL with lines in place of others": MODEL.replace("§\n§".encode(), b"SAU\nEICHEL", 1),
    "MODEL with an unknown flag": MODEL.replace(b"UPDATE", b"UPDAT"),
    "MODEL without a flag": MODEL.replace(b"!UPDATE\n", b"") + DRAN,
    "MODEL with two joined lines": DEALT.replace(b"SAU\n", b"SAU!DRAN\n"),
    "MODEL whose flag begins a message": b"!MODEL\n!ERSTE3\nJA\n!END\n",
    "bad card": DEALT.replace(b"SAU", b"SA"),
    "half a card": MODEL.replace("§".encode(), b"HERZ", 1),
    "card without a Wert": b"!KARTE\nHERZ\n!END\n",
    "Hochzeit with a bad card": b"!HOCHZEIT\nJA\nHERZ\nBLAU\n!END\n",
    "dialect rows": b"!KONTO\n-5\n40\n!END\n!ENDE\n1\n2\n!END\n!BEENDEN\n\xc2\xa7\n!END\n",
    "dialect rows with one row of each side": b"!HOCHZEIT\n\xc2\xa7\n!END\n!HOCHZEIT\nJA\n!END\n",
    "bad dialect rows": b"!KONTO\nfive\n40\n!END\n!KONTO\n5\nforty\n!END\n!KONTO\n1\n2\n3\n!END\n",
    "numbers": b"!KONTO\n-0\n!END\n!KONTO\n007\n!END\n!KONTO\n1234567890123456\n!END\n!KONTO\n+1\n!END\n",
    "empty lines": b"\n\r\n" + DRAN + b"\n\n!END\n!END\n",
    "empty lines inside": b"!DRAN\n\n1\n!END\n!NAME\n\n!END\n",
    "names like flags": SEATS.replace(b"Anna", b"!DRAN").replace(b"Dora", b"!ENDE"),
    "a text like a flag": b"!NAME\n!DRAN\n!END\n!NAME\n!NAME\nAnna\n!END\n" + DRAN,
    "names like flags, one missing": SEATS.replace(b"Anna", b"!DRAN").replace(b"Dora\n", b"") + DRAN,
    "misspelt end": DRAN.replace(b"END", b"ENDE") + DRAN + b"!KONTO\n5\n!ENDE\n7\n!END\n" + DRAN,
    "no end": b"!DRAN\n1\n" + SEATS,
    "end on the line before": b"!DRAN\n1!END\n" + DRAN,
    "surplus lines": b"!DRAN\n1\n2\n!END\n!GEKLOPFT\nJA\nNEIN\nJA\nNEIN\nJA\n!END\n!BEENDEN\na\nb\n!END\n",
    "a message begins on a surplus line": b"!DRAN\n1\nx!KONTO\n5\n!END\n",
    "lines in the middle that are wrong": b"!GEKLOPFT\nJA\nVIELLEICHT\nJA\nNEIN\n!END\n!SPIELT\n0\n9\n!END\n",
    "unknown flags": b"!KIEBITZ\n1\n!END\n!DRNA\n1\n!END\n!dran\n!END\nDRAN\n!END\n!\n!END\n! DRAN \n!END\n",
    "unreadable token, then a message": b"xyz\nabc\n" + DRAN + b"!UPDATE\n" + DRAN + b"!DRAN 1\n" + DRAN,
    "byte order mark": b"\xef\xbb\xbf" + DRAN + DRAN,
    "UTF-16": DRAN.decode().encode("utf-16-le") + b"\n" + DRAN,
    "long lines": b"!NAME\n" + b"n" * 300 + b"\n!END\n" + b"!" + b"X" * 40 + b"\n!END\n" + DRAN,
    "control characters": b"!NAME\n\x01\x1b[31m\n!END\n!NAME\na\tb\n!END\n",
    "NUL in a name": b"!NAME\nA\0B\n!END\n",
    "other charset in a flag": b"!DR\xc4N\n1\n!END\n!DR\xc3\x84N\n1\n!END\n!\xff\xfe\xff\xfe\n!END\n",
}
"""Valid and invalid bytes by kind, sent by servers and by clients."""

ENDS = (
    *(DRAN[:-1], DRAN[:-3], DRAN[:4], b"!BEENDEN\n!EN", b"!BEEND", b"!", b"xyz", b"xyz\n", b"!FOO\n1\n"),
    *(MODEL[:-1], MODEL[:-9], MODEL[:3], DEALT[:31], b"!DRAN\n9\n!", b"!DRAN\n1\n!ENDE\n", b"!DRAN\n1!END\n"),
    *(
        b"!KONTO\n5\n",
        b"!NAME\n!END",
        b"!NAME\n!EN\n",
        b"!GEKLOPFT\nJA\nXX\n",
        b"!HOCHZEIT\nJA\nBLAU\n",
        b"\n\n!E",
    ),
)
"""The last bytes of a connection."""


def schafkopf_talks() -> dict[str, Talk]:
    """Return conversations of each kind, with both sides as senders."""
    talks = {"plain": Talk([("s2c", SEATS), ("c2s", b"!NAME\nAnna\n!END\n"), ("s2c", DRAN)])}
    for name, data in PAKETE.items():
        for direction in DIRECTIONS:
            cuts = [data[at : at + 7] for at in range(0, len(data), 7)]
            after = b"!BEENDEN\n!END\n"
            talks[f"{name}, {direction}"] = Talk([(direction, data + after)])
            talks[f"{name}, {direction}, cut"] = Talk([(direction, part) for part in (*cuts, after)])
    for data in ENDS:
        for direction in DIRECTIONS:
            for flags in ("FA", "RA"):
                talks[f"ends with {data!r}, {direction}, {flags}"] = Talk(
                    [(direction, DRAN), (direction, data)], ends=flags
                )
    return dict([*talks.items()][:: times(1, 4)])


def differences_of(
    talks: Mapping[str, Talk], folder: Path, protocol: str = "schafkopf", *options: str
) -> list[str]:
    """Return the differences in a capture of these conversations, each with its conversation's name."""
    write_conversations(folder / "talks.pcap", "tcp", 35555, talks.values())
    found = compare(folder / "talks.pcap", protocol, folder, *options)
    assert found.messages > len(talks)
    names = {f"127.0.0.1:{port}": name for port, name in enumerate(talks, 40_000)}
    client = re.compile("|".join(names))
    return [f"{names[client.findall(each)[0]]}: {each}" for each in found.differences]


def test_each_kind_of_paket_is_that_of_kiebitz(tmp_path: Path) -> None:
    assert differences_of(schafkopf_talks(), tmp_path) == []


LOSSES = {
    "in the middle of a message": [SEATS, SEATS[:12], SEATS[12:20], SEATS[20:], DRAN],
    "of a whole message": [SEATS, DRAN, MODEL, DRAN],
    "within a MODEL": [DEALT, MODEL[:30], MODEL[30:50], MODEL[50:], DRAN],
    "of a line end": [DRAN, DRAN[:-1], DRAN[-1:], DRAN],
    "before lines of any text": [SEATS, SEATS[:30], SEATS[30:31], SEATS[31:34], SEATS[34:] + DRAN, DRAN],
}


def test_missing_bytes_are_those_of_kiebitz(tmp_path: Path) -> None:
    talks = {"plain": Talk([("s2c", SEATS), ("c2s", b"!NAME\nAnna\n!END\n")])}
    for name, parts in LOSSES.items():
        for direction in DIRECTIONS:
            packets = [(direction, part) for part in parts]
            talks[f"loss {name}, {direction}"] = Talk(packets, lost={len(parts) - len(parts) // 2 - 1})
            talks[f"mid-stream {name}, {direction}"] = Talk(packets[2:], begins=False)
    assert differences_of(talks, tmp_path) == []


PACKETS_WITHOUT_END = """
protocol = "mixed"
port = 35555
format = "lines"

[types]
place = "{x=0..9 y=0..9\\n}"

[messages]
NAME = "c: name=player"
DICE = ["s*: faces=[1..6]2", "c: faces=[red|blue]2"]
MOVE = "c: to=place by=[place]2 ready=bool yes|no"
LIST = { is = "s: count=integer names=[player]", end = "END" }
QUIT = "c:"
"""

MIXED: dict[str, bytes] = {
    "whole": b"NAME\nann\nQUIT\nMOVE\n1\n2\n3\n4\n5\n6\nyes\nDICE\nred\nblue\nLIST\n2\na\nDICE\nEND\n",
    "names of others": "NAME\r\nJürg\r\nNAME\nQUIT\nLIST\n0\nEND\n".encode(),
    "a line too few or too many": b"DICE\n1\nDICE\n2\n3\n4\nDICE\nred\nred\nQUIT\nnow\nQUIT\n",
    "wrong values": b"DICE\n7\nx\nMOVE\n1\n2\n3\n14\n5\n6\nyes\nQUIT\nMOVE\n1\n2\n3\n4\n5\n6\nja\nQUIT\n",
    "no end": b"LIST\nx\nEND\nLIST\n1\na\nNAME\nann\nEND\nEND\n\nLIST\nEND\n",
    "unknown": b"DCIE\n1\nNAME\n\xff\nQUIT\nMOVE\n1\n",
}
"""Packets that end with their fields, valid and invalid."""


def test_packets_of_a_file_are_those_of_kiebitz(tmp_path: Path) -> None:
    (tmp_path / "mixed.toml").write_text(PACKETS_WITHOUT_END)
    talks: dict[str, Talk] = {
        f"{name}, {direction}": Talk([(direction, data[at : at + 5]) for at in range(0, len(data), 5)])
        for name, sent in MIXED.items()
        for direction, data in zip(DIRECTIONS, (sent + b"QUIT\n", sent + b"DICE\n1\n6\n"), strict=True)
    }
    assert differences_of(talks, tmp_path, "mixed", "-P", str(tmp_path / "mixed.toml")) == []


@pytest.mark.full
def test_a_protocol_file_is_a_dissector(tmp_path: Path) -> None:
    options = ("-P", str(ROOT / "docs" / "examples" / "roborally.toml"))
    found = compare(CAPTURES / "roborally-1.pcap.gz", "roborally", tmp_path, *options)
    assert (found.messages, found.differences) == (210, [])


@pytest.mark.parametrize("kind", a_few(["plain", "fragments", "deflated"], ["deflated"]))
def test_messages_in_websocket(kind: str, tmp_path: Path) -> None:
    wire = next(wire for wire in WIRES if wire.name == "socket")._replace(websocket=kind)
    talks = [
        Talk([(piece.direction, piece.data) for piece in conversation.pieces])
        for conversation in Game(wire, games=1).conversations()
    ]
    write_conversations(tmp_path / "game.pcap", "tcp", 4740, talks)
    (tmp_path / "game.toml").write_text(SOCKET_FILE)
    found = compare(tmp_path / "game.pcap", "socketgame", tmp_path, "-P", str(tmp_path / "game.toml"))
    assert found.messages > 300
    assert found.differences == []


FRAMED = [(framing, of) for framing, of in PAIRS if framing != "send"]


@pytest.mark.full
@pytest.mark.parametrize(("framing", "of"), a_few(FRAMED, USUAL[::4]))
def test_every_framing_and_format_is_covered(framing: str, of: str, tmp_path: Path) -> None:
    dissector = protocol(framing, of)
    assert isinstance(dissector, FileDissector)
    (tmp_path / "small.toml").write_text(dissector.specification.text)
    capture = tmp_path / "small.pcap"
    sent = [
        (direction, dissector.codec.encode(name, direction, fields))
        for name, direction, fields in messages(of)
    ]
    # Misspelt names, and bytes that are not UTF-8.
    faulty = [
        (direction, frame.replace(b"ann", b"\xff\xfe\xff").replace(b"JOIN", b"JION"))
        for direction, frame in sent
    ]
    sent += [frame for frame in faulty if frame not in sent]
    number, carrier = len(sent), dissector.encapsulation
    if carrier is not None:
        sent = [(direction, carrier.wrap(frame, direction)) for direction, frame in sent]
        sent = [*((direction, carrier.opening(direction)) for direction in DIRECTIONS), *sent]
    write_capture(capture, dissector.transport, 4710, sent)
    found = compare(capture, "small", tmp_path, "-P", str(tmp_path / "small.toml"))
    assert (found.messages, found.differences) == (number, [])


@pytest.mark.full
def test_messages_end_where_their_fields_do(tmp_path: Path) -> None:
    sent = sent_by("counted", "sound", "malformed")
    write_capture(tmp_path / "counted.pcap", "tcp", 4710, sent)
    found = compare(tmp_path / "counted.pcap", "counted", tmp_path, "-P", str(FILES / "counted.toml"))
    assert (found.messages, found.differences) == (len(sent), [])


TALKS: dict[str, tuple[str, list[tuple[Direction, bytes]]]] = {
    "knobeln": (
        "from kiebitz_knobeln.dissector import KNOBELN as THING",
        [
            ("c2s", b"HALLO anna"),
            ("s2c", b"WILLKOMMEN"),
            ("s2c", b"WURF anna 6"),
            ("s2c", b"WURF anna sechs"),
        ],
    ),
    "noughts": (
        "from kiebitz_noughts.dissector import NOUGHTS as THING",
        [("c2s", b"HELLO alice\r\n"), ("s2c", b"MARK alice 5\r\n"), ("s2c", b"MARK alice x\r\n")],
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("name", TALKS)
def test_a_plugin_is_a_dissector(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, talk = TALKS[name]
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "offered", raising=False)
    plugins.cache_clear()
    lay_out(tmp_path, f"kiebitz-{name}", "offered", code, name)
    dissector = installed().dissectors[name]
    port = min(dissector.default_ports)
    write_capture(tmp_path / "talk.pcap", dissector.transport, port, talk)
    found = compare(tmp_path / "talk.pcap", name, tmp_path)
    plugins.cache_clear()
    assert (found.messages, found.differences) == (len(talk), [])


def shown_by(script: Path, capture: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run tshark with a dissector on a capture."""
    command = [tshark(), "-X", f"lua_script:{script}", "-r", capture, *options]
    return subprocess.run(command, capture_output=True, text=True, check=True)


@pytest.mark.full
def test_malformed_messages_are_expert_information(tmp_path: Path) -> None:
    done = shown_by(script_of("maexchen", tmp_path), ODD, "-Y", "maexchen.malformed")
    assert "REGISTER (malformed)" in done.stdout


@pytest.mark.full
@pytest.mark.parametrize(
    ("expression", "packets"),
    [('maexchen.name == "alice" && maexchen.REGISTER', 1), ("maexchen.round >= 1", 5), ("maexchen.SCORE", 5)],
)
def test_fields_can_be_filtered(expression: str, packets: int, tmp_path: Path) -> None:
    done = shown_by(script_of("maexchen", tmp_path), TINY, "-Y", expression)
    assert len(done.stdout.splitlines()) == packets


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", IN_ORDER)
def test_counted_lists_are_those_of_kiebitz(name: str, tmp_path: Path) -> None:
    file, frames = FILES / f"{name}.toml", [frame for _, frame in sent_by(name)]
    protocol = tomllib.loads(file.read_text())["protocol"]
    sent = [*frames, *(frame.replace(b" 2 ", b" 3 ") for frame in frames if b" 2 " in frame)]
    write_capture(tmp_path / "file.pcap", "tcp", 4710, [("s2c", frame) for frame in sent])
    found = compare(tmp_path / "file.pcap", protocol, tmp_path, "-P", str(file))
    # Of lists cut by a pattern, or counted within a word, tshark has the text.
    differences = [each for each in found.differences if not re.search("FEN|HAND|TABLE", each)]
    assert (found.messages, differences) == (len(sent), [])


ODD_NAMES = (
    *(".", "..", "a..b", ".a", "a.", "a...b.c", "a.b", "%", "a b", "ä", "-", "--[[", "1", "a%sb", "a]]b"),
    "x" * 100,
)


@settings(max_examples=times(100))
@given(st.text())
def test_names_are_valid_in_wireshark(name: str) -> None:
    # Wireshark refuses a script with another name: proto_check_field_name.
    assert re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", ascii_name(name))


def test_a_file_with_odd_names_is_a_dissector(tmp_path: Path) -> None:
    rows = [f'"{name}" = "c: \'{name}\'=text"' for name in ODD_NAMES]
    file = tmp_path / "odd.toml"
    file.write_text("\n".join(['protocol = "odd"', "port = 4710", "[messages]", *rows, ""]))
    script = script_of("odd", tmp_path, "-P", str(file))
    capture = tmp_path / "odd.pcap"
    write_capture(capture, "tcp", 4710, [("c2s", b"a..b 1\n")])
    done = shown_by(script, str(capture))
    assert "rror" not in done.stderr
    assert "odd 58 a..b" in done.stdout


@pytest.mark.parametrize("protocol", [dissector.protocol for dissector in BUILT_IN])
def test_scripts_are_valid_lua(protocol: str, tmp_path: Path) -> None:
    luac = shutil.which("luac5.2") or shutil.which("luac")
    if luac is None:
        pytest.skip("luac is not installed")
    subprocess.run([luac, "-p", str(script_of(protocol, tmp_path))], check=True)


def lay_out(folder: Path, package: str, module: str, code: str, protocol: str) -> None:
    """Write a package that offers a protocol, as pip leaves it in a folder."""
    (folder / f"{module}.py").write_text(code)
    about = folder / f"{module}-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text(f"[kiebitz.dissectors]\n{protocol} = {module}:THING\n")


_LITERAL = re.compile(r'"(?:[^"\\\x00-\x1f\x7f]|\\[0-9]{3})*"')


@settings(max_examples=times(500))
@given(st.text())
def test_no_text_becomes_code(text: str) -> None:
    literal = lua_value(text)
    assert _LITERAL.fullmatch(literal)
    plain = re.sub(rb"\\([0-9]{3})", lambda each: bytes([int(each[1])]), literal[1:-1].encode())
    assert plain == text.encode("utf-8", "surrogatepass")
    is_name = re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", text) and f"{{{text} = 1}}" == lua_value({text: 1})
    assert is_name or "".join(lua_value({text: 1}).split("\n  ")) in (
        f"{{[{literal}] = 1}}",
        f"{{[{literal}] = 1,\n}}",
    )


HOSTILE = """\
protocol = "evil"
title = '"]] os.execute("touch EVIL") --[['
port = 4711
framing = "delimiter"
end = '"..os.execute("touch EVIL").."'
format = "delimited"
delimiter = "]]\\\\\\""

[messages]
"'\\"]=os.execute('touch EVIL')--" = "c: a='\\"]]--'|b"
"""


@pytest.mark.full
def test_a_hostile_file_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "evil.toml"
    monkeypatch.chdir(tmp_path)
    path.write_text(HOSTILE)
    done = kiebitz("protocols", "evil", "-P", str(path), "-T", "lua", "-o", str(tmp_path / "evil.lua"))
    assert done.status == 0, done.err
    run = shown_by(tmp_path / "evil.lua", TINY, "-d", "udp.port==9000,data")
    assert "Lua" not in run.stderr
    assert not (tmp_path / "EVIL").exists()
