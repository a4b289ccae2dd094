"""Which players a session knows, for `--as PLAYER`."""

from __future__ import annotations
