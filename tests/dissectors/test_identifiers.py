from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from bijections import back, onwards
from inspected_captures import CAPTURES, Said, messages_of
from message_cases import CASES, Case, each_protocol
from single_direction import is_one_frame
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

each_capture = pytest.mark.parametrize("capture", few_captures(RECORDED))

# Fields with a handle: kind, place, and the messages in which they occur.

_IN_CATAN = (
    "Entwicklungskarte gekauft, Erfindung, Ertrag, Größte Rittermacht, Handel ausgeführt, Handelsangebot,"
    " Handelsangebot abgebrochen, Handelsangebot angenommen, Kosten, Längste Handelsstraße, Monopol,"
    " Ritter ausspielen, Räuber versetzt, Spiel beendet, Straßenbaukarte ausspielen, Würfelwurf"
)

HANDLES = {
    MAEXCHEN: [
        ("token", "token", "c2s", "ANNOUNCE, JOIN, ROLL, SEE"),
        ("token", "token", "s2c", "ROLLED, ROUND STARTING, YOUR TURN"),
        ("player", "name", "c2s", "REGISTER, REGISTER_SPECTATOR"),
        ("player", "name", "s2c", "ANNOUNCED, PLAYER ROLLS, PLAYER WANTS TO SEE"),
        ("player", "names[]", "s2c", "PLAYER LOST"),
        ("player", "players[]", "s2c", "ROUND STARTED"),
        ("player", "scores", "s2c", "SCORE"),  # its keys
        ("round", "round", "s2c", "ROUND STARTED, ROUND STARTING"),
    ],
    SCHAFKOPF: [
        ("name", "name", "c2s", "NAME"),
        ("name", "namen[]", "s2c", "MITSPIELER"),
        ("seat", "id", "s2c", "ID"),
        ("seat", "dran", "s2c", "DRAN"),
        ("seat", "spieler", "s2c", "SIEGER, SPIELT"),
        ("seat", "mitspieler", "s2c", "SIEGER, SPIELT"),
    ],
    CATAN: [
        ("player", "Name", "c2s", "Spieler"),
        ("player", "Spieler.Name", "s2c", "Statusupdate"),
        ("player's id", "id", "c2s", "Chatnachricht senden"),
        ("player's id", "id", "s2c", "Willkommen"),
        ("player's id", "Spieler", "s2c", _IN_CATAN),
        ("player's id", "Spieler.id", "s2c", "Statusupdate"),
        ("player's id", "Mitspieler", "c2s", "Handel abschließen"),
        ("player's id", "Mitspieler", "s2c", "Handel ausgeführt, Handelsangebot angenommen"),
        ("player's id", "Ziel", "c2s", "Ritter ausspielen, Räuber versetzen"),
        ("player's id", "Ziel", "s2c", "Ritter ausspielen, Räuber versetzt"),
        ("player's id", "Eigentümer", "c2s", "Bauen"),
        ("player's id", "Gebäude.Eigentümer", "s2c", "Bauvorgang"),
        ("player's id", "Karte.Gebäude[].Eigentümer", "s2c", "Spiel gestartet"),
        ("player's id", "Absender", "s2c", "Chatnachricht"),
        ("player's id", "Sieger", "s2c", "Spiel beendet"),
        ("trade", "Handel id", "c2s", "Handel abbrechen, Handel abschließen, Handel annehmen"),
        ("trade", "Handel id", "s2c", "Handel ausgeführt, Handelsangebot, Handelsangebot abgebrochen"),
        ("trade", "Handel id", "s2c", "Handelsangebot angenommen"),
    ],
    OKEY: [
        ("name", "nickname", "c2s", "LOGI, NAME"),
        ("name", "nickname", "s2c", "PWIN"),
        ("name", "actualname", "s2c", "+LOGI, +NAME"),
        ("name", "name", "s2c", "JOND, LEFT"),
        ("name", "playerlist[]", "s2c", "+LPLA, +RNAM, NAMS"),
        ("name", "lobbieswithplayerlist[].players[]", "s2c", "+LLPL"),
        ("name", "games[].winner", "s2c", "+LGAM"),
        ("name", "highscores[].name", "s2c", "+HIGH"),
        ("name", "sender", "s2c", "CATS"),
        ("name", "whisperrecipient", "c2s", "CATC"),
        ("name", "whisperrecipient", "s2c", "+CATC"),
        ("lobby", "n", "c2s", "JLOB"),
        ("lobby", "games[].lobby", "s2c", "+LGAM"),
        ("lobby", "lobbieswithplayerlist[].lobby", "s2c", "+LLPL"),
        ("seat", "playeridx", "s2c", "STRT"),
        ("seat", "currentplayeridx", "s2c", "+RSTA, STAT"),
    ],
    CGML: [
        ("player", "player.id", "c2s", "connect, newgame, newgroup"),
        ("player", "player.id", "s2c", "abort, renonc"),
        ("player", "player[].id", "s2c", "connect, newgame"),
        ("player", "opponent.player[].id", "c2s", "connect"),
        ("player", "playerid", "s2c", "dial, flek, gametype, licite, playcard, round"),
        ("player", "round[].playerid", "s2c", "result"),
        ("player", "winer[].playerid", "s2c", "result"),
        ("player", "loser[].playerid", "s2c", "result"),
        ("name", "player.name", "c2s", "connect, newgame, newgroup"),
        ("name", "player.name", "s2c", "renonc"),
        ("name", "player[].name", "s2c", "connect, newgame"),
        ("group", "id", "c2s", "newgroup"),
        ("group", "id", "s2c", "connect"),
        ("url", "url", "c2s", "connect"),
        ("url", "url", "s2c", "connect"),
    ],
}

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
    assert found == {
        (kind, place, direction, name)
        for kind, place, direction, names in HANDLES[dissector]
        for name in names.split(", ")
    }


@each_capture
def test_no_name_and_no_number_of_anything_is_overlooked(capture: str) -> None:
    messages = with_row(messages_of(capture))
    names = texts_in(messages)
    for said in messages:
        assert not overlooked(said, reached(said), names)


@pytest.mark.full(but=1)
@each_protocol
def test_overlooked_values_would_be_found(dissector: Dissector) -> None:
    messages = with_row(of_cases(dissector))
    names = texts_in(messages)
    for said in messages:
        if places := reached(said):
            assert overlooked(said, (), names), places


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
