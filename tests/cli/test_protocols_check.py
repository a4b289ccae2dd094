"""`kiebitz protocols --check` and `--new`: see also tests/data/commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import ROOT, kiebitz

from kiebitz.dissectors.protocol_file.reading.reader import read
from kiebitz.services.protocol_template import examples

CAPTURE = str(ROOT / "captures" / "maexchen-head-tiny.pcap")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mia.toml"


@pytest.mark.parametrize("name", [name for name, _ in examples()])
def test_a_new_file_like_another(file: Path, name: str) -> None:
    assert kiebitz("protocols", "--new", "mine.toml", "--like", name).status == 0
    found = read((file.parent / "mine.toml").read_text()).specification
    assert (found.protocol, found.title) == ("mine", "Mine")
    assert found.messages


def test_without_hypothesis(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kiebitz.cli.protocol_check.find_spec", lambda name: None)
    assert kiebitz("protocols", "--new", "mia.toml").status == 0
    done = kiebitz("protocols", "--check", "mia.toml")
    assert done.status == 0
    assert done.err.startswith("kiebitz: the properties of all protocols are not checked: hypothesis is not")


def test_completion() -> None:
    from kiebitz.cli.commands.protocols import protocols

    argument = next(parameter for parameter in protocols.params if parameter.name == "names")
    context = protocols.make_context("protocols", [], resilient_parsing=True)
    assert [each.value for each in argument.shell_complete(context, "mae")] == ["maexchen"]
    context = protocols.make_context("protocols", ["--check", "uno.toml"], resilient_parsing=True)
    assert [each.type for each in argument.shell_complete(context, "mae")] == ["file"]
