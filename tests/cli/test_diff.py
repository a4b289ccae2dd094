from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
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
    lost,
    of_event,
    replaced,
    swapped,
    unasked,
)
from altered_sessions import Alter, Said, recorded
from command import CAPTURES, kiebitz
from session_factory import Conversation, record
from strength import a_few, every, few_captures

SCHAFKOPF = "schafkopf-1.3-2humans.pcap"
EACH = (MAEXCHEN, SCHAFKOPF, CATAN, OKEY, CGML)


@alteration
def heard_first_elsewhere(
    said: list[Said], kind: str, number: int, before: str, number_before: int
) -> list[Said]:
    first, later = of_event(said, before, number_before), of_event(said, kind, number)
    streams = {said[place].stream for place in first}
    early = [place for place in later if said[place].stream not in streams]
    assert first[0] < early[0]
    rest = [one for place, one in enumerate(said) if place not in early]
    return [*rest[: first[0]], *(said[place] for place in early), *rest[first[0] :]]


@dataclass(frozen=True)
class Case:
    capture: str
    alter: Alter
    events: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    messages: tuple[tuple[str, str, str, tuple[str, ...], int], ...] = ()
    diagnostics: tuple[str, ...] = ()


@alteration
def asked_otherwise(said: list[Said], name: str, old: str, new: str) -> list[Said]:
    """Return the first message of a name that made no event, and has this in it, has something else."""
    place = next(
        place
        for place, one in enumerate(said)
        if one.name == name and one.event is None and old.encode() in one.data
    )
    data = said[place].data.replace(old.encode(), new.encode(), 1)
    return [*said[:place], dataclasses.replace(said[place], data=data), *said[place + 1 :]]


@alteration
def one_copy_lost(said: list[Said], name: str, number: int) -> list[Said]:
    places = [place for place, one in enumerate(said) if one.name == name]
    return [one for place, one in enumerate(said) if place != places[number]]


CASES = {
    # Mäxchen
    "an answer lost": Case(MAEXCHEN, lost("joined", 0), (("only a", "joined", ()),)),
    "a roll lost": Case(
        MAEXCHEN, lost("rolled", 1), (("only a", "rolled", ()),), diagnostics=("only b unasked",)
    ),
    "one die": Case(MAEXCHEN, changed("rolled", 0, "4,3", "6,1"), (("changed", "rolled", ("dice",)),)),
    "an announcement": Case(
        MAEXCHEN,
        changed("announced", 1, "5,5", "6,5"),
        (("changed", "announced", ("dice",)),),
        diagnostics=("only b other-dice",),
    ),
    "two answers swapped": Case(MAEXCHEN, swapped("joined", 1), (("order", "joined", ()),)),
    "two logins swapped": Case(MAEXCHEN, swapped("registered", 0), (("order", "registered", ()),)),
    "a request lost": Case(MAEXCHEN, unasked("ROLL", 1), messages=(("only a", "c2s", "ROLL", (), 1),)),
    "a request changed": Case(
        MAEXCHEN,
        asked_otherwise("ANNOUNCE", "ANNOUNCE;4,3", "ANNOUNCE;6,3"),
        messages=(("changed", "c2s", "ANNOUNCE", ("dice",), 1),),
        diagnostics=("only b other-dice",),
    ),
    "a copy lost": Case(MAEXCHEN, one_copy_lost("PLAYER ROLLS", 5)),
    # Schafkopf
    "a best bid lost": Case(SCHAFKOPF, lost("best_bid", 0), (("only a", "best_bid", ()),)),
    "an account": Case(
        SCHAFKOPF, changed("settled", 0, "1150", "1250"), (("changed", "settled", ("accounts",)),)
    ),
    "a yes for a no": Case(
        SCHAFKOPF,
        changed("answered", 0, "NEIN", "JA"),
        (("changed", "answered", ("answer",)),),
        diagnostics=("only b told-otherwise",),
    ),
    "two bids swapped": Case(SCHAFKOPF, swapped("bid", 0), (("order", "bid", ()),)),
    "a seat not told": Case(SCHAFKOPF, unasked("ID", 1), messages=(("only a", "s2c", "ID", (), 1),)),
    # Catan
    "the first roll lost": Case(CATAN, lost("rolled", 0), (("only a", "rolled", ()),)),
    "a die of two": Case(CATAN, changed("rolled", 0, "[2,2]", "[2,3]"), (("changed", "rolled", ("dice",)),)),
    "a yield told to others before a chat": Case(
        "catan-infrarot-game2-3p.pcap.gz", heard_first_elsewhere("gained", 7, "chat", 11)
    ),
    "a refusal of a trade lost": Case(CATAN, lost("trade_declined", 0), (("only a", "trade_declined", ()),)),
    "two rolls swapped": Case(CATAN, swapped("rolled", 0), (("order", "rolled", ()),)),
    "a wish lost": Case(
        CATAN, unasked("Handel anbieten", 0), messages=(("only a", "c2s", "Handel anbieten", (), 1),)
    ),
    "one copy of a yield lost": Case(CATAN, one_copy_lost("Ertrag", 4)),
    # Okey
    "a ready lost": Case(OKEY, lost("ready", 0), (("only a", "ready", ()),)),
    "a word of a chat": Case(OKEY, changed("chat", 0, "gg", "GG"), (("changed", "chat", ("text",)),)),
    "two readies swapped": Case(OKEY, swapped("ready", 0), (("order", "ready", ()),)),
    "a list lost": Case(OKEY, unasked("+RNAM", 2), messages=(("only a", "s2c", "+RNAM", (), 1),)),
    "a heartbeat lost": Case(OKEY, one_copy_lost("PING", 1), diagnostics=("only b unasked",)),
    "a logout that comes to nothing": Case(
        OKEY, lost("left", 2), (("changed", "left", ("reason",)),), diagnostics=("only b unasked",)
    ),
    # CGML
    "a flek lost": Case(CGML, lost("flek", 1), (("only a", "flek", ()),)),
    "a flek doubled": Case(CGML, changed("flek", 1, ">2<", ">4<"), (("changed", "flek", ("level",)),)),
    "two bids of mariáš swapped": Case(
        CGML, swapped("bid", 0), (("order", "bid", ()),), diagnostics=("only b bid-not-higher",)
    ),
    "a card lost": Case(CGML, lost("played", 3), (("only a", "played", ()),)),
    "a copy of a card lost": Case(CGML, one_copy_lost("round", 2)),
}


