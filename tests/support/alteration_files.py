r"""Alterations as text files: the options of a relay, messages, and what is forwarded for them.

    $ --drop 'msg == "LPLA"'      begins a relay with these options
    tcp                           its server speaks Okey; otherwise it is one of Mäxchen
    > LPLA␍␊   < +LPLA␍␊          data from the client or from the server; 2 > is a second client
    later 500 ms                  time passes
    ends >   closed               the client ends its direction; the connection is gone
    let go                        the first held message is forwarded
    relay ends

Indented lines are what is forwarded, each with the alteration's name, and notices. They are made by an engine
without sockets; `Scene` plays the same through a real relay.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, get_args

import click
from altering_relay import (
    Alteration,
    Line,
    Step,
    alterations,
    blamed,
    conversation,
    recorded,
    relaying,
    transport_of,
    turns,
)
from conversation_files import Block, blocks
from snapshots import DATA, as_bytes, as_text

from kiebitz.cli.options.altering import Altering, OrderedCommand, altering_options, read_rules
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import DIRECTIONS, OPPOSITE, Action, Direction, Transport
from kiebitz.dissectors.registry import dissector_of
from kiebitz.proxy.alterer import Delivery
from kiebitz.services.alteration.engine import Engine
from kiebitz.services.alteration.rules import Rule

MS = 1_000_000
_BEGAN = 1_700_000_000_000_000_000
_LATER = re.compile(r"later (\d+) (m?s)")
_SIGNS: dict[Direction, str] = {"c2s": ">", "s2c": "<"}
_DIRECTIONS = {sign: direction for direction, sign in _SIGNS.items()}


@cache
def rules_of(options: str) -> list[Rule]:
    """Return the rules of a relay's options, as the command reads them. Raises RuleError."""

    @click.command(cls=OrderedCommand)
    @altering_options
    def command(altering: Altering) -> list[Rule]:
        return read_rules(altering, [])

    rules: list[Rule] = command.main(shlex.split(options), standalone_mode=False)
    return rules


def milliseconds(step: str) -> int:
    """Return how much time passes in a step."""
    passed = _LATER.fullmatch(step)
    return int(passed[1]) * {"ms": 1, "s": 1000}[passed[2]] if passed else 0


class Table:
    """An engine with two streams to one server, and a clock of its own."""

    def __init__(
        self, options: str = "", transport: Transport = "udp", protocol: str | None = None, streams: int = 2
    ) -> None:
        self.notices: list[str] = []
        self.now = _BEGAN
        dissector = dissector_of(protocol) if protocol else None
        self.engine = Engine(
            rules_of(options),
            started_ns=_BEGAN,
            on_notice=lambda code, sentence: self.notices.append(sentence),
            decode_as={(transport, 9000): dissector} if dissector else None,
            drops_held="--held-at-exit drop" in options,
        )
        for number in range(1, streams + 1):
            client = f"127.0.0.1:{4000 + number}"
            self.engine.stream_opened(number, transport, client, "127.0.0.1:9000", _BEGAN)

    def came(self, direction: Direction, *data: bytes, stream: int = 1) -> list[Delivery]:
        """Receive datagrams, or pieces of a byte stream."""
        return [one for part in data for one in self.engine.data_received(stream, direction, self.now, part)]

    def later(self, nanoseconds: int) -> list[Delivery]:
        """Let time pass."""
        self.now += nanoseconds
        return list(self.engine.due(self.now))

    def take(self, step: str) -> list[Delivery]:
        """Carry out a step of a text."""
        if said := re.fullmatch(r"(\d? ?)([<>]) ?(.*)", step):
            found = self.came(_DIRECTIONS[said[2]], as_bytes(said[3]), stream=int(said[1] or 1))
            # What is inserted the other way is due at once.
            return found + self.later(0)
        if step.startswith("later"):
            return self.later(milliseconds(step) * MS)
        if step.startswith("ends"):
            return [*self.engine.eof_received(1, _DIRECTIONS[step[-1]], self.now)]
        if step == "let go":
            self.engine.broker.let_go(self.engine.broker.held[0].number)
            return self.later(0)
        if step == "closed":
            return [*self.engine.stream_closed(1, self.now)]
        assert step == "relay ends", step
        return [*self.engine.finish(self.now)]


class Forwarded(NamedTuple):
    """A line of a text: data that is forwarded, None if there is none; and the alteration, if it is one."""

    direction: Direction
    data: bytes | None
    action: str | None = None


_FORWARDED = re.compile(rf"([<>]) (?:(nothing)|(.*?))(?:, ({'|'.join(get_args(Action))}))?|([<>]) ends")


