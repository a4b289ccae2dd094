from __future__ import annotations

from typing import Any

import pytest
from conversation_files import blocks
from game_scenes import scene
from invalid_states import HOSTILE_NAMES, invalid_state
from rich.cells import cell_len
from snapshots import DATA
from strength import a_few, times
from svg_properties import SHAPES, check, drawings
from terminal_scenes import drawn, event

from kiebitz.cli.render.svg import draw
from kiebitz.cli.render.views import view_of
from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.model import Event

BLOCKS = blocks(DATA / "pictures.txt")
STATES = {
    game: scene(BLOCKS[f"svg: {game}, everything"].steps)[0]
    for game in ("maexchen", "schafkopf", "okey", "cgml")
}
EVENTS = {
    "maexchen": [
        event(1, "announced", name="anna", dice="6,1"),
        event(2, "actual_dice", dice="4,1"),
        event(3, "lost", names=["anna"], reason="CAUGHT_BLUFFING"),
    ],
    "schafkopf": [event(1, "won", names=["Bert"]), event(2, "played", seat=3)],
    "okey": [event(1, "put", seat=0, tile="12:BLUE", valid=True)],
    "cgml": [event(1, "result", winners=[1], money={"1": 3}), event(2, "played", player=3)],
}
CAPTURES = {
    "catan": ("catan-yaks-g1-3p.pcap.gz", "AssortedPets (AI)", 13),
    "maexchen": ("maexchen-head-port4711.pcap", "kaos", 15),
    "schafkopf": ("schafkopf-1.3-2humans.pcap", "Bärbel", 40),
    "okey": ("okey-head-game-win.pcap.gz", "robin", 5),
    "cgml": ("cgml-hands.pcap.gz", "6533", 120),
}
"""A session of each game, one of its players, and every how many events it is drawn in a quick run."""

GAMES = pytest.mark.parametrize("game", STATES)


def draw_everywhere(game: str, state: dict[str, Any], events: list[Event]) -> None:
    """Draw a table on a few terminals and on both sheets, and look whether all is within its room."""
    for width, encoding in ((14, "utf-8"), (40, "ascii"), (80, "utf-8"), (133, "latin-1")):
        names = state.get("players")
        known = {"players": names} if isinstance(names, dict) else {}
        seen = drawn(
            state if known else state | {"players": {}}, events, width=width, encoding=encoding, protocol=game
        )
        assert all(cell_len(line) <= width for line in seen.split("\n")), seen
        assert all(character.isprintable() or character == "\n" for character in seen)
    for shape in SHAPES:
        check(draw(game, Scene(state, events), shape))


@pytest.mark.full(but=2)
@GAMES
@pytest.mark.parametrize("seed", range(times(400, 2)))
def test_spoilt_states(game: str, seed: int) -> None:
    events = [
        event(each.id, each.kind, **invalid_state(each.data, seed, 1)) for each in EVENTS[game][seed % 2 :]
    ]
    draw_everywhere(game, invalid_state(STATES[game], seed), events)
    draw_everywhere(game, invalid_state(STATES[game], seed) | {"games": {}}, events)


def renamed(value: Any, name: str, other: str) -> Any:
    """Return a state or an event's data with another name wherever it has this one."""
    if isinstance(value, dict):
        return {renamed(key, name, other): renamed(part, name, other) for key, part in value.items()}
    if isinstance(value, list):
        return [renamed(part, name, other) for part in value]
    return other if value == name else value


@pytest.mark.full(but=3)
@GAMES
@pytest.mark.parametrize("hostile", a_few(HOSTILE_NAMES, HOSTILE_NAMES[:2]))
def test_hostile_names(game: str, hostile: str) -> None:
    name = {"maexchen": "anna", "schafkopf": "Bert", "okey": "Bert", "cgml": "Bára"}[game]
    state = renamed(STATES[game], name, hostile)
    events = [event(each.id, each.kind, **renamed(each.data, name, hostile)) for each in EVENTS[game]]
    draw_everywhere(game, state, [])
    draw_everywhere(game, state, events)
    draw_everywhere(game, state | {"games": {}}, events)


@pytest.mark.full
@pytest.mark.parametrize(
    ("game", "shape"),
    a_few(
        [(game, shape) for game in CAPTURES for shape in SHAPES],
        [("maexchen", SHAPES[0]), ("schafkopf", SHAPES[1])],
    ),
)
def test_recorded_games_fit_and_have_few_fragments(game: str, shape: Any) -> None:
    capture, player, every = CAPTURES[game]
    for viewer in (None, player):
        found: dict[str, str] = {}
        for made in drawings(capture, shape, viewer, every=times(1, every)):
            check(made)
            found |= made.fragments
        assert 20 < len(found) < 1200
        assert sum(map(len, found.values())) < 800_000


@pytest.mark.parametrize("game", STATES)
def test_a_players_own_seat_comes_first(game: str) -> None:
    """Card tables have it at the bottom, others begin with it."""
    state = STATES[game]
    order = [seat.name for seat in getattr(view_of(game, Scene(state)), "seats", ())]
    assert order
    for place, name in enumerate(order):
        view = view_of(game, Scene(state, viewer=name))
        assert [seat.name for seat in getattr(view, "seats", ())] == order[place:] + order[:place]


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    "capture",
    ["maexchen-head-odd.pcap", "maexchen-fork-pybots.pcap.gz", "catan-five-servers.pcapng.gz"],
)
def test_odd_sessions(capture: str) -> None:
    for shape in SHAPES:
        for made in drawings(capture, shape, every=times(3, 97)):
            check(made)
