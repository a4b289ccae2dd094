"""Samples of protocols of courses, as text, and their protocol files."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from drafted_protocols import in_websocket

from kiebitz.dissectors.drafting.traffic import Conversation, Piece
from kiebitz.dissectors.model import Direction
from kiebitz.services.protocol_template import example_files

COURSES = Path(__file__).parents[1] / "data" / "courses"
EXAMPLES = example_files() | {path.stem: path for path in COURSES.glob("*.toml")}


def course(name: str) -> list[Conversation]:
    """Return the conversations of a sample of a course's protocol in `tests/data/courses`.

    The first line is the transport, or `websocket`, and the port; then `1>` is a client's message on its
    first connection, and `1<` the server's. Lines that begin with `=` or `|` are
    about events and the board.
    """
    first, *lines = (COURSES / f"{name}.txt").read_text().splitlines()
    transport, port = first.split()
    pieces: dict[str, list[Piece]] = defaultdict(list)
    offsets: Counter[tuple[str, str]] = Counter()
    for number, line in enumerate(line for line in lines if line[0] not in "=|"):
        connection, sign, text = line[0], line[1], line[3:]
        data = (
            text.encode("latin-1").decode("unicode_escape").encode("latin-1")
            if "\\" in text
            else text.encode()
        )
        direction: Direction = "c2s" if sign == ">" else "s2c"
        at = offsets[connection, direction]
        offsets[connection, direction] += len(data)
        pieces[connection].append(Piece(direction, 10_000_000 * number, at, data))
    return [
        Conversation(
            f"10.0.0.{int(number) + 1}:4000{number}",
            f"10.0.0.1:{port}",
            "udp" if transport == "udp" else "tcp",
            in_websocket(own, "plain") if transport == "websocket" else own,
        )
        for number, own in pieces.items()
    ]
