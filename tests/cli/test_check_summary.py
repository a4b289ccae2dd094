"""`kiebitz check --summary` and `--at`: errors summed up by code and culprit, and those of one message."""

from __future__ import annotations

from collections import Counter

import pytest
from command import CAPTURES, ODD, TINY, kiebitz
from imported_databases import database_of
from strength import GAMES, few_captures
from terminals import OnTerminal

BADCARD = str(CAPTURES / "schafkopf-1.3-badcard.pcap")

SUMMARY = [
    "count severity code blame who first at message text",
    '1 error bad-field client Falsch 11.752960 118 KARTE: "BLAU" is not known here',
    "1 error suit-not-followed client Falsch 11.753246 119 Falsch plays GRAS OBER on EICHEL UNTER and does"
    " not follow EICHEL",
    "3 note dialect 127.0.0.1:35555 2.005285 11 KONTO contains the stock, too; the specification has a"
    " message STOCK for that",
    "2 note truncated 127.0.0.1:35555 12.107436 132 the stream ends in the middle of BEENDEN",
    "2 errors, no warnings, 5 notes",
]

ALL = sorted(path.name for path in CAPTURES.iterdir() if ".pcap" in path.name)


def test_diagnostics_are_summed_up_the_gravest_first() -> None:
    done = kiebitz("check", BADCARD, "--summary")
    assert (done.status, done.err) == (3, "")
    assert [" ".join(line.split()) for line in done.out.splitlines()] == SUMMARY


@pytest.mark.parametrize("capture", few_captures(ALL))
def test_nothing_is_lost_in_a_summary(capture: str) -> None:
    diagnostics = kiebitz("check", database_of(capture), "--json").json
    found = kiebitz("check", database_of(capture), "--summary", "--json").json
    assert sum(row["count"] for row in found) == len(diagnostics)
    assert len({(row["severity"], row["code"], row["blame"], row["who"]) for row in found}) == len(found)
    by_code = Counter(
        (diagnostic["severity"], diagnostic["code"], diagnostic["blame"]) for diagnostic in diagnostics
    )
    for key, count in by_code.items():
        same = [row for row in found if (row["severity"], row["code"], row["blame"]) == key]
        assert sum(row["count"] for row in same) == count
        first = next(
            diagnostic
            for diagnostic in diagnostics
            if (diagnostic["severity"], diagnostic["code"], diagnostic["blame"]) == key
        )
        assert first["time"] == min(row["time"] for row in same)
    gravity = ["error", "warning", "note"]
    order = [(gravity.index(row["severity"]), -row["count"]) for row in found]
    assert order == sorted(order)


def test_a_player_is_one_culprit_however_many_connections_they_had() -> None:
    rows = kiebitz(
        "check", database_of("maexchen-head-odd.pcap"), "--summary", "--json", "-Y", 'diag.code == "bad-dice"'
    ).json
    assert [(row["who"], row["blame"], row["count"]) for row in rows] == [("odd", "client", 5)]


@pytest.mark.full
def test_servers_and_clients_without_a_name_are_named_by_address() -> None:
    rows = kiebitz("check", database_of("cgml-malformed.pcap.gz"), "--summary", "--json").json
    assert "127.0.0.1:7002" in {row["who"] for row in rows if row["blame"] == "server"}
    assert "127.0.0.1:51196" in {row["who"] for row in rows if row["blame"] == "client"}


@pytest.mark.full(but=1)
@pytest.mark.parametrize("form", ["--json", "--nl", "--csv", "--tsv"])
def test_the_status_is_the_same_in_every_form(form: str) -> None:
    assert kiebitz("check", BADCARD, "--summary", form).status == 3
    assert kiebitz("check", BADCARD, "--summary", form, "-Y", 'diag.severity == "note"').status == 0


def test_a_summary_of_nothing_reports_it() -> None:
    done = kiebitz("check", TINY, "--summary", "-Y", 'diag.severity == "error"')
    assert done.status == 0
    assert done.err == "kiebitz: no matching diagnostics\n"
    assert done.out.endswith("no errors, no warnings, no notes\n")


# One message.


def test_the_diagnostics_of_one_message_are_shown_as_they_are_among_all() -> None:
    whole = kiebitz("check", BADCARD).out
    done = kiebitz("check", BADCARD, "--at", "#118")
    assert done.status == 3
    *blocks, counts = done.out.split("\n\n")
    assert len(blocks) == 1
    assert blocks[0] + "\n\n" in whole
    assert counts == "1 error, no warnings, no notes\n"


def test_a_message_without_diagnostics_shows_the_state() -> None:
    done = kiebitz("check", BADCARD, "--at", "117")
    assert (done.status, done.err) == (0, "")
    assert done.out == (
        "no diagnostics for message #117, MODEL: A plays Eichel-Unter (event #46)\n"
        "in the whole session: 2 errors, no warnings, 5 notes; the nearest is error[bad-field] in message"
        " #118\n"
    )
    done = kiebitz("check", TINY, "--at", "#1")
    assert done.out == (
        "no diagnostics for message #1, REGISTER\n"
        "in the whole session: no errors, no warnings, 3 notes; the nearest is note[dialect] in message"
        " #9\n"
    )


@pytest.mark.parametrize("protocol", GAMES)
def test_each_message_has_the_diagnostics_that_are_reported_it(protocol: str) -> None:
    path = database_of(GAMES[protocol])
    diagnostics = kiebitz("check", path, "--json").json
    for number in sorted(
        {diagnostic["message"] for diagnostic in diagnostics if diagnostic["message"] is not None}
    )[:5]:
        found = kiebitz("check", path, "--at", f"#{number}", "--json").json
        assert found == [diagnostic for diagnostic in diagnostics if diagnostic["message"] == number]


def test_a_filter_goes_with_it() -> None:
    done = kiebitz("check", BADCARD, "--at", "#118", "-Y", 'diag.severity == "note"')
    assert done.status == 0
    assert done.out.startswith("no matching diagnostics for message #118, KARTE\n")
    done = kiebitz("check", BADCARD, "--at", "#118", "-Y", 'diag.severity == "note"', "--json")
    assert (done.json, done.err) == ([], "kiebitz: no matching diagnostics for message #118\n")


@pytest.mark.parametrize(
    ("number", "status", "sentence"),
    [
        ("#136", 1, "#136: no such message in this session; there are 1 to 135"),
        ("12.5s", 2, "'12.5s' is not a message number, as in '#31' or 31"),
    ],
)
def test_invalid_messages_are_rejected(number: str, status: int, sentence: str) -> None:
    done = kiebitz("check", BADCARD, "--at", number)
    assert (done.status, done.out) == (status, "")
    assert sentence in done.err


# On a terminal.


@pytest.mark.full
def test_a_terminal_shows_how_to_see_details() -> None:
    with OnTerminal("check", ODD, columns=100) as terminal:
        assert terminal.ended() == 3
    assert terminal.lines[-2:] == [
        f"For a summary: kiebitz check {ODD} --summary",
        f"For the message in full: kiebitz show {ODD} '#1'",
    ]
