"""`kiebitz probe` finds planted faults by the right cases and by no other; right programs fail none."""

from __future__ import annotations

import shlex
from fnmatch import fnmatchcase
from typing import Any

import pytest
from command import kiebitz, peer_command
from games_in_memory import SEATS
from peers.planted import CONTROLS, FAULTS, PEERS, Fault
from processes_and_rows import free_port

from kiebitz.dissectors.probing.case import Case
from kiebitz.dissectors.probing.case_generator import generate_cases
from kiebitz.dissectors.registry import dissector_of

WINDOW_S = 0.3

WAIT_S = 0.5
IN_PLAY_S = 6.0


PLAYED = ("game", "*/said")
"""The cases of a game without anything unusual."""

FOUND = [fault for fault in FAULTS if fault.cases]

SLOW = ("slowly", "silence")
"""Kinds of cases that take seconds each."""

UNSAID = {
    "maexchen": ("REGISTER_SPECTATOR", "UNREGISTER", "ECHO", "UNREGISTERED", "HEARTBEAT", "ECHOING"),
    "schafkopf": ("HOCHZEIT", "BEENDEN", "KARTE"),
    "catan": ("Erfindung",),
    "okey": ("LLOB", "+JOND", "+LEFT", "+NAMS", "RNAM", "HIGH", "RSTA", "+LLOB", "JOND", "LEFT", "NAMS"),
    "cgml": ("load", "renonc", "newgroup"),
}
"""Messages that come up seldom or never: to wait for one takes seconds."""


def started(peer: str, fault: str, port: int) -> str:
    """Return the command that starts a program."""
    protocol, role = peer.split("-")
    options = ["--port", str(port)]
    if role == "server":
        players = 2 if protocol == "maexchen" else SEATS[protocol]
        options += ["--players", str(players), "--points", "5", "--window", str(WINDOW_S)]
    else:
        options += ["--name", "Zoe"]
    return shlex.join(peer_command(peer, *options, fault=fault))


def probed(peer: str, fault: str, cases: list[str], seconds: float = 600.0) -> list[dict[str, Any]]:
    protocol, role = peer.split("-")
    port = free_port("udp" if protocol == "maexchen" else "tcp")
    side = "server" if role == "server" else "client"
    only = [word for case in dict.fromkeys(cases) for word in ("--only", f"{protocol}/{case}")]
    done = kiebitz(
        *("probe", side, str(port), "-d", protocol, "--restart", started(peer, fault, port), "--json"),
        *("--timeout", str(WAIT_S), "--rate", "1000", "--max-time", str(seconds), *only),
    )
    assert "Traceback" not in done.err
    assert done.out, done.err
    results: list[dict[str, Any]] = done.json["results"]
    assert done.status == (3 if any(each["verdict"] == "FAILED" for each in results) else 0), done.err
    return results


def failed(results: list[dict[str, Any]]) -> dict[str, str]:
    """Return the cases that failed, without their protocol, and why."""
    return {each["case"].partition("/")[2]: each["why"] for each in results if each["verdict"] == "FAILED"}


def is_in_play(fault: Fault) -> bool:
    """Return whether it shows in a game in which nothing odd is done."""
    return all(case == "game" or case.endswith("/said") for case in fault.cases)


def tried(fault: Fault) -> list[str]:
    """Return the cases that are tried for a fault."""
    named = [case for case in fault.cases if "*" not in case]
    if fault.alone:
        return named
    # A game of Catan takes as long as is given to it.
    played = PLAYED if is_in_play(fault) or fault.protocol != "catan" else ()
    return [*named, *played, *CONTROLS[fault.peer]]


@pytest.mark.full
@pytest.mark.parametrize("fault", FOUND, ids=lambda fault: f"{fault.peer} {fault.name}")
def test_a_fault_is_found_by_the_right_case_and_by_no_other(fault: Fault) -> None:
    found = failed(probed(fault.peer, fault.name, tried(fault), IN_PLAY_S if is_in_play(fault) else 600.0))
    assert found, "no case has failed"
    others = {
        case: why
        for case, why in found.items()
        if not any(fnmatchcase(case, pattern) for pattern in fault.cases)
    }
    assert not others


def test_each_planted_fault_is_found_or_it_is_reported_why_not() -> None:
    assert [fault for fault in FAULTS if bool(fault.cases) == bool(fault.reason)] == []


def test_cases_that_no_game_leads_to_take_no_time_and_name_their_need() -> None:
    results = probed("maexchen-server", "", ["JOIN/whole", "JOIN/overtaken", "REGISTER/early", "ECHO/whole"])
    untried = [each for each in results if each["verdict"] == "NOT TRIED"]
    assert [each["seconds"] for each in untried] == [0] * 3
    assert all("; this needs a " in each["why"] for each in untried)


@pytest.mark.full
@pytest.mark.parametrize("peer", sorted(PEERS))
def test_a_right_program_fails_none_of_these_cases(peer: str) -> None:
    names = [case for fault in FOUND if fault.peer == peer for case in tried(fault)]
    assert not failed(probed(peer, "", [*names, *PLAYED]))


@pytest.mark.full
@pytest.mark.parametrize("peer", sorted(PEERS))
def test_a_right_program_fails_no_kind_of_case(peer: str) -> None:
    kinds: dict[str, Case] = {}
    protocol, role = peer.split("-")
    dissector = dissector_of(protocol)
    assert dissector is not None
    for case in generate_cases(dissector, "server" if role == "server" else "client"):
        # The slow ones are tried where their protocol is.
        if not case.is_in_play and case.message not in UNSAID[protocol] and case.kind not in SLOW:
            kinds.setdefault(case.kind, case)
    names = [case.name.partition("/")[2] for case in kinds.values()]
    assert not failed(probed(peer, "", names))
