"""Protocol files of packages, whose game is in Python; and files that must not name Python."""

from __future__ import annotations

import io
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from command import kiebitz
from conversation import sentences, state_of
from file_conversations import Conversation
from kiebitz_nim import NIM
from kiebitz_nim.table import NimTable
from message_cases import CASES, each_protocol
from session_factory import record

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.protocol_file.dissector import FileDissector
from kiebitz.dissectors.protocol_file.packaged import packaged_file
from kiebitz.dissectors.protocol_file.reading.positions import ProtocolFileError
from kiebitz.dissectors.protocol_file.reading.reader import PythonParts, read
from kiebitz.dissectors.registry import BUILT_IN, plugins

NIM_FILE = NIM.specification.text
GAME = ("a> JOIN ann", "b> JOIN bob", "*< START 5 ann bob", "a> TAKE 3", "*< TAKEN 3", "*< TAKEN 3")


def test_the_game_is_in_python_and_the_rest_in_the_file() -> None:
    assert NIM.table is NimTable
    found = Conversation(NIM).send(*GAME).found()
    assert sentences(NIM, found) == [
        "ann plays bob",
        "ann takes 3, 2 are left",
        "bob takes 3, 0 are left",
        "bob takes the last match and wins",
    ]
    assert state_of(found) == {"players": {"ann": {}, "bob": {}}, "turn": "ann", "heap": 0}
    (diagnostic, *copies) = found.diagnostics
    assert (diagnostic.code, diagnostic.text, diagnostic.clause) == (
        "too-many",
        "3 are taken, and 2 are left",
        "Game",
    )
    assert copies == []
    assert NIM.grammar.events["won"].ends
    statistics = {each.key: each.reads() for each in NIM.presentation.statistics}
    samples = [
        (key, *sample)
        for event in found.events
        for key, read in statistics.items()
        for sample in read(event, {})
    ]
    assert [sample for sample in samples if sample[0] != "events"] == [
        ("matches", "ann", "count", 3),
        ("openings", "ann", "more", 1),
        ("matches", "bob", "count", 3),
    ]


@each_protocol
def test_a_built_in_protocol_is_what_its_file_says(dissector: Dissector) -> None:
    made = FileDissector(packaged_file(dissector.package).specification, dissector.package)
    assert made.table is dissector.table
    for case in CASES[dissector]:
        ours, own = (each.codec.decode(case.data, case.direction) for each in (made, dissector))
        assert (ours.fields_json, ours.valid) == (own.fields_json, own.valid)
        assert [(each.code, each.text, each.place(case.data)) for each in ours.violations] == [
            (each.code, each.text, each.place(case.data)) for each in own.violations
        ]


COPIES = {
    "": None,
    "okey.table:OkeyTable": "table must be that of the installed protocol: okey.table:OkeyTable",
    "okey.grammar:OkeyCodec": "codec must be that of the installed protocol: okey.grammar:OkeyCodec",
    "okey.view:view_of": "view must be that of the installed protocol: okey.view:view_of",
    '"deck=" = ': "no value dek: did you mean deck?",
    "names < LPLA": "no type nams: did you mean names?",
    'protocol = "okey"': "only the file of an installed package may name Python",
}
"""Parts of Okey's file that a copy has otherwise, and the mistake; the whole file has none."""


