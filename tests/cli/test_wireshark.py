"""`kiebitz protocols NAME -T lua`: the dissector as tshark runs it, compared with Kiebitz's own messages."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest
from command import CAPTURES, ODD, ROOT, TINY
from conversation_files import blocks
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
from snapshots import DATA, as_bytes
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


BLOCKS = blocks(DATA / "wireshark_talks.txt")
DRAN, SEATS = b"!DRAN\n1\n!END\n", b"!MITSPIELER\nAnna\nBert\nCarl\nDora\n!END\n"
PLAIN = Talk([("s2c", SEATS), ("c2s", b"!NAME\nAnna\n!END\n"), ("s2c", DRAN)])


def named(title: str) -> dict[str, list[bytes]]:
    """Return the lines of a block by their names, each as packets."""
    lines = (line.partition(": ") for line in BLOCKS[title].steps)
    return {name: [as_bytes(part) for part in text.split(" | ")] for name, _, text in lines}


def schafkopf_talks() -> dict[str, Talk]:
    """Return conversations of each kind, with both sides as senders."""
    talks = {"plain": PLAIN}
    for name, (data,) in named("Pakete of Schafkopf").items():
        for direction in DIRECTIONS:
            cuts = [data[at : at + 7] for at in range(0, len(data), 7)]
            after = b"!BEENDEN\n!END\n"
            talks[f"{name}, {direction}"] = Talk([(direction, data + after)])
            talks[f"{name}, {direction}, cut"] = Talk([(direction, part) for part in (*cuts, after)])
    for end, direction, flags in product(BLOCKS["ends of Schafkopf"].steps, DIRECTIONS, ("FA", "RA")):
        packets = [(direction, DRAN), (direction, as_bytes(end))]
        talks[f"ends with {end}, {direction}, {flags}"] = Talk(packets, ends=flags)
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


def test_missing_bytes_are_those_of_kiebitz(tmp_path: Path) -> None:
    talks = {"plain": PLAIN}
    for (name, parts), direction in product(named("losses in Schafkopf").items(), DIRECTIONS):
        packets = [(direction, part) for part in parts]
        talks[f"loss {name}, {direction}"] = Talk(packets, lost={len(parts) - len(parts) // 2 - 1})
        talks[f"mid-stream {name}, {direction}"] = Talk(packets[2:], begins=False)
    assert differences_of(talks, tmp_path) == []


def test_packets_of_a_file_are_those_of_kiebitz(tmp_path: Path) -> None:
    (tmp_path / "mixed.toml").write_text(BLOCKS["protocol mixed"].text)
    talks: dict[str, Talk] = {
        f"{name}, {direction}": Talk([(direction, data[at : at + 5]) for at in range(0, len(data), 5)])
        for name, (sent,) in named("packets that end with their fields").items()
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


@pytest.mark.full
@pytest.mark.parametrize("name", ["knobeln", "noughts"])
def test_a_plugin_is_a_dissector(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "offered", raising=False)
    plugins.cache_clear()
    code = f"from kiebitz_{name}.dissector import {name.upper()} as THING"
    lay_out(tmp_path, f"kiebitz-{name}", "offered", code, name)
    dissector = installed().dissectors[name]
    port = min(dissector.default_ports)
    ways: dict[str, Direction] = {">": "c2s", "<": "s2c"}
    talk = [(ways[step[0]], as_bytes(step[2:])) for step in BLOCKS[f"plug-in {name}"].steps]
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


@pytest.mark.full
def test_a_hostile_file_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.toml").write_text(BLOCKS["protocol evil"].text)
    run = shown_by(script_of("evil", tmp_path, "-P", "evil.toml"), TINY, "-d", "udp.port==9000,data")
    assert "Lua" not in run.stderr
    assert not (tmp_path / "EVIL").exists()
