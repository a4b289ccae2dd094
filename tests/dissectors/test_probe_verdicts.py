from __future__ import annotations

import pytest
from command import CAPTURES
from msgspec.structs import replace

import kiebitz as library
from kiebitz.cli.probe.html_report import render_message
from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION, TargetRole
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.dissectors.probing.baseline import Baseline
from kiebitz.dissectors.probing.case_generator import generate_cases
from kiebitz.dissectors.protocols.catan.dissector import CATAN
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


def test_a_dialect_is_not_strict_and_a_fault_is_failed() -> None:
    case = next(case for case in generate_cases(SCHAFKOPF, "server") if case.name == "schafkopf/ENDE/said")
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
