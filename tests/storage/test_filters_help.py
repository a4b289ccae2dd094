from __future__ import annotations

import re

import pytest
from command import TINY, kiebitz
from imported_databases import database_of
from lark import Lark
from lark.lexer import PatternStr
from terminals import OnTerminal

from kiebitz.dissectors.filters import compile_filter
from kiebitz.dissectors.filters.fields import ALIASES, COLUMNS, TRANSPORTS
from kiebitz.dissectors.filters.parser import _GRAMMAR
from kiebitz.dissectors.filters.reference import EXAMPLES, FIELDS, NAMES
from kiebitz.dissectors.filters.syntax import WORDS
from kiebitz.storage.read.conditions import field_catalog

CATAN = "catan-yaks-g1-3p.pcap.gz"


def told() -> set[str]:
    done = kiebitz("help", "filters")
    assert (done.status, done.err) == (0, "")
    firsts = [line[2:].split("  ")[0] for line in done.out.splitlines() if re.match(r"  \S", line)]
    return {word for first in firsts for word in re.split(r"[ ,]+", first)}


def test_every_name_is_in_the_reference() -> None:
    assert {*COLUMNS, *ALIASES, *TRANSPORTS, "diag"} <= told()


def test_every_word_and_operator_is_in_the_reference() -> None:
    assert {*WORDS} <= told()
    signs = {"==", "!=", "<=", ">=", "<", ">"}
    for terminal in Lark(_GRAMMAR, parser="lalr", lexer="basic").terminals:
        if isinstance(terminal.pattern, PatternStr):
            signs.add(terminal.pattern.value)
    text = kiebitz("help", "filters").out
    assert {sign for sign in signs if sign not in text} == set()


def test_references_are_resolved() -> None:
    catalog = field_catalog()
    for names in NAMES:
        for name in names.split(", "):
            compile_filter(name, catalog)
    for text in (*FIELDS, *EXAMPLES):
        compile_filter(text, catalog)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Holz > 0", "did you mean resources.Holz or gained.Holz or Spieler.Rohstoffe.Holz"),
        ('actr == "x"', 'did you mean "actor"?'),
        ("Rohstofe", 'did you mean "Rohstoffe" or "Rohstoff"?'),
        # Near to a word of another game alone.
        ("declarer", None),
        ("trumfp", None),
    ],
)
@pytest.mark.parametrize("order", ["session first", "filter first"])
def test_suggestions_are_words_of_the_session(text: str, hint: str | None, order: str) -> None:
    arguments = (
        [database_of(CATAN), "-Y", text] if order == "session first" else ["-Y", text, database_of(CATAN)]
    )
    done = kiebitz("events", *arguments)
    assert (done.status, done.out) == (2, "")
    sentence, *excerpt = done.err.splitlines()
    assert sentence.startswith(f'kiebitz: no field "{text.split()[0]}"')
    if hint is None:
        assert "did you mean" not in sentence
    else:
        assert hint in sentence
    assert excerpt[0] == f"  {text}"


def test_the_words_of_the_headings_are_understood() -> None:
    done = kiebitz("messages", TINY, "-Y", 'who == "alice" && # < 3', "--json")
    assert [row["id"] for row in done.json] == [1, 2]
    done = kiebitz("events", TINY, "-Y", 'actor == "alice" && kind == "rolled"', "--json")
    assert [row["actor"] for row in done.json] == ["alice"]
    assert kiebitz("check", TINY, "-Y", 'who == "alice"').status == 0


@pytest.mark.full
def test_a_player_s_viewer_is_told_how_to_see_more() -> None:
    lost = kiebitz("events", TINY, "-Y", 'named == "alice" && kind == "lost"', "--json").json
    assert [row["data"]["names"] for row in lost] == [["alice"]]
    for asked, is_told in (("player", True), ("named", False)):
        with OnTerminal("events", TINY, "-Y", f'{asked} == "alice"') as command:
            assert command.ended() == 0
        assert any("named finds" in line or 'named == "alice"' in line for line in command.lines) == is_told
