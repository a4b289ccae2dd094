from __future__ import annotations

import pytest
from command import CAPTURES
from kiebitz_noughts.dissector import NOUGHTS
from msgspec.structs import replace

import kiebitz as library
from kiebitz.cli.probe.html_report import render_message
from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION, TargetRole
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.dissectors.probing.baseline import Baseline
from kiebitz.dissectors.probing.case import Case
from kiebitz.dissectors.probing.case_generator import generate_cases
from kiebitz.dissectors.probing.verdict import ObservedBehaviour, ProgramMessage, judge
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.services.probing.baseline_game import (
    GameObservation,
    add_findings,
    game_verdict,
    violating_messages,
)
from kiebitz.services.probing.case_runner import CaseOutcome
from kiebitz.services.probing.connection_setup import ProbeSetup
from kiebitz.services.probing.results import result_of

SILENT = ObservedBehaviour()
USUAL = ObservedBehaviour(continued_normally=True)
STOPPED = ObservedBehaviour(is_beyond=True)
CLOSED = ObservedBehaviour(ended="closed")
GIVEN_UP = ObservedBehaviour(ended="closed", died="exit status 1")
CRASHED = ObservedBehaviour(ended="closed", died="SIGSEGV")
UNTOLD = ObservedBehaviour(continued_normally=True, others_uninformed=True)
REFUSED = ObservedBehaviour(sent_messages=(ProgramMessage("Fehler", {"Meldung": "nein"}),))
REFUSED_AND_CLOSED = ObservedBehaviour(sent_messages=REFUSED.sent_messages, ended="closed")
USUAL_AND_CLOSED = ObservedBehaviour(continued_normally=True, ended="closed")
LOST = ObservedBehaviour(
    sent_messages=(ProgramMessage("PLAYER LOST", {"names": ["alice"], "reason": "DID_NOT_TAKE_TURN"}),)
)
NO_TILE = ObservedBehaviour(
    continued_normally=True,
    sent_messages=(ProgramMessage("+DRAW", {"tile": "1:RED"}), ProgramMessage("+DRAW", {"tile": None})),
)
TWO_TILES = ObservedBehaviour(
    continued_normally=True,
    sent_messages=(ProgramMessage("+DRAW", {"tile": "1:RED"}), ProgramMessage("+DRAW", {"tile": "2:RED"})),
)


def case_of(dissector: Dissector, role: TargetRole, name: str) -> Case:
    (case,) = [
        each for each in generate_cases(dissector, role) if each.name == f"{dissector.protocol}/{name}"
    ]
    return case


