from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.protocols.catan.dissector import CATAN
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.replay.binding import Bindings

NAMES = st.sampled_from(["alice", "bob", "carl", "dora", "eve"])


def row_and_fields(dissector: Dissector, frame: str) -> tuple[MessageType, dict[str, object]]:
    for direction in ("c2s", "s2c"):
        decoded = dissector.codec.decode(frame.encode(), direction)
        if decoded.valid:
            assert decoded.row is not None
            return decoded.row, decoded.fields
    raise AssertionError(frame)


@pytest.mark.parametrize(
    ("dissector", "heard", "before", "after"),
    [
        # (recorded, live): the messages before, then the recorded ones and the expected report.
        (MAEXCHEN, [("YOUR TURN;t1", "YOUR TURN;x")], "ROLL;t1", "ROLL;x"),
        (MAEXCHEN, [("YOUR TURN;t1", "YOUR TURN;x"), ("ROLLED;5,3;t2", "ROLLED;5,3;t1")], "SEE;t1", "SEE;x"),
        (
            MAEXCHEN,
            [("ROUND STARTED;1;alice,bob", "ROUND STARTED;7;bob,carl")],
            "PLAYER LOST;alice,bob;MIA",
            "PLAYER LOST;bob,carl;MIA",
        ),
        # A player that has taken a name leaves its own to the former owner.
        (
            MAEXCHEN,
            [("ANNOUNCED;alice;5,3", "ANNOUNCED;bob;5,3")],
            "SCORE;alice:1,bob:2",
            "SCORE;bob:1,alice:2",
        ),
        (OKEY, [("+LOGI Istref\r\n", "+LOGI Istref_2\r\n")], "PWIN Istref\r\n", "PWIN Istref_2\r\n"),
        (
            CATAN,
            [('{"Willkommen":{"id":1}}\n', '{"Willkommen":{"id":42}}\n')],
            '{"Würfelwurf":{"Spieler":1,"Wurf":[1,2]}}\n',
            '{"Würfelwurf":{"Spieler":42,"Wurf":[1,2]}}\n',
        ),
    ],
)
def test_received_messages_are_reported(
    dissector: Dissector, heard: list[tuple[str, str]], before: str, after: str
) -> None:
    bindings = Bindings()
    for recorded, live in heard:
        row, fields = row_and_fields(dissector, recorded)
        assert bindings.fits(dissector, row, fields, row_and_fields(dissector, live)[1], 1)
    row, fields = row_and_fields(dissector, before)
    assert bindings.to_live(dissector, row, fields, 1) == row_and_fields(dissector, after)[1]


@pytest.mark.parametrize(
    ("recorded", "live"),
    [
        ("ROLLED;5,3;t1", "ROLLED;5,4;t1"),
        ("ROUND STARTED;1;alice,bob", "ROUND STARTED;1;alice"),
        ("ROUND STARTED;1;alice,bob", "ROUND STARTED;1;carl,carl"),
        ("PLAYER LOST;alice;MIA", "PLAYER LOST;alice;SEE_FAILED"),
    ],
)
def test_a_mismatch_binds_no_values(recorded: str, live: str) -> None:
    bindings = Bindings()
    row, fields = row_and_fields(MAEXCHEN, recorded)
    assert not bindings.fits(MAEXCHEN, row, fields, row_and_fields(MAEXCHEN, live)[1], 1)
    assert bindings.to_live(MAEXCHEN, row, fields, 1) == fields


def test_a_token_is_good_on_its_own_stream_only() -> None:
    bindings = Bindings()
    row, fields = row_and_fields(MAEXCHEN, "YOUR TURN;t1")
    assert bindings.fits(MAEXCHEN, row, fields, {"token": "x"}, 1)
    assert bindings.fits(MAEXCHEN, row, fields, {"token": "y"}, 2)
    row, fields = row_and_fields(MAEXCHEN, "ROLL;t1")
    assert [bindings.to_live(MAEXCHEN, row, fields, role)["token"] for role in (1, 2)] == ["x", "y"]


@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.permutations(["alice", "bob", "carl"]),
            st.lists(NAMES, unique=True, min_size=3, max_size=3),
        )
    )
)
def test_two_names_never_become_one(steps: list[tuple[bool, list[str], list[str]]]) -> None:
    bindings = Bindings()
    row, _ = row_and_fields(MAEXCHEN, "ROUND STARTED;1;alice,bob")
    for hears, recorded, live in steps:
        told = {"round": 1, "players": recorded}
        if hears:
            bindings.fits(MAEXCHEN, row, told, {"round": 1, "players": live}, 1)
        else:
            assert len({*bindings.to_live(MAEXCHEN, row, told, 1)["players"]}) == 3
    everybody = bindings.to_live(
        MAEXCHEN, row, {"round": 1, "players": ["alice", "bob", "carl", "dora", "eve"]}, 1
    )
    assert len({*everybody["players"]}) == 5