def as_line(one: Delivery) -> str:
    """Return a delivery as a line."""
    sign = f"{one.number} " if one.number > 1 else ""
    sign += _SIGNS[one.direction]
    if one.ends:
        return f"{sign} ends"
    text = "nothing" if one.data is None else as_text(one.data)
    return f"{sign} {text}{f', {one.mark.action}' if one.mark is not None else ''}".rstrip()


def forwarded(lines: Sequence[str]) -> list[Forwarded]:
    """Return the lines of a text that are about data."""
    found = [_FORWARDED.fullmatch(line if line[1:] else f"{line} ") for line in lines]
    return [
        Forwarded(_DIRECTIONS[one[1]], None if one[2] else as_bytes(one[3]), one[4])
        for one in found
        if one is not None and one[3] != "ends"
    ]


def played(block: Block) -> Iterator[str]:
    """Yield the steps of a block, with what an engine forwards for them."""
    options, table = "", Table()
    for step in block.steps:
        yield step
        if step == "tcp":
            table = Table(options, "tcp", "okey")
        elif step.startswith("$ "):
            options = step.removeprefix("$ ")
            try:
                table = Table(options, "udp", "maexchen")
            except KiebitzError as refused:
                yield f"    {refused}"
        else:
            yield from (f"    {as_line(one)}" for one in table.take(step))
            yield from (f"    notice: {notice}" for notice in table.notices)
            table.notices.clear()


class Scene(NamedTuple):
    """The part of a text below one `$`: its options, the protocol, and each step with the lines below it."""

    options: str
    protocol: str
    steps: list[tuple[str, list[str]]]

    @property
    def is_relayed(self) -> bool:
        """True if one connection, through a relay with rules for others too, can show the same."""
        steps = [step for step, _ in self.steps]
        return (
            bool(steps)
            and not re.search("--(impair|hold|force)", self.options)
            and not any(step[0].isdigit() for step in steps)
            and (self.protocol == "okey" or "closed" not in steps)
            and "relay ends" not in steps[:-1]
        )

    def rules(self, line: Line) -> list[str]:
        """Return the options, each filter narrowed down to a line's server."""
        words = shlex.split(self.options)
        return [
            narrowed(word, line) if before.startswith("--") else word
            for before, word in zip(["", *words], words, strict=False)
        ]

    def play(self, line: Line) -> Iterator[None]:
        """Play it on a line, up to the end of the relay, and then the rest."""
        if line.transport == "udp":
            # The server knows its client from a first datagram.
            line.say("c2s", b"")
            line.hear("c2s", [b""])
            line.got["c2s"].clear()
        begun, now_ms = time.monotonic(), 0
        expected: dict[Direction, bytes] = {"c2s": b"", "s2c": b""}
        for step, lines in self.steps:
            now_ms += milliseconds(step)
            if step == "relay ends":
                # It has received all by then.
                time.sleep(0.05)
                yield
            elif step == "closed":
                line.reset()
            elif step.startswith("ends"):
                line.end(_DIRECTIONS[step[-1]])
            elif step.startswith("later"):
                time.sleep(0 if lines else milliseconds(step) / 1000)
            else:
                line.say(_DIRECTIONS[step[0]], as_bytes(step[2:]))
            heard = [one for one in forwarded(lines) if one.data is not None]
            for direction, group in groupby(heard, lambda one: one.direction):
                data = [one.data or b"" for one in group]
                line.hear(direction, data)
                expected[direction] += b"".join(data)
            assert not heard or time.monotonic() - begun > now_ms * 0.00099, step
            for text in lines:
                assert not text.endswith(" ends") or line.has_ended(_DIRECTIONS[text[0]])
        assert {direction: b"".join(data) for direction, data in line.got.items()} == expected, self.options


def scenes(block: Block) -> list[Scene]:
    """Return the scenes of a block."""
    found: list[Scene] = []
    for step, lines in block.found:
        if step.startswith("$ "):
            found.append(Scene(step[2:], "maexchen", []))
        elif step == "tcp":
            found[-1] = found[-1]._replace(protocol="okey")
        else:
            found[-1].steps.append((step, lines))
    return found


def narrowed(rule: str, line: Line) -> str:
    """Return a filter that meets messages of a line's server only; a selector stays behind it."""
    wanted, selector = re.fullmatch(r"(.*?)( \[[^\]]*\])?", rule).groups()  # type: ignore[union-attr]
    return f'({wanted}) and {line.transport} and server == "{line.server}"{selector or ""}'


CONVERSATIONS = DATA / "altered_conversations.txt"


