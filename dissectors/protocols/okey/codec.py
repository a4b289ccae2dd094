"""The codec of lines: arguments separated by blanks, quoted if necessary, with Okey's own diagnostics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kiebitz.dissectors.grammar.grammar import Decoded, Grammar, MessageType, Violation, sender_of, unreadable
from kiebitz.dissectors.grammar.text_codec import Reading, TextCodec
from kiebitz.dissectors.grammar.text_message import Sent
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.packaged import packaged_codec
from kiebitz.dissectors.protocols.okey.grammar import GRAMMAR


class OkeyCodec(TextCodec):
    """The codec of Okey's lines, in both paddings."""

    noun = "argument"
    unit = "line"
    names_fields = False

    def __init__(self, grammar: Grammar, *about: Any, **more: Any) -> None:
        super().__init__(grammar, *about, **more)
        names = b"|".join(re.escape(row.name.encode()) for row in grammar.rows)
        # A quoted token can have any parts.
        self._beginning = re.compile(rb'\n? *(?:"|%b)' % names)

    def names_message(self, frame: bytes, direction: Direction) -> bool:
        """Return True if a line begins with the name of a message; no other line has a row.

        Decoding a line of another protocol costs far more: it searches for the nearest name.
        """
        if not self._beginning.match(frame):
            return False
        tokens = self.sent(frame).tokens
        return bool(tokens and self.grammar.rows_named(direction, tokens[0].text))

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        return self.decode(frame, direction).row is not None

    def notation(self, row: MessageType) -> str:
        arguments = (f"[<{field.name}>]" if field.optional else f"<{field.name}>" for field in row.fields)
        return " ".join([row.name, *arguments])

    def nothing(self, sent: Sent, direction: Direction) -> Decoded:
        text = "an empty line has no message"
        if sent.deviation is not None and sent.deviation.kind == "unended":
            text = "a quotation has no end, so readers drop it"
        elif sent.text:
            text = "there is no command in this line"
        return unreadable(self.error("empty-line", text, sent.span(0, len(sent.text)), "a command"))

    def unknown(self, sent: Sent, direction: Direction) -> Violation:
        token = sent.tokens[0]
        name, names = token.text, self.grammar.names(direction)
        if name.upper() == name or name.upper() not in names:
            return super().unknown(sent, direction)
        text = f'"{name}" is not a message {sender_of(direction)} sends: commands are in capital letters'
        place = sent.span(token.start, token.end)
        return self.error("unknown-message", f"{text}, {name.upper()}", place, f"one of {', '.join(names)}")

    def surplus(self, sent: Sent, row: MessageType, reading: Reading) -> Iterator[Violation]:
        # The words of a debug message are not always quoted.
        if not (row.fields and row.fields[-1].optional):
            yield from super().surplus(sent, row, reading)


CODEC: OkeyCodec = packaged_codec(__package__, GRAMMAR)
