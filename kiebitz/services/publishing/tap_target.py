"""The destination and the name of a tap."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kiebitz.dissectors.extras import require_extra
from kiebitz.proxy.taps.nats_url import NatsUrl, check_protected, read_seed


class TapTarget(msgspec.Struct, frozen=True):
    """The NATS server and tap name of a published recording; `credentials` is a file or None."""

    place: NatsUrl
    name: str
    credentials: Path | None


def check_reachable(place: NatsUrl, credentials: Path | None) -> None:
    """Raise TapError if it is clear beforehand that nothing can be published or read there."""
    check_protected(place, credentials)
    if credentials is not None:
        read_seed(credentials)

    require_extra("taps", "a tap")
