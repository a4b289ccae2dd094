from __future__ import annotations

import ast
import re

import pytest
from command import ROOT, TINY, kiebitz

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.filters import FilterError
from kiebitz.proxy.journal.reader import JournalError
from kiebitz.storage.recording.disk_space import DiskNearlyFullError

ROOMS = ("cli", "dissectors", "proxy", "storage")


def test_each_error_has_the_one_base() -> None:
    classes = [
        node
        for room in ROOMS
        for page in (ROOT / room).rglob("*.py")
        if re.search(r"class \w+Error\b", source := page.read_text())
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error") and node.name != "KiebitzError"
    ]
    assert {"StorageError", "CaptureError", "FilterError"} <= {node.name for node in classes}
    for node in classes:
        bases = {ast.unparse(base) for base in node.bases}
        assert "Exception" not in bases, node.name


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KiebitzError("it is so"), 1),
        (DiskNearlyFullError("it is so"), 1),
        (JournalError("it is so"), 1),
        (FilterError("it is so", "a == 1", 0), 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_it_is_reported_in_its_own_words(
    error: KiebitzError, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("kiebitz.cli.commands.state.open_session", fails)
    done = kiebitz("state", TINY)
    assert done.status == status
    assert done.err.splitlines() == ["kiebitz: it is so", *error.excerpt()]


def test_any_other_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("it is so")

    monkeypatch.setattr("kiebitz.cli.commands.state.open_session", fails)
    done = kiebitz("state", TINY)
    assert done.status == 1
    assert "internal error of Kiebitz: RuntimeError('it is so')" in done.err
