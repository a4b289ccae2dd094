from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from command import kiebitz
from damaged_databases import FORGED, HOSTILE, SPOTS, spoilt
from hostile_text import CAPTURES_OF, is_harmless
from pyarrow import parquet
from strength import every

from kiebitz.cli.render.svg import draw
from kiebitz.cli.render.svg.theme import document
from kiebitz.dissectors.escaping import printable
from kiebitz.dissectors.game.view import Scene

TOLD = [
    spot
    for spot in SPOTS
    if (spot.kind in ("text", "values") and spot.column in ("name", "source", "kiebitz_version", "code"))
    or (spot.column in ("text", "label", "actor", "close_reason", "clause", "expected"))
    or (spot.kind == "values" and spot.column in ("fields", "data", "result", "changes", "state"))
]

BEYOND_XML = "\ufffe\uffff\x00\x0b"
"""Letters that no XML has, not even escaped; SQLite's text ends with the third."""


def spoilt_game(protocol: str, folder: Path) -> Path:
    # Export records have only a few close reasons.
    spots = [spot for spot in TOLD if spot.column != "close_reason"]
    return Path(spoilt(folder, CAPTURES_OF[protocol], spots))


@pytest.mark.full(but=1)
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("protocol", every(3, CAPTURES_OF))
def test_comments_drive_nothing(protocol: str, tmp_path: Path) -> None:
    target = str(tmp_path / "game.pcapng")
    done = kiebitz("export", str(spoilt_game(protocol, tmp_path)), "-T", "pcapng", "-o", target)
    assert done.status == 0, done.err
    for command in (["tshark", "-r", target, "-T", "fields", "-e", "frame.comment"], ["capinfos", target]):
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert shown.count(FORGED) > (3 if command[0] == "tshark" else 0)
        assert is_harmless(shown)
        assert not any(line.startswith(FORGED) for line in shown.splitlines())


@pytest.mark.parametrize("protocol", every(3, CAPTURES_OF))
def test_lines_of_json_have_the_texts_as_they_are(protocol: str, tmp_path: Path) -> None:
    path = spoilt_game(protocol, tmp_path)
    lines = kiebitz("export", str(path), "-T", "jsonl").out.removesuffix("\n").split("\n")
    assert all(is_harmless(line) for line in lines)
    records = [json.loads(line) for line in lines]
    connection = sqlite3.connect(path)
    for kind, table, columns in (
        ("session", "sessions", ("name", "source", "kiebitz_version")),
        ("message", "messages", ("name",)),
        ("event", "events", ("actor",)),
        ("diagnostic", "diagnostics", ("code", "text", "clause", "expected")),
        ("game", "games", ("label",)),
    ):
        stored = connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
        told = [tuple(record[column] for column in columns) for record in records if record["record"] == kind]
        assert sorted(told) == sorted(stored)
    for kind, table, column in (("message", "messages", "fields"), ("event", "events", "data")):
        rows = connection.execute(f"SELECT {column} FROM {table} ORDER BY id")
        values = {record["id"]: record[column] for record in records if record["record"] == kind}
        assert [values[number] for number in sorted(values)] == [json.loads(text) for (text,) in rows]
    connection.close()


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


@pytest.mark.parametrize("protocol", every(3, CAPTURES_OF))
def test_parquet_has_the_texts_as_they_are(protocol: str, tmp_path: Path) -> None:
    path = spoilt_game(protocol, tmp_path)
    target = tmp_path / "game.parquet"
    assert kiebitz("export", str(path), "-T", "parquet", "-o", str(target)).status == 0
    told = parquet.read_table(target).to_pydict(maps_as_pydicts="strict")
    connection = sqlite3.connect(path)
    stored = connection.execute("SELECT name, fields FROM messages ORDER BY id").fetchall()
    connection.close()
    assert told["name"] == [name for name, _ in stored]
    # A place for each field is there in every message of its name: null where it has none.
    for (name, text), fields in zip(stored, told["fields"], strict=True):
        texts = Counter(_texts(json.loads(text)))
        assert not texts - Counter(_texts((fields or {}).get(name)))
    assert all(sentence is None or is_harmless(sentence) for sentence in told["sentence"])


@pytest.mark.full(but=2)
@pytest.mark.parametrize("hostile", [HOSTILE, BEYOND_XML, "<&]]>\"'"], ids=["hostile", "beyond", "markup"])
@pytest.mark.parametrize("protocol", every(4, CAPTURES_OF))
def test_a_picture_is_xml(protocol: str, hostile: str, tmp_path: Path) -> None:
    spots = [spot for spot in SPOTS if spot.kind == "values" and spot.column in ("state", "changes", "data")]
    path = spoilt(tmp_path, CAPTURES_OF[protocol], spots, hostile)
    target = tmp_path / "table.svg"
    done = kiebitz("state", path, "--svg", str(target))
    # Some invalid states have no picture.
    if done.status == 0:
        root = ElementTree.parse(target).getroot()
        assert all(is_harmless(text) for text in root.itertext())
    else:
        assert is_harmless(done.err)


@pytest.mark.parametrize("hostile", [HOSTILE, BEYOND_XML, "<&]]>\"'"], ids=["hostile", "beyond", "markup"])
@pytest.mark.parametrize("protocol", CAPTURES_OF)
def test_a_picture_with_a_spoilt_title_is_xml(protocol: str, hostile: str) -> None:
    drawing = draw(protocol, Scene({}, [], []), "wide")
    text = "".join(ElementTree.fromstring(document(drawing, f"a{hostile}", f"b{hostile}")).itertext())
    assert is_harmless(text)
    assert f"a{printable(hostile)}"[:20] in text
