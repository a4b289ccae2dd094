"""The add-on that records mitmproxy's flows, with its options and its recorder.

mitmproxy owns the terminal, so messages go to its log. A session that cannot be opened is only a warning, as
mitmproxy exits on an error during start-up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mitmproxy import ctx
from mitmproxy.addonmanager import Loader
from mitmproxy.exceptions import OptionsError

from kiebitz.cli.configuration.file import configuration
from kiebitz.cli.configuration.settings import Configuration, ConfigurationError
from kiebitz.cli.mitm import log
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.proxy.journal.flush_timer import FlushTimer
from kiebitz.proxy.mitmproxy.streams import FlowJournal, StreamJournal
from kiebitz.proxy.system.clock import now_ns
from kiebitz.services.decode_as import DecodeAsError, parse_decode_as
from kiebitz.services.protocol_files import add_protocol_files
from kiebitz.services.recording.recorder_supervisor import RecorderSupervisor
from kiebitz.storage.database.schema import StorageError


class RecordFlows:
    """The recording add-on, with the options `kiebitz_db`, `kiebitz_decode_as` and `kiebitz_protocols`."""

    def __init__(self) -> None:
        self.addons: list[FlowJournal] = []
        """Add-ons whose hooks mitmproxy also calls."""
        self._session: _Session | None = None

    def load(self, loader: Loader) -> None:
        """Register the options."""
        loader.add_option(
            "kiebitz_db",
            str,
            _configuration().database,
            "Record TCP and UDP flows into this Kiebitz database; empty records nothing.",
        )
        loader.add_option(
            "kiebitz_decode_as",
            Sequence[str],
            [],
            "Decode a server port as a game, as in udp.port==4711,maexchen, or as none. Default: recognised.",
        )
        loader.add_option(
            "kiebitz_protocols",
            Sequence[str],
            [],
            "Files that describe further protocols, as for the option -P of kiebitz.",
        )
        try:
            add_protocol_files(_configuration().protocols, "configured", replaces=True)
        except KiebitzError as error:
            log.warn(f"Kiebitz ignores the protocols of its configuration: {error}")

    def configure(self, updated: set[str]) -> None:
        """Reject changes of the options while recording. Raises OptionsError."""
        if self._session is not None and updated & {"kiebitz_db", "kiebitz_decode_as", "kiebitz_protocols"}:
            raise OptionsError("Kiebitz is recording: set its options when mitmproxy starts")
        if "kiebitz_protocols" in updated:
            try:
                add_protocol_files(ctx.options.kiebitz_protocols, replaces=True)
            except KiebitzError as error:
                raise OptionsError("\n".join([str(error), *error.excerpt()])) from error

    def running(self) -> None:
        """Start the recording when mitmproxy is listening."""
        database: str = ctx.options.kiebitz_db
        if not database or not ctx.options.server:
            return
        try:
            parse_decode_as(ctx.options.kiebitz_decode_as)
            self._session = _Session(database, ctx.options.mode, ctx.options.kiebitz_decode_as)
        except DecodeAsError as error:
            log.warn(f"Kiebitz records nothing: kiebitz_decode_as: {error}")
            return
        except (StorageError, OSError) as error:
            log.warn(f"Kiebitz records nothing: {error}")
            return
        self.addons.append(FlowJournal(self._session.streams))
        log.inform(f"Kiebitz records into {database}")

    def done(self) -> None:
        """End the recording when mitmproxy exits or reloads the script."""
        self.addons.clear()
        if self._session is not None:
            self._session.end()
            self._session = None


class _Session:
    """A session being recorded. Raises StorageError, and OSError if the journal cannot be created."""

    def __init__(self, database: str, modes: Sequence[str], decode_as: Sequence[str]) -> None:
        self._recorder = RecorderSupervisor(
            database,
            on_trouble=lambda sentence: log.warn(f"Kiebitz: {sentence}"),
            tell=_notify,
            forwarder="mitmproxy",
        )
        try:
            self._recorder.start(" ".join(modes), decode_as=tuple(decode_as))
        except BaseException:
            self._recorder.discard()
            raise
        journal = self._recorder.journal
        self.streams = StreamJournal(journal, lambda _, sentence: log.inform(f"Kiebitz: {sentence}"))
        loop = asyncio.get_running_loop()
        self._flushing = FlushTimer(journal, loop)
        self._recorder.attend(loop)

    def end(self) -> None:
        """End all streams and wait until everything is recorded."""
        self._flushing.stop()
        self.streams.end_all(now_ns())
        self._recorder.leave()
        self._recorder.journal.close()
        self._recorder.finish()
        self._recorder.discard()


def _configuration() -> Configuration:
    try:
        return configuration()
    except ConfigurationError as error:
        log.warn(f"Kiebitz ignores its configuration: {error}")
        return Configuration()


def _notify(sentence: str) -> None:
    log.alert(f"Kiebitz: {sentence.removeprefix('kiebitz: ')}")
