"""A recording of two games at once, in rooms of one server."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from file_conversations import Conversation, dissector_of

from kiebitz.dissectors.model import Item
from kiebitz.storage.recording.recorder import Recorder

ROOMS = """protocol = "rooms"
title = "Rooms"
game = "room"
[messages]
LOGIN = "c: name=player"
JOINED = "s: room=id:room"
START = "s*: first=player"
MOVED = "s*: name=player x=integer"
OVER = "s*: name=player"
[identity]
login = "LOGIN"
[events]
started = { on = "START", opens = true, say = "{first} begins", put = { "players.{first}.x" = 0 } }
moved = { on = "MOVED", say = "{name} moves", put = { "players.{name}.x" = "x" } }
over = { on = "OVER", ends = true, say = "{name} wins", result = { winner = "name" } }
"""
ROOM_LINES = (
    *("a> LOGIN ann", "a< JOINED 7", "b> LOGIN bob", "b< JOINED 9", "a< START ann", "b< START bob"),
    *("a< MOVED ann 3", "b< MOVED bob 4", "b< OVER bob", "a< MOVED ann 5", "b< MOVED bob x"),
)


@contextmanager
def two_rooms(folder: Path) -> Iterator[tuple[str, ...]]:
    """Record two games at once; yield the arguments to serve them."""
    file = folder / "rooms.toml"
    file.write_text(ROOMS)
    dissector = dissector_of(ROOMS)
    talk = Conversation(dissector).send(*ROOM_LINES)
    path = str(folder / "rooms.db")
    recorder = Recorder(path, "relay", "made up", decode_as={("tcp", 4711): dissector})
    recorder.record(later(talk.items, time.time_ns() - 5_000_000_000))
    recorder.commit()
    yield path, "-P", str(file)
    recorder.close()


def later(items: Sequence[Item], by_ns: int) -> list[Item]:
    """Return the same at a later time."""
    streams = {
        stream: msgspec.structs.replace(stream, opened_ns=stream.opened_ns + by_ns)
        for stream in {item.stream for item in items}
    }
    return [
        msgspec.structs.replace(item, stream=streams[item.stream], ts_ns=item.ts_ns + by_ns) for item in items
    ]
