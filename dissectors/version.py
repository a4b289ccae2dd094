"""The installed version of Kiebitz."""

from __future__ import annotations


def kiebitz_version() -> str:
    """Return the installed version."""
    # What reads it takes its time to load, and most commands do not ask.
    from importlib.metadata import version

    return version("kiebitz")
