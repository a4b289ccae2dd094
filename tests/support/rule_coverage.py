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

from kiebitz.dissectors.game.context import GameContext
from kiebitz.dissectors.model import Message

_rules: dict[str, dict[str, set[str]]] = {}
_codes: set[str] = set()


def pytest_configure(config: pytest.Config) -> None:
    report, diagnose = GameContext.report_violation, GameContext.diagnose
    by_rule = False

    def breaks(context: GameContext, message: Message, key: str, **values: Any) -> None:
        nonlocal by_rule
        _rules.setdefault(context.info.protocol, {}).setdefault(key, set()).add(message.name)
        by_rule = True
        report(context, message, key, **values)
        by_rule = False

    def reports(context: GameContext, message: Message, *what: Any, **more: Any) -> None:
        if not by_rule:
            _codes.add(what[2])
        diagnose(context, message, *what, **more)

    patch = pytest.MonkeyPatch()
    patch.setattr(GameContext, "report_violation", breaks)
    patch.setattr(GameContext, "diagnose", reports)
    config.add_cleanup(patch.undo)


def pytest_sessionfinish(session: pytest.Session) -> None:
    found = {"rules": _rules, "codes": _codes}
    Path(os.environ["RULES_BROKEN"]).write_text(json.dumps(found, default=sorted))
