"""The reader of protocol files: what it reads, and the place of every mistake."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from command import ROOT
from hypothesis import given
from hypothesis import strategies as st
from make_file_schema import PATH, json_schema, schema_text
from snapshots import as_bytes, check
from strength import a_few

from kiebitz.dissectors.protocol_file import MAX_SIZE
from kiebitz.dissectors.protocol_file.dissector import dissector_from
from kiebitz.dissectors.protocol_file.reading.notation import Mistake, NamedTypes, Parser
from kiebitz.dissectors.protocol_file.reading.positions import ProtocolFileError, TomlPlaces, parse_toml
from kiebitz.dissectors.protocol_file.reading.reader import (
    read,
    read_specification,
)
from kiebitz.dissectors.protocol_file.specification import (
    BinaryType,
    ChoiceType,
    FieldSpec,
    Format,
    Framing,
    IdentifierType,
    ListType,
    NumberType,
    TextType,
)

EXAMPLE = (ROOT / "docs" / "protocol-files.md").read_text().split("```toml\n")[1].split("```")[0]
FILES = [
    *sorted((ROOT / "tests" / "data" / "protocol_files").glob("*.toml")),
    *sorted(file for file in (ROOT / "docs" / "examples").glob("*.toml") if file.stem != "class"),
]

DATA = ROOT / "tests" / "data" / "protocol_files"
MISTAKES = DATA / "mistakes.txt"
TYPES = DATA / "types.txt"

HEAD, *BLOCKS = MISTAKES.read_text().rstrip("\n").split("\n\n== ")
LINES = {
    title.removeprefix("around "): f"{text}\n"
    for title, _, text in (block.partition("\n") for block in BLOCKS)
    if title.startswith("around ")
}
"""Lines around those of a block, by their name."""


# What it reads.


def test_the_example_of_the_reference() -> None:
    found = read_specification(EXAMPLE)
    assert (found.protocol, found.title, found.transport, found.ports) == ("dice", "Dice", "tcp", (4711,))
    assert (found.framing, found.format) == (Framing(), Format(line_end="\n"))
    assert found.text == EXAMPLE
    rows = {row.name: row for row in found.messages}
    assert [*rows] == ["JOIN", "JOINED", "ROLL", "ROLLED", "ERROR"]
    rolled = rows["ROLLED"]
    assert (rolled.direction, rolled.broadcast, rolled.answers) == ("s2c", True, ("ROLL",))
    assert rolled.fields == (
        FieldSpec("name", IdentifierType("player"), "player"),
        FieldSpec("pips", NumberType(1, 6), "pips"),
    )
    assert rows["ERROR"].answers == ("JOIN", "ROLL")
    assert found.identity is not None
    assert found.identity.login == ("JOIN",)
    assert found.events[0].put == {"players.{name}.rolls": 0}
    assert found.rules[0].unless == "name != turn"
    assert found.board is not None
    assert (found.board.dice, found.board.unit) == ("dice", "rolls")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_of_the_tests(file: Any) -> None:
    assert read_specification(file.read_text()).protocol


def shown(value: Any) -> str:
    """Return a specification as text, without the values that are the default."""
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))})"
    if not isinstance(value, msgspec.Struct):
        return repr(value)
    parts = []
    for field in msgspec.structs.fields(value):
        part = getattr(value, field.name)
        if field.required:
            parts.append(shown(part))
        elif part != field.default and part != {}:
            parts.append(f"{field.name}={shown(part)}")
    return f"{type(value).__name__.removesuffix('Type')}({', '.join(parts)})"


def test_types() -> None:
    lines = TYPES.read_text().splitlines()
    for number, line in enumerate(lines):
        text, arrow, _ = line.partition(" →")
        if arrow and number > 2:
            try:
                found = shown(Parser(as_bytes(text).decode(), NamedTypes()).whole_type().type)
            except Mistake as mistake:
                found = f"mistake: {mistake.message}"
            lines[number] = f"{text} → {found}"
    check(TYPES, "\n".join(lines) + "\n")


def test_fields() -> None:
    parser = Parser("name?=player token=text! 'my key'=[text ] client=id u16 last=rest", NamedTypes())
    assert parser.fields("") == (
        FieldSpec("name", IdentifierType("player"), "player", optional=True),
        FieldSpec("token", TextType(), "text", generated=True),
        FieldSpec("my key", ListType(TextType(), " "), "[text ]"),
        FieldSpec("client", IdentifierType("id", BinaryType("u16")), "id u16"),
        FieldSpec("last", TextType(rest=True), "rest"),
    )
    assert not parser.mistakes


def test_names_of_several_words_in_answers() -> None:
    found = read_specification(
        'protocol = "p"\n[messages]\n"DRAW CARD" = "c:"\nDRAW = "c:"\nOK = "s: < DRAW CARD DRAW"\n'
    )
    assert found.messages[2].answers == ("DRAW CARD", "DRAW")


def test_defaults_follow_the_transport_and_the_framing() -> None:
    for head, transport, framing, line_end in [
        ("", "tcp", "lines", "\n"),
        ('transport = "udp"', "udp", "datagrams", ""),
        ('framing = "datagrams"', "udp", "datagrams", ""),
        ('framing = "delimiter"\nend = "\\u0000"', "tcp", "delimiter", ""),
        ('line_end = "\\r\\n"', "tcp", "lines", "\r\n"),
    ]:
        found = read_specification(f'protocol = "p"\n{head}\n[messages]\nA = "c:"\n')
        assert (found.transport, found.framing.kind, found.format.line_end) == (transport, framing, line_end)


def test_json_and_xml_are_named_once() -> None:
    for head, kind in {'framing = "json"\nname = "type"': "json", 'framing = "xml"': "xml"}.items():
        found = read_specification(f'protocol = "p"\n{head}\n[messages]\nA = "c:"\n')
        assert (found.framing.kind, found.format.kind) == (kind, kind)


def test_numbers_are_choices_in_json_only() -> None:
    messages = '[messages]\nA = "c: x=1|2"\n'
    for head, expected in {
        "": ChoiceType(("1", "2")),
        'format = "json"\nname = "type"\n': ChoiceType((1, 2)),
    }.items():
        found = read_specification(f'protocol = "p"\n{head}{messages}')
        assert found.messages[0].fields[0].type == expected


def test_a_type_may_follow_its_use() -> None:
    found = read_specification(
        'protocol = "p"\n[messages]\nA = "c: x=hand"\n[types]\nhand = "[card;]"\ncard = "a|b"\n'
    )
    assert found.messages[0].fields[0] == FieldSpec("x", ListType(ChoiceType(("a", "b")), ";"), "hand")


# Mistakes.

MISSING = {"protocol is missing", "messages is missing"}


def with_carets(block: str) -> str:
    """Return a file with carets and messages under its mistakes, or else under its remarks."""
    title, *lines = [line for line in block.split("\n") if not re.match(r" *\^+ ", line)]
    if title.startswith("around "):
        return block
    name = re.search(r"\((\w+)\)$", title)
    before, _, after = LINES[name[1]].partition("@\n") if name is not None else ("", "", "")
    text = "\n".join([before + lines[0], *lines[1:], after])
    try:
        found = tuple(sorted(read(text).remarks, key=lambda each: each.place))
    except ProtocolFileError as error:
        found = error.all
    shown = [title, *lines]
    for mistake in reversed(found):
        number, _, position, length = mistake.place
        if mistake.message not in MISSING or mistake.message.split(" ")[0] in title:
            at = number - before.count("\n") + 1
            shown.insert(at, f"{' ' * position}{'^' * max(length, 1)} {mistake.message}")
    return "\n".join(shown)


def test_a_mistake_has_its_place() -> None:
    found = [with_carets(block) for block in BLOCKS]
    check(MISTAKES, "\n\n== ".join((HEAD, *found)) + "\n")
    assert all(re.search(r"^(?: *\^+ |around )", block, re.MULTILINE) for block in found)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(ProtocolFileError, match="nested too deeply"):
        read_specification(f"x = {'[' * 9000}")


def test_all_mistakes_are_reported() -> None:
    text = 'X = "s: a=tex b=tixt"\n[events]\na = { on = "A", say = "x" }\n[boards]\n'
    with pytest.raises(ProtocolFileError) as raised:
        read_specification(LINES["ROWS"] + text, "x.toml")
    error = raised.value
    assert [each.text("x.toml") for each in error.all] == [
        "x.toml:5:11: no type tex: did you mean text?",
        "x.toml:5:17: no type tixt: did you mean text?",
        "x.toml:7:12: no message A",
        "x.toml:8:2: unknown key boards: did you mean board?",
    ]
    assert str(error) == "x.toml:5:11: no type tex: did you mean text?"
    assert (error.name, error.line, error.column, error.length) == ("x.toml", 5, 11, 3)
    assert error.excerpt() == [
        '  X = "s: a=tex b=tixt"',
        "            ^^^",
        "3 more mistakes: kiebitz protocols --check x.toml",
    ]


def test_a_cancelled_game_ends() -> None:
    found = read(
        LINES["ROWS"] + '[events]\na = { on = "JOIN", cancels = true, result = { x = 1 } }\n'
        'b = { on = "JOIN", timeout = true, ends = true }\nc = { on = "JOIN", joins = true, opens = true }\n'
    )
    assert [*found.remarks] == []
    ends = [(each.closes, each.cancels, each.timeout, each.joins) for each in found.specification.events]
    assert ends == [
        (True, True, False, False),
        (True, False, True, False),
        (False, False, False, True),
    ]


# Strange files.


def _is_read(text: str) -> None:
    """Check that a text is a specification or has mistakes inside it."""
    try:
        found = read_specification(text)
    except ProtocolFileError as error:
        lines = text.replace("\r\n", "\n").split("\n")
        for mistake in error.all:
            place = mistake.place
            assert 1 <= place.number <= len(lines)
            assert 0 <= place.position <= len(place.line)
            mistake.excerpt()
    else:
        # Nothing that is read fails later.
        dissector_from(found)


@given(st.text())
def test_any_text(text: str) -> None:
    _is_read(text)


_TOKENS = [
    *("protocol", "messages", "events", "types", "board", "on", "say", "put", "is", "A", "B", "x", "format"),
    *("[", "]", "[[", "]]", "{", "}", "=", ".", ",", "\n", " ", '"', "'", '"""', "#", "\\u0041", "\\", "1"),
    *(
        "nan",
        "c:",
        "s*:",
        "<",
        "a=text",
        "b?=[1..6;]",
        "/[/",
        "{a}",
        "1979-05-27",
        "true",
        "'c: a=id u16'",
        "|",
    ),
]


