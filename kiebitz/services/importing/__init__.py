"""Import of captured packets as a recorded session, on one core or two."""

from __future__ import annotations

from importlib.util import find_spec


def is_compiled() -> bool:
    """Return True if extension modules import the packets, as hatch_build.py describes."""
    spec = find_spec(f"{__name__}.packets")
    return spec is not None and not str(spec.origin).endswith(".py")
