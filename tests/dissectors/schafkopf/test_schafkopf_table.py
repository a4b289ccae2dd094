from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from conversation import Conversation, violations
from hypothesis import given, settings
from hypothesis import strategies as st
from schafkopf_script import Dialect, Script, Step
from strength import a_few, times

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import DIRECTIONS, Diagnostic, Direction, Findings
from kiebitz.dissectors.protocols.schafkopf.cards import MODI, mode
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


def only_violation(findings: Findings) -> Diagnostic:
    (violation,) = violations(findings)
    return violation


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
    begins = [place for place in places(script, "MITSPIELER", "s2c") if script.steps[place].client == "Anna"]
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


def test_joining_is_known_and_leaving_is_reported_once() -> None:
    script = Script(1, FOUR[:2])
    script.round("WENZ")
    script.leave()
    findings = found(script.steps)
    assert [event.actor for event in findings.events if event.kind == "joined"] == ["Anna", "Bärbel"]
    left = [(event.actor, event.data["reason"]) for event in findings.events if event.kind == "left"]
    assert left == [("Anna", "BEENDEN"), ("Bärbel", "BEENDEN")]


def test_the_state_has_the_hands_that_are_known_and_keeps_them_apart() -> None:
    script = Script(3, FOUR[:2])
    script.round("SAUSPIELgras")
    middle = max(place for place, step in enumerate(script.steps) if step.name == "MODEL") // 2
    findings = found(script.steps[:middle])
    state: State = {}
    for event in findings.events:
        apply(state, [(list(path), value) for path, value in event.changes])
    (part,) = state["games"].values()
    assert set(part["private"]) == {"Anna", "Bärbel"}
    log = script.rounds[0]
    for who, known in part["private"].items():
        assert set(known["hand"]) <= set(log["hands"][log["seats"].index(who)])
    assert part["player"] == log["seats"][log["player"]]


# Faults. Each takes a round that is right, and spoils one thing in it.


def places(script: Script, name: str, direction: Direction, **fields: Any) -> list[int]:
    return [
        place
        for place, step in enumerate(script.steps)
        if (step.name, step.direction) == (name, direction)
        and all(step.fields.get(key) == value for key, value in fields.items())
    ]


def put(script: Script, place: int, **fields: Any) -> None:
    step = script.steps[place]
    script.steps[place] = step._replace(fields={**step.fields, **fields})


def put_all(script: Script, name: str, **fields: Any) -> None:
    for place in places(script, name, "s2c"):
        put(script, place, **fields)


def scripted(modus: str, seed: int = 7) -> Script:
    script = Script(seed, FOUR)
    script.round(modus)
    return script


def wrong_winner(script: Script) -> None:
    log = script.rounds[0]
    won = log["player"] in log["winners"]
    put_all(script, "SIEGER", spieler=log["player"] + (10 if won else 0))


def wrong_player_in_the_end(script: Script) -> None:
    other = (script.rounds[0]["player"] + 1) % 4
    put_all(script, "SIEGER", spieler=other)


def wrong_partner(script: Script) -> None:
    log = script.rounds[0]
    won = log["player"] in log["winners"]
    other = next(seat for seat in range(4) if seat not in (log["player"], log["partner"]))
    put_all(script, "SIEGER", mitspieler=other + (0 if won else 10))


def told_two_things(script: Script) -> None:
    put(script, places(script, "SIEGER", "s2c")[2], spieler=0, mitspieler=4)


def other_mode_for_one(script: Script) -> None:
    put(script, places(script, "MODUS", "s2c")[3], modus="GEIER")


def knock_turned_round(script: Script) -> None:
    answer = script.steps[places(script, "ERSTE3", "c2s")[1]].fields["klopft"]
    told = script.steps[places(script, "GEKLOPFT", "s2c")[0]].fields["geklopft"]
    put_all(script, "GEKLOPFT", geklopft=[told[0], "NEIN" if answer == "JA" else "JA", *told[2:]])


def kontra_turned_round(script: Script) -> None:
    told = script.steps[places(script, "KONTRA", "s2c")[0]].fields["kontra"]
    put_all(script, "KONTRA", kontra=["NEIN" if told[0] == "JA" else "JA", *told[1:]])


def move(script: Script, number: int) -> tuple[int, int, dict[str, Any]]:
    """Return the place of a move, whose it is (seat), and its fields."""
    place = places(script, "MODEL", "c2s")[number]
    step = script.steps[place]
    return place, script.rounds[0]["seats"].index(step.client), step.fields


def replace(cards: list[Any], old: Any, new: Any) -> list[Any]:
    return [new if card == old else card for card in cards]


