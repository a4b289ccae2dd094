from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.cgml.dissector import CGML
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.replay.participants import names_of_roles
from kiebitz.dissectors.replay.replay_peer import (
    AwaitPeer,
    CloseConnection,
    DivergencePolicy,
    InputResult,
    OpenConnection,
    ReplayPeer,
    SendBytes,
)
from kiebitz.dissectors.replay.script import (
    RecordedLine,
    Script,
    ScriptStep,
    StreamClosing,
    StreamOpening,
    StreamRole,
)

ALICE = StreamRole(1, "maexchen", "udp", "127.0.0.1:1001", "127.0.0.1:9000")
BOB = StreamRole(2, "maexchen", "udp", "127.0.0.1:1002", "127.0.0.1:9000")
DISSECTORS: dict[str, Dissector] = {"maexchen": MAEXCHEN, "okey": OKEY, "cgml": CGML}

Said = tuple[StreamRole, Direction, str]

ROUND: list[Said] = [
    (ALICE, "c2s", "REGISTER;alice"),
    (ALICE, "s2c", "REGISTERED"),
    (BOB, "c2s", "REGISTER;bob"),
    (BOB, "s2c", "REGISTERED"),
    (ALICE, "s2c", "ROUND STARTING;t-1"),
    (BOB, "s2c", "ROUND STARTING;t-2"),
    (ALICE, "c2s", "JOIN;t-1"),
    (BOB, "c2s", "JOIN;t-2"),
    (ALICE, "s2c", "ROUND STARTED;1;alice,bob"),
    (BOB, "s2c", "ROUND STARTED;1;alice,bob"),
    (ALICE, "s2c", "YOUR TURN;t-3"),
    (ALICE, "c2s", "ROLL;t-3"),
    (ALICE, "s2c", "PLAYER ROLLS;alice"),
    (BOB, "s2c", "PLAYER ROLLS;alice"),
    (ALICE, "s2c", "ROLLED;5,3;t-4"),
    (ALICE, "c2s", "ANNOUNCE;5,3;t-4"),
    (ALICE, "s2c", "ANNOUNCED;alice;5,3"),
    (BOB, "s2c", "ANNOUNCED;alice;5,3"),
]


def script(said: list[Said], ends: bool = False) -> Script:
    roles: dict[int, StreamRole] = {}
    steps: list[ScriptStep] = []
    for number, (role, direction, text) in enumerate(said, 1):
        if role.number not in roles:
            roles[role.number] = role
            steps.append(StreamOpening(role, number * 1_000_000))
        data = text.encode()
        row = DISSECTORS[role.protocol].codec.decode(data, direction).row
        assert row is not None
        steps.append(RecordedLine(role, number * 1_000_000, direction, number, row.name, data, True, None))
    if ends:
        steps += [StreamClosing(role, (len(said) + 1) * 1_000_000) for role in roles.values()]
    return Script(tuple(roles.values()), tuple(steps))


class Stage:
    def __init__(self, said: list[Said], plays: Direction, policy: DivergencePolicy = "stop") -> None:
        self.part = ReplayPeer(script(said), plays, DISSECTORS, policy)
        self.said: list[tuple[int, str]] = []
        self.apart: list[bool] = []
        self.told: list[str] = []
        self.listens: AwaitPeer | None = None
        self._actions = self.part.actions()
        self.go_on()

    def go_on(self) -> None:
        """Do what is to be done until the peer is waited for, or all is over."""
        self.listens = None
        for action in self._actions:
            if isinstance(action, AwaitPeer):
                self.listens = action
                return
            if isinstance(action, OpenConnection):
                self.part.connected(action.role.number, action.role)
            elif isinstance(action, SendBytes):
                self.said.append((action.connection, action.data.decode()))
                self.apart.append(action.apart)

    def hears(self, connection: int, text: str) -> None:
        self.react(self.part.data_received(connection, text.encode()))
        self.go_on()

    def react(self, reaction: InputResult) -> None:
        self.told += [divergence.text for divergence in reaction.divergences]
        self.said += [(reply.connection, reply.data.decode()) for reply in reaction.replies]


