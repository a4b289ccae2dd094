"""Captures with a change in them, compared with what they were."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from altered_sessions import Alter, Said, recorded
from command import Done, kiebitz
from imported_databases import database_of

MAEXCHEN = "maexchen-head-port4711.pcap"
CATAN = "catan-lurche-py-3p.pcap.gz"
OKEY = "okey-head-game-win.pcap.gz"
CGML = "cgml-tiny.pcap.gz"


P = ParamSpec("P")


def alteration(alter: Callable[Concatenate[list[Said], P], Sequence[Said]]) -> Callable[P, Alter]:
    """Make of a function that alters a session, given some arguments, one that takes the session later."""

    def bound(*args: P.args, **kwargs: P.kwargs) -> Alter:
        return lambda said: alter(said, *args, **kwargs)

    return bound


def of_event(said: Sequence[Said], kind: str, number: int | str) -> list[int]:
    """Return the indices of the messages that report the event of its kind with this number, from 0."""
    events = list(dict.fromkeys(one.event for one in said if one.kind == kind))
    return [place for place, one in enumerate(said) if one.event == events[int(number)]]


@alteration
def lost(said: list[Said], kind: str, number: int | str) -> list[Said]:
    """Remove all messages that report an event."""
    gone = of_event(said, kind, number)
    return [one for place, one in enumerate(said) if place not in gone]


@alteration
def changed(said: list[Said], kind: str, number: int | str, old: str, new: str) -> list[Said]:
    """Change all messages that report an event."""
    other = list(said)
    for place in of_event(said, kind, number):
        assert old.encode() in said[place].data
        data = said[place].data.replace(old.encode(), new.encode(), 1)
        other[place] = dataclasses.replace(said[place], data=data)
    return other


@alteration
def swapped(said: list[Said], kind: str, number: int | str) -> list[Said]:
    """Move the messages that report an event behind those of the next event of its kind."""
    later = of_event(said, kind, number)
    behind = max(of_event(said, kind, int(number) + 1)) + 1
    moved = [said[place] for place in later]
    stay = [one for place, one in enumerate(said) if place not in later]
    return [*stay[: behind - len(later)], *moved, *stay[behind - len(later) :]]


def replaced(*texts: str) -> Alter:
    """Return an alteration that replaces texts everywhere, all at once, such as "alice=carl"."""
    table = {old.encode(): new.encode() for old, _, new in (text.partition("=") for text in texts)}
    pattern = re.compile(b"|".join(map(re.escape, sorted(table, key=len, reverse=True))))
    return lambda said: [
        dataclasses.replace(one, data=pattern.sub(lambda found: table[found[0]], one.data)) for one in said
    ]


def compared(folder: Path, capture: str, alter: Alter, *options: str, **recording: Any) -> Done:
    """Return the capture as A, and altered as B."""
    known = recorded(capture)
    altered = known.with_said(alter(list(known.said))).write(folder / "altered.db", **recording)
    return kiebitz("diff", database_of(capture), altered, *options)


@alteration
def unasked(said: list[Said], name: str, number: int | str) -> list[Said]:
    """Return one message that made no event is missing."""
    places = [place for place, one in enumerate(said) if one.name == name and one.event is None]
    return [one for place, one in enumerate(said) if place != places[int(number)]]


@alteration
def heard_first_elsewhere(
    said: list[Said], kind: str, number: int | str, before: str, number_before: int
) -> list[Said]:
    first, later = of_event(said, before, number_before), of_event(said, kind, number)
    streams = {said[place].stream for place in first}
    early = [place for place in later if said[place].stream not in streams]
    assert first[0] < early[0]
    rest = [one for place, one in enumerate(said) if place not in early]
    return [*rest[: first[0]], *(said[place] for place in early), *rest[first[0] :]]


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
def one_copy_lost(said: list[Said], name: str, number: int | str) -> list[Said]:
    places = [place for place, one in enumerate(said) if one.name == name]
    return [one for place, one in enumerate(said) if place != places[int(number)]]


CATAN_NUMBERS = re.compile(
    "|".join(
        f'(?<="{name}":)[123](?=[,}}])'
        for name in ("id", "Spieler", "Mitspieler", "Eigentümer", "Absender", "Ziel")
    ).encode()
)


@alteration
def with_other_numbers(said: list[Said]) -> list[Said]:
    return [
        dataclasses.replace(one, data=CATAN_NUMBERS.sub(lambda found: b"%d" % (9 - int(found[0])), one.data))
        for one in said
    ]


@alteration
def with_other_tokens(said: list[Said]) -> list[Said]:
    token = re.compile(rb"[0-9a-f]{8}(?=-[0-9a-f]{4}-)")
    return [dataclasses.replace(one, data=token.sub(lambda found: found[0][::-1], one.data)) for one in said]


@alteration
def later_rounds(said: list[Said]) -> list[Said]:
    """Return a server that has played ten rounds before."""
    number = re.compile(rb"(?<=^ROUND STARTED;)\d+")
    return [
        dataclasses.replace(one, data=number.sub(lambda found: b"%d" % (int(found[0]) + 10), one.data))
        for one in said
    ]


@alteration
def without_the_last(said: list[Said], count: str) -> list[Said]:
    """Remove the last messages."""
    return said[: -int(count)]


@alteration
def without_the_client(said: list[Said], text: str) -> list[Said]:
    """Remove all messages of the first connection with a message that contains this."""
    silent = next(one.stream for one in said if text.encode() in one.data)
    return [one for one in said if one.stream != silent]