@pytest.mark.parametrize(
    ("protocol", "part"),
    [*((each.protocol, "") for each in BUILT_IN), *(("okey", part) for part in COPIES if part)],
)
def test_a_copy_of_an_installed_file_is_checked(
    protocol: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = kiebitz("protocols", protocol, "-T", "toml").out
    changed = (
        part.replace("Table", "Game")
        .replace("Codec", "Game")
        .replace("view_of", "view")
        .replace("names", "nams")
        .replace("deck=", "dek=")
    )
    text = text.replace(part, changed.replace('"okey"', '"okay"')) if part else text
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    done = kiebitz("protocols", "--check", "-")
    if not part:
        assert (done.status, done.err) == (0, "")
        assert "no errors, no warnings" in done.out
    else:
        assert done.status == 1
        assert f"error: {COPIES[part]}" in done.out


OUTSIDE = "table must be in the package: kiebitz_nim.MODULE:NAME"
REFUSED = "only the file of an installed package may name Python: nothing in this file is executed"


@pytest.mark.usefixtures("protocol_files_forgotten")
def test_another_file_must_not_name_python(tmp_path: Path) -> None:
    text = NIM_FILE.replace('"nim"', '"nim2"').replace("kiebitz_nim.table:NimTable", "os:abort")
    with pytest.raises(ProtocolFileError) as raised:
        read(text, "nim2.toml")
    first = raised.value.all[0]
    assert first.text("nim2.toml") == f"nim2.toml:5:2: {REFUSED}"
    assert [line.strip() for line in first.excerpt()] == ["[python]", "^^^^^^"]
    path = tmp_path / "nim2.toml"
    path.write_text(text)
    done = kiebitz("protocols", "-P", str(path))
    assert (done.status, done.out) == (2, "")
    assert f"nim2.toml:5:2: {REFUSED}" in done.err


@pytest.mark.usefixtures("protocol_files_forgotten")
def test_a_copy_in_a_database_must_not_name_python(tmp_path: Path) -> None:
    """A database may come from anyone."""
    text = 'protocol = "nim2"\n[messages]\nJOIN = "c: name=player"\n'
    path = tmp_path / "nim2.toml"
    path.write_text(text)
    source = record(tmp_path / "plain.db", Conversation(NIM).send(*GAME).items)
    database = tmp_path / "nim2.db"
    done = kiebitz("import", str(source), "-w", str(database), "-P", str(path), "-d", "tcp.port==4711,nim2")
    assert done.status == 0, done.err
    with closing(sqlite3.connect(database)) as connection, connection:
        changed = connection.execute(
            "UPDATE protocol_files SET text = ?", (f"{text}\n[python]\ntable = 'os:abort'\n",)
        ).rowcount
    assert changed == 1
    done = kiebitz("events", str(database))
    assert REFUSED in done.err


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ("kiebitz_nim.table:NimTable", "os:abort", OUTSIDE),
        ("kiebitz_nim.table:", "kiebitz_nim:", OUTSIDE),
        ("kiebitz_nim.table:", "kiebitz_nim_.table:", OUTSIDE),
        ("table:NimTable", "table:Nim Table", OUTSIDE),
        ('table = "kiebitz_nim.table:NimTable"', 'tables = "x"', "unknown key tables: did you mean table?"),
        ('say = "{first} plays', 'say = "{frist} plays', "no value frist: did you mean first?"),
        ('say = "{first} plays', 'say = "{first plays', 'this "{" is not closed'),
        ('data = "first second"', 'data = "first second", put = {}', "unknown key put"),
        ('NimTable"', 'NimTable"\nview = "os:abort"', "view must be in the package: kiebitz_nim.MODULE:NAME"),
        ("kiebitz_nim.statistics:Openings", "os:abort", "a reader must be in the package: kiebitz_nim."),
        ("[board]", '[probe]\nbot = "os:abort"\n[board]', "bot must be in the package: kiebitz_nim."),
        ('on = "TAKEN"', 'on = "TAKE", unless = "x"', "unknown key unless"),
        ('on = "TAKEN"', 'on = "TAKNE"', "no message TAKNE: did you mean TAKE?"),
        ('ends = true, say = "{name}', 'ends = true', "say is missing"),
    ],
)  # fmt: skip
def test_mistakes_in_the_file_of_a_package(right: str, wrong: str, problem: str) -> None:
    text = NIM_FILE.replace(right, wrong)
    if problem == "say is missing":
        text = NIM_FILE.replace(', say = "{name} takes the last match and wins"', "")
    with pytest.raises(ProtocolFileError) as raised:
        read(text, "nim.toml", lambda protocol: PythonParts("kiebitz_nim"))
    assert any(mistake.message.startswith(problem) for mistake in raised.value.all)


@pytest.fixture
def installed_nim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    about = tmp_path / "nim-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: kiebitz-nim\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[kiebitz.dissectors]\nnim = kiebitz_nim:NIM\n")
    monkeypatch.syspath_prepend(tmp_path)
    plugins.cache_clear()
    yield
    plugins.cache_clear()


@pytest.mark.usefixtures("installed_nim")
def test_its_file_is_printed() -> None:
    done = kiebitz("protocols", "nim", "-T", "toml")
    assert (done.status, done.out) == (0, NIM_FILE)
    assert "kiebitz_nim" in sys.modules
