import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kiebitz.pytest_plugin import Kiebitz

PROJECT = Path(__file__).parent.parent
PROTOCOL = PROJECT / "guess.toml"
sys.path.insert(0, str(PROJECT))

from guess_client import play  # noqa: E402 - the modules lie beside this folder
from guess_server import Game, Server  # noqa: E402 - as above


@pytest.fixture
def server_port() -> Iterator[int]:
    with Server(("127.0.0.1", 0), Game) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_a_game_follows_the_protocol(kiebitz: Kiebitz, server_port: int) -> None:
    with kiebitz.relay(server_port, protocol=PROTOCOL) as session:
        tries = play(session.port, "Anna")
    assert not session.diagnostics('diag.severity == "error"')
    assert len(session.messages('msg == "GUESS"')) == tries
    assert session.events()[-1].sentence == f"Anna needs {tries} tries"


def test_two_players_have_numbers_of_their_own(kiebitz: Kiebitz, server_port: int) -> None:
    with kiebitz.relay(server_port, protocol=PROTOCOL) as session:
        for name in ("Anna", "Bert"):
            play(session.port, name)
        assert len(session.messages('msg == "WON"')) == 2