def replies(said: list[Said], direction: Direction, rename: dict[str, str]) -> Iterator[tuple[int, str]]:
    for role, way, text in said:
        if way == direction:
            yield role.number, ";".join(rename.get(word, word) for word in text.split(";"))


def test_clients_answer_with_the_live_server_s_tokens() -> None:
    live = {"t-1": "x", "t-2": "y", "t-3": "t-1", "t-4": "w w"[:1]}
    stage = Stage(ROUND, "c2s")
    for number, text in replies(ROUND, "s2c", live):
        stage.hears(number, text)
    assert stage.told == []
    assert stage.listens is None
    assert stage.said == list(replies(ROUND, "c2s", live))


def test_a_server_reports_its_own_tokens_and_takes_the_clients_names() -> None:
    stage = Stage(ROUND, "s2c")
    stage.part.client_accepted(7, ALICE)
    stage.part.client_accepted(8, BOB)
    # The first client plays alice, under its own name.
    for number, text in [
        (7, "REGISTER;zoë"),
        (8, "REGISTER;bob"),
        (8, "JOIN;t-2"),
        (7, "JOIN;t-1"),
        (7, "ROLL;t-3"),
        (7, "ANNOUNCE;5,3;t-4"),
    ]:
        stage.hears(number, text)
    assert stage.told == []
    assert [text for number, text in stage.said if number == 8] == [
        "REGISTERED",
        "ROUND STARTING;t-2",
        "ROUND STARTED;1;zoë,bob",
        "PLAYER ROLLS;zoë",
        "ANNOUNCED;zoë;5,3",
    ]


def test_a_client_has_the_role_of_his_name_whenever_he_comes() -> None:
    stage = Stage(ROUND, "s2c")
    stage.part.client_accepted(7, ALICE)
    stage.hears(7, "REGISTER;bob")
    assert stage.said == []
    stage.part.client_accepted(8, ALICE)
    stage.hears(8, "REGISTER;alice")
    assert stage.said[:2] == [(8, "REGISTERED"), (7, "REGISTERED")]
    assert stage.told == []


def test_a_client_cannot_make_a_token_up() -> None:
    stage = Stage(ROUND, "s2c")
    for number, role, name in ((7, ALICE, "alice"), (8, BOB, "bob")):
        stage.part.client_accepted(number, role)
        stage.hears(number, f"REGISTER;{name}")
    stage.hears(8, "JOIN;t-1")
    assert stage.told == ['the client says JOIN with token "t-1" for "t-2" (#8)']


def test_names_that_are_exchanged_stay_two_names() -> None:
    """Two players swap their names: each is reported by the current one."""
    stage = Stage(ROUND, "s2c")
    stage.part.client_accepted(7, ALICE)
    stage.hears(7, "REGISTER;carl")
    stage.part.client_accepted(8, BOB)
    stage.hears(8, "REGISTER;alice")
    for number, text in ((7, "JOIN;t-1"), (8, "JOIN;t-2"), (7, "ROLL;t-3")):
        stage.hears(number, text)
    assert (8, "ROUND STARTED;1;carl,alice") in stage.said


@pytest.mark.parametrize(
    ("number", "text", "says"),
    [
        (1, "REJECTED;INVALID_NAME", "the server says REJECTED"),
        (1, "ROUND CANCELED;NO_PLAYERS", "where the record has REGISTERED (#2)"),
        (1, "\x00", "a message that is unreadable"),
    ],
)
def test_it_stops_at_a_different_message_of_the_peer(number: int, text: str, says: str) -> None:
    stage = Stage(ROUND, "c2s")
    stage.hears(number, text)
    assert len(stage.told) == 1
    assert says in stage.told[0]
    assert stage.part.stopped
    assert stage.said == [(1, "REGISTER;alice")]