@pytest.mark.full(but=1)
@pytest.mark.parametrize("title", a_few(CASES, [*CASES][::16]))
def test_all_and_only_alterations_are_reported(title: str, tmp_path: Path) -> None:
    case = CASES[title]
    done = compared(tmp_path, case.capture, case.alter, "--json")
    told = done.json
    assert [(one["sort"], one["kind"], tuple(one["fields"])) for one in told["differences"]] == [*case.events]
    assert [
        (one["sort"], one["direction"], one["name"], tuple(one["fields"]), one["count"])
        for one in told["messages"]
    ] == [*case.messages]
    assert told["conversations"] == []
    assert tuple(f"{one['sort']} {one['code']}" for one in told["diagnostics"]) == case.diagnostics
    assert told["equal"] == (not case.events and not case.messages and not case.diagnostics)
    assert done.status == (0 if told["equal"] else 3)


@pytest.mark.full
@pytest.mark.parametrize("title", a_few(CASES, [*CASES][:1]))
def test_the_sessions_exchanged_exchange_the_sides(title: str, tmp_path: Path) -> None:
    case = CASES[title]
    there = compared(tmp_path, case.capture, case.alter, "--json").json
    back = kiebitz("diff", str(tmp_path / "altered.db"), str(CAPTURES / case.capture), "--json").json
    assert mirrored(back) == there


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


def test_faults_of_streams_without_a_table_are_compared(tmp_path: Path) -> None:
    a = record(tmp_path / "a.db", Conversation(server="127.0.0.1:4711").says(b"?").says(b"!").items)
    b = record(tmp_path / "b.db", Conversation(server="127.0.0.1:4711").says(b"?").says(b"!").fault().items)
    done = kiebitz("diff", a, b)
    assert done.status == 3
    assert done.out.splitlines()[1] == "0 events the same; 1 diagnostic only in B"
    assert "B stream 1  0.003s  nobody listens there" in done.out
    assert kiebitz("diff", b, b).status == 0


