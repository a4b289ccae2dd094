"""The API for held messages, and what requests that change something have in common.

Such requests change something, all others only read. So another site must not be able to make a browser
send them. They need a header of our own and a JSON body, which browsers send cross-site only after a
preflight, and this server allows none. `access` checks the origin before.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, TypeVar

import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request

from kiebitz.cli.held_fields import answers, assigned, misfits, patience, receiver, sender, slots
from kiebitz.cli.web import records
from kiebitz.cli.web.grants import Grant
from kiebitz.cli.web.request_params import MAX_DIGITS, BadRequestError, ForbiddenError
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.escaping import field_words
from kiebitz.services.alteration.control_client import ControlClient, HeldSnapshot
from kiebitz.services.alteration.control_server import Act, ControlError, HeldMessage
from kiebitz.storage.session.marks import Kind
from kiebitz.storage.session.session import project

HEADER = "kiebitz-hands"
"""Required header; its value does not matter."""

_MAX_BODY_BYTES = 1 << 16
"""Maximum size of a request's body, in bytes."""

_MAX_WORDS_LENGTH = 500
_BODY_TIMEOUT_S = 5.0


class HeldActionError(KiebitzError):
    """A refused action; `slips` has the invalid values by field."""

    def __init__(self, sentence: str, slips: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.slips = slips or {}


class RequestTooLargeError(KiebitzError):
    """A request with too large a body."""


class SlowRequestError(KiebitzError):
    """A request whose body was not complete in time."""


class MarkDeed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mark to set on a message or an event; a note of null removes it."""

    kind: Kind
    number: Annotated[int, msgspec.Meta(ge=1, lt=10**MAX_DIGITS)]
    note: str | None


Body = TypeVar("Body", bound=msgspec.Struct)


class Deed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An action on a held message; `values` by field for a change, `text` for an answer."""

    do: Act
    number: int | None = None
    values: dict[str, str] = {}
    text: str = ""


def held_record(held: HeldSnapshot | None, may_act: bool) -> records.Held:
    """Return the held messages as a record; empty if this session cannot hold messages."""
    if held is None:
        return records.Held(False, False, [], 0)
    return records.Held(True, may_act, [_message(held, message) for message in held.messages], held.more)


def check_may_act(
    headers: Headers, grant: Grant, is_read_only: bool, what: str, media: str = "application/json"
) -> None:
    """Raise ForbiddenError if a request may not do `what` (verb and object) with this type of body."""
    if grant.owner is not None:
        raise ForbiddenError(f"a player's link cannot {what}")
    if grant.player is not None:
        raise ForbiddenError(f"a spectator cannot {what}: open the full link")
    if is_read_only:
        raise ForbiddenError("this server is read-only: it was started with --read-only")
    given = headers.get("content-type", "").partition(";")[0].strip().lower()
    if HEADER not in headers or given != media:
        raise ForbiddenError(
            f"refused as a possible cross-site request: send {media} with the header {HEADER}: 1"
        )


async def decode_body(request: Request, kind: type[Body]) -> Body:
    """Decode a request's body as a record. Raises BadRequestError, SlowRequestError, RequestTooLargeError."""
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_TIMEOUT_S):
            async for piece in request.stream():
                body += piece
                if len(body) > _MAX_BODY_BYTES:
                    raise RequestTooLargeError(f"a request has at most {_MAX_BODY_BYTES} bytes")
    except TimeoutError:
        raise SlowRequestError(f"the request was not complete after {_BODY_TIMEOUT_S:g} s") from None
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRequestError(f"the body is not a valid action: {error}") from error


async def act(held_control: ControlClient, deed: Deed) -> None:
    """Carry out an action. Raises HeldActionError."""
    text = deed.text
    if deed.do == "change":
        text = await asyncio.to_thread(_assignments, held_control.held, deed)
    try:
        await held_control.ask(deed.do, deed.number, text)
    except ControlError as error:
        raise HeldActionError(str(error)) from error


def _assignments(held: HeldSnapshot | None, deed: Deed) -> str:
    """Return the assignments of a change. Raises HeldActionError."""
    messages = held.messages if held is not None else ()
    message = next((one for one in messages if one.number == deed.number), None)
    if message is None:
        raise HeldActionError(f"message {deed.number} is no longer held")
    wrong = misfits(message, deed.values)
    if wrong:
        raise HeldActionError("; ".join(wrong.values()), wrong)
    text = assigned(message, deed.values)
    if not text:
        raise HeldActionError("no field was changed: let-go forwards the message unchanged")
    return text


def _message(held: HeldSnapshot, message: HeldMessage) -> records.HeldMessage:
    return project(
        records.HeldMessage,
        message,
        sender=sender(message),
        receiver=receiver(message),
        words=field_words(message.fields)[:_MAX_WORDS_LENGTH],
        values=[records.HeldValue(slot.field, slot.value) for slot in slots(message)],
        waited=held.waited_ns(message) / 1e9,
        bears=None if message.bears_ns is None else message.bears_ns / 1e9,
        patience=patience(message),
        answers=answers(message),
    )
