"""The code in docs/writing-a-protocol.md: its first protocol runs, the rest is in tested plug-ins."""

from __future__ import annotations

import re
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from make_file_schema import json_schema
from strength import times

from kiebitz import protocol
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import Chunk, Stream
from kiebitz.dissectors.protocol_file.reading.reader import read
from kiebitz.dissectors.registry import dissector_of_text
from kiebitz.dissectors.testing import CHECKS, Check, inspect

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "writing-a-protocol.md").read_text()
_BLOCKS = re.findall(r"^```(?:python|toml)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
FILE = _BLOCKS[0]
FIRST = next(block for block in _BLOCKS if block.startswith('"""Dice'))
REFERENCE = "".join(path.read_text() for path in sorted((ROOT / "docs").glob("protocol-files*.md")))
WHOLE_FILES = [FILE, *re.findall(r"^```toml\n(protocol = .*?)^```$", REFERENCE, re.DOTALL | re.MULTILINE)]
EXCERPTS = [block for block in _BLOCKS if block not in (FILE, FIRST)]
SOURCES = [
    path.read_text()
    for pattern in ("*.toml", "*/*.toml", "*/*.py")
    for plugin in ("noughts", "knobeln", "nim")
    for path in (ROOT / "tests" / "plugins" / plugin).glob(pattern)
]
PACKAGE = re.search(r"^```text\n(from kiebitz import.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
MAX_LINES = 40
"""Maximum length of the first protocol."""


@pytest.fixture(scope="module")
def dice() -> Dissector:
    names: dict[str, Any] = {}
    exec(compile(FIRST, "docs/writing-a-protocol.md", "exec"), names)
    assert isinstance(names["DICE"], Dissector)
    return names["DICE"]


def _as_lines(text: str) -> str:
    return "".join(f"\n{line.strip()}" for line in text.splitlines()) + "\n"


@pytest.mark.parametrize("excerpt", EXCERPTS, ids=lambda excerpt: excerpt.splitlines()[0])
def test_an_excerpt_is_in_a_package(excerpt: str) -> None:
    assert any(_as_lines(excerpt) in _as_lines(source) for source in SOURCES)


@pytest.mark.parametrize("file", WHOLE_FILES, ids=lambda file: file.splitlines()[0])
def test_a_file_of_a_page_has_no_remarks(file: str) -> None:
    assert read(file).remarks == ()


def test_the_reference_has_all_keys() -> None:
    rows = re.findall(r"^\| \[[^|]*\]\([^|)]*\) \| ((?:`\w+`(?:, )?)+) \|$", REFERENCE, re.MULTILINE)
    tables = json_schema()["$defs"].values()
    assert sorted(rows) == sorted(", ".join(f"`{key}`" for key in part["properties"]) for part in tables)


def test_the_codec_for_bits_reads_what_it_writes() -> None:
    names: dict[str, Any] = {}
    (block,) = re.findall(r"^```python\n(.*?)^```$", REFERENCE, re.DOTALL | re.MULTILINE)
    exec(compile(block, "docs/protocol-files-more.md", "exec"), names)
    numbers = {"x": range(8), "y": range(8), "kind": range(32)}
    fields = tuple(protocol.Field(name, protocol.Number(), name) for name in numbers)
    place = protocol.MessageType("PLACE", "c2s", fields, "places a tile", clause="Bits")
    codec = names["BitCodec"](protocol.Grammar("bits", "Bits", rows=(place,)), "Bits")
    for values in product(*numbers.values()):
        sent = dict(zip(numbers, values, strict=True))
        assert codec.decode(codec.encode("PLACE", "c2s", sent), "c2s").fields == sent
    assert not codec.decode(b"", "s2c").valid


def test_there_are_excerpts() -> None:
    assert len(EXCERPTS) >= 3


def test_the_first_protocol_is_short() -> None:
    assert len(FIRST.splitlines()) <= MAX_LINES


@pytest.mark.parametrize("is_file", [True, False])
def test_the_first_protocol_merges_copies(dice: Dissector, is_file: bool) -> None:
    """The file, and what does the same in Python."""
    dice = dissector_of_text(FILE, "dice.toml") if is_file else dice
    streams = [Stream(number, "tcp", f"127.0.0.1:{number}", "127.0.0.1:4711", 0) for number in (1, 2)]
    sent = b"JOINED alice\nROLLED alice 6\nROLLED alice 6\n"
    items = [Chunk(stream, "s2c", 0, 0, sent) for stream in streams]
    found = inspect(items, dice, forced=True)
    assert [dice.presentation.describe(event) for event in found.events] == [
        "alice joins",
        "alice rolls 6",
        "alice rolls 6",
    ]
    assert [message.event_id for message in found.messages] == [1, 2, 3] * 2
    rule = ["alice rolls twice in a row"] if is_file else []
    assert [diagnostic.text for diagnostic in found.diagnostics] == rule


@pytest.mark.full(but=2)
@pytest.mark.parametrize("check", CHECKS)
def test_the_first_protocol_passes_the_checks(dice: Dissector, check: Check) -> None:
    said = [b"JOIN alice\n", b"JOINED alice\n", b"ROLLED alice 6\n", b"ROLLED alice six\n"]
    check(dice, said, times(20, 4))


def test_a_file_becomes_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "kiebitz_roborally"
    package.mkdir()
    assert PACKAGE is not None
    (package / "__init__.py").write_text(PACKAGE[1])
    (package / "roborally.toml").write_bytes((ROOT / "docs" / "examples" / "roborally.toml").read_bytes())
    monkeypatch.syspath_prepend(tmp_path)
    found = import_module("kiebitz_roborally").ROBORALLY
    assert isinstance(found, Dissector)
    stream = Stream(1, "tcp", "127.0.0.1:1", "127.0.0.1:15214", 0)
    sent = b'{"messageType":"ActivePhase","messageBody":{"phase":2}}\n'
    combined = Dissector(
        grammar=found.grammar, transport="tcp", codec=found.codec, framer=found.framer, table=found.table
    )
    for dissector in (found, combined):
        (event,) = inspect([Chunk(stream, "s2c", 0, 0, sent)], dissector, forced=True).events
        assert dissector.presentation.describe(event) == "phase 2"
