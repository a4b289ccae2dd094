from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from command import CAPTURES
from imported_databases import database_of
from strength import few_captures

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.grammar.field_type import IdentifierKind, IdentifierKinds, KeysOf
from kiebitz.dissectors.grammar.sentences import CALLED
from kiebitz.dissectors.registry import BUILT_IN, dissector_of

NO_NAMES = ("known_to", "others_see")


def values(name: str, value: Any, handles: IdentifierKinds) -> Iterator[tuple[str, Any, bool]]:
    handle = handles.get(name)
    if isinstance(value, dict):
        for key, part in value.items():
            yield name, key, handle is not None
            yield from values(key if handle is None else "", part, handles)
    elif isinstance(value, list):
        for part in value:
            yield from values(name, part, handles)
    else:
        yield name, value, isinstance(handle, IdentifierKind)


@pytest.mark.parametrize("capture", few_captures(sorted(path.name for path in CAPTURES.glob("*.pcap*"))))
def test_fields_that_name_a_player_have_a_handle(capture: str) -> None:
    timeline = open_session(database_of(capture))
    for table in timeline.tables():
        dissector = dissector_of(table.protocol)
        assert dissector is not None
        grammar = dissector.grammar
        events = list(timeline.events("e.table_id = ?", [table.id]))
        names = {event.actor for event in events} - {None}
        overlooked = set()
        for event in events:
            for field, part in event.data.items():
                if field not in NO_NAMES:
                    for key, value, is_known in values(field, part, grammar.data_identifiers):
                        if str(value) in names and not is_known:
                            overlooked.add((event.kind, key, value))
        for event in events[:: max(1, len(events) // 40)]:
            for key, value, is_known in values(
                "", timeline.state_at(table.id, event.seq), grammar.state_identifiers
            ):
                if str(value) in names and not is_known:
                    overlooked.add(("state", key, value))
        assert not overlooked


@pytest.mark.parametrize("dissector", BUILT_IN, ids=lambda dissector: dissector.protocol)
def test_fields_with_identifiers_belong_to_an_event(dissector: Any) -> None:
    grammar = dissector.grammar
    fields = {field for kind in grammar.events.values() for field in kind.fields}
    # Tricks of Schafkopf show the seats, Catan's map the owners, a game server of CGML has its url as its
    # name, and the names of its players are next to the fields.
    inside = {"seats", "Eigentümer", "url", CALLED}
    assert {*grammar.data_identifiers} - {"actor"} <= fields | inside
    assert {*grammar.aliases, *grammar.aliases.values()} <= {*grammar.data_identifiers}
    assert all(isinstance(handle, IdentifierKind | KeysOf) for handle in grammar.data_identifiers.values())
    assert {kind.ending for kind in grammar.events.values()} - {None} <= fields