def stranger(script: Script, fields: dict[str, Any]) -> str:
    """Return a card that is not in a MODEL."""
    there = {*fields["spielerhand"], *fields["tisch"], *fields["letzter_stich"]}
    cards: list[tuple[int, str]] = script.rounds[0]["cards"]
    return next(card for _, card in reversed(cards) if card not in there)


def card_of_somebody_else(script: Script) -> None:
    place, seat, fields = move(script, 5)
    put(script, place, tisch=replace(fields["tisch"], fields["tisch"][seat], stranger(script, fields)))


def no_card(script: Script) -> None:
    place, seat, fields = move(script, 9)
    put(script, place, tisch=replace(fields["tisch"], fields["tisch"][seat], None))


def another_hand(script: Script) -> None:
    place, _, fields = move(script, 6)
    put(script, place, spielerhand=[stranger(script, fields), *fields["spielerhand"][1:]])


def kept_the_card(script: Script) -> None:
    place, seat, fields = move(script, 6)
    kept = replace(fields["spielerhand"], None, None)
    kept[kept.index(None)] = fields["tisch"][seat]
    put(script, place, spielerhand=kept)


def another_table(script: Script) -> None:
    place, seat, fields = move(script, 6)
    before = next(card for where, card in enumerate(fields["tisch"]) if card and where != seat)
    put(script, place, tisch=replace(fields["tisch"], before, stranger(script, fields)))


def plays_for_the_next(script: Script) -> None:
    place, seat, fields = move(script, 4)
    table = list(fields["tisch"])
    table[(seat + 1) % 4] = script.rounds[0]["cards"][5][1]
    put(script, place, tisch=table)


def revoke(script: Script) -> None:
    rules = mode(script.rounds[0]["mode"])
    for number in range(1, 20):
        place, seat, fields = move(script, number)
        led = script.rounds[0]["cards"][number - number % 4][1]
        card = fields["tisch"][seat]
        left = [other for other in fields["spielerhand"] if other]
        free = [other for other in left if rules.suit(other) != rules.suit(led)]
        if number % 4 and rules.suit(card) == rules.suit(led) and free:
            put(
                script,
                place,
                tisch=replace(fields["tisch"], card, free[0]),
                spielerhand=replace(fields["spielerhand"], free[0], card),
            )
            return
    raise AssertionError("nobody could revoke")


def shown(script: Script, number: int) -> tuple[int, int, dict[str, Any]]:
    """Return the place of an UPDATE, whose it is (seat), and its fields."""
    place = places(script, "MODEL", "s2c", flag="UPDATE")[number]
    step = script.steps[place]
    return place, script.rounds[0]["seats"].index(step.client), step.fields


def hand_exchanged(script: Script) -> None:
    place, _, fields = shown(script, 20)
    put(script, place, spielerhand=[stranger(script, fields), *fields["spielerhand"][1:]])


def card_came_back(script: Script) -> None:
    # Late enough that it was in a trick before the last.
    place, seat, fields = shown(script, 50)
    gone = next(card for where, card in script.rounds[0]["cards"] if where == seat)
    put(script, place, spielerhand=[gone, *fields["spielerhand"][1:]])


def card_vanished(script: Script) -> None:
    place, _, fields = shown(script, 20)
    hand = [card for card in fields["spielerhand"] if card][1:]
    put(script, place, spielerhand=[*hand, *[None] * (6 - len(hand))])


def other_card_on_the_table(script: Script) -> None:
    place, _, fields = shown(script, 11)
    card = next(card for card in fields["tisch"] if card)
    put(script, place, tisch=replace(fields["tisch"], card, stranger(script, fields)))


def twice_in_one_model(script: Script) -> None:
    place, _, fields = shown(script, 11)
    card = next(card for card in fields["tisch"] if card)
    put(script, place, spielerhand=[card, *fields["spielerhand"][1:]])


def dealt_to_two(script: Script) -> None:
    asked = places(script, "MODEL", "s2c", flag="ERSTE3")
    fields = script.steps[asked[2]].fields
    put(script, asked[2], spielerhand=[script.rounds[0]["hands"][0][0], *fields["spielerhand"][1:]])


def wrong_lead(script: Script) -> None:
    winner = script.rounds[0]["tricks"][0][2]
    full = [
        place
        for place in places(script, "MODEL", "s2c", flag="UPDATE")
        if all(script.steps[place].fields["tisch"])
    ]
    for place in places(script, "DRAN", "s2c"):
        if full[3] < place < full[3] + 5:
            put(script, place, dran=(winner + 1) % 4)


def late_knock_table(script: Script) -> None:
    """GEKLOPFT comes to one client after SPIELT."""
    place = places(script, "GEKLOPFT", "s2c")[0]
    step = script.steps.pop(place)
    script.steps.insert(places(script, "SPIELT", "s2c")[-1] + 1, step)


