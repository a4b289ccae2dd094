"""The sentences of events: players by name, cards, tiles and codes in words, in all five games."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from command import CAPTURES
from hypothesis import given
from hypothesis import strategies as st
from imported_databases import database_of
from snapshots import DATA, check
from strength import few_captures

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.sentences import CALLED
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.registry import BUILT_IN, dissector_of

BY_NAME = {dissector.protocol: dissector for dissector in BUILT_IN}


def event_of(kind: str, data: dict[str, Any]) -> Event:
    return Event(1, 1, None, 1, 0, kind, None, data, [])


X = {"x": 1, "y": 0}
Y = {"x": 2, "y": -1}
TRIO = {"1": "Ann", "2": "Bob", "3": "Cy"}
HIDDEN = [None] * 10

NAMED = {"TRIO": TRIO, "HIDDEN": HIDDEN, "X": X, "Y": Y}


SENTENCES = DATA / "sentences.txt"


def test_events_in_words() -> None:
    made, kinds = "", set()
    for line in SENTENCES.read_text().splitlines():
        if not line.startswith("    "):
            made += f"{line}\n"
        if not line.startswith(("    ", "#")):
            protocol, kind, data = line.split(" ", 2)
            for name, value in NAMED.items():
                data = re.sub(rf"\b{name}\b", json.dumps(value), data)
            made += f"    {BY_NAME[protocol].presentation.describe(event_of(kind, json.loads(data)))}\n"
            kinds.add((protocol, kind))
    check(SENTENCES, made)
    assert kinds == {(name, kind) for name, dissector in BY_NAME.items() for kind in dissector.grammar.events}


_ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=4)
    | st.sampled_from(["B08", "9:RED", "2:1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("dissector", BUILT_IN, ids=lambda dissector: dissector.protocol)
@given(data=st.data())
def test_whatever_a_damaged_database_has_is_rendered(dissector: Dissector, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(dissector.grammar.events)))
    fields = [*dissector.grammar.events[kind].fields, CALLED]
    values = data.draw(st.dictionaries(st.sampled_from(fields), _ANY))
    assert isinstance(dissector.presentation.describe(event_of(kind, values)), str)


CODES = {
    "cgml": r"\b[RBGA](?:0[789JQKA]|10)\b|PASS",
    "okey": r"\d:(?:RED|BLUE|YELLOW|BLACK)|valid|from [em]\b|LLOB|LEFT|LOGO",
    "schafkopf": r"EICHEL|GRAS|HERZ|SCHELLEN|SOLO|SAUSPIEL|WENZ|GEIER|NICHTS|ERSTE3|BEENDEN|\b(?:JA|NEIN)\b",
    "maexchen": r"\b[A-Z]+_[A-Z_]+\b|\bMIA\b",
    "catan": r"'x'|\"x\"",
}

NO_WORDS = r"\b(?:[Hh]e|[Hh]is|[Hh]im|None|True|False)\b|\{|\bplayer \{"
FREE = {"text", "message", "why", "what"}
"""Fields in which people and programs write what they like."""


@pytest.mark.parametrize("capture", few_captures(sorted(path.name for path in CAPTURES.glob("*.pcap*"))))
def test_no_sentence_has_a_code_of_the_wire(capture: str) -> None:
    timeline = open_session(database_of(capture))
    for table in timeline.tables():
        dissector = dissector_of(table.protocol)
        assert dissector is not None
        codes = re.compile(f"{CODES[table.protocol]}|{NO_WORDS}")
        for event in timeline.events("e.table_id = ?", [table.id]):
            if FREE & {*dissector.grammar.events[event.kind].fields} and event.kind not in ("gained", "paid"):
                continue
            # From the perspective of all players, and of one without secrets.
            views = [event, dissector.identity.seen_by(event, "somebody else")]
            for sentence in [dissector.presentation.describe(view) for view in views if view is not None]:
                assert codes.search(sentence) is None, sentence
                games = {event.data.get("call"), event.data.get("game"), event.data.get("group")}
                games |= {abs(amount) for amount in event.data.get("money", {}).values()}
                for number, name in event.data.get(CALLED, {}).items():
                    assert name in sentence
                    is_other = number in map(str, games) or number in name
                    assert is_other or re.search(rf"\b{number}\b", sentence) is None, sentence
