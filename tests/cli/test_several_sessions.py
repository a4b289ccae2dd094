"""Listings of several sessions: captures, databases, and `DB:*` for all sessions of one."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import CAPTURES, ODD, TINY, kiebitz
from strength import every

BADCARD = str(CAPTURES / "schafkopf-1.3-badcard.pcap")
LISTINGS = ("streams", "games", "messages", "events", "check")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("several") / "game.db")
    assert kiebitz("import", TINY, BADCARD, "-w", path).status == 0
    return path


@pytest.mark.full
@pytest.mark.parametrize("listing", every(4, LISTINGS))
def test_each_session_has_the_rows_that_it_has_by_itself(listing: str, both: str) -> None:
    rows = kiebitz(listing, f"{both}:*", ODD, "--json").json
    alone = [
        {"session": session, **row}
        for session in (f"{both}:1", f"{both}:2", ODD)
        for row in kiebitz(listing, session, "--json").json
    ]
    assert rows == alone
    assert {row["session"] for row in rows} == {f"{both}:1", f"{both}:2", ODD}


def test_diagnostics_of_several_are_below_their_session_s_name(both: str) -> None:
    done = kiebitz("check", f"{both}:*", TINY, "-Y", 'diag.severity == "error"')
    first, *_, last = done.out.splitlines()
    assert (done.status, first, last) == (3, f"{both}:2", "2 errors, no warnings, no notes")
    assert f"{both}:1" not in done.out
    alone = kiebitz("check", f"{both}:2", "-Y", 'diag.severity == "error"').out
    assert done.out == f"{both}:2\n\n{alone}"


def test_diagnostics_of_several_are_summed_up_for_each(both: str) -> None:
    rows = kiebitz("check", f"{both}:*", "--summary", "--json").json
    alone = [
        {"session": session, **row}
        for session in (f"{both}:1", f"{both}:2")
        for row in kiebitz("check", session, "--summary", "--json").json
    ]
    assert rows == alone


@pytest.mark.parametrize("listing", LISTINGS)
def test_one_session_has_no_column_for_it(listing: str) -> None:
    assert all("session" not in row for row in kiebitz(listing, TINY, "--json").json)


def test_a_database_with_one_session_is_listed_like_one_with_several(tmp_path: Path) -> None:
    path = str(tmp_path / "one.db")
    assert kiebitz("import", TINY, "-w", path).status == 0
    assert {row["session"] for row in kiebitz("events", f"{path}:*", "--json").json} == {f"{path}:1"}


def test_people_see_first_which_session_it_is(both: str) -> None:
    title, *lines = kiebitz("games", f"{both}:*").out.splitlines()
    assert title.split()[:3] == ["session", "#", "protocol"]
    assert [line.split()[0] for line in lines] == [f"{both}:1", f"{both}:1", f"{both}:2"]


def test_a_filter_is_asked_of_each(both: str) -> None:
    rows = kiebitz("messages", f"{both}:*", "-Y", 'msg in {"ROLL", "KARTE"}', "--json").json
    assert {(row["session"], row["name"]) for row in rows} == {(f"{both}:1", "ROLL"), (f"{both}:2", "KARTE")}


def test_a_player_need_not_be_in_each(both: str) -> None:
    rows = kiebitz("events", f"{both}:*", "--as", "alice", "--json").json
    assert {row["session"] for row in rows} == {f"{both}:1"}


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["events", TINY, "no.pcap"], 1, "no.pcap: there is no such file"),
        (["events", "no.db:*"], 1, "no.db: there is no such file"),
        (["games", f"{TINY}:*"], 1, f"{TINY}: this is not a database; only databases have numbered sessions"),
        (["messages", TINY, ODD, "-F"], 2, "-F requires a single session"),
        (["messages", "DB:*", "-F"], 2, "-F requires a single session"),
        (["messages", TINY, ODD, "-Y", 'msg == "KARTE"'], 0, "no matching messages"),
        (["messages", TINY, ODD, "--altered"], 0, "no alterations in these sessions"),
        (["messages", TINY, ODD, "-Y", "dise == 3"], 2, 'no field "dise"'),
        (["check", TINY, ODD, "--at", "#3"], 2, "--at requires a single session"),
        (["games"], 2, "Missing argument 'SESSION...'"),
        (["state", "DB:*"], 1, "DB:*: this command takes one session at a time, as in DB:1"),
    ],
)
def test_impossible_actions_are_reported(arguments: list[str], status: int, told: str, both: str) -> None:
    done = kiebitz(*(word.replace("DB", both) for word in arguments))
    assert (done.status, done.out.count("\n") <= 1) == (status, True)
    assert told.replace("DB", both) in done.err


def test_a_database_without_a_session_is_reported(tmp_path: Path) -> None:
    path = str(tmp_path / "empty.db")
    assert kiebitz("import", "/dev/null", "-w", path).status == 1
    Path(path).unlink(missing_ok=True)
    from kiebitz.storage.database.opening import open_for_writing

    open_for_writing(path).close()
    done = kiebitz("games", f"{path}:*")
    assert (done.status, done.err) == (1, f"kiebitz: {path}: there is no session in it yet\n")


def test_a_file_of_that_name_is_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd:*").write_bytes(Path(TINY).read_bytes())
    assert kiebitz("games", "odd:*", "--json").json == kiebitz("games", TINY, "--json").json
