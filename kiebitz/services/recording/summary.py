"""The closing line of a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kiebitz.services.wording import in_words

if TYPE_CHECKING:
    from kiebitz.storage.recording.recorder import Recorder

_MAX_DIRECTIONS = 4
"""Maximum number of stream directions that the closing line names."""


def summary(recorder: Recorder) -> str:
    """Return the row counts of a session and its name `DB:N`."""
    counts = ", ".join(
        f"{recorder.counts[kind]} {kind if recorder.counts[kind] != 1 else kind.removesuffix('s')}"
        for kind in ("streams", "messages", "games", "alterations")
        if recorder.counts[kind] or kind != "alterations"
    )
    found = f"{counts}, {in_words(recorder.counts)}{_missing(recorder)}"
    return f"{found} -> {recorder.path}:{recorder.session_id}"


def _missing(recorder: Recorder) -> str:
    """Return the number of missing bytes by stream and direction; empty if there are none."""
    total = recorder.missing.total()
    if not total:
        return ""
    number = recorder.numbers.number
    ways = sorted(recorder.missing.items())
    parts = [
        f"{length:,} of stream {number('streams', stream)} {direction}"
        for (stream, direction), length in ways[:_MAX_DIRECTIONS]
    ]
    if len(ways) > _MAX_DIRECTIONS:
        parts.append("and others: kiebitz streams lists them")
    return f", {total:,} bytes missing ({', '.join(parts)})"
