from __future__ import annotations

from typing import Any

import pytest
from catan_diagnostics import ReportedDiagnostic, fund, told
from catan_island import COSTS, Counts, Place, spot
from catan_play import a_game
from catan_wire import Step, wrong
from strength import every

ROAD = spot((1, -1), (1, 0))


def asked(
    player: int, name: str, /, where: str = "", code: str | None = None, game: str = "3", **body: Any
) -> tuple[str, int, str, dict[str, Any], ReportedDiagnostic | None]:
    """After these rolls a player asks for something; what speaks against it, if anything does."""
    right = ReportedDiagnostic(code, "warning", name, where, None, "client") if code is not None else None
    return game, player, name, {key.replace("_", " "): value for key, value in body.items()}, right


def ort(*places: Place) -> list[dict[str, int]]:
    return [{"x": x, "y": y} for x, y in places]


NOWHERE = '[{"x":-1,"y":-1},{"x":0,"y":-1}]'
ONE_WOOD = {"Holz": 1}

REQUESTS = {
    "roll out of turn": asked(2, "Würfeln", code="out-of-turn"),
    "roll twice": asked(1, "Würfeln", code="not-now"),
    "end another's turn": asked(2, "Zug beenden", code="out-of-turn"),
    "build out of turn": asked(2, "Bauen", code="out-of-turn", Typ="Straße", Ort=ort(*ROAD)),
    "build where nothing leads": asked(
        1, "Bauen", NOWHERE, "bad-place", "8", Typ="Straße", Ort=ort((-1, -1), (0, -1))
    ),
    "build what one cannot pay": asked(1, "Bauen", '"Straße"', "cannot-pay", Typ="Straße", Ort=ort(*ROAD)),
    "build what one can pay": asked(1, "Bauen", game="8", Typ="Straße", Ort=ort(*ROAD)),
    "buy what one cannot pay": asked(1, "Entwicklungskarte kaufen", code="cannot-pay"),
    "buy what one can pay": asked(2, "Entwicklungskarte kaufen", game="3 5"),
    "trade at a better rate": asked(
        1, "Seehandel", '{"Holz":2}', "trade-rate", "6", Angebot={"Holz": 2}, Nachfrage={"Erz": 1}
    ),
    "trade what one has not got": asked(
        1, "Seehandel", '{"Erz":3}', "cannot-pay", "6", Angebot={"Erz": 3}, Nachfrage=ONE_WOOD
    ),
    "trade at one's rate": asked(1, "Seehandel", game="6", Angebot={"Holz": 3}, Nachfrage={"Erz": 1}),
    "offer what one has not got": asked(
        1, "Handel anbieten", '{"Erz":1}', "cannot-pay", Angebot={"Erz": 1}, Nachfrage=ONE_WOOD
    ),
    "offer what one has": asked(1, "Handel anbieten", Angebot=ONE_WOOD, Nachfrage={"Erz": 1}),
    "offer out of turn": asked(
        2, "Handel anbieten", code="out-of-turn", Angebot={"Erz": 1}, Nachfrage=ONE_WOOD
    ),
    "accept what is not offered": asked(2, "Handel annehmen", "5", "no-trade", Handel_id=5),
    "cancel what is not offered": asked(2, "Handel abbrechen", "5", "no-trade", Handel_id=5),
    "conclude what is not offered": asked(
        1, "Handel abschließen", "5", "no-trade", Handel_id=5, Mitspieler=2
    ),
    "give up nothing that is asked for": asked(2, "Karten abgeben", code="not-now", Abgeben={"Erz": 1}),
    "move the robber without a seven": asked(1, "Räuber versetzen", code="not-now", Ort={"x": 1, "y": 0}),
    "leave the robber": asked(1, "Räuber versetzen", '{"x":0,"y":0}', "bad-place", "7", Ort={"x": 0, "y": 0}),
    "send the robber to sea": asked(
        1, "Räuber versetzen", '{"x":2,"y":0}', "bad-place", "7", Ort={"x": 2, "y": 0}
    ),
    "rob who is not there": asked(
        1, "Räuber versetzen", "3", "bad-target", "7", Ort={"x": 0, "y": -1}, Ziel=3
    ),
    "rob who is there": asked(1, "Räuber versetzen", game="7", Ort={"x": 0, "y": -1}, Ziel=2),
    "play what one has not got": asked(1, "Monopol", code="card-not-allowed", Rohstoff="Holz"),
    "chat": asked(2, "Chatnachricht senden", Nachricht="Hallo"),
    "take a colour": asked(2, "Spieler", Name="Bert", Farbe="Rot"),
}


@pytest.mark.parametrize(
    ("game", "player", "name", "body", "right"),
    every(3, [pytest.param(*row, id=name) for name, row in REQUESTS.items()]),
)
def test_refused(
    game: str, player: int, name: str, body: dict[str, Any], right: ReportedDiagnostic | None
) -> None:
    server = a_game(game)
    server.refused(player, name, body, "Unzulässig")
    assert told(server) == ([] if right is None else [right])


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({"Holz": 4}, None),
        ({"Holz": 3}, "wrong-count"),
        ({"Holz": 5}, "wrong-count"),
        ({"Erz": 4}, "cannot-pay"),
    ],
)
def test_refused_cards_that_are_given_up(counts: Counts, code: str | None) -> None:
    server = a_game("6 6 6 6 7")
    assert sum(server.truth.hands[1].values()) == 9
    server.expect(1, "Karten wegen Räuber abgeben")
    server.refused(1, "Karten abgeben", {"Abgeben": dict(counts)})
    assert [(violation.code, violation.name, violation.blame) for violation in told(server)] == (
        [] if code is None else [(code, "Karten abgeben", "client")]
    )


def test_refused_cards_that_were_just_bought() -> None:
    server = fund(a_game(), 1, COSTS["Karte"])
    server.buy(1, "Ritter")
    body = {"Ort": {"x": 1, "y": 0}}
    server.refused(1, "Ritter ausspielen", body)
    assert [violation.code for violation in told(server)] == ["card-not-allowed"]
    server.rounds("3 3 3")
    server.refused(1, "Ritter ausspielen", body)
    assert [violation.code for violation in told(server)] == ["card-not-allowed"]
    server.knight(1, (1, 0))
    server.refused(1, "Ritter ausspielen", {"Ort": {"x": 0, "y": 0}})
    assert [violation.code for violation in told(server)] == ["card-not-allowed"] * 2


def test_accepted_actions_cause_no_violation() -> None:
    server = a_game("3")
    server.ask(1, "Bauen", {"Typ": "Straße", "Ort": ort(*ROAD)})
    server.rounds("3")
    assert told(server) == []


def test_from_mid_game_on_no_violation_is_reported() -> None:
    server = a_game("3")
    server.refused(1, "Bauen", {"Typ": "Straße", "Ort": ort((-1, -1), (0, -1))})
    begin = next(
        place
        for place, step in enumerate(server.steps)
        if isinstance(step, Step) and b"gestartet" in step.data
    )
    server.steps[begin : begin + 3] = [
        step._replace(lost=True) for step in server.steps[begin : begin + 3] if isinstance(step, Step)
    ]
    assert wrong(server.found()) == []
