"""Where a recording is published, and under which name."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kiebitz.dissectors.extras import require_extra
from kiebitz.proxy.taps.nats_url import NatsUrl, check_protected, read_seed


class Tapping(msgspec.Struct, frozen=True):
    """Where a recording is published, as the tap of which name; `credentials` is a file, or None."""

    place: NatsUrl
    name: str
    credentials: Path | None


def check_reachable(place: NatsUrl, credentials: Path | None) -> None:
    """Raise TapError where it is clear beforehand that nothing can be published or read there."""
    check_protected(place, credentials)
    if credentials is not None:
        read_seed(credentials)
    # It takes its time to load, and most recordings are not published.

    require_extra("taps", "a tap")