def test_another_roll_is_reported_with_both_dice() -> None:
    stage = Stage(ROUND, "c2s", "skip")
    for number, text in replies(ROUND, "s2c", {"5,3": "6,4"}):
        stage.hears(number, text)
    assert stage.told[0] == 'the server says ROLLED with dice "6,4" for "5,3" (#15)'
    # Its token is good all the same.
    assert stage.said[-1] == (1, "ANNOUNCE;5,3;t-4")
    assert stage.listens is None


def test_unsolicited_server_messages_may_be_reordered() -> None:
    stage = Stage(ROUND, "c2s")
    stage.hears(1, "ROUND STARTING;t-1")
    stage.hears(1, "REGISTERED")
    assert stage.told == []
    assert stage.said == [(1, "REGISTER;alice"), (2, "REGISTER;bob")]


def test_skipping_continues_with_what_came_and_knows_what_comes_late() -> None:
    stage = Stage(ROUND, "c2s", "skip")
    stage.hears(1, "ROUND STARTED;1;alice,bob")
    for text in ("REGISTERED", "ROUND STARTING;x"):
        stage.hears(1, text)
    stage.hears(2, "REGISTERED")
    stage.hears(2, "ROUND STARTING;y")
    assert len(stage.told) == 1
    assert "where the record has REGISTERED (#2)" in stage.told[0]
    assert stage.said[2:] == [(1, "JOIN;x"), (2, "JOIN;y")]


def test_waiting_ignores_messages_absent_from_the_recording() -> None:
    stage = Stage(ROUND, "c2s", "wait")
    stage.hears(1, "SCORE;alice:1")
    assert stage.listens is not None
    assert stage.listens.line is not None
    assert stage.listens.line.number == 2
    stage.hears(1, "REGISTERED")
    assert len(stage.told) == 1
    assert stage.said == [(1, "REGISTER;alice"), (2, "REGISTER;bob")]


@pytest.mark.parametrize(("policy", "goes_on"), [("stop", False), ("skip", True), ("wait", False)])
def test_nothing_in_time(policy: DivergencePolicy, goes_on: bool) -> None:
    stage = Stage(ROUND, "c2s", policy)
    assert stage.listens is not None
    stage.react(stage.part.timed_out(stage.listens))
    stage.go_on()
    assert stage.told == ["the server sends nothing, but the recording has REGISTERED (#2)"]
    assert ((2, "REGISTER;bob") in stage.said) is goes_on
    assert stage.part.stopped is not goes_on


def test_a_client_that_does_not_come_is_left_out() -> None:
    stage = Stage(ROUND, "s2c", "skip")
    stage.part.client_accepted(7, ALICE)
    stage.hears(7, "REGISTER;alice")
    while stage.listens is not None and stage.listens.role is BOB:
        stage.react(stage.part.timed_out(stage.listens))
        stage.go_on()
    stage.hears(7, "JOIN;t-1")
    stage.hears(7, "ROLL;t-3")
    stage.hears(7, "ANNOUNCE;5,3;t-4")
    assert {number for number, _ in stage.said} == {7}
    assert stage.said[-1] == (7, "ANNOUNCED;alice;5,3")


def test_a_peer_that_hangs_up_is_reported_once() -> None:
    stage = Stage(ROUND, "c2s")
    stage.react(stage.part.connection_ended(1, "has hung up"))
    assert stage.told == ["the server has hung up, but the recording continues with REGISTERED (#2)"]


def test_messages_absent_from_the_recording_are_not_answered() -> None:
    stage = Stage(ROUND, "s2c")
    for number in (7, 8, 9):
        stage.part.client_accepted(number, ALICE)
    stage.hears(7, "REGISTER;alice")
    stage.hears(8, "REGISTER;bob")
    stage.hears(9, "REGISTER;eve")
    assert stage.told == []
    assert {number for number, _ in stage.said} == {7, 8}


