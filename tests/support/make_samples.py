"""Write the recorded games of `kiebitz probe`: `python tests/support/make_samples.py`.

They are games of the faultless programs in `peers/`, in memory, so they are the same each time.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from command import ROOT
from games_in_memory import NAMES, player_of, server_of
from peers.bench import Bench

from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.database.schema import MEMORY
from kiebitz.storage.export.export import FORMATS
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.recorder import Recorder

SEATS = {"maexchen": 2, "schafkopf": 4, "catan": 3, "okey": 4, "cgml": 3}
GAMES = {"maexchen": 4, "schafkopf": 1, "catan": 1, "okey": 1, "cgml": 2}
"""Number of games that reaches most messages in a small file."""


def sample_path(protocol: str) -> Path:
    return ROOT / "dissectors" / "protocols" / protocol / "sample.pcapng.gz"


def played(protocol: str) -> Bench:
    """Return the game of a sample."""
    seats = SEATS[protocol]
    bench = Bench(server_of(protocol, games=GAMES[protocol], players=seats))
    for name in NAMES[:seats]:
        bench.connect(player_of(protocol, name))
    bench.run(60)
    return bench


def write(protocol: str) -> Path:
    """Write a protocol's sample, and give its path."""
    dissector = dissector_of(protocol)
    assert dissector is not None
    bench = played(protocol)
    recorder = Recorder(MEMORY, "replay", protocol, decode_as=bench.decode_as(dissector))
    recorder.record(bench.items())
    recorder.close()
    path = sample_path(protocol)
    with path.open("wb") as packed, gzip.GzipFile("", "wb", 9, packed, 0) as file:
        FORMATS["pcapng"](Timeline(recorder.connection, sessions(recorder.connection)[-1]), file)  # type: ignore[arg-type]  # it writes bytes, and is all that is asked
    recorder.connection.close()
    return path


if __name__ == "__main__":
    for name in SEATS:
        print(write(name))
