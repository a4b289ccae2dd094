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


def of_event(said: Sequence[Said], kind: str, number: int) -> list[int]:
    """Return the indices of the messages that report the event of its kind with this number, from 0."""
    events = list(dict.fromkeys(one.event for one in said if one.kind == kind))
    return [place for place, one in enumerate(said) if one.event == events[number]]


@alteration
def lost(said: list[Said], kind: str, number: int) -> list[Said]:
    """Remove all messages that report an event."""
    gone = of_event(said, kind, number)
    return [one for place, one in enumerate(said) if place not in gone]


@alteration
def changed(said: list[Said], kind: str, number: int, old: str, new: str) -> list[Said]:
    """Change all messages that report an event."""
    other = list(said)
    for place in of_event(said, kind, number):
        assert old.encode() in said[place].data
        data = said[place].data.replace(old.encode(), new.encode(), 1)
        other[place] = dataclasses.replace(said[place], data=data)
    return other


@alteration
def swapped(said: list[Said], kind: str, number: int) -> list[Said]:
    """Move the messages that report an event behind those of the next event of its kind."""
    later = of_event(said, kind, number)
    behind = max(of_event(said, kind, number + 1)) + 1
    moved = [said[place] for place in later]
    stay = [one for place, one in enumerate(said) if place not in later]
    return [*stay[: behind - len(later)], *moved, *stay[behind - len(later) :]]


def replaced(texts: dict[str, str]) -> Alter:
    """Return an alteration that replaces texts everywhere, all at once."""
    table = {old.encode(): new.encode() for old, new in texts.items()}
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
def unasked(said: list[Said], name: str, number: int) -> list[Said]:
    """Return one message that made no event is missing."""
    places = [place for place, one in enumerate(said) if one.name == name and one.event is None]
    return [one for place, one in enumerate(said) if place != places[number]]
