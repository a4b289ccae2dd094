"""The options with which a recording is published, and those by which a NATS server is reached."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kiebitz.cli.options.parsed import Parsed
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
    help="Who one is at the NATS server: credentials as nsc writes them, or the seed of an NKEY. The "
    "environment's NATS_CREDS says the same.",
)
"""Gives the command `credentials`: Path, or None."""


def publish_options(command: F) -> F:
    """Give a command `place_of_tap`, `tap_name` and `credentials`; `tapping` makes one of them."""
    command = credentials_option(command)
    command = click.option(
        "--tap",
        "tap_name",
        type=Parsed("name", check_tap_name),
        metavar="NAME",
        help="--publish: what this machine is called there; its host name unless it is given.",
    )(command)
    return click.option(
        "--publish",
        "place_of_tap",
        type=PLACE,
        metavar="nats://HOST:4222/SUBJECT",
        help="Publish what is recorded to NATS JetStream, too, from where kiebitz collect records it.",
    )(command)


def tapping(
    place: NatsUrl | None, name: str | None, credentials: Path | None, is_anonymized: bool
) -> TapTarget | None:
    """What these options ask for together, if anything. Raises UsageError and TapError."""
    if place is None:
        if name is not None:
            raise click.UsageError("--tap goes with --publish")
        return None
    if is_anonymized:
        raise click.UsageError(
            "--publish and --anonymize exclude each other: items are published as they come, names and all"
        )
    check_reachable(place, credentials)
    return TapTarget(place, name or default_tap_name(), credentials)


def tapped(tapping: TapTarget | None, database: str) -> AbstractContextManager[TapSupervisor | None]:
    """Return the tap of a recording as a context; None stands for no tap. Raises StorageError."""
    if tapping is None:
        return nullcontext()
    # It takes its time to load, and most recordings are not published.
    from kiebitz.services.publishing.supervisor import TapSupervisor

    return TapSupervisor(tapping, database)
