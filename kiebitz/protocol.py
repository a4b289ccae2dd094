"""The names for authors of protocols; see docs/writing-a-protocol.md.

Expected reactions and bots for `kiebitz probe` are in `kiebitz.dissectors.conformance`, checks for a protocol
in `kiebitz.dissectors.testing`.
"""

from __future__ import annotations

from kiebitz.dissectors.dissector import Dissector, Likeness
from kiebitz.dissectors.game.broadcast_dedup import EventLog
from kiebitz.dissectors.game.context import GameContext, label
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.game.table import GameTable, SimpleTable
from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.dissection_tree import Piece, Pieces
from kiebitz.dissectors.grammar.field_type import FieldType, IdentifierKind, KeysOf, Mismatch
from kiebitz.dissectors.grammar.fields import Number, Text, Word
from kiebitz.dissectors.grammar.framing import ByteFramer, DatagramFramer, Frame, Framer, LineFramer
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    EventKind,
    Field,
    Grammar,
    MessageType,
    Rule,
    Violation,
)
from kiebitz.dissectors.grammar.sentences import coded, each
from kiebitz.dissectors.grammar.text_codec import DelimitedCodec
from kiebitz.dissectors.identity import Identity
from kiebitz.dissectors.model import Direction, Event, Findings, Game, Ids, Message, Stream, TableInfo
from kiebitz.dissectors.presentation import Presentation
from kiebitz.dissectors.protocol_file.dissector import dissector_from, packaged_protocol
from kiebitz.dissectors.protocol_file.reading.reader import read_specification
from kiebitz.dissectors.queries import Query
from kiebitz.dissectors.statistics import Counts, Durations, Histogram, Shares, TimeSeries, actions, of_each

__all__ = [
    "ByteFramer",
    "Codec",
    "Counts",
    "DatagramFramer",
    "Decoded",
    "DelimitedCodec",
    "Direction",
    "Dissector",
    "Durations",
    "Event",
    "EventKind",
    "EventLog",
    "Field",
    "FieldType",
    "Findings",
    "Frame",
    "Framer",
    "Game",
    "GameContext",
    "GameTable",
    "Grammar",
    "Histogram",
    "IdentifierKind",
    "Identity",
    "Ids",
    "KeysOf",
    "Likeness",
    "LineFramer",
    "Message",
    "MessageType",
    "Mismatch",
    "Number",
    "Piece",
    "Pieces",
    "Presentation",
    "Query",
    "Rule",
    "Shares",
    "SimpleTable",
    "State",
    "Stream",
    "TableInfo",
    "Text",
    "TimeSeries",
    "Violation",
    "Word",
    "actions",
    "coded",
    "dissector_from",
    "each",
    "label",
    "of_each",
    "packaged_protocol",
    "read_specification",
]
