"""Protocol files: in the library, and `protocols --new` and `--check`; see also tests/data/commands."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from command import kiebitz
from dice_file import DICE, OTHER, SENTENCES, capture_game, write_file

import kiebitz as library
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.protocol_file.reading.reader import read
from kiebitz.dissectors.registry import dissector_of
from kiebitz.services.protocol_template import examples

pytestmark = pytest.mark.usefixtures("protocol_files_forgotten")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> str:
    return capture_game(tmp_path_factory.mktemp("capture"))


@pytest.fixture
def dice(tmp_path: Path) -> str:
    return write_file(tmp_path)


@pytest.fixture
def database(tmp_path: Path, capture: str, dice: str) -> str:
    path = str(tmp_path / "dice.db")
    assert kiebitz("import", capture, "-w", path, "-P", dice).status == 0
    return path


@pytest.mark.parametrize("protocol", ["maexchen", "schafkopf", "catan", "okey", "cgml"])
def test_the_tables_of_a_built_in_protocol_are_written(protocol: str) -> None:
    written = tomllib.loads(kiebitz("protocols", protocol, "-T", "toml").out)
    dissector = dissector_of(protocol)
    assert dissector is not None
    assert {*written["messages"]} == {row.name for row in dissector.grammar.rows}
    assert [*written["events"]] == [*dissector.grammar.events]
    assert [*written["rules"]] == [*dissector.grammar.rules]


def test_the_library_takes_paths_and_texts(capture: str, dice: str, database: str, tmp_path: Path) -> None:
    with library.open(capture, protocols=[dice]) as session:
        assert [event.sentence for event in session.events('kind == "rolled"')] == SENTENCES[2:]
    with library.open(capture, protocols=OTHER) as session:
        assert "throws" in next(iter(session.events('kind == "rolled"'))).sentence
    with library.open(database, protocols=[Path(write_file(tmp_path, OTHER, "other.toml"))]) as session:
        assert session.path is None
        assert "throws" in next(iter(session.events('kind == "rolled"'))).sentence
    with library.import_capture(capture, protocols=[DICE]) as session:
        assert "rolls" in next(iter(session.events('kind == "rolled"'))).sentence
    with pytest.raises(KiebitzError, match="differently"):
        library.open(capture, protocols=[DICE, OTHER])


# New ones.


@pytest.mark.parametrize("name", [name for name, _ in examples()])
def test_a_new_file_like_another(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert kiebitz("protocols", "--new", "mine.toml", "--like", name).status == 0
    found = read((tmp_path / "mine.toml").read_text()).specification
    assert (found.protocol, found.title) == ("mine", "Mine")
    assert found.messages


def test_without_hypothesis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kiebitz.cli.protocol_check.find_spec", lambda name: None)
    assert kiebitz("protocols", "--new", "mia.toml").status == 0
    done = kiebitz("protocols", "--check", "mia.toml")
    assert done.status == 0
    assert done.err.startswith("kiebitz: the properties of all protocols are not checked: hypothesis is not")
