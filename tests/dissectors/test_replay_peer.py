from __future__ import annotations

import re

import pytest
from conversation_files import Block, blocks, check
from hypothesis import given
from hypothesis import strategies as st
from snapshots import DATA, as_bytes, as_text

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.cgml.dissector import CGML
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.okey.dissector import OKEY
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
    names_of_roles,
)

BLOCKS = blocks(DATA / "replayed_peers.txt")
DISSECTORS: dict[str, Dissector] = {"maexchen": MAEXCHEN, "okey": OKEY, "cgml": CGML}
POLICIES: tuple[DivergencePolicy, ...] = ("stop", "skip", "wait", "adapt")


def role_of(protocol: str, number: int, port: int = 9000) -> StreamRole:
    transport = DISSECTORS[protocol].transport
    return StreamRole(number, protocol, transport, f"127.0.0.1:100{number}", f"127.0.0.1:{port}")


def script(protocol: str, *lines: str, port: int = 9000) -> Script:
    """Return a recording of lines such as `1 > REGISTER;alice`, which may `end`."""
    roles: dict[int, StreamRole] = {}
    steps: list[ScriptStep] = []
    for number, line in enumerate(lines, 1):
        now_ns = number * 1_000_000
        if line == "end":
            steps += [StreamClosing(role, now_ns) for role in roles.values()]
            continue
        name, sign, text = line.split(" ", 2)
        role = roles.get(int(name))
        if role is None:
            role = roles[int(name)] = role_of(protocol, int(name), port)
            steps.append(StreamOpening(role, now_ns))
        direction: Direction = "c2s" if sign == ">" else "s2c"
        data = as_bytes(text)
        row = DISSECTORS[protocol].codec.decode(data, direction).row
        assert row is not None
        steps.append(RecordedLine(role, now_ns, direction, number, row.name, data, True, None))
    return Script(tuple(roles.values()), tuple(steps))


class Stage:
    """A side of a recording that is replayed; `lines` says what it does."""

    def __init__(self, recording: str, plays: Direction, policy: DivergencePolicy) -> None:
        ((self.protocol, block),) = (
            (found[1], block)
            for title, block in BLOCKS.items()
            if (found := re.fullmatch(f"recording of (.*): {recording}", title))
        )
        self.part = ReplayPeer(script(self.protocol, *block.steps), plays, DISSECTORS, policy)
        self.lines: list[str] = []
        self.reports = 0
        self.listens: AwaitPeer | None = None
        self._sign = ">" if plays == "c2s" else "<"
        self._actions = self.part.actions()
        self.go_on()

    def go_on(self) -> None:
        """Do what is to be done until the peer is waited for, or all is over."""
        self.listens = None
        for action in self._actions:
            if isinstance(action, AwaitPeer):
                self.listens = action
                awaited = f", #{action.line.number} {action.line.name}" if action.line is not None else ""
                self.lines.append(f"awaits {action.role.number}{awaited}")
                return
            if isinstance(action, OpenConnection):
                self.part.connected(action.role.number, action.role)
                self.lines.append(f"opens {action.role.number}")
            elif isinstance(action, CloseConnection):
                self.lines.append(f"closes {action.connection}")
            elif isinstance(action, SendBytes):
                apart = "apart: " if action.apart else ""
                self.lines.append(f"{apart}{action.connection} {self._sign} {as_text(action.data)}")
        self.lines.append("stops" if self.part.stopped else "is over")

    def receive(self, connection: int, data: bytes) -> None:
        self.react(self.part.data_received(connection, data))

    def react(self, reaction: InputResult) -> None:
        self.reports += len(reaction.divergences)
        self.lines += [f"report: {divergence.text}" for divergence in reaction.divergences]
        self.lines += [
            f"answers {reply.connection} {self._sign} {as_text(reply.data)}" for reply in reaction.replies
        ]
        self.go_on()

    def take(self, step: str) -> None:
        """Do what a line of the text says."""
        if step == "timeout":
            assert self.listens is not None
            self.react(self.part.timed_out(self.listens))
            return
        name, sign, text = step.split(" ", 2)
        if sign == "is":
            self.part.client_accepted(int(name), role_of(self.protocol, int(text)))
        elif sign == "ends:":
            self.react(self.part.connection_ended(int(name), text))
        else:
            self.receive(int(name), as_bytes(text))


@pytest.mark.parametrize(
    "block",
    [block for title, block in BLOCKS.items() if not title.startswith("recording ")],
    ids=lambda block: block.title,
)
def test_a_side_of_a_recording_is_replayed(block: Block) -> None:
    first, *steps = block.steps
    side, policy, recording = re.split(", |: ", first, maxsplit=2)
    (chosen,) = (each for each in POLICIES if each == policy)
    stage = Stage(recording, "c2s" if side == "clients" else "s2c", chosen)
    shown = [first]
    for step in [*steps, None]:
        shown += [f"    {line}" for line in stage.lines]
        stage.lines.clear()
        if step is not None:
            shown.append(step)
            stage.take(step)
    check(block, "\n".join(shown))


def test_a_server_that_is_elsewhere_today_is_reported_there() -> None:
    complete = (
        '<connect status="complete" id="4"><game>licitovany_marias</game>'
        '<player id="8678"></player><url>127.0.0.1:7002</url></connect>\r\n\r\n'
    )
    part = ReplayPeer(script("cgml", f"1 < {complete}", port=7001), "s2c", DISSECTORS, "stop")
    part.server_moved(role_of("cgml", 2, 7002), "127.0.0.1:9002")
    part.client_accepted(7, role_of("cgml", 1, 7001))
    (said,) = part.actions()
    assert isinstance(said, SendBytes)
    assert said.data.decode() == complete.replace(":7002", ":9002")


SENT = [as_bytes(line.split(" ", 2)[2]) for line in BLOCKS["recording of maexchen: a turn"].steps]


@given(
    st.lists(st.binary(max_size=40) | st.sampled_from(SENT), max_size=30),
    st.sampled_from(POLICIES),
    st.sampled_from(["c2s", "s2c"]),
)
def test_a_part_survives_any_message(noise: list[bytes], policy: DivergencePolicy, plays: Direction) -> None:
    stage = Stage("a turn", plays, policy)
    if plays == "s2c":
        stage.part.client_accepted(1, role_of("maexchen", 1))
    for data in noise:
        if stage.part.stopped:
            break
        stage.receive(1, data)
    assert stage.reports <= len(noise)
    assert stage.part.stopped is (policy == "stop" and bool(stage.reports))


def test_a_malformed_message_identifies_no_player() -> None:
    said = script("maexchen", "1 > REGISTER;alice", "1 < REGISTERED", "1 < YOUR TURN")
    assert names_of_roles(said, DISSECTORS) == {1: {"alice"}}
