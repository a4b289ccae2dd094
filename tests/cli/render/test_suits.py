"""The suits of the German pack on a terminal: their own signs where these are drawn, else French ones."""

from __future__ import annotations

import io
from functools import partial

import pytest
from command import kiebitz
from conversation_files import Block, blocks, check
from game_scenes import cgml as marias
from game_scenes import schafkopf
from hypothesis import given, settings
from hypothesis import strategies as st
from imported_databases import database_of
from rich.cells import cell_len
from rich.console import Console
from screens import ASCII, Filled
from snapshots import DATA
from strength import times
from wcwidth import wcswidth

from kiebitz.cli.render.text import draw
from kiebitz.cli.render.text.canvas import OWN_SUITS, UNICODE
from kiebitz.cli.terminal import emoji
from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.protocols.cgml.cards import PACK as CGML_PACK
from kiebitz.dissectors.protocols.schafkopf.cards import PACK

SCHAFKOPF = ("state", "schafkopf-1.3-2humans.pcap", "--at", "#40")
MARIAS = ("state", "cgml-hands.pcap.gz", "--game", "2", "--at", "#172")
WATCHED = ("watch", "cgml-hands.pcap.gz", "--game", "2")
GNOME = {"TERM": "xterm-256color", "VTE_VERSION": "7006"}
LEGENDS = "♣ Eichel ♠ Gras ♥ Herz ♦ Schellen", "♣ žaludy ♠ zelené ♥ červené ♦ kule"


@pytest.mark.parametrize("block", blocks(DATA / "emoji.txt").values(), ids=lambda block: block.title)
def test_emoji_are_for_terminals_that_are_known_to_draw_them(block: Block) -> None:
    lines = []
    for step in block.steps:
        surroundings = dict(word.split("=") for word in step.removeprefix("(no variables)").split())
        lines += [step, f"    {'emoji' if emoji.are_drawn(surroundings) else 'French suits'}"]
    check(block, "\n".join(lines))


def test_all_width_functions_agree() -> None:
    assert {cell_len(sign) for sign in OWN_SUITS.suits} == {2}
    assert {wcswidth(sign) for sign in OWN_SUITS.suits} == {2}
    assert {cell_len(sign) for sign in UNICODE.suits} == {1}


# On terminals.


def on_stored(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command on a capture, as one on the database of it."""
    name, capture, *options = command
    return name, database_of(capture), *options


def table_rows(screen: Filled) -> int:
    rows = screen._pyte.buffer
    return sum({rows[y][17].data, rows[y][62].data} <= {*"│╭╮╰╯"} for y in range(24))


@pytest.mark.parametrize(
    ("command", "rows", "own", "legend"),
    [
        (SCHAFKOPF, 11, ("🍃Unter", "🍃10", "♥ 10", "🔔9"), LEGENDS[0]),
        pytest.param(MARIAS, 12, ("🌰7", "♥ Q", "🍃10"), LEGENDS[1], marks=pytest.mark.full),
        pytest.param(WATCHED, 12, ("🌰A", "🍃7", "♥ Q"), LEGENDS[1], marks=pytest.mark.full),
    ],
)
def test_own_suits_pseudonym_the_same_table(
    command: tuple[str, ...], rows: int, own: tuple[str, ...], legend: str
) -> None:
    looks: list[tuple[dict[str, str], tuple[str, ...], str]] = [
        ({}, (legend,), "🌰🍃🔔"),
        (GNOME, own, "♣♠♦"),
    ]
    for surroundings, signs, others in looks:
        with Filled(*on_stored(command), columns=80, rows=24, **surroundings) as screen:
            # pyte shows a wide letter alone, though it occupies two columns.
            seen = screen.until(partial(is_whole, screen, rows, signs))
            assert all(sign not in seen for sign in others)


def is_whole(screen: Filled, rows: int, signs: tuple[str, ...], seen: str) -> bool:
    return table_rows(screen) == rows and all(sign in seen for sign in signs)


@pytest.mark.full
@pytest.mark.parametrize(
    ("surroundings", "legend"),
    [({**GNOME, "TERM": "linux"}, LEGENDS[0]), ({**GNOME, **ASCII}, "E Eichel G Gras H Herz S Schellen")],
)
def test_plainer_terminals_get_plainer_signs(surroundings: dict[str, str], legend: str) -> None:
    with Filled(*on_stored(SCHAFKOPF), columns=80, rows=24, **surroundings) as screen:
        seen = screen.until(legend)
        assert "🍃" not in seen
        screen.ended()


@pytest.mark.full
def test_a_list_of_forty_columns_has_its_legend() -> None:
    with Filled(*on_stored(SCHAFKOPF), columns=40, rows=40) as screen:
        assert "♦ Schellen" in screen.until(LEGENDS[0])
        screen.ended()
    with Filled(*on_stored(SCHAFKOPF), columns=40, rows=40, **GNOME) as screen:
        seen = screen.until("🔔9")
        assert "Schellen" not in seen.replace("Solo Schellen", "")
        screen.ended()


@pytest.mark.full
def test_the_reader_of_a_pipe_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in GNOME.items():
        monkeypatch.setenv(name, value)
    for command in (SCHAFKOPF, MARIAS):
        out = kiebitz(*on_stored(command)).out
        assert any(legend in out for legend in LEGENDS)
        assert all(sign not in out for sign in "🌰🍃🔔")


# Whatever is held.


def shown(protocol: str, state: dict[str, object], width: int) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    console.print(draw(protocol, Scene(state)))
    return out.getvalue().split("\n")


@settings(max_examples=times(200, 15))
@given(
    st.lists(st.sampled_from(sorted(PACK)), max_size=6, unique=True),
    st.lists(st.sampled_from(CGML_PACK), max_size=12, unique=True),
    st.integers(12, 140),
)
def test_any_hand_is_drawn_within_its_width(
    schafkopf_hand: list[str], marias_hand: list[str], width: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(emoji, "are_drawn", lambda: True)
        hands = {name: {"hand": schafkopf_hand} for name in ("Anna", "Bert", "[BOT]-0", "[BOT]-1")}
        lines = shown("schafkopf", schafkopf(private=hands, table={"0": "EICHEL KONIG"}), width)
        own = {str(player): {"hand": marias_hand} for player in (1, 2, 3)}
        lines += shown("cgml", marias(private=own), width)
    assert all(cell_len(line) <= width for line in lines)
    assert any(sign in "".join(lines) for sign in "🌰🔔🍃♥") or not (schafkopf_hand or marias_hand)
    assert "♣" not in "".join(lines)
