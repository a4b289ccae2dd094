"""`kiebitz messages`: list messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import click

from kiebitz.cli.differences.altered import show_alterations
from kiebitz.cli.listings import MESSAGES
from kiebitz.cli.multi_session import list_sessions, these
from kiebitz.cli.options.catalog import filter_option
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.session import open_session, sessions_argument
from kiebitz.cli.terminal.table import BATCH, Form, batches, of_several, output_options, show
from kiebitz.services.sessions import is_database, is_several, split_number
from kiebitz.services.standard_streams import warn
from kiebitz.storage.read.message_queries import MAX_SHOWN_BYTES, MessageDiagnostic, diagnostics_of_messages
from kiebitz.storage.read.recorded_bytes import RecordedBytes
from kiebitz.storage.session.listing_records import ListedMessage
from kiebitz.storage.session.session import Alteration, Message, Session, project

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter


@click.command()
@sessions_argument
@filter_option
@protocol_option
@click.option(
    "--altered",
    is_flag=True,
    help="List alterations instead: the original message, the result, and the rule.",
)
@click.option("-F", "following", is_flag=True, help="Follow: print new messages until the session ends.")
@output_options
def messages(
    sessions: tuple[str, ...], wanted: Filter | None, altered: bool, following: bool, form: Form | None
) -> None:
    """List the messages of sessions: time, stream, direction, client and content.

    Altered messages are marked. A dropped message reached no receiver: the table shows it without a number,
    and --json and the like only with --altered.

    \b
    Example:
      kiebitz messages game.db -Y 'msg == "ANNOUNCE" && maexchen.dice == "2,1"'
      kiebitz messages game.db -F --nl
      kiebitz messages 'game.db:*' other.pcap -Y 'chat contains "ü"'
    """
    if altered and following:
        raise click.UsageError("--altered and -F exclude each other")
    if following and is_several(sessions):
        raise click.UsageError("-F requires a single session")
    nothing = "no matching messages" if wanted else f"no messages in {these(sessions)}"
    if altered:
        show_alterations(sessions, wanted, form)
    elif following:
        path, _ = split_number(sessions[0])
        opened = Session(open_session(sessions[0]), path if is_database(path) else None)
        columns = of_several(MESSAGES, len(opened.timeline.tables()) > 1)
        show(columns, _followed(opened, _Listing(opened, wanted, form is None)), form, nothing)
    else:
        has_dropped = form is None
        list_sessions(
            sessions,
            MESSAGES,
            lambda session: _Listing(session, wanted, has_dropped).messages(0),
            form,
            nothing,
        )


class _Listing:
    """A session's messages; with `has_dropped`, dropped messages in between."""

    def __init__(self, session: Session, wanted: Filter | None, has_dropped: bool) -> None:
        self._session = session
        self._wanted = wanted
        self._has_dropped = has_dropped
        self._timeline = session.timeline
        self._after = 0
        """Id of the last alteration that was listed; each database counts them from 1."""

    def messages(self, after: int) -> Iterator[ListedMessage]:
        """Yield the messages after a number."""
        timeline = self._session.timeline
        if timeline is not self._timeline:
            self._timeline, self._after = timeline, 0
        dropped = deque(self._dropped()) if self._has_dropped else deque()
        recorded = RecordedBytes(timeline.connection)
        remaining = self._session.messages(self._wanted, after)
        while found := list(islice(remaining, BATCH)):
            diagnostics = diagnostics_of_messages(timeline, [message.id for message in found])
            for message in found:
                while dropped and dropped[0].ts_ns < message.ts_ns:
                    yield _dropped(dropped.popleft())
                stream_id = timeline.numbers.row_id("streams", message.stream)
                yield _listed(message, stream_id, diagnostics.get(message.id, ()), recorded)
        yield from map(_dropped, dropped)

    def _dropped(self) -> Iterator[Alteration]:
        for alteration in self._session.alterations(self._wanted, self._after):
            self._after = alteration.id
            if alteration.is_kept_back:
                yield alteration


def _dropped(dropped: Alteration) -> ListedMessage:
    """Return a dropped message, which has no number."""
    missing = dict.fromkeys(("number", "gloss", "game", "event", "sent"))
    fields = dropped.fields or {}
    return project(ListedMessage, dropped, **missing, fields=fields, altered=dropped.action, diagnostics=())


def _listed(
    message: Message, stream_id: int, diagnostics: Sequence[MessageDiagnostic], recorded: RecordedBytes
) -> ListedMessage:
    sent = None
    if not message.fields and any(diagnostic.severity != "note" for diagnostic in diagnostics):
        end = message.offset + min(message.length, MAX_SHOWN_BYTES)
        stretches = recorded.between(stream_id, message.direction, message.offset, end)
        sent = b"".join(stretch.data or b"" for stretch in stretches)
    return project(ListedMessage, message, diagnostics=diagnostics, sent=sent)


def _followed(session: Session, listing: _Listing) -> Iterator[list[ListedMessage]]:
    """Yield existing and new messages until the session ends or its recorder dies."""
    latest = 0
    for _ in session.looks():
        timeline = session.timeline
        newest = timeline.numbers.number("messages", timeline.last_id("messages"))
        for batch in batches(listing.messages(latest)):
            yield batch
            newest = max([newest, *(one.number for one in batch if one.number is not None)])
        latest = newest
    if session.ended is None and session.path is not None:
        warn("the recording stopped without ending the session")
