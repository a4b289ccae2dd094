from __future__ import annotations

import random
from typing import Any

import pytest
from conversation import Conversation, violations
from hypothesis import given, settings
from hypothesis import strategies as st
from schafkopf_script import Dialect, Script, Step
from strength import a_few, times

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import Findings
from kiebitz.dissectors.protocols.schafkopf.cards import MODI
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.registry import BUILT_IN

FOUR = ("Anna", "Bärbel", "Carl", "Dora")
DIALECTS = [Dialect(), Dialect(turns=False), Dialect(turns=False, updates=False, stock=False)]


class Wire(Conversation):
    """A server and its clients, by name; the protocol is recognized."""

    def __init__(self) -> None:
        super().__init__(SCHAFKOPF, 35555, among=BUILT_IN)


def found(steps: list[Step]) -> Findings:
    wire = Wire()
    wire.play(steps)
    return wire.close()


def agrees(findings: Findings, script: Script) -> None:
    games = {game.id: game for game in findings.games}
    assert len(games) == len(script.rounds)
    for game, log in zip(games.values(), script.rounds, strict=True):
        seats = log["seats"]
        data: dict[str, list[dict[str, Any]]] = {}
        for event in findings.events:
            if event.game_id == game.id:
                data.setdefault(event.kind, []).append(event.data)
        assert [one["names"] for one in data["round_started"]] == [seats]
        cards = [(one["seat"], one["card"]) for one in data.get("played", ())]
        if not script.dialect.updates and len(script.clients) < 4:
            # The cards after a player's own in the last trick are hidden from all.
            assert cards[:21] == log["cards"][:21]
            assert cards == log["cards"][: len(cards)]
            if len(cards) < len(log["cards"]):
                continue
        assert cards == log["cards"]
        told = [
            (one["number"], seats.index(one["leader"]), seats.index(one["winner"]), one["points"])
            for one in data.get("trick", ())
        ]
        assert told == log["tricks"]
        if log["winners"] is not None:
            assert game.result is not None
            assert game.result["mode"] == log["mode"]
            assert game.result["player"] == seats[log["player"]]
            partner = log["partner"]
            assert game.result["partner"] == (None if partner is None else seats[partner])
            assert game.result["winner"] is not None
            assert sorted(map(seats.index, game.result["winner"])) == log["winners"]
            assert sum(game.result["points"].values()) == 120
            for who, account in (game.result["accounts"] or {}).items():
                assert account == log["accounts"][who]
            assert [one["seats"] for one in data["kontra"]] == [log["kontra"]]
        assert [one["seats"] for one in data["knocked"]] == [log["knocked"]]


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("clients", "dialect"),
    a_few(
        [(clients, dialect) for clients in (1, 2, 3, 4) for dialect in DIALECTS],
        [(1, DIALECTS[0]), (2, DIALECTS[1]), (4, DIALECTS[2])],
    ),
)
def test_every_mode_in_every_dialect_is_reported_as_played(dialect: Dialect, clients: int) -> None:
    script = Script(clients, FOUR[:clients], dialect)
    for modus in MODI:
        script.round(modus)
    findings = found(script.steps)
    assert violations(findings) == []
    agrees(findings, script)


@settings(max_examples=times(40), deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 4), st.sampled_from(DIALECTS), st.integers(1, 5))
def test_no_round_that_keeps_to_the_rules_is_objected_to(
    seed: int, clients: int, dialect: Dialect, count: int
) -> None:
    script = Script(seed, FOUR[:clients], dialect)
    for _ in range(count):
        script.round()
    script.leave()
    findings = found(script.steps)
    assert violations(findings) == []
    agrees(findings, script)


