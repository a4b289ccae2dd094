"""Games over several ports: `together`, and players who are known by their port."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from command import kiebitz
from conversation_files import blocks
from file_conversations import Conversation, dissector_of
from processes_and_rows import KIEBITZ, PATIENCE_S, free_port, running, until
from snapshots import DATA

from kiebitz.storage.recording.recorder import Recorder

FILE = blocks(DATA / "conversations" / "files_ports.txt")["protocol together"].text
LINES = (
    *("w< READY", "b< READY", "w< TURN", "w> 3", "w< SEEN 3", "b< SEEN 3"),
    *("b< TURN", "w> 4", "b> 5", "b< OVER true"),
)
SENTENCES = [
    *("white is ready", "black is ready", "white is to move", "white moves to 3", "all see 3"),
    *("black is to move", "white moves to 4", "black moves to 5", "black wins"),
]


@pytest.mark.parametrize(
    ("viewer", "expected"),
    [
        ("white", [line for line in SENTENCES if "black" not in line]),
        ("black", [line for line in SENTENCES if "white" not in line]),
        ("public", ["all see 3"]),
    ],
)
def test_each_port_is_a_players_view(tmp_path: Path, viewer: str, expected: list[str]) -> None:
    database, file = str(tmp_path / "pairs.db"), tmp_path / "pairs.toml"
    file.write_text(FILE)
    talk = Conversation(dissector_of(FILE), ports={"b": 4712}).send(*LINES)
    recorder = Recorder(database, "import", "pairs", decode_as={("tcp", 4711): talk.dissector})
    recorder.record(talk.items)
    recorder.close()
    recorder.connection.close()
    done = kiebitz("events", database, "-P", str(file), "--as", viewer, "--json")
    assert [event["sentence"] for event in done.json] == expected


@pytest.mark.full
@pytest.mark.usefixtures("protocol_files_forgotten")
def test_a_relay_of_two_ports_records_one_game(tmp_path: Path) -> None:
    database, file = tmp_path / "pairs.db", tmp_path / "pairs.toml"
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in "wb"]
        servers = [listener.getsockname()[1] for listener in listeners]
        relays = [free_port("tcp") for _ in "wb"]
        file.write_text(FILE.replace("[4711, 4712]", str(servers)))
        modes = [f"reverse:tcp://127.0.0.1:{to}@{at}" for to, at in zip(servers, relays, strict=True)]
        words = ["-m", modes[0], "-m", modes[1], "-P", str(file), "--change", "x == 3", "x=6"]
        stack.enter_context(
            running(*KIEBITZ, "relay", *words, "-w", str(database), "-q", ready="listening on")
        )
        ends = {}
        for name, listener, relay in zip("wb", listeners, relays, strict=True):
            ends[name, ">"] = client = stack.enter_context(socket.create_connection(("127.0.0.1", relay)))
            ends[name, "<"] = server = stack.enter_context(listener.accept()[0])
            client.settimeout(PATIENCE_S)
            server.settimeout(PATIENCE_S)
        for line in LINES:
            name, sign, text = line[0], line[1], line[3:]
            ends[name, sign].sendall(f"{text}\n".encode())
            received = ends[name, "<" if sign == ">" else ">"].recv(100).decode()
            assert received == f"{text}\n".replace("3", "6")

        def recorded() -> list[str]:
            done = kiebitz("events", str(database), "-P", str(file), "--json")
            return [event["sentence"] for event in done.json] if done.status == 0 else []

        until(lambda: recorded()[:9] == [line.replace("3", "6") for line in SENTENCES], "all is recorded")