def test_streams_that_follow_at_once_are_kept_apart() -> None:
    stage = Stage(ROUND, "s2c")
    for number, role in ((7, ALICE), (8, BOB)):
        stage.part.client_accepted(number, role)
    stage.hears(7, "REGISTER;alice")
    stage.hears(8, "REGISTER;bob")
    # Two expected answers; then two messages in a row to one client.
    assert stage.apart == [False, False, True, True]


LOBBY = StreamRole(1, "okey", "tcp", "127.0.0.1:1001", "127.0.0.1:8090")


def test_heartbeats_are_answered_when_they_come_and_not_waited_for() -> None:
    said: list[Said] = [
        (LOBBY, "s2c", "PING\r\n"),
        (LOBBY, "c2s", "+PING\r\n"),
        (LOBBY, "c2s", "LOGI Istref\r\n"),
        (LOBBY, "s2c", "+LOGI Istref\r\n"),
    ]
    stage = Stage(said, "c2s")
    assert stage.said == [(1, "LOGI Istref\r\n")]
    stage.hears(1, "PI")
    stage.hears(1, "NG\r\nPING\r\n+LOGI Istref\r\n")
    assert stage.said[1:] == [(1, "+PING\r\n")] * 2
    assert stage.told == []
    assert stage.listens is None


def test_a_server_that_is_elsewhere_today_is_reported_there() -> None:
    login = StreamRole(1, "cgml", "tcp", "127.0.0.1:1001", "127.0.0.1:7001")
    game = StreamRole(2, "cgml", "tcp", "127.0.0.1:1002", "127.0.0.1:7002")
    complete = (
        '<connect status="complete" id="4"><game>licitovany_marias</game>'
        '<player id="8678"></player><url>127.0.0.1:7002</url></connect>\r\n\r\n'
    )
    part = ReplayPeer(script([(login, "s2c", complete)]), "s2c", DISSECTORS, "stop")
    part.server_moved(game, "127.0.0.1:9002")
    part.client_accepted(7, login)
    (said,) = part.actions()
    assert isinstance(said, SendBytes)
    assert said.data.decode() == complete.replace(":7002", ":9002")


def test_connections_are_opened_and_ended_as_recorded() -> None:
    part = ReplayPeer(script(ROUND[:4], ends=True), "c2s", DISSECTORS, "stop")
    done = []
    for action in part.actions():
        done.append(type(action))
        if isinstance(action, OpenConnection):
            part.connected(action.role.number, action.role)
        elif isinstance(action, AwaitPeer):
            part.data_received(action.role.number, b"REGISTERED")
    assert done == [
        OpenConnection,
        SendBytes,
        AwaitPeer,
        OpenConnection,
        SendBytes,
        AwaitPeer,
        CloseConnection,
        CloseConnection,
    ]


@given(
    st.lists(st.binary(max_size=40) | st.sampled_from([text.encode() for *_, text in ROUND]), max_size=30),
    st.sampled_from(["stop", "skip", "wait", "adapt"]),
    st.sampled_from(["c2s", "s2c"]),
)
def test_a_part_survives_any_message(noise: list[bytes], policy: DivergencePolicy, plays: Direction) -> None:
    stage = Stage(ROUND, plays, policy)
    if plays == "s2c":
        stage.part.client_accepted(1, ALICE)
    for data in noise:
        if stage.part.stopped:
            break
        stage.react(stage.part.data_received(1, data))
        stage.go_on()
    assert len(stage.told) <= len(noise)
    assert stage.part.stopped is (policy == "stop" and bool(stage.told))


def test_a_malformed_message_identifies_no_player() -> None:
    said: list[Said] = [
        (ALICE, "c2s", "REGISTER;alice"),
        (ALICE, "s2c", "REGISTERED"),
        (ALICE, "s2c", "YOUR TURN"),
    ]
    assert names_of_roles(script(said), DISSECTORS) == {1: {"alice"}}
