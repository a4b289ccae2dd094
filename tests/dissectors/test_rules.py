"""The rules of the protocols: all that a table reports is a row, and each row is broken by some test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from string import Formatter

import pytest
from command import ROOT, kiebitz
from kiebitz_knobeln.dissector import KNOBELN
from strength import a_few, times

from kiebitz.cli.commands.protocols import reference
from kiebitz.cli.terminal.console import Styled
from kiebitz.dissectors.grammar.grammar import OWN_CLAUSE, Rule
from kiebitz.dissectors.registry import BUILT_IN, dissector_of

TESTS = ROOT / "tests"

BROKEN_IN = {
    "catan": ("test_catan_scripts.py", "test_catan_games.py"),
    "cgml": ("test_cgml_table.py", "../test_conversations.py"),
    "maexchen": ("test_maexchen_table.py", "../test_conversations.py"),
    "okey": ("test_okey_table.py", "../test_conversations.py"),
    "schafkopf": ("test_schafkopf_table.py", "../test_conversations.py"),
}

_OTHERS_HAND = (
    "a MODEL must show a card of a third one, whose hand is known only where its own MODELs were heard"
)

UNBROKEN = {
    "schafkopf": {"not-in-hand/shown": _OTHERS_HAND, "not-in-hand/laid": _OTHERS_HAND},
}

EVERY_RULE = [
    pytest.param(dissector.protocol, rule, id=f"{dissector.protocol} {rule.key}")
    for dissector in BUILT_IN
    for rule in dissector.grammar.rules.values()
]


@pytest.mark.parametrize("protocol", a_few(BROKEN_IN, {"maexchen"}))
def test_all_that_a_table_reports_is_a_row_and_each_row_is_broken(protocol: str, tmp_path: Path) -> None:
    found = tmp_path / "broken.json"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "rule_coverage", "-p", "no:cacheprovider"]
        # In `make test` the tests of other protocols have not each row.
        + ["--full"] * times(1, 0)
        # The same inputs each time.
        + ["--hypothesis-seed=0", "-k", protocol]
        + [str(TESTS / "dissectors" / protocol / name) for name in BROKEN_IN[protocol]],
        env=os.environ | {"RULES_BROKEN": str(found), "PYTHONPATH": os.pathsep.join((*sys.path, str(TESTS)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    broken = json.loads(found.read_text())
    # What differs from the specification all the time is noted with the row that differs.
    assert set(broken["codes"]) <= {"dialect"}
    messages = broken["rules"][protocol]
    rules = grammar_rules(protocol)
    assert set(rules) - set(messages) <= set(UNBROKEN.get(protocol, {}))
    of_one = {key: [rule.message] for key, rule in rules.items() if rule.message is not None}
    assert {key: messages[key] for key in messages if key in of_one} == {
        key: names for key, names in of_one.items() if key in messages
    }


def grammar_rules(protocol: str) -> dict[str, Rule]:
    dissector = dissector_of(protocol)
    assert dissector is not None
    return dict(dissector.grammar.rules)


def test_each_protocol_is_tried() -> None:
    assert set(BROKEN_IN) == {dissector.protocol for dissector in BUILT_IN}


@pytest.mark.full(but=36)
@pytest.mark.parametrize(("protocol", "rule"), EVERY_RULE)
def test_a_rule_has_a_clause_or_a_reason_for_none(protocol: str, rule: Rule) -> None:
    assert (rule.clause is None) == (rule.unwritten is not None)
    assert rule.clause != ""
    dissector = dissector_of(protocol)
    assert dissector is not None
    assert rule.message is None or rule.message in {row.name for row in dissector.grammar.rows}


@pytest.mark.parametrize(("protocol", "rule"), EVERY_RULE)
def test_default_values_have_a_name(protocol: str, rule: Rule) -> None:
    for sentence in (rule.text, rule.expected or "", rule.clause or ""):
        names = [name for _, name, _, _ in Formatter().parse(sentence) if name is not None]
        assert all(name.isidentifier() for name in names)


@pytest.mark.parametrize("protocol", BROKEN_IN)
def test_the_reference_lists_the_rules(protocol: str) -> None:
    done = kiebitz("protocols", protocol)
    assert done.status == 0
    rules = done.out.partition("\nRules\n")[2].partition("\nNames for filters\n")[0]
    # Long lines are folded.
    said = " ".join(rules.split())
    for rule in grammar_rules(protocol).values():
        own = f"the clause of {rule.message or 'the message'}"
        for part in (
            f"{rule.code} ({rule.severity}, {rule.group}): {rule.text}",
            f"expected: {rule.expected}" if rule.expected is not None else "",
            f"see: {rule.clause.replace(OWN_CLAUSE, own)}" if rule.clause else f"no clause: {rule.unwritten}",
        ):
            assert " ".join(part.split()) in said


def test_a_plug_in_needs_no_rules() -> None:
    headings = [part.text for line in reference(KNOBELN) for part in line if isinstance(part, Styled)]
    assert "Events" in headings
    assert "Rules" not in headings
