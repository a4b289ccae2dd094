from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from bijections import back, onwards
from conversation_files import blocks, check
from inspected_captures import CAPTURES, Said, messages_of
from message_cases import CASES, Case, each_protocol
from single_direction import is_one_frame
from snapshots import DATA
from strength import a_few, few_captures

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import IdentifierKind, Rename
from kiebitz.dissectors.grammar.grammar import Decoded, Path, differences
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.catan.words import KARTEN, ROHSTOFFE
from kiebitz.dissectors.protocols.cgml.dissector import CGML
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF

RECORDED = sorted(path.name for path in CAPTURES.glob("*.pcap*"))
TELLING = ["cgml-hands.pcap.gz"]

IDENTIFIERS = DATA / "identifiers.txt"

each_capture = pytest.mark.parametrize("capture", few_captures(RECORDED))

# What names nothing: numbers by the name of their field, and texts that are not looked into.

NUMBERS = {
    MAEXCHEN: {"round", "points"},
    SCHAFKOPF: {"konto", "stock"},
    CATAN: {
        *(*ROHSTOFFE, *KARTEN, "Rohstoffe", "Entwicklungskarten", "Entwicklungskarte", "Rittermacht"),
        *("x", "y", "Zahl", "Wurf", "Siegpunkte", "Protokoll"),
    },
    OKEY: {"players", "turns"},
    CGML: {"load", "money", "number", "numplayers"},
}
NOBODY = {(SCHAFKOPF, "spieler", 4), (SCHAFKOPF, "mitspieler", 4), (CATAN, "Sieger", -1)}
TEXTS = {
    MAEXCHEN: {"password", "reason"},
    SCHAFKOPF: set(),
    CATAN: {"Nachricht", "Meldung", "Version"},
    OKEY: {"msg", "debugmessage"},
    CGML: {"message", "disconnect", "cancelgame"},
}


def decoded(said: Said) -> Decoded:
    return said.dissector.codec.decode(said.frame, said.direction)


def of_cases(dissector: Dissector) -> list[Said]:
    more = [Case(b"!SPIELT\n0\n1\n!END\n", "s2c", "SPIELT", {})] if dissector is SCHAFKOPF else []
    return [Said(dissector, case.direction, case.data) for case in (*CASES[dissector], *more)]


def renamed(said: Said, rename: Rename) -> dict[str, Any]:
    """Return a message's fields with other names."""
    message = decoded(said)
    assert message.row is not None
    return message.row.renamed(message.fields, rename)


def names_of(said: Said) -> list[tuple[IdentifierKind, Any]]:
    found: list[tuple[IdentifierKind, Any]] = []

    def noted(handle: IdentifierKind, value: Any) -> Any:
        found.append((handle, value))
        return value

    renamed(said, noted)
    return found


def reached(said: Said) -> dict[Path, IdentifierKind]:
    found: dict[Path, IdentifierKind] = {}
    for kind in {handle for handle, _ in names_of(said)}:
        other = renamed(said, partial(_of_kind, kind))
        found |= dict.fromkeys(differences(decoded(said).fields, other), kind)
    return found


def _of_kind(kind: IdentifierKind, handle: IdentifierKind, value: Any) -> Any:
    return onwards(handle, value) if handle == kind else value


def leaves(fields: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(fields, Mapping):
        for key, value in fields.items():
            yield from leaves(value, (*path, key))
    elif isinstance(fields, list):
        for number, value in enumerate(fields):
            yield from leaves(value, (*path, number))
    elif isinstance(fields, str) or type(fields) is int:
        yield path, fields


def spoken(path: Path) -> str:
    return "".join("[]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def overlooked(said: Said, places: Iterable[Path], names: set[str]) -> list[tuple[str, Any]]:
    found = []
    known = {*places}
    for path, value in leaves(decoded(said).fields):
        field = next(str(step) for step in reversed(path) if isinstance(step, str))
        if not known.isdisjoint(path[:steps] for steps in range(len(path) + 1)):
            continue
        if isinstance(value, str):
            is_name = value in names and field not in TEXTS[said.dissector]
        else:
            is_name = field not in NUMBERS[said.dissector] and (said.dissector, field, value) not in NOBODY
        if is_name:
            found.append((spoken(path), value))
    return found


def with_row(said: Iterable[Said]) -> list[Said]:
    return [each for each in said if decoded(each).row is not None]


def texts_in(messages: Iterable[Said]) -> set[str]:
    return {value for said in messages for _, value in names_of(said) if isinstance(value, str)}


@pytest.mark.full(but=2)
@each_protocol
@pytest.mark.parametrize(
    "captures", a_few([RECORDED, TELLING], [TELLING], lambda names: "a few" if names is TELLING else "all")
)
def test_these_values_name_something_and_no_others(dissector: Dissector, captures: list[str]) -> None:
    recorded = (
        said for name in captures if name.startswith(dissector.protocol) for said in messages_of(name)
    )
    found: set[tuple[str, str, str, str]] = set()
    for said in with_row((*recorded, *of_cases(dissector))):
        message = decoded(said)
        assert message.row is not None
        found |= {
            (handle.title, spoken(path), said.direction, message.row.name)
            for path, handle in reached(said).items()
        }
    names: dict[str, list[str]] = {}
    for kind, place, direction, name in sorted(found):
        names.setdefault(f"    {kind}: {place}, {direction} ", []).append(name)
    check(
        blocks(IDENTIFIERS)[dissector.protocol],
        "\n".join(f"{each}{', '.join(names[each])}" for each in names),
    )


@each_capture
def test_no_name_and_no_number_of_anything_is_overlooked(capture: str) -> None:
    messages = with_row(messages_of(capture))
    names = texts_in(messages)
    for said in messages:
        assert not overlooked(said, reached(said), names)


@each_capture
def test_the_same_names_give_the_same_fields_and_bytes(capture: str) -> None:
    for said in with_row(messages_of(capture)):
        fields = decoded(said).fields
        assert renamed(said, lambda _, value: value) == fields
        assert said.dissector.codec.rewrite(said.frame, said.direction, fields) == said.frame


@each_capture
def test_other_names_go_in_and_out_again(capture: str) -> None:
    for said in with_row(messages_of(capture)):
        dissector, direction, frame = said
        before = decoded(said)
        as_it_was = json.dumps(before.fields)
        fields = renamed(said, onwards)
        assert json.dumps(before.fields) == as_it_was
        other = Said(dissector, direction, dissector.codec.rewrite(frame, direction, fields))
        after = decoded(other)
        assert after.row == before.row
        assert after.fields == fields
        assert after.valid >= before.valid
        assert is_one_frame(*other) == is_one_frame(*said)
        again = dissector.codec.rewrite(other.frame, direction, renamed(other, back))
        assert dissector.codec.decode(again, direction).fields == before.fields
