from __future__ import annotations

import dataclasses
import re
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from altered_captures import (
    CATAN,
    CGML,
    MAEXCHEN,
    OKEY,
    alteration,
    changed,
    compared,
    replaced,
)
from altered_sessions import Alter, Said, recorded
from command import CAPTURES, kiebitz
from imported_databases import database_of
from strength import a_few, every, few_captures

SCHAFKOPF = "schafkopf-1.3-2humans.pcap"
EACH = (MAEXCHEN, SCHAFKOPF, CATAN, OKEY, CGML)


def mirrored(told: Any) -> Any:
    """Return a difference as JSON with its sides exchanged."""
    if isinstance(told, list):
        return [mirrored(part) for part in told]
    if not isinstance(told, dict):
        return {"only a": "only b", "only b": "only a"}.get(told, told) if isinstance(told, str) else told
    other = {"a": "b", "b": "a"} if {"a", "b"} <= told.keys() else {}
    return {other.get(name, name): mirrored(part) for name, part in told.items()}


# Diagnostics.


def in_reverse_order(said: list[Said]) -> list[Said]:
    """Return each broadcast with its copies in reverse order, as a server may send them next time."""
    found: list[Said] = []
    for _, group in groupby(said, lambda one: (one.event, one.direction)):
        copies = [*group]
        if copies[0].event is not None:
            copies = [
                dataclasses.replace(one, ts_ns=copy.ts_ns)
                for one, copy in zip(reversed(copies), copies, strict=True)
            ]
        found += copies
    return found


@alteration
def interrupted(said: list[Said], place: int) -> list[Said]:
    """Add an unreadable message of a client whose turn it is not."""
    junk = dataclasses.replace(said[place], stream=1, direction="c2s", event=None, data=b"FOO")
    return [*said[: place + 1], junk, *said[place + 1 :]]


UNREADABLE = ("error", "unknown-message", "client", "unreadable")
FALSE_VERDICT = changed("lost", 0, "ANNOUNCED_LOSING_DICE", "MIA")


@pytest.mark.parametrize(
    ("alter_a", "alter_b", "gone", "new"),
    [
        (FALSE_VERDICT, lambda said: in_reverse_order([*FALSE_VERDICT(said)]), [], []),
        (list, FALSE_VERDICT, [], [("error", "wrong-verdict", "server", "PLAYER LOST")]),
        (interrupted(102), interrupted(108), [], []),
        # In another round it is another one, although there are as many.
        (interrupted(102), interrupted(300), [UNREADABLE], [UNREADABLE]),
    ],
    ids=["copies in another order", "a false verdict", "a message a little later", "one much later"],
)
def test_diagnostics_are_matched_by_meaning_and_place(
    alter_a: Alter,
    alter_b: Alter,
    gone: list[tuple[str, ...]],
    new: list[tuple[str, ...]],
    tmp_path: Path,
) -> None:
    known = recorded(MAEXCHEN)
    a = known.with_said(alter_a([*known.said])).write(tmp_path / "a.db")
    b = known.with_said(alter_b([*known.said])).write(tmp_path / "b.db", 10**12, other_ports=True)
    done = kiebitz("diff", a, b, "--json")
    told = {
        sort: [
            (one["severity"], one["code"], one["blame"], one["name"])
            for one in done.json["diagnostics"]
            if one["sort"] == sort
        ]
        for sort in ("only a", "only b")
    }
    assert told == {"only a": gone, "only b": new}
    assert mirrored(kiebitz("diff", b, a, "--json").json["diagnostics"]) == sorted(
        done.json["diagnostics"], key=lambda one: one["sort"], reverse=True
    )
    filtered = kiebitz("diff", a, b, "-Y", 'diag.severity == "note"', "--json").json
    assert filtered["diagnostics"] == []


# Other names: Catan's players and CGML's have numbers, too.


@pytest.mark.parametrize("capture", every(3, EACH))
def test_times_and_ports_are_no_difference(capture: str, tmp_path: Path) -> None:
    done = compared(tmp_path, capture, list, shift_ns=86_400 * 10**9, other_ports=True)
    assert (done.status, done.err) == (0, "")


def test_a_state_that_is_repeated_sooner_is_no_difference(tmp_path: Path) -> None:
    """Soon, it is the same event, and later none."""

    def faster(said: list[Said]) -> list[Said]:
        return [
            dataclasses.replace(one, ts_ns=said[0].ts_ns + (one.ts_ns - said[0].ts_ns) // 50) for one in said
        ]

    done = compared(tmp_path, "catan-infrarot-game2-3p.pcap.gz", faster)
    assert (done.status, done.err) == (0, "")


@pytest.mark.full(but=1)
@pytest.mark.parametrize("capture", few_captures(sorted(path.name for path in CAPTURES.glob("*.pcap*"))))
def test_a_session_and_itself_are_the_same(capture: str) -> None:
    done = kiebitz("diff", str(CAPTURES / capture), str(CAPTURES / capture))
    assert done.status == 0
    assert re.fullmatch(r"A .* and B .* are the same: [\d,]+ events?\n", done.out)


# States, and the report.


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("capture", "names"),
    [
        (MAEXCHEN, ["alice=carl", "carl=dora", "dora=alice"]),
        (SCHAFKOPF, ["Jürgen Groß=Bärbel", "Bärbel=Jürgen Groß"]),
        (CATAN, ["Jürgen=Anna", "Zoë Weiß=Bert"]),
        (OKEY, ["boran=istref", "istref=boran"]),
        (CGML, ["6533=22", "1216=1", "8678=333", "wampaire=dracula"]),
    ],
)
@pytest.mark.parametrize("moment", a_few(["#20", "#60", "end"], ["#60"]))
def test_states_in_which_only_the_names_differ_are_the_same(
    capture: str, names: list[str], moment: str, tmp_path: Path
) -> None:
    known = recorded(capture)
    other = known.with_said(replaced(*names)(list(known.said))).write(tmp_path / "other.db", other_ports=True)
    done = kiebitz("diff", "--state", f"{database_of(capture)}@{moment}", f"{other}@{moment}", "--json")
    assert [pair["differences"] for pair in done.json] == [[]] * len(done.json)
    assert done.status == 0