@pytest.mark.parametrize(
    ("dissector", "role", "name", "observed", "word"),
    [
        # It must continue as usual.
        (SCHAFKOPF, "server", "MODEL/bytewise", USUAL, "OK"),
        (SCHAFKOPF, "server", "MODEL/bytewise", SILENT, "FAILED"),
        (SCHAFKOPF, "server", "MODEL/bytewise", CLOSED, "FAILED"),
        # But for one that had stopped by then where nothing odd was done, either.
        (SCHAFKOPF, "server", "MODEL/whole", STOPPED, "INFORMATIONAL"),
        (SCHAFKOPF, "server", "MODEL/whole", SILENT, "FAILED"),
        (SCHAFKOPF, "server", "MODEL/bytewise", USUAL_AND_CLOSED, "OK"),
        # It must refuse; that it hangs up then is its own affair.
        (CATAN, "server", "Bauen/Typ/unknown", REFUSED, "OK"),
        (CATAN, "server", "Bauen/Typ/unknown", REFUSED_AND_CLOSED, "OK"),
        (CATAN, "server", "Bauen/Typ/unknown", USUAL, "FAILED"),
        (CATAN, "server", "Bauen/Typ/unknown", SILENT, "FAILED"),
        (CATAN, "server", "Bauen/Typ/unknown", CLOSED, "FAILED"),
        (MAEXCHEN, "server", "ROLL/token/nobodys-token", LOST, "OK"),
        (MAEXCHEN, "server", "ROLL/token/nobodys-token", SILENT, "FAILED"),
        # A value decides whether a message refuses.
        (OKEY, "server", "DRAW/twice", NO_TILE, "OK"),
        (OKEY, "server", "DRAW/twice", TWO_TILES, "FAILED"),
        # It must end the connection.
        (CATAN, "client", "Hallo/Protokoll/other-version", CLOSED, "OK"),
        (CATAN, "client", "Hallo/Protokoll/other-version", USUAL, "FAILED"),
        # It may greet, too, before that.
        (CATAN, "client", "Hallo/Protokoll/other-version", USUAL_AND_CLOSED, "OK"),
        # To say by its exit status that it could not play is right then, but not to crash.
        (CATAN, "client", "Hallo/Protokoll/other-version", GIVEN_UP, "OK"),
        (CATAN, "client", "Hallo/Protokoll/other-version", CRASHED, "FAILED"),
        (CATAN, "client", "Würfelwurf/whole", GIVEN_UP, "FAILED"),
        # It must inform the others.
        (CATAN, "server", "Chatnachricht_senden/whole", USUAL, "OK"),
        (CATAN, "server", "Chatnachricht_senden/whole", UNTOLD, "FAILED"),
        # It should.
        (MAEXCHEN, "server", "ANNOUNCE/dice/out-of-range", LOST, "OK"),
        (MAEXCHEN, "server", "ANNOUNCE/dice/out-of-range", USUAL, "NON-STRICT"),
        (OKEY, "server", "silence", SILENT, "NON-STRICT"),
        (CATAN, "server", "empty", SILENT, "OK"),
        # It is left open.
        (SCHAFKOPF, "server", "KARTE/wert/unknown", SILENT, "INFORMATIONAL"),
        (SCHAFKOPF, "server", "KARTE/wert/unknown", USUAL, "INFORMATIONAL"),
        (SCHAFKOPF, "server", "KARTE/wert/unknown", CLOSED, "INFORMATIONAL"),
        # A name that no player has is free; a number that no player has is wrong.
        (CATAN, "server", "Spieler/Name/nobodys-player", USUAL, "INFORMATIONAL"),
        (CATAN, "server", "Handel_abschließen/Mitspieler/nobodys-player's_id", USUAL, "FAILED"),
        (NOUGHTS, "server", "PUT/square/unknown", SILENT, "INFORMATIONAL"),
    ],
)
def test_a_verdict(
    dissector: Dissector, role: TargetRole, name: str, observed: ObservedBehaviour, word: str
) -> None:
    assert judge(case_of(dissector, role, name), observed).word == word


@pytest.mark.parametrize(
    ("observed", "why"),
    [
        (ObservedBehaviour(died="signal 11"), "it has ended: signal 11"),
        (ObservedBehaviour(lets_in=False), "it accepts no new client any more"),
        (ObservedBehaviour(others_go_on=False), "the other players' game does not continue"),
        (ObservedBehaviour(leaves_waiting=True), "the other players wait for one that has left"),
        (
            ObservedBehaviour(violations=("MARK has no square",)),
            "it sends what the grammar does not allow: MARK has no square",
        ),
    ],
)
@pytest.mark.parametrize(
    ("dissector", "name"),
    [(NOUGHTS, "PUT/square/unknown"), (NOUGHTS, "PUT/whole"), (SCHAFKOPF, "KARTE/cut/reset")],
)
def test_reactions_that_are_always_demanded(
    dissector: Dissector, name: str, observed: ObservedBehaviour, why: str
) -> None:
    verdict = judge(case_of(dissector, "server", name), observed)
    assert (verdict.word, verdict.why) == ("FAILED", why)


