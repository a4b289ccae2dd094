"""A plug-in of pytest that writes down which rules the tests of a run break, and by which messages.

The file that RULES_BROKEN names gets a JSON object: in `rules`, by protocol and key, the names of the
messages; in `codes` the codes of what tables report without a rule.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kiebitz.dissectors.records import Message
from kiebitz.dissectors.table import GameTable

_rules: dict[str, dict[str, set[str]]] = {}
_codes: set[str] = set()


def pytest_configure(config: pytest.Config) -> None:
    flaw, diagnose = GameTable.flaw, GameTable.diagnose
    by_rule = False

    def breaks(table: GameTable, message: Message, key: str, **values: Any) -> None:
        nonlocal by_rule
        _rules.setdefault(table.info.protocol, {}).setdefault(key, set()).add(message.name)
        by_rule = True
        flaw(table, message, key, **values)
        by_rule = False

    def reports(table: GameTable, message: Message, *what: Any, **more: Any) -> None:
        if not by_rule:
            _codes.add(what[2])
        diagnose(table, message, *what, **more)

    patch = pytest.MonkeyPatch()
    patch.setattr(GameTable, "flaw", breaks)
    patch.setattr(GameTable, "diagnose", reports)
    config.add_cleanup(patch.undo)


def pytest_sessionfinish(session: pytest.Session) -> None:
    found = {"rules": _rules, "codes": _codes}
    Path(os.environ["RULES_BROKEN"]).write_text(json.dumps(found, default=sorted))
