"""Options for publishing a recording to a NATS server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kiebitz.cli.param_type import Parsed
from kiebitz.proxy.taps.nats_url import NatsUrl, check_tap_name, default_tap_name, parse_nats_url
from kiebitz.services.publishing.tap_target import TapTarget, check_reachable

if TYPE_CHECKING:
    from kiebitz.services.publishing.supervisor import TapSupervisor

F = TypeVar("F", bound=Callable[..., Any])


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


def publish_options(command: F) -> F:
    """Add the options for `tapping`: `place_of_tap`, `tap_name` and `credentials`."""
    command = credentials_option(command)
    command = click.option(
        "--tap",
        "tap_name",
        type=Parsed("name", check_tap_name),
        metavar="NAME",
        help="With --publish: name of this machine. Default: its host name.",
    )(command)
    return click.option(
        "--publish",
        "place_of_tap",
        type=PLACE,
        metavar="nats://HOST:4222/SUBJECT",
        help="Also publish the recording to NATS JetStream, for kiebitz collect.",
    )(command)


def tapping(
    place: NatsUrl | None, name: str | None, credentials: Path | None, is_anonymized: bool
) -> TapTarget | None:
    """Return the settings of the tap, if any. Raises UsageError and TapError."""
    if place is None:
        if name is not None:
            raise click.UsageError("--tap requires --publish")
        return None
    if is_anonymized:
        raise click.UsageError(
            "--publish and --anonymize exclude each other: traffic is published unchanged, with names"
        )
    check_reachable(place, credentials)
    return TapTarget(place, name or default_tap_name(), credentials)


def tapped(tapping: TapTarget | None, database: str) -> AbstractContextManager[TapSupervisor | None]:
    """Return the tap of a recording as a context, None without a tap. Raises StorageError."""
    if tapping is None:
        return nullcontext()
    # Slow to import, and most recordings are not published.
    from kiebitz.services.publishing.supervisor import TapSupervisor

    return TapSupervisor(tapping, database)
