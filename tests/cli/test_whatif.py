"""`kiebitz whatif`: the game with messages dropped, edited or put in, and where it parts from what it was."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from cleanup import close_after_test, kept_until_end
from command import CAPTURES, TINY, Done, kiebitz
from conversation_files import Block, blocks, check
from hypothesis import given, settings
from hypothesis import strategies as st
from imported_databases import database_of
from session_factory import Conversation, record
from snapshots import DATA
from strength import every, few_captures, times
from tables import commands_of

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.editing.item_edits import Splice
from kiebitz.dissectors.model import Chunk, Direction, Message, Stream
from kiebitz.storage.derived.derived_session import derive_session
from kiebitz.storage.diff import compare
from kiebitz.storage.read.message_queries import messages
from kiebitz.storage.read.timeline import Timeline

MAEXCHEN = "maexchen-head-port4711.pcap"
YAKS = "catan-yaks-g1-3p.pcap.gz"
STYLES = "cgml-styles.pcap.gz"
OKEY_CHAT = "okey-head-chat.pcap.gz"
HUMANS = "schafkopf-1.3-2humans.pcap"

ONE_OF_EACH = (
    "maexchen-head-tiny.pcap",
    "schafkopf-1.3-1human-tiny.pcap",
    "catan-yaks-lobby.pcap.gz",
    "okey-head-tiny.pcap.gz",
    "cgml-tiny.pcap.gz",
)


def whatif(capture: str, *arguments: str) -> Done:
    return kiebitz("whatif", database_of(capture), *arguments)


def edits(numbers: Sequence[int], values: str) -> list[str]:
    return [word for number in numbers for word in ("--edit", f"#{number} {values}")]


EDITED = [*blocks(DATA / "edited_messages.txt").values()]


def edited(block: Block) -> tuple[str, Sequence[int], str]:
    """Return a capture, the numbers of messages, and the values that they all get."""
    capture, numbers, values = block.title.split(" ", 2)
    first, *others = map(int, re.findall(r"\d+", numbers))
    return capture, range(first, others[0] + 1) if "-" in numbers else (first, *others), values


@pytest.mark.full(but=1)
@pytest.mark.parametrize("block", every(9, EDITED, lambda block: block.title))
def test_the_game_is_another_from_the_edited_message_on(block: Block) -> None:
    capture, numbers, values = edited(block)
    done = whatif(capture, "--json", *edits(numbers, values))
    assert (done.status, done.err) == (3, "")
    first = done.json["differences"][0]
    assert first["sort"] == "changed"
    before, after = first["a"]["sentence"], first["b"]["sentence"]
    check(block, f"{first['kind']} {' '.join(first['fields'])}\n- {before}\n+ {after}")


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("capture", "number", "kind"),
    [
        ("maexchen-head-tiny.pcap", 31, "rolled"),
        ("maexchen-head-tiny.pcap", 16, "joined"),
        ("catan-niedlichepixel-framing.pcap.gz", 11, "chat"),
        (HUMANS, 32, "dealt"),
        ("cgml-tiny.pcap.gz", 1, "connected"),
        ("okey-head-tiny.pcap.gz", 3, "logged_in"),
    ],
)
def test_a_dropped_message_takes_its_event_away(capture: str, number: int, kind: str) -> None:
    done = whatif(capture, "--json", "--drop", f"#{number}")
    assert done.status == 3
    first = done.json["differences"][0]
    assert (first["sort"], first["kind"], first["b"]) == ("only a", kind, None)


# Including events that others report.


BROADCAST = [block for block in EDITED if "-" in block.title.split()[1]]
"""Those of which all messages are copies sent by a server, in a row."""


@pytest.mark.parametrize("block", every(4, BROADCAST, lambda block: block.title))
def test_an_edit_of_one_copy_edits_all(block: Block) -> None:
    capture, numbers, values = edited(block)
    by_one = whatif(capture, "--json", *edits(numbers[1:2], values))
    by_all = whatif(capture, "--json", *edits(numbers, values))
    assert (by_one.status, by_one.json, by_one.err) == (3, by_all.json, "")


def test_one_copy_alone_can_be_edited() -> None:
    """The last of five, of which the first reports the event."""
    alone = whatif("maexchen-head-tiny.pcap", "--edit", "#56 only reason=MIA")
    assert (alone.status, alone.err) == (3, "")
    summary = "26 events the same; 1 only in B, 1 diagnostic only in B\n"
    assert alone.out.startswith(f"A original   B #56 alone with reason=MIA\n{summary}")
    assert whatif("maexchen-head-tiny.pcap", "--edit", "#56 reason=MIA").out.startswith(
        "A original   B #56 and 4 copies with reason=MIA\n25 events the same; 1 changed,"
    )
    # Every receiver has its own token, so these are no copies in this respect.
    assert whatif("maexchen-head-tiny.pcap", "--edit", "#11 token=x").out.startswith(
        "A original   B #11 with token=x\n"
    )


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--edit", "#52 names=bob", "--edit", "#53 names=bob"], [["bob"]]),
        (["--edit", "#52 names=bob", "--drop", "#53"], [["bob"]]),
        (["--edit", "#52 names=bob", "--edit", "#53 only names=dora", "--drop", "#54"], [["dora"], ["bob"]]),
    ],
)
def test_an_edit_leaves_copies_that_other_edits_name(arguments: list[str], names: list[list[str]]) -> None:
    done = whatif("maexchen-head-tiny.pcap", "--json", *arguments)
    told = [one["b"]["data"]["names"] for one in done.json["differences"] if one["b"] is not None]
    assert sorted(told) == sorted(names)


# Diagnostics.


class Verdict(NamedTuple):
    """Edits of a capture, and the diagnostics that disappear and appear by them."""

    capture: str
    edits: list[str]
    gone: list[tuple[str, str, str, str]]
    new: list[tuple[str, str, str, str]]


VERDICTS = {
    "a roll, and the dice that are shown later": Verdict(
        MAEXCHEN, ["--edit", "#201 dice=3,2"], [], [("error", "other-dice", "server", "ACTUAL DICE")]
    ),
    "a roll as it is shown, and the verdict on it": Verdict(
        MAEXCHEN,
        ["--edit", "#201 dice=3,2", "--edit", "#215 dice=3,2"],
        [],
        [("error", "wrong-verdict", "server", "PLAYER LOST")],
    ),
    "a wrong token is right": Verdict(
        MAEXCHEN, ["--drop", "#81"], [("error", "wrong-token", "client", "JOIN")], []
    ),
    "an unreadable message is gone": Verdict(
        "maexchen-head-odd.pcap", ["--drop", "#2"], [("error", "unknown-message", "client", "unreadable")], []
    ),
    "an answer without its request": Verdict(
        OKEY_CHAT, ["--drop", "#2"], [], [("warning", "unasked", "client", "+PING")]
    ),
    "shifted message numbers": Verdict(MAEXCHEN, ["--drop", "#65", "--edit", "#29 dice=4,2"], [], []),
}


@pytest.mark.parametrize("title", VERDICTS)
def test_diagnostics_that_appear_and_disappear(title: str) -> None:
    case = VERDICTS[title]
    done = whatif(case.capture, "--json", *case.edits)
    assert done.status == 3
    told: dict[str, list[tuple[str, ...]]] = {"only a": [], "only b": []}
    for one in done.json["diagnostics"]:
        assert (one["a"] is None) == (one["sort"] == "only b")
        shown = one["a"] or one["b"]
        summary = (shown["severity"], shown["code"], shown["blame"], shown["name"])
        assert summary == (one["severity"], one["code"], one["blame"], one["name"])
        told[one["sort"]].append(summary)
    assert (told["only a"], told["only b"]) == (case.gone, case.new)


def test_a_database_of_another_version_is_dissected_again_before_it_is_compared(tmp_path: Path) -> None:
    """Else all that the two versions report differently would be a consequence of the edit."""
    path = tmp_path / "old.db"
    assert kiebitz("import", str(CAPTURES / MAEXCHEN), "-w", str(path)).status == 0
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE sessions SET kiebitz_version = '0.0.1'")
        connection.execute("UPDATE diagnostics SET code = 'old'")
    assert kiebitz("whatif", str(path), "--edit", "#201 dice=2,2").status == 0
    done = kiebitz("diff", str(path), str(CAPTURES / MAEXCHEN))
    assert done.status == 3
    assert "A was dissected by Kiebitz 0.0.1, B by " in done.err


def test_a_server_s_first_message_is_not_its_only_evidence(tmp_path: Path) -> None:
    """At a port of its own and without its first message, a server is not detected."""
    talk = Conversation(server="127.0.0.1:4711").says(b"REGISTER;alice").says(b"what is this?")
    path = record(tmp_path / "x.db", talk.items)
    assert [row["name"] for row in kiebitz("messages", path, "--json").json] == ["REGISTER", "unreadable"]
    done = kiebitz("whatif", path, "--drop", "1", "--json")
    assert [table["b"]["protocol"] for table in done.json["tables"]] == ["maexchen"]


# Put in.


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("capture", "wish", "kind", "sentence"),
    [
        (
            "maexchen-head-tiny.pcap",
            "#30 PLAYER LOST names=bob reason=MIA",
            "lost",
            "bob lost: against Mäxchen",
        ),
        # Only a server sends this, and #69 is a client's.
        (OKEY_CHAT, "#69 CATS messagetype=b msg='so, so' sender=boran", "chat", "boran says: so, so"),
        (
            "catan-niedlichepixel-framing.pcap.gz",
            "11 Chatnachricht Absender=0 Nachricht=null",
            "chat",
            "Jürgen: null",
        ),
        (
            STYLES,
            '49 licite type=info playerid=103 licite="B107"',
            "bid",
            'Ďuro "x<y>" bids B107',
        ),
    ],
)
def test_inserted_messages_take_effect(capture: str, wish: str, kind: str, sentence: str) -> None:
    done = whatif(capture, "--json", "--insert", wish)
    assert done.status == 3
    first = done.json["differences"][0]
    assert (first["sort"], first["kind"], first["b"]["sentence"]) == ("only b", kind, sentence)
    number = int(wish.lstrip("#").split()[0])
    before = next(messages(_session(capture), "m.id = ?", [number]))
    assert first["b"]["time"] == (before.ts_ns - _session(capture).started_ns) / 1e9


def test_messages_put_in_come_in_the_order_in_which_they_are_given() -> None:
    wishes = [f"30 ANNOUNCED name=carl dice={dice}" for dice in ("3,1", "3,2")]
    done = whatif(
        "maexchen-head-tiny.pcap", "--json", "--drop", "30", "--insert", wishes[0], "--insert", wishes[1]
    )
    told = [one["b"]["data"]["dice"] for one in done.json["differences"] if one["kind"] == "announced"]
    assert told == ["3,1", "3,2"]


def test_nothing_is_put_in_the_middle_of_another_message(tmp_path: Path) -> None:
    """The server is in the middle of a chat when the client speaks."""
    stream = Stream(1, "tcp", "127.0.0.1:40000", "127.0.0.1:8090", 1)
    pieces: list[tuple[Direction, bytes]] = [
        ("c2s", b"LOGI anna\r\n"),
        ("s2c", b"+LOGI anna\r\nCATS b"),
        ("c2s", b"PING\r\n"),
        ("s2c", b" hallo anna\r\n"),
    ]
    sent: dict[Direction, int] = {"c2s": 0, "s2c": 0}
    items = []
    for ts_ns, (direction, data) in enumerate(pieces, 1):
        items.append(Chunk(stream, direction, ts_ns, sent[direction], data))
        sent[direction] += len(data)
    path = record(tmp_path / "x.db", items)
    assert [row["name"] for row in kiebitz("messages", path, "--json").json] == [
        "LOGI",
        "+LOGI",
        "PING",
        "CATS",
    ]
    done = kiebitz("whatif", path, "--json", "--insert", "3 CATS messagetype=b msg=na sender=anna")
    assert [(one["sort"], one["b"]["data"]["text"]) for one in done.json["differences"]] == [("only b", "na")]
    assert done.json["messages"] == []


# What cannot be.


@pytest.mark.full(but=7)
@pytest.mark.parametrize(
    ("status", "arguments", "sentence"),
    [
        *commands_of("""
