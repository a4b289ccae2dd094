"""What a corpus needs beside Kiebitz, which not everybody has installed."""

from __future__ import annotations

from importlib.util import find_spec

from kiebitz.dissectors.errors import KiebitzError

_NEEDED = ("dask", "distributed", "duckdb", "numpy")


def need_extra() -> None:
    """Raise KiebitzError where something is not installed; nothing is loaded."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise KiebitzError(
            f"a corpus needs {', '.join(missing)}, which is not installed here: pip install 'kiebitz[corpus]'"
        )