@given(st.lists(st.sampled_from(_TOKENS)).map("".join))
def test_any_tokens(text: str) -> None:
    _is_read(text)


@given(st.lists(st.sampled_from(_TOKENS)).map("".join))
def test_any_row(text: str) -> None:
    _is_read(f'protocol = "p"\n[messages]\nA = {json.dumps(text)}\n')


@given(st.integers(0, len(EXAMPLE)), st.integers(0, 5), st.sampled_from(["", *_TOKENS]))
def test_any_change_of_the_example(at: int, removed: int, added: str) -> None:
    _is_read(EXAMPLE[:at] + added + EXAMPLE[at + removed :])


_VALUES = st.recursive(
    st.one_of(
        st.none(), st.integers(), st.floats(), st.booleans(), st.text(max_size=5), st.sampled_from(_TOKENS)
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_TOKENS), inner, max_size=3),
)


_KEYS = [*json_schema()["$defs"]["Document"]["properties"]]


@pytest.mark.parametrize(
    "value", ["1979-05-27", "1", '"x"', "true", "[]", "[1]", '[{ x = "x" }]', '{ x = "x" }']
)
def test_no_key_with_a_value_of_another_kind_stops_the_reader(value: str) -> None:
    for key in _KEYS:
        _is_read(f"{key} = {value}")