2 => no edits: give --drop '#7'
2 --drop x => 'x' does not begin with a message number: --drop '#7'
2 --drop '7 dice=1,1' => is not of the form --drop '#7'
2 --edit 31 => is not of the form --edit '#7 FIELD=VALUE'
2 --edit '31 dice' => dice is not of the form FIELD=VALUE, such as dice=5,4
2 --edit '31 token=a b' => b is not of the form FIELD=VALUE, such as dice=5,4; a text with blanks must be
2 --edit "31 dice='5,4" => '5,4 has no closing quote
2 --edit "31 dice='5,4'x" => a blank is missing behind dice='5,4'
2 --edit '31 dice=[5,' => [5, is not valid JSON
2 --edit '31 !dice=5,4' => !dice is not a field name
2 --edit '31 dice[=5,4' => dice[=5,4 is not of the form FIELD=VALUE
2 --insert '31 token=x' => is not of the form --insert '#7 NAME FIELD=VALUE'
1 --drop 70 => --drop #70: no such message in this session; there are 1 to 69
1 --drop 31 --edit '31 dice=5,4' => this message is already dropped or edited
1 --edit '31 dise=5,4' => ROLLED has no field dise; did you mean dice? Now it has dice=3,3
1 --edit '31 x=1' => ROLLED has no field x; it has dice, token. Now it has dice=3,3
1 --edit '2 x=1' => REGISTERED has no field x; it has points.
1 --edit '31 dice[0]=4' => dice is not a list, but "3,3"
1 --edit '31 dice.x=4' => dice has nothing inside, it is "3,3"
1 --edit '31 dice=5,4 dice=5,5' => dice is given more than one value
1 --edit '19 players[4]=x' => players has no [4]: it has 4 values, from [0] on
1 --edit '19 players.x=x' => players is a list: say which of its values, as in players[0]
1 --edit '31 dice=9,4'
    => --edit #31: dice=9,4 does not fit: a die does not show 9; expected two dice 1 to 6, higher first,
    such as 5,3; it is dice=3,3 now
1 --edit '19 round=x players=a,b' => round=x does not fit: "x" is not a number; expected a whole
1 --edit '19 round=1e999' => round=1e999 does not fit: "1e999" is not a number
1 --insert '31 PLAYER LOOST names=a' => no message PLAYER LOOST; did you mean PLAYER LOST?
1 --insert '31 what' => maexchen has no message what; kiebitz protocols maexchen has them all
1 --insert '31 PLAYER LOST names=a' => PLAYER LOST needs a value for reason, too
1 --insert '31 ROLLED dice=9,9 token=x' => dice=9,9 does not fit: a die does not show 9
1 --insert '31 ROLLED dice[0]=9' => ROLLED has no dice yet: give all of it
        """),
        ("2", ["--edit", "31 dice=\udcff"], "not UTF-8"),
    ],
)
def test_impossible_values_are_reported(status: str, arguments: list[str], sentence: str) -> None:
    done = kiebitz("whatif", TINY, *arguments)
    assert (done.status, done.out) == (int(status), "")
    assert sentence in done.err


# Any session.


@cache
def _session(capture: str) -> Timeline:
    with kept_until_end():
        return open_session(database_of(capture))


@cache
def _messages(capture: str) -> list[Message]:
    return [*messages(_session(capture))]


@pytest.mark.parametrize("capture", few_captures(sorted(path.name for path in CAPTURES.glob("*.pcap*"))))
def test_without_an_alteration_nothing_differs(capture: str) -> None:
    timeline = _session(capture)
    other = derive_session(timeline, [], lambda _done, _all: None)
    close_after_test(other.connection)
    assert compare(timeline, other).equal


def said(rows: Iterable[Message]) -> list[tuple[object, ...]]:
    found = [(one.stream.id, one.direction, one.name, one.fields) for one in rows]
    return sorted(found, key=lambda one: one[:2])


@pytest.mark.full(but=1)
@pytest.mark.parametrize("capture", every(2, ONE_OF_EACH))
@settings(max_examples=times(15), deadline=None)
@given(data=st.data())
def test_any_message_can_be_missing(capture: str, data: st.DataObject) -> None:
    row = data.draw(st.sampled_from(_messages(capture)))
    gone = Splice(row.stream.id, row.direction, row.offset, row.length, row.ts_ns, b"")
    other = derive_session(_session(capture), [gone], lambda _done, _all: None)
    close_after_test(other.connection)
    # Of each conversation: a message whose end was in the one that is gone is known to be whole later.
    assert said(messages(other)) == said(one for one in _messages(capture) if one.id != row.id)
    compare(_session(capture), other)
