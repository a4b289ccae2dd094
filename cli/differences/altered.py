"""Alterations by Kiebitz, as a list and in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from kiebitz.cli.configuration.file import named
from kiebitz.cli.multi_session import list_sessions, these
from kiebitz.cli.terminal.table import BATCH, Column, Form, moment, number
from kiebitz.dissectors.escaping import field_words, value_words
from kiebitz.dissectors.grammar.grammar import UNREADABLE, shortened
from kiebitz.dissectors.model import Message
from kiebitz.services.evidence.excerpt import printable_bytes
from kiebitz.services.wording import counted
from kiebitz.storage.read.alterations import StoredAlteration, alteration_text
from kiebitz.storage.read.message_queries import messages_numbered
from kiebitz.storage.session.session import Alteration, Session

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

_SHOWN_BYTES = 100
_LONGEST = 200
"""Maximum length of a message's fields in a sentence (characters)."""


class _Step(msgspec.Struct, frozen=True):
    """A changed field; UNSET is a missing value."""

    path: tuple[str | int, ...]
    before: Any
    after: Any


class AlterationSummary(msgspec.Struct, frozen=True):
    """An alteration and the message that was received instead, if any."""

    alteration: Alteration
    message: Message | None

    @property
    def who(self) -> str:
        """Client's name, or its address."""
        return self.alteration.player or named(self.alteration.client)

    @property
    def way(self) -> str:
        """Sender and receiver, as `A → B`."""
        ends = (self.who, named(self.alteration.server))
        return " → ".join(ends if self.alteration.direction == "c2s" else ends[::-1])

    @property
    def name(self) -> str:
        """Name of the original message, or else of the inserted one."""
        named = self.alteration.name or (self.message.name if self.message is not None else None)
        return named or UNREADABLE

    def steps(self) -> list[_Step]:
        """Return the changed fields."""
        before = self.alteration.fields
        if before is None or self.message is None or self.message.name != self.alteration.name:
            return []
        return [*_steps(before, self.message.fields, ())]

    def in_words(self) -> str:
        """Describe the change."""
        alteration, message = self.alteration, self.message
        if steps := self.steps():
            return "; ".join(map(_step_in_words, steps))
        sent = _said(alteration.name, alteration.fields, alteration.original)
        if message is None:
            return sent
        came = _said(message.name, message.fields, None)
        if alteration.original is None or alteration.action not in ("change", "insert"):
            return came
        return f"{sent} → {came}"


def _said(name: str | None, fields: dict[str, Any] | None, original: bytes | None) -> str:
    if fields:
        return shortened(field_words(fields), _LONGEST)
    return "" if name is not None or original is None else printable_bytes(original[:_SHOWN_BYTES])


def _steps(before: Any, after: Any, path: tuple[str | int, ...]) -> Iterator[_Step]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            old, new = before.get(key, msgspec.UNSET), after.get(key, msgspec.UNSET)
            yield from _steps(old, new, (*path, key))
    elif (
        isinstance(before, list)
        and isinstance(after, list)
        and len(before) == len(after)
        and any(isinstance(part, dict) for part in before)
    ):
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _steps(old, new, (*path, place))
    else:
        yield _Step(path, before, after)


def _step_in_words(step: _Step) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in step.path)
    before, after = (
        "nothing" if value is msgspec.UNSET else shortened(value_words(value), _LONGEST)
        for value in (step.before, step.after)
    )
    return f"{path.removeprefix('.')}: {before} → {after}"


def summarize_alterations(session: Session, wanted: Filter | None) -> Iterator[AlterationSummary]:
    """Yield alterations with the messages received."""
    remaining = session.alterations(wanted)
    while found := list(islice(remaining, BATCH)):
        numbers = session.timeline.numbers
        ids = [numbers.row_id("messages", one.message) for one in found if one.message is not None]
        came = {numbers.number("messages", row.id): row for row in messages_numbered(session.timeline, ids)}
        for one in found:
            yield AlterationSummary(one, None if one.message is None else came.get(one.message))


def _steps_json(one: AlterationSummary) -> list[dict[str, Any]]:
    return [
        {"path": step.path}
        | ({} if step.before is msgspec.UNSET else {"before": step.before})
        | ({} if step.after is msgspec.UNSET else {"after": step.after})
        for step in one.steps()
    ]


_COLUMNS = (
    number("id", width=5, of="alteration.id"),
    moment("time", "time", width=12, of="alteration.time"),
    number("stream", "stream", of="alteration.stream"),
    Column("dir", "dir", stays=True, of="alteration.direction"),
    Column("", "who", width=15, least=9, stays=True, of="who"),
    *(Column(key, of=f"alteration.{key}") for key in ("client", "server", "player")),
    Column("action", "action", stays=True, of="alteration.action"),
    Column("", "name", width=15, least=8, of="name"),
    Column("", "result", least=8, of=AlterationSummary.in_words),
    Column("rule", "rule", least=8, of="alteration.rule"),
    *(Column(key, of=f"alteration.{key}") for key in ("sent", "name", "fields")),
    Column("original", of=lambda one: None if (data := one.alteration.original) is None else data.hex()),
    *(Column(key, of=f"alteration.{key}") for key in ("offset", "length", "message")),
    Column("steps", of=_steps_json),
)


def show_alterations(sessions: Sequence[str], wanted: Filter | None, form: Form | None) -> None:
    """List the alterations in sessions. Raises as `list_sessions` does."""
    nothing = "no matching alterations" if wanted else f"no alterations in {these(sessions)}"
    list_sessions(sessions, _COLUMNS, lambda session: summarize_alterations(session, wanted), form, nothing)


def as_record(one: AlterationSummary) -> dict[str, Any]:
    """Return an alteration as a JSON object."""
    return {column.key: column.value(one) for column in _COLUMNS if column.key}


def count_in_words(count: int) -> str:
    """Return the number of alterations in words."""
    return f"{counted(count, 'alteration')} by Kiebitz"


def deed_in_words(row: StoredAlteration) -> str:
    """Describe an alteration: action, rule and original message."""
    return alteration_text(row, _said(row.name, row.fields, row.original))
