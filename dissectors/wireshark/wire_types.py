"""Declarative descriptions of codecs and field types, from which dissectors in other languages are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WireType = Mapping[str, Any]
"""A field type as a JSON value: its `kind`, as named in `runtime/`, with its parameters."""

WireFormat = Mapping[str, Any]
"""A format as a JSON value: its `kind`, as named in `runtime/`, with its parameters.

`framing`, if given, describes the framing likewise.
"""