@pytest.mark.full
@given(st.dictionaries(st.sampled_from(_KEYS), _VALUES))
def test_any_values(document: dict[str, Any]) -> None:
    _is_read("\n".join(f"{key} = {_toml(value)}" for key, value in document.items()))


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return "1979-05-27" if value is None else json.dumps(value)


_MANY = 'protocol = "p"\n[messages]\n' + "".join(f"M{n} = 'c: a=text'\n" for n in range(900))
LARGE = {
    "size": "#" * (MAX_SIZE + 1),
    "rows": 'protocol = "p"\n[messages]\n' + "".join(f"M{n} = 'c:'\n" for n in range(1100)),
    "mistakes": "[messages]\n" + "".join(f"M{n} = 'c: a=tex'\n" for n in range(9000)),
    "mistakes in a row": f"[messages]\nA = 'c: {'a=tex ' * 20_000}'\n",
    "unknown messages": f"{_MANY}[events]\n" + "".join(f"e{n} = {{ on = 'Q{n}' }}\n" for n in range(9000)),
    "expressions": f"{_MANY}[events]\n"
    + "".join(f"e{n} = {{ on = 'M0', say = '{{a}} {{who}}' }}\n" for n in range(5000)),
    "answers": f"{_MANY}A = 's: < {'B ' * 90_000}'\n",
    "braces": f"{_MANY}[events]\na = {{ on = 'M0', say = '{'{a}' * 70_000}' }}\n",
    "types": "protocol = 'p'\n[types]\n"
    + "".join(f"t{n} = '{{a=t{n + 1} b=t{n + 1}}}'\n" for n in range(4000))
    + "[messages]\nA = 'c: a=t1'\n",
    "parts": "protocol = 'p'\n[types]\n"
    + "".join(f"t{n} = '{{{' '.join(f'{k}=t{n + 1}' for k in 'abcdefgh')}}}'\n" for n in range(9))
    + "t9 = 'text'\n[messages]\nA = 'c: a=t0'\n",
    "dotted": "\n".join(f"a{n}.b = 1" for n in range(19_000)),
    "array": f"x = [{'1,' * 90_000}]",
}