@pytest.mark.parametrize(
    ("dissector", "role", "name"),
    [
        # A client that reads the padding as a part of the last tile discards that tile.
        (OKEY, "client", "STRT/spelling/percent"),
        (SCHAFKOPF, "client", "MODEL/spelling/windows"),
    ],
)
def test_what_follows_a_spelling_that_need_not_be_read_is_left_open(
    dissector: Dissector, role: TargetRole, name: str
) -> None:
    case = case_of(dissector, role, name)
    wrong = ObservedBehaviour(continued_normally=True, violations=("PUTT: there is no such colour",))
    assert judge(case, wrong).word == "INFORMATIONAL"
    assert judge(case, ObservedBehaviour(died="signal 11")).word == "FAILED"


def test_a_name_that_is_taken_over_may_end_its_players_game() -> None:
    """A client at the same address may have it; the specification has it so."""
    case = case_of(MAEXCHEN, "server", "REGISTER/name/others-player")
    assert (
        judge(case, ObservedBehaviour(continued_normally=True, lets_in=True, others_go_on=False)).word == "OK"
    )


def test_the_reason_names_what_it_did_and_what_it_was_to_do() -> None:
    verdict = judge(case_of(CATAN, "server", "Bauen/Typ/unknown"), USUAL)
    assert verdict.why == "it continues as if nothing were wrong, and must refuse it"
    assert verdict.reactions == ("answers",)
    verdict = judge(case_of(CATAN, "server", "Bauen/Typ/unknown"), REFUSED_AND_CLOSED)
    assert verdict.why == "it refuses it and ends the connection"
    assert verdict.reactions == ("refuses", "closes")


def test_a_dialect_is_not_strict_and_a_fault_is_failed() -> None:
    case = case_of(SCHAFKOPF, "server", "ENDE/said")
    lapses = {"ENDE": {"it has one field": [7]}}
    violations = {"ENDE": {"it has three fields": [7, 9], "and no end": [8, 9]}}
    game = GameObservation(None, None, True, 1.0, sent_messages=frozenset({"ENDE"}))
    words = []
    for each in (game, replace(game, lapses=lapses), replace(game, lapses=lapses, violations=violations)):
        verdict, _ = game_verdict(case, each)
        assert verdict is not None
        words.append((verdict.word, verdict.why))
    assert words == [
        ("OK", "it sends it as specified"),
        ("NON-STRICT", "in an undisturbed game: it has one field"),
        ("FAILED", "in an undisturbed game: it has three fields; and 1 more"),
    ]
    assert game_verdict(case, replace(game, sent_messages=frozenset())) == (
        None,
        "it did not send this in the game",
    )


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("dissector", "role", "capture", "expected"),
    [
        (CATAN, "server", "catan-eisfrei-game2-3p.pcap.gz", {"Statusupdate/said": "NON-STRICT"}),
        (OKEY, "client", "okey-head-chat.pcap.gz", {"CATC/said": "NON-STRICT"}),
        (SCHAFKOPF, "client", "schafkopf-1.3-badcard.pcap", {"MODEL/said": "FAILED", "KARTE/said": "FAILED"}),
    ],
)
def test_violations_are_reported_with_their_messages(
    dissector: Dissector, role: TargetRole, capture: str, expected: dict[str, str]
) -> None:
    baseline = Baseline(dissector, OPPOSITE[INPUT_DIRECTION[role]])
    setup = ProbeSetup(dissector, role, ("127.0.0.1", 9000), None, False, 1.0, baseline)
    found = {}
    with library.open(str(CAPTURES / capture)) as session:
        game = add_findings(GameObservation(None, None, True, 1.0), session.timeline, setup)
        for case in (each for each in generate_cases(dissector, role) if each.is_in_play):
            verdict, why_not = game_verdict(case, game)
            attempt = CaseOutcome(
                case, verdict, why_not, None, 0, 1.0, True, wrong=violating_messages(case, game)
            )
            result = result_of(attempt, session.timeline, None, "", render_message)
            if result.messages:
                found[case.name.removeprefix(f"{dissector.protocol}/")] = result.verdict
                assert [message.name for message in result.messages] == [case.checked_message]
                assert all(message.drawn for message in result.messages)
    assert found == expected
