from __future__ import annotations

import pytest
from command import ODD, kiebitz
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kiebitz.services.evidence.excerpt import MAX_CELLS, datagram_excerpt


def excerpt(data: bytes, offset: int, length: int) -> list[str]:
    """Return the lines that show a datagram, which does not begin at 0 of its stream."""
    return [line.text for line in datagram_excerpt(1000, data, 1000 + offset, length)]


def _marked(lines: list[str]) -> str:
    text, carets = lines[:2]
    start = len(carets) - len(carets.lstrip())
    return "".join(c for at, c in _cells(text) if start <= at < len(carets))


def _cells(text: str) -> list[tuple[int, str]]:
    return [(cell_len(text[:at]), c) for at, c in enumerate(text)]


@pytest.mark.parametrize(
    ("data", "offset", "length", "text", "marked"),
    [
        (b"ROLL;tok extra", 8, 6, "ROLL;tok extra", " extra"),
        (b"ROLL;tok\n", 8, 1, r"ROLL;tok\n", r"\n"),
        (b"R\x00O\x00", 2, 1, r"R\x00O\x00", "O"),
        ("J;🎲🎲;x".encode(), 11, 1, "J;🎲🎲;x", "x"),
        ("J;🎲🎲;x".encode(), 6, 4, "J;🎲🎲;x", "🎲"),
        ("Größe;ö".encode(), 8, 2, "Größe;ö", "ö"),
        (b"a\\b;c", 4, 1, r"a\\b;c", "c"),
        (b"REGISTER;\xff\xfeabc", 9, 2, r"REGISTER;\xff\xfeabc", r"\xff\xfe"),
        ("x\u202ey;z".encode(), 6, 1, r"x\u202ey;z", "z"),
    ],
)
def test_carets_are_under_the_bytes(data: bytes, offset: int, length: int, text: str, marked: str) -> None:
    lines = excerpt(data, offset, length)
    assert lines[0] == text
    assert _marked(lines) == marked


@pytest.mark.parametrize(("data", "offset"), [(b"REGISTER", 8), ("Größe🎲".encode(), 11), (b"x\n", 2)])
def test_the_end_of_a_message_has_one_caret_behind_it(data: bytes, offset: int) -> None:
    text, carets = excerpt(data, offset, 0)[:2]
    assert carets == " " * cell_len(text) + "^"


def test_an_empty_datagram() -> None:
    assert excerpt(b"", 0, 0) == ["(no bytes)", "^"]


def test_unprintable_bytes_are_also_shown_in_hexadecimal() -> None:
    assert excerpt(b"ROLL;\x1b[2J", 5, 1)[2:] == ["52 4f 4c 4c 3b 1b 5b 32 4a", " " * 15 + "^^"]
    assert len(excerpt(b"ROLL;x", 5, 1)) == 2


@pytest.mark.parametrize("place", [0, 3, 30_000, 59_999])
@pytest.mark.parametrize("letter", ["x", "🎲", "\x1b", "é"])
def test_a_long_datagram_is_shown_around_the_place(place: int, letter: str) -> None:
    size = len(letter.encode())
    data = (letter * place + "!" + letter * (60_000 - place - 1)).encode()
    text, carets = excerpt(data, place * size, 1)
    assert len(carets) <= cell_len(text) <= MAX_CELLS + 2
    assert _marked([text, carets]) == "!"
    assert text.startswith("…") == (place > 3)


@given(st.binary(max_size=300), st.integers(0, 300), st.integers(0, 300))
def test_any_bytes_can_be_shown(data: bytes, offset: int, length: int) -> None:
    lines = excerpt(data, offset, length)
    assert len(lines) in (2, 4)
    for text, carets in zip(lines[::2], lines[1::2], strict=True):
        assert text.isprintable()
        assert cell_len(text) <= MAX_CELLS + 2
        assert set(carets) <= {" ", "^"}
        assert carets.endswith("^")
        assert len(carets) <= cell_len(text) + 1


@pytest.mark.full
def test_the_status_is_the_same_in_every_form() -> None:
    done = kiebitz("check", ODD, "--json")
    assert done.status == 3
    assert {row["severity"] for row in done.json} == {"error", "warning", "note"}
    assert set(done.json[0]) >= {
        "time",
        "severity",
        "group",
        "code",
        "blame",
        "stream",
        "dir",
        "offset",
        "text",
    }
    assert kiebitz("check", ODD, "--csv", "-Y", 'diag.severity == "note"').status == 0