class Case(NamedTuple):
    """A message of a recorded conversation that an option alters, and what takes its place."""

    protocol: str
    text: str
    lines: list[str]

    @property
    def at(self) -> int:
        """The index of the message in its conversation."""
        sign, name, place = re.fullmatch(r"([<>]) (.*?)(?: \[(\d)..\])? --.*", self.text).groups()  # type: ignore[union-attr]
        about = (_DIRECTIONS[sign], name, int(place or 1))
        steps = conversation(self.protocol)
        return next(at for at, step in enumerate(steps) if (step.direction, step.name, step.place) == about)

    @property
    def step(self) -> Step:
        return conversation(self.protocol)[self.at]

    def sent(self, direction: Direction) -> list[bytes]:
        """Return what is forwarded in a direction in the message's place."""
        lines = forwarded(self.lines)
        return [one.data for one in lines if one.direction == direction and one.data is not None]

    def rule(self, line: Line | None = None) -> str:
        """Return the rule for this message, of one line."""
        option, *values = shlex.split(self.text[self.text.index("--") :])
        place = {1: "1st", 2: "2nd", 3: "3rd"}[self.step.place]
        about = f'msg == "{self.step.name}" and dir == "{self.step.direction}" [{place}]'
        return shlex.join((option, narrowed(about, line) if line else about, *values))

    def altered(self, options: str = "") -> Iterator[str]:
        """Yield what an engine forwards in place of the message; all others are forwarded as they are."""
        table = Table(f"{options} {self.rule()}", transport_of(self.protocol), self.protocol)
        for direction, turn in turns(self.protocol):
            found = table.came(direction, b"".join(step.data for _, step in turn)) + table.later(500 * MS)
            places = [at for at, _ in turn]
            at = places.index(self.at) if self.at in places else len(turn)
            before, after = (b"".join(step.data for _, step in part) for part in (turn[:at], turn[at + 1 :]))
            for number, others in ((0, before), (-1, after)):
                if others:
                    data = found[number].data or b""
                    assert others in (data[: len(others)], data[-len(others) :])
                    found[number].data = data.replace(others, b"")
            yield from (as_line(one) for one in found if one.data != b"")

    def alterations(self, line: Line) -> list[Alteration]:
        """Return the expected records."""
        found: list[Alteration] = []
        for direction, data, action in forwarded(self.lines):
            if action is not None:
                is_new = action in ("insert", "double")
                name, original = (None, None) if is_new else (self.step.name, self.step.data)
                found.append(Alteration(direction, action, self.rule(line), name, original, data or b""))
        return found


def cases(title: str) -> list[Case]:
    """Return the cases of a block: a protocol's, or those that are forced."""
    protocol = title.partition(",")[0]
    return [Case(protocol, step, lines) for step, lines in blocks(CONVERSATIONS)[title].found]


def rules_of_cases(cases: Sequence[Case], lines: Sequence[Line]) -> list[str]:
    """Return the options that alter what the cases say, each on its line."""
    return [word for line, case in zip(lines, cases, strict=True) for word in shlex.split(case.rule(line))]


def play_cases(cases: Sequence[Case], lines: Sequence[Line]) -> None:
    """Play each case on its line."""
    for line, case in zip(lines, cases, strict=True):
        line.connect()
        direction = case.step.direction
        line.play({case.at: case.sent(direction)}, {case.at: case.sent(OPPOSITE[direction])})
        line.hang_up()


def check_cases(cases: Sequence[Case], lines: Sequence[Line], database: Path) -> None:
    """Check that each side received what the case expects, that this is recorded, and nobody is blamed."""
    for case, line in zip(cases, lines, strict=True):
        told: dict[Direction, list[bytes]] = {"c2s": [], "s2c": []}
        for step in conversation(case.protocol):
            for direction in DIRECTIONS:
                usual = [step.data] if direction == step.direction else []
                told[direction] += case.sent(direction) if step is case.step else usual
        found = recorded(database, line)
        for direction in DIRECTIONS:
            if line.transport == "udp":
                assert line.got[direction] == told[direction] == found[direction], case
            else:
                whole = b"".join(told[direction])
                assert b"".join(line.got[direction]) == whole == b"".join(found[direction]), case
        assert alterations(database, line) == case.alterations(line), case
    assert blamed(database) == []


def play_all(cases: Sequence[Case], database: Path, *options: str, kind: type[Line] = Line) -> None:
    """Play each case on a line of its own, all through one relay, and check the results."""
    lines = [kind(case.protocol) for case in cases]
    with relaying(lines, database, *rules_of_cases(cases, lines), *options):
        play_cases(cases, lines)
    check_cases(cases, lines, database)