def gives_what_he_has_not(script: Script) -> None:
    log = script.rounds[0]
    stranger_seat = next(seat for seat in range(4) if seat not in (log["player"], log["partner"]))
    put(script, places(script, "KARTE", "c2s")[0], karte=log["hands"][stranger_seat][0])


FAULTS: list[tuple[str, Callable[[Script], None], str, str, str, str]] = [
    ("WENZ", wrong_winner, "s2c", "rule", "wrong-winner", "server"),
    ("SOLOherzDU", wrong_winner, "s2c", "rule", "wrong-winner", "server"),
    ("GEIER", wrong_player_in_the_end, "s2c", "rule", "wrong-player", "server"),
    ("SAUSPIELgras", wrong_partner, "s2c", "rule", "wrong-partner", "server"),
    ("WENZ", told_two_things, "s2c", "state", "told-otherwise", "server"),
    ("WENZ", other_mode_for_one, "s2c", "state", "told-otherwise", "server"),
    ("WENZ", knock_turned_round, "s2c", "state", "told-otherwise", "server"),
    ("WENZ", kontra_turned_round, "s2c", "state", "told-otherwise", "server"),
    ("SOLOgras", card_of_somebody_else, "c2s", "rule", "not-in-hand", "client"),
    ("SOLOgras", no_card, "c2s", "rule", "no-card", "client"),
    ("SOLOgras", another_hand, "c2s", "rule", "hand-changed", "client"),
    ("SOLOgras", kept_the_card, "c2s", "state", "card-twice", "client"),
    ("SOLOgras", another_table, "c2s", "rule", "table-changed", "client"),
    ("SOLOgras", plays_for_the_next, "c2s", "rule", "table-changed", "client"),
    ("SAUSPIELherz", revoke, "c2s", "rule", "suit-not-followed", "client"),
    ("WENZ", revoke, "c2s", "rule", "suit-not-followed", "client"),
    ("WENZ", hand_exchanged, "s2c", "state", "hand-changed", "server"),
    ("WENZ", card_came_back, "s2c", "state", "hand-changed", "server"),
    ("WENZ", card_vanished, "s2c", "state", "hand-changed", "server"),
    ("WENZ", other_card_on_the_table, "s2c", "state", "contradiction", "server"),
    ("WENZ", twice_in_one_model, "s2c", "state", "card-twice", "server"),
    ("WENZ", dealt_to_two, "s2c", "state", "card-twice", "server"),
    ("GEIER", wrong_lead, "s2c", "rule", "trick-winner", "server"),
    ("GEIER", late_knock_table, "s2c", "sequence", "out-of-order", "server"),
    ("HOCHZEIT", gives_what_he_has_not, "c2s", "rule", "not-in-hand", "client"),
]


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    ("modus", "spoil", "direction", "group", "code", "blame"),
    FAULTS,
    ids=lambda value: value.__name__ if callable(value) else "",
)
@pytest.mark.parametrize("seed", range(times(5, 1)))
def test_one_fault_is_one_diagnostic_and_the_rest_of_the_round_is_right(
    modus: str,
    spoil: Callable[[Script], None],
    direction: str,
    group: str,
    code: str,
    blame: str,
    seed: int,
) -> None:
    script = scripted(modus, seed)
    spoil(script)
    findings = found(script.steps)
    violation = only_violation(findings)
    assert (violation.direction, violation.group, violation.code, violation.blame) == (
        direction,
        group,
        code,
        blame,
    )
    cards = [(event.data["seat"], event.data["card"]) for event in findings.events if event.kind == "played"]
    assert cards == script.rounds[0]["cards"]


def test_a_diagnostic_in_a_model_points_at_the_card() -> None:
    script = scripted("SOLOgras")
    card_of_somebody_else(script)
    place = move(script, 5)[0]
    violation = only_violation(found(script.steps))
    step = script.steps[place]
    before = sum(
        len(other.data) for other in script.steps[:place] if other[:2] == (step.client, step.direction)
    )
    here = step.data[violation.offset - before :][: violation.length]
    table = next(card for card in step.fields["tisch"] if card and card.replace(" ", "\n").encode() == here)
    assert table in step.fields["tisch"]


def noted(findings: Findings) -> list[tuple[str, str]]:
    return [
        (violation.code, violation.blame)
        for violation in findings.diagnostics
        if violation.severity == "note" and violation.code != "dialect"
    ]