@pytest.mark.full(but=3)
@pytest.mark.parametrize("name", a_few(LARGE, lambda name: name not in ("expressions", "array")))
def test_a_large_file_is_refused_soon(name: str) -> None:
    began = time.process_time()
    with pytest.raises(ProtocolFileError) as raised:
        read_specification(LARGE[name])
    assert len(raised.value.all) <= 101
    # Some take a second; without bounds, they would take minutes.
    assert time.process_time() - began < 20


# Locations, and the schema.


def test_locations_of_keys_and_values() -> None:
    text = 'a = 1 # x\n"b c".d = "x\\u0041 y"\n[t.u]\nk = [1, "two", {z = 3}]\n'
    text += "[[arr]]\nq = 1\n[arr.in]\nv = 2\n[[arr]]\nq = 3\n"
    places = TomlPlaces(text)

    def marked(place: Any) -> str:
        return f"{place.number} {place.line[place.position : place.position + place.length]}"

    assert marked(places.key(["b c", "d"])) == "2 d"
    assert marked(places.key(["b c"])) == '2 "b c"'
    assert marked(places.value(["b c", "d"], 1, 3)) == "2 \\u0041 "
    assert marked(places.key(["t", "u", "k", 2, "z"])) == "4 z"
    assert marked(places.value(["t", "u", "k", 1])) == '4 "two"'
    assert marked(places.value(["arr", 0, "in", "v"])) == "8 2"
    assert marked(places.value(["arr", 1, "q"])) == "10 3"
    assert marked(places.key(["t", "nothing"])) == "3 t"


def test_the_schema_is_that_of_the_code() -> None:
    assert PATH.read_text() == schema_text(), "python tests/support/make_file_schema.py makes it anew"


def _violations(value: Any, schema: Any, whole: Any, path: str = "") -> Iterator[str]:
    """Yield what a value violates of the keywords that the schema has."""
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    types = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": int | float,
    }
    known = {*schema} - {"$defs", "$schema", "title", "description", "default"}
    assert known <= {
        *("type", "anyOf", "enum", "pattern", "minimum", "exclusiveMinimum", "maximum", "items"),
        *("properties", "required", "additionalProperties", "minLength", "maxLength"),
    }
    if (
        ("type" in schema and not isinstance(value, types[schema["type"]]))
        or ("anyOf" in schema and all([*_violations(value, each, whole)] for each in schema["anyOf"]))
        or ("enum" in schema and value not in schema["enum"])
        or ("pattern" in schema and not re.search(schema["pattern"], value))
        or ("maxLength" in schema and not schema.get("minLength", 0) <= len(value) <= schema["maxLength"])
        or not schema.get("minimum", -math.inf) <= (value if "minimum" in schema else 0)
        or ("exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"])
        or not (value if "maximum" in schema else 0) <= schema.get("maximum", math.inf)
    ):
        yield f"{path} is wrong"
    elif isinstance(value, list) and "items" in schema:
        for item in value:
            yield from _violations(item, schema["items"], whole, path)
    elif isinstance(value, dict) and "anyOf" not in schema:
        yield from (
            f"{path}.{key} is missing"[bool(not path) :] for key in {*schema.get("required", ())} - {*value}
        )
        for key, item in value.items():
            inside = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            at = f"{path}.{key}" if path else key
            if inside is None:
                continue
            if inside is False:
                yield f"{at} is unknown"
            else:
                yield from _violations(item, inside, whole, at)


@pytest.mark.full(but=5)
@pytest.mark.parametrize("text", [EXAMPLE, *(file.read_text() for file in FILES)])
def test_a_file_has_the_schema(text: str) -> None:
    schema = json_schema()
    assert [*_violations(parse_toml(text), schema, schema)] == []


def test_a_violation_of_the_schema_is_found() -> None:
    schema = json_schema()
    document = {
        "protocol": "Dice",
        "messages": {"A": "x"},
        "port": 0,
        "frameing": 1,
        "events": {"a": {"say": 1}},
    }
    assert sorted(_violations(document, schema, schema)) == [
        "events.a is wrong",
        "frameing is unknown",
        "messages.A is wrong",
        "port is wrong",
        "protocol is wrong",
    ]
