"""The codec of lines of JSON, with Catan's own clauses."""

from __future__ import annotations

from kiebitz.dissectors.grammar.json.codec import JsonCodec
from kiebitz.dissectors.grammar.json.diagnostics import Conventions


class CatanCodec(JsonCodec):
    """The codec; unknown messages are allowed, unless their names look misspelt."""

    conventions = Conventions(
        message='{"…":{…}} and a line feed',
        codes={},
        allows_extensions=True,
        json_clause="4 Hinweise zu JSON",
        message_clause="2 Grundlagen",
        names_clause="3 Kompatibilität",
    )
