"""Probe, `--force`, anonymization and recorded traffic with the codecs of protocol files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from command import ROOT
from file_formats import BINARY, PAIRS, USUAL, messages, protocol
from strength import a_few
from tcp_segments import items_of_packets

from kiebitz.dissectors.conformance.expectations import NotApplicable
from kiebitz.dissectors.editing.assignment_parser import parse_assignments
from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.grammar.grammar import Field, to_json
from kiebitz.dissectors.model import Chunk, Direction
from kiebitz.dissectors.probing.mutations import Mutator
from kiebitz.dissectors.protocol_file.dissector import dissector_from
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.dissectors.testing import check_anatomy
from kiebitz.proxy.capture.files import open_capture
from kiebitz.services.alteration.rule_applier import force_values

ROBORALLY = ROOT / "docs" / "examples" / "roborally.toml"

each_format = pytest.mark.parametrize(("framing", "of"), a_few(PAIRS, USUAL))


def _mutations(mutator: Mutator, field: Field, frame: bytes) -> Iterator[tuple[str, Callable[[], bytes]]]:
    yield "left-out", partial(mutator.remove_field, field, frame)
    yield "doubled", partial(mutator.repeat_field, field, frame)
    yield "latin-1", partial(mutator.insert_latin_1, field, frame)
    for wrong in field.type.wrong_values():
        yield f"{wrong.part}/{wrong.kind}", partial(mutator.replace_text, field, wrong, frame)


@pytest.mark.full(but=1)
@each_format
def test_probe_makes_each_kind_of_mutation(framing: str, of: str) -> None:
    dissector = protocol(framing, of)
    made: Counter[str] = Counter()
    for name, direction, fields in messages(of):
        mutator = Mutator(dissector, direction)
        frame = dissector.codec.encode(name, direction, fields)
        row = dissector.codec.decode(frame, direction).row
        assert row is not None
        for field in row.fields:
            for kind, mutate in _mutations(mutator, field, frame):
                try:
                    mutated = mutate()
                except NotApplicable:
                    continue
                assert mutated != frame
                made[kind] += 1
                check_anatomy(dissector, mutated, direction)
    assert made["doubled"]
    if of not in BINARY:
        assert made["/out-of-range"]
        assert made["x/unknown"] or made["x/other-type"] or "xml" in of
    if of != "latin" and "u" not in framing.split("-")[0] and "varint" not in framing:
        assert made["latin-1"]


@each_format
def test_a_value_can_be_forced(framing: str, of: str) -> None:
    dissector = protocol(framing, of)
    frame = dissector.codec.encode("JOIN", "c2s", {"name": "Jörg"})
    forced = force_values(dissector, frame, "c2s", parse_assignments('name="GROJ "'))
    before = "Jörg".encode("latin-1" if of == "latin" else "utf-8")
    assert forced == frame.replace(before, b"GROJ ")


def test_personal_text_is_replaced_in_every_format() -> None:
    for framing, of in PAIRS:
        codec = protocol(framing, of).codec
        for name, direction, fields in messages(of):
            frame = codec.encode(name, direction, fields)
            decoded = codec.decode(frame, direction)
            assert decoded.row is not None
            kinds: list[str] = []

            def rename(kind: IdentifierKind, value: Any, kinds: list[str] = kinds) -> Any:
                kinds.append(kind.title)
                return value

            changed = decoded.row.anonymized(decoded.fields, lambda text: "anon", rename)
            written = codec.rewrite(frame, direction, changed)
            assert codec.decode(written, direction).fields_json == to_json(changed)
            if "name" in fields:
                assert changed["name"] == "anon"
            if name == "SAY":
                assert changed["text"] == "anon"
            if name == "DEALT":
                assert kinds == ["seat"]
                assert changed["seat"] == fields["seat"]


def test_identifiers_are_renamed() -> None:
    dissector = dissector_from(read_specification(ROBORALLY.read_text()))
    fields = {"clientID": 3, "name": "Ann", "figure": 2}
    row = dissector.grammar.row_of("PlayerAdded", "s2c", fields)
    assert row is not None
    assert row.renamed(fields, lambda kind, value: (kind.title, value)) == {
        "clientID": ("player's id", 3),
        "name": ("player", "Ann"),
        "figure": 2,
    }
    (chat,) = dissector.grammar.rows_named("c2s", "SendChat")
    # -1 is all players, and no identifier.
    assert chat.renamed({"message": "hi", "to": -1}, lambda kind, value: 99) == {"message": "hi", "to": -1}


def test_recorded_traffic_is_read_and_rewritten() -> None:
    """RoboRally: JSON lines of a server and its clients."""
    dissector = dissector_from(read_specification(ROBORALLY.read_text()))
    with open_capture(str(ROOT / "captures" / "roborally-1.pcap.gz")) as capture:
        items = items_of_packets([*capture], {15214})
    framers: dict[Any, Any] = {}
    frames: set[tuple[bytes, Direction]] = set()
    for item in items:
        if isinstance(item, Chunk):
            key = item.stream.id, item.direction
            framer = framers.setdefault(key, dissector.framer(item.direction))
            frames |= {(each.data, item.direction) for each in framer.feed(item.offset, item.data)}
    assert len(frames) > 50
    for frame, direction in sorted(frames):
        decoded = dissector.codec.decode(frame, direction)
        assert decoded.valid, decoded.violations
        assert decoded.row is not None
        again = dissector.codec.encode(decoded.row.name, direction, decoded.fields)
        assert dissector.codec.decode(again, direction).fields_json == decoded.fields_json
        check_anatomy(dissector, frame, direction)
        for name, value in decoded.fields.items():
            if type(value) is int:
                wanted = {**decoded.fields, name: value + 1}
                written = dissector.codec.rewrite(frame, direction, wanted)
                assert len(written) - len(frame) in (-1, 0, 1)
                assert dissector.codec.decode(written, direction).fields == wanted