@pytest.mark.full
@settings(max_examples=times(40), deadline=None)
@given(st.integers(0, 10**9), st.integers(2, 4), st.data())
def test_conversations_at_different_paces_give_the_same(seed: int, clients: int, data: st.DataObject) -> None:
    script = Script(seed, FOUR[:clients])
    for _ in range(3):
        script.round()
    # A server's message to one client may be late, so that its messages to others precede it; but within a
    # conversation the order stays, and the server has received what it reacts to.
    rng = random.Random(data.draw(st.integers(0, 10**9)))
    waiting = list(script.steps)
    mixed: list[Step] = []
    while waiting:
        ahead = 0
        while ahead < 4 and waiting[ahead].direction == "s2c" and ahead + 1 < len(waiting):
            ahead += rng.randrange(2) or 9
        client = waiting[ahead % 9].client if ahead < len(waiting) else waiting[0].client
        place = next(place for place, step in enumerate(waiting) if step.client == client)
        mixed.append(waiting.pop(place))
    findings = found(mixed)
    assert violations(findings) == []
    agrees(findings, script)


def test_a_late_message_does_not_restore_a_round_in_the_state() -> None:
    script = Script(2, FOUR[:2])
    script.round("WENZ")
    script.round("WENZ")
    begins = [place for place, step in enumerate(script.steps) if step[:3] == ("Anna", "s2c", "MITSPIELER")]
    second = begins[1]
    before, after = script.steps[: second + 1], script.steps[second + 1 :]
    last = max(place for place, step in enumerate(before) if step[:2] == ("Bärbel", "c2s"))
    late = [step for step in before[last + 1 :] if step.client == "Bärbel"]
    assert "DRAN" in [step.name for step in late]
    wire = Wire()
    wire.play([step for place, step in enumerate(before) if place <= last or step.client != "Bärbel"])
    # Longer than the time in which copies are awaited.
    wire.wait(5)
    wire.play([*late, *after])
    state: State = {}
    for event in wire.close().events:
        apply(state, [(list(path), value) for path, value in event.changes])
        assert all("round" in part for part in state.get("games", {}).values())


@pytest.mark.full
@settings(max_examples=times(150), deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 4), st.sampled_from(DIALECTS), st.integers(1, 12))
def test_misplaced_messages_keep_the_timeline_sound(
    seed: int, clients: int, dialect: Dialect, spoilt: int
) -> None:
    script = Script(seed, FOUR[:clients], dialect)
    for _ in range(2):
        script.round()
    rng = random.Random(seed)
    steps = list(script.steps)
    for _ in range(spoilt):
        here, there = rng.randrange(len(steps)), rng.randrange(len(steps))
        match rng.randrange(5):
            case 0:
                del steps[here : here + rng.randrange(1, 9)]
            case 1:
                steps.insert(here, steps[there])
            case 2:
                steps[here], steps[there] = steps[there], steps[here]
            case 3:
                steps[here] = steps[here]._replace(client=rng.choice(script.clients))
            case 4:
                fields = {
                    key: rng.sample(value, len(value)) if isinstance(value, list) else value
                    for key, value in steps[here].fields.items()
                }
                steps[here] = steps[here]._replace(fields=fields)
        if not steps:
            return
    findings = found(steps)
    assert len(findings.messages) == len(steps)
    state: State = {}
    kinds = SCHAFKOPF.grammar.events
    for event in findings.events:
        assert set(event.data) - {"inferred", "seats"} == set(kinds[event.kind].fields) - {"seats"}
        assert "?" not in SCHAFKOPF.presentation.describe(event) or None in event.data.values()
        apply(state, [(list(path), value) for path, value in event.changes])


@pytest.mark.full
def test_a_late_fifth_player_is_rotated_in() -> None:
    script = Script(5, FOUR)
    for _ in range(3):
        script.round()
    script.clients.append("Emil")
    script.players.append("Emil")
    script.accounts["Emil"] = 1000
    script.server("Emil", "NAME", name="§")
    script.client("Emil", "NAME", name="Emil")
    for _ in range(6):
        script.round()
    findings = found(script.steps)
    assert violations(findings) == []
    agrees(findings, script)
