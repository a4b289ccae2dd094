"""Which Kiebitz this is."""

from __future__ import annotations


def kiebitz_version() -> str:
    """The version that is installed."""
    # What reads it takes its time to load, and most commands do not ask.
    from importlib.metadata import version

    return version("kiebitz")
