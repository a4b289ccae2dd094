"""Options for publishing a recording to a NATS server."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from kiebitz.cli.options.records import Command, add_options, as_records
from kiebitz.cli.param_type import Parsed
from kiebitz.proxy.taps.nats_url import NatsUrl, check_tap_name, default_tap_name, parse_nats_url
from kiebitz.services.publishing.tap_target import TapTarget, check_reachable

if TYPE_CHECKING:
    from kiebitz.services.publishing.tap_supervisor import TapSupervisor

PLACE = Parsed("place", parse_nats_url)
"""nats://HOST:PORT/SUBJECT."""


credentials_option = click.option(
    "--nats-creds",
    "credentials",
    envvar="NATS_CREDS",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Credentials for the NATS server: a file from nsc, or the seed of an NKEY. Default: $NATS_CREDS.",
)
"""Passes `credentials` to the command: Path, or None."""


def publish_options(command: Command) -> Command:
    """Add the options of `Publishing` to a command, which receives them as `publishing`."""
    return add_options(
        as_records(publishing=Publishing)(command),
        click.option(
            "--publish",
            "place_of_tap",
            type=PLACE,
            metavar="nats://HOST:4222/SUBJECT",
            help="Also publish the recording to NATS JetStream, for kiebitz collect.",
        ),
        click.option(
            "--tap",
            "tap_name",
            type=Parsed("name", check_tap_name),
            metavar="NAME",
            help="With --publish: name of this machine. Default: its host name.",
        ),
        credentials_option,
    )


class Publishing(msgspec.Struct, frozen=True):
    """The tap of a recording, if it has one."""

    place_of_tap: NatsUrl | None
    tap_name: str | None
    credentials: Path | None

    def check(self, is_anonymized: bool) -> None:
        """Raise UsageError and TapError unless a recording can be published like this."""
        if self.place_of_tap is None:
            if self.tap_name is not None:
                raise click.UsageError("--tap requires --publish")
            return
        if is_anonymized:
            raise click.UsageError(
                "--publish and --anonymize exclude each other: traffic is published unchanged, with names"
            )
        check_reachable(self.place_of_tap, self.credentials)

    def tap(self, database: str) -> AbstractContextManager[TapSupervisor | None]:
        """Return the tap of a recording as a context, None without a tap. Raises StorageError."""
        if self.place_of_tap is None:
            return nullcontext()
        # Slow to import, and most recordings are not published.
        from kiebitz.services.publishing.tap_supervisor import TapSupervisor

        name = self.tap_name or default_tap_name()
        return TapSupervisor(TapTarget(self.place_of_tap, name, self.credentials), database)