@pytest.mark.parametrize("modus", ["WENZ", "SAUSPIELgras", "HOCHZEIT", "SOLOherzDU"])
def test_an_account_contradicts_the_result(modus: str) -> None:
    for number, client in enumerate(FOUR):
        script = scripted(modus)
        script.round("WENZ")
        assert violations(found(script.steps)) == []
        place = [place for place in places(script, "KONTO", "s2c") if script.steps[place].client == client][1]
        after = script.steps[place].fields["konto"]
        put(script, place, konto=2000 - after)
        violation = only_violation(found(script.steps))
        assert (violation.code, violation.group, violation.blame) == ("wrong-account", "state", "server")
        won = "won" if number in script.rounds[0]["winners"] else "lost"
        assert (
            violation.text
            == f"{client} has {won} the round, but the account goes from 1000 to {2000 - after}"
        )
        # With a wrong SIEGER, the winners are not known.
        codes = script.steps[places(script, "SIEGER", "s2c")[0]].fields
        put_all(script, "SIEGER", spieler=(codes["spieler"] + 10) % 20)
        assert "wrong-account" not in {one.code for one in violations(found(script.steps))}


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_result_that_no_message_explains_has_a_note(share: float) -> None:
    script = scripted("WENZ")
    assert noted(found(script.steps)) == []
    wire = Wire()
    for client in FOUR:
        for direction in DIRECTIONS:
            wire.miss_beginning(client, direction)
    wire.play(script.steps[int(share * len(script.steps)) :])
    findings = wire.close()
    assert violations(findings) == []
    assert [code for code, _ in noted(findings) if code != "mid-stream"] == ["tricks-missing"]


def test_known_faults_of_real_servers_are_noted_and_no_more() -> None:
    script = scripted("SAUSPIELgras")
    log = script.rounds[0]
    won = log["player"] in log["winners"]
    code = log["player"] + (0 if won else 10)
    put_all(script, "SIEGER", spieler=code, mitspieler=code)
    findings = found(script.steps)
    assert violations(findings) == []
    assert noted(findings) == [("same-seat-twice", "server")]


def test_messages_that_peers_pass_over_take_nothing_from_the_verdicts() -> None:
    script = scripted("GEIER")
    wrong_lead(script)
    wire = Wire()
    for step in script.steps:
        wire.say(step.client, step.direction, step.data)
        if step.direction == "s2c":
            # A later release may have more to say.
            wire.say(step.client, "s2c", b"!STICH\n7\n!END\n\n!END\n")
    findings = wire.close()
    assert only_violation(findings).code == "trick-winner"
    assert {message.name for message in findings.messages if not message.fields} >= {"unreadable"}


def test_si_is_bid_from_any_hand() -> None:
    script = scripted("SI")
    findings = found(script.steps)
    assert violations(findings) == []
    assert noted(findings) == [("no-si", "client")]


def test_a_rejected_hochzeit_may_change_the_declarer() -> None:
    script = scripted("WENZ")
    other = (script.rounds[0]["player"] + 1) % 4
    put_all(script, "SPIELT", spieler=other)
    put_all(script, "SIEGER", spieler=other + 10)
    findings = found(script.steps)
    assert ("wrong-player", "server") in noted(findings)


def test_the_winner_after_a_failed_hochzeit_is_no_violation() -> None:
    script = scripted("WENZ")
    put(script, places(script, "SPIELSTDU", "c2s")[0], modus="HOCHZEIT")
    log = script.rounds[0]
    other = (log["player"] + 1) % 4
    put_all(script, "SIEGER", spieler=other)
    # Who proposes a Hochzeit is asked for a card, too.
    findings = found(script.steps)
    assert violations(findings) == []
    assert ("wrong-player", "server") in noted(findings)


def test_a_bot_that_did_not_follow_suit_betrays_himself_later() -> None:
    """Of a player whose hand is unknown, only a later card shows that it could have followed."""
    for seed in range(50):
        script = Script(seed, FOUR[:1])
        log = script.round("WENZ")
        rules = mode("WENZ")
        cards = log["cards"]
        for number in range(1, 12):
            seat, card = cards[number]
            led = cards[number - number % 4][1]
            later = [
                place
                for place in range(number + 1, 24)
                if cards[place][0] == seat and rules.suit(cards[place][1]) != rules.suit(card)
            ]
            if seat == 0 or not number % 4 or rules.suit(card) != rules.suit(led) or not later:
                continue
            swap = cards[later[0]][1]
            winner = rules.winner([one for _, one in cards[number - number % 4 :][:4]])
            if (number % 4) == winner or rules.suit(swap) == "TRUMPF" or later[0] // 4 == number // 4:
                continue
            swapped = {card: swap, swap: card}
            steps = [
                step._replace(
                    fields={
                        key: [swapped.get(one, one) for one in value] if isinstance(value, list) else value
                        for key, value in step.fields.items()
                    }
                )
                for step in script.steps
            ]
            broken = [one for one in violations(found(steps)) if one.code == "suit-not-followed"]
            assert [violation.blame for violation in broken][:1] == ["unknown"]
            return
    raise AssertionError("no round in which a bot could revoke")