# Other names: Catan's players and CGML's have numbers, too.
NAMES: dict[str, tuple[str, dict[str, str], list[tuple[str, str]]]] = {
    "all three exchanged": (
        MAEXCHEN,
        {"alice": "carl", "carl": "dora", "dora": "alice"},
        [("alice", "carl"), ("carl", "dora"), ("dora", "alice")],
    ),
    "all new": (
        MAEXCHEN,
        {"alice": "Änne", "carl": "x", "dora": "Wilhelmina", "kaos": "order"},
        [("alice", "Änne"), ("carl", "x"), ("dora", "Wilhelmina"), ("kaos", "order")],
    ),
    "one new": (MAEXCHEN, {"carl": "berta"}, [("carl", "berta")]),
    "two exchanged": (
        SCHAFKOPF,
        {"Jürgen Groß": "Bärbel", "Bärbel": "Jürgen Groß"},
        [("Jürgen Groß", "Bärbel"), ("Bärbel", "Jürgen Groß")],
    ),
    "names of Catan": (
        CATAN,
        {"Jürgen": "Anna", "Zoë Weiß": "Bert"},
        [("Jürgen", "Anna"), ("Zoë Weiß", "Bert")],
    ),
    "names of Okey": (
        OKEY,
        {"boran": "istref", "istref": "pascal", "pascal": "robin", "robin": "boran"},
        [("boran", "istref"), ("istref", "pascal"), ("pascal", "robin"), ("robin", "boran")],
    ),
    "numbers of CGML": (CGML, {"6533": "1216", "1216": "8678", "8678": "6533"}, []),
    "numbers and a name of CGML": (
        CGML,
        {"6533": "1", "1216": "22", "8678": "333", "wampaire": "dracula"},
        [("wampaire", "dracula")],
    ),
}


@pytest.mark.full(but=1)
@pytest.mark.parametrize("title", a_few(NAMES, [*NAMES][::4]))
def test_renamed_players_are_matched(title: str, tmp_path: Path) -> None:
    capture, names, pairs = NAMES[title]
    done = compared(tmp_path, capture, replaced(names))
    assert (done.status, done.err) == (0, "")
    told = "; players by seat: " + ", ".join(f"{mine} = {other}" for mine, other in pairs) if pairs else ""
    assert done.out.endswith(f" events{told}\n")


CATAN_NUMBERS = re.compile(
    "|".join(
        f'(?<="{name}":)[123](?=[,}}])'
        for name in ("id", "Spieler", "Mitspieler", "Eigentümer", "Absender", "Ziel")
    ).encode()
)


def with_other_numbers(said: list[Said]) -> list[Said]:
    return [
        dataclasses.replace(one, data=CATAN_NUMBERS.sub(lambda found: b"%d" % (9 - int(found[0])), one.data))
        for one in said
    ]


def with_other_tokens(said: list[Said]) -> list[Said]:
    token = re.compile(rb"[0-9a-f]{8}(?=-[0-9a-f]{4}-)")
    return [dataclasses.replace(one, data=token.sub(lambda found: found[0][::-1], one.data)) for one in said]


def later_rounds(said: list[Said]) -> list[Said]:
    """Return a server that has played ten rounds before."""
    number = re.compile(rb"(?<=^ROUND STARTED;)\d+")
    return [
        dataclasses.replace(one, data=number.sub(lambda found: b"%d" % (int(found[0]) + 10), one.data))
        for one in said
    ]


@pytest.mark.full
@pytest.mark.parametrize(
    ("capture", "alter"),
    [(CATAN, with_other_numbers), (MAEXCHEN, with_other_tokens), (MAEXCHEN, later_rounds)],
)
def test_values_generated_by_a_server_are_no_difference(capture: str, alter: Alter, tmp_path: Path) -> None:
    done = compared(tmp_path, capture, alter)
    assert (done.status, done.err) == (0, "")
    assert " are the same: " in done.out


@pytest.mark.parametrize("capture", every(3, EACH))
def test_times_and_ports_are_no_difference(capture: str, tmp_path: Path) -> None:
    done = compared(tmp_path, capture, list, shift_ns=86_400 * 10**9, other_ports=True)
    assert (done.status, done.err) == (0, "")


@pytest.mark.full(but=1)
@pytest.mark.parametrize("capture", few_captures(sorted(path.name for path in CAPTURES.glob("*.pcap*"))))
def test_a_session_and_itself_are_the_same(capture: str) -> None:
    done = kiebitz("diff", str(CAPTURES / capture), str(CAPTURES / capture))
    assert done.status == 0
    assert re.fullmatch(r"A .* and B .* are the same: [\d,]+ events?\n", done.out)
