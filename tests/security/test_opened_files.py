"""Files that are opened on the served page: who may, and what a hostile file can do."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlencode

import pytest
from command import CAPTURES, TINY
from conversation_files import blocks
from imported_databases import database_of
from processes_and_rows import until
from request_files import compare
from served_pages import QUICK_S, Answer, Serving, own_address, serving
from snapshots import DATA, as_words
from strength import GAMES, a_few

from kiebitz.cli.web import opened_files
from kiebitz.cli.web.local_sessions import LocalSessions
from kiebitz.cli.web.opened_files import OpenedFiles
from kiebitz.dissectors.errors import KiebitzError

GAME = (CAPTURES / GAMES["maexchen"]).read_bytes()
OWN = {"Content-Type": "application/octet-stream", "Kiebitz-Hands": "1"}
DICE = b'protocol = "dice"\nport = 4321\n[messages]\nROLL = "c: faces=integer"\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("opened")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Serving]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        with serving(TINY) as made:
            yield made
    assert list(folder.iterdir()) == []


def sent(
    server: Serving, name: str, data: bytes, headers: Mapping[str, str] = OWN, key: str | None = None
) -> Answer:
    asked = urlencode({"name": name} if key is None else {"name": name, "key": key}, errors="surrogatepass")
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    try:
        connection.request("POST", f"/api/files?{asked}", data, dict(headers))
        response = connection.getresponse()
        return Answer(response.status, dict(response.getheaders()), response.read())
    finally:
        connection.close()


def names(server: Serving, key: str | None = None) -> list[str]:
    return [session["name"] for session in server.well("api/sessions", key=key)["sessions"]]


def left(folder: Path) -> set[str]:
    """Return the names of the files of opened files."""
    return {path.name for path in folder.glob("kiebitz-*/**/*") if path.is_file()}


def test_a_capture_a_database_and_a_protocol_file(server: Serving, folder: Path) -> None:
    opened = sent(server, "game.pcap", GAME)
    assert opened.status == 200, opened
    number = opened.json["session"]
    assert number > 1
    assert names(server)[number - 1] == "game.pcap"
    assert server.well("api/tables", session=number) == server.well("api/tables")
    # The capture itself is not kept.
    assert "game.pcap" not in left(folder)
    database = Path(database_of(GAMES["maexchen"])).read_bytes()
    assert sent(server, "game.db", database).json["session"] == number + 1
    assert server.well("api/tables", session=number + 1) == server.well("api/tables")
    assert sent(server, "dice.toml", DICE).json == {"session": None, "protocols": ["dice"]}
    assert sent(server, "again.pcap", GAME).json["session"] == number + 2
    # Sessions of before are as they were.
    assert server.well("api/tables", session=number) == server.well("api/tables")


REQUESTS = {
    title: block for title, block in blocks(DATA / "requests.txt").items() if title.startswith("files: ")
}


@pytest.mark.full(but=1)
@pytest.mark.parametrize("title", REQUESTS)
def test_what_is_refused_leaves_nothing(title: str, server: Serving, folder: Path) -> None:
    before = left(folder), names(server)
    compare(REQUESTS[title], server)
    bomb = sent(server, "bomb.pcap.gz", gzip.compress(bytes(1 << 20)) * 300)
    assert (bomb.status, "bomb.pcap.gz is not a capture" in bomb.sentence) == (400, True)
    assert (left(folder), names(server)) == before


HOSTILE = [step for title, block in REQUESTS.items() if "hostile" in title for step in block.steps]


@pytest.mark.parametrize("step", a_few(HOSTILE, lambda step: "half.db" in step))
def test_a_page_without_a_server_refuses_it_too(step: str, tmp_path: Path) -> None:
    _, asked, text, *_ = as_words(step)
    name = asked.partition("name=")[2]
    sessions = LocalSessions()
    first = sessions.add(TINY)
    path = tmp_path / (name.replace("/", "_").replace("\0", "") or "file")
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(KiebitzError) as refused:
        _ = sessions.add_protocol(name, text) if name.endswith(".toml") else sessions.add(str(path))
    assert str(refused.value)
    assert str(tmp_path) not in str(refused.value)
    assert sessions.add(TINY) == first + 1
    assert sessions.answer("/api/tables", "session=1")[0] == 200


def test_only_the_full_link_opens_files_and_shows_them() -> None:
    with serving(TINY, "--host", own_address(), "--player-links") as far:
        until(lambda: "alice" in far.links(), "there is a link", QUICK_S)
        (spectators,) = [line.rpartition("key=")[2] for line in far.out.splitlines() if "spectators" in line]
        keys = {"alice": far.links()["alice"], "spectators": spectators}
        for key in (*keys.values(), None, "wrong"):
            assert sent(far, "game.pcap", GAME, key=key).status == 403
        number = sent(far, "game.pcap", GAME, key=far.key).json["session"]
        assert "game.pcap" in names(far, far.key)
        for key in keys.values():
            assert far.well("api/sessions", key=key)["opens"] == 0
            assert "game.pcap" not in names(far, key)
            assert far.get("api/tables", session=number, key=key).status == 404
            with far.live(session=number, key=key) as stream:
                assert stream.status == 404
        assert "game.pcap" not in far.get("api/home", key=spectators).body.decode()
    with serving(TINY, "--read-only") as server:
        assert server.well("api/sessions")["opens"] == 0
        assert "--read-only" in sent(server, "game.pcap", GAME).sentence


def test_a_file_is_as_large_as_it_says(server: Serving, folder: Path) -> None:
    before = left(folder)
    head = f"POST /api/files?name=x.pcap HTTP/1.1\r\nHost: {server.host}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in OWN.items())
    answer = server.raw(f"{head}Content-Length: 99999999999\r\n\r\n".encode())
    assert (answer.status, "at most 100 MiB" in answer.sentence) == (413, True)
    # One that ends before its time.
    with socket.create_connection((server.host, server.port)) as sock:
        sock.sendall(f"{head}Content-Length: 1000\r\n\r\nhalf".encode())
    until(lambda: sent(server, "x.pcap", b"x").status == 400, "the next one has its turn", QUICK_S)
    assert left(folder) == before


async def pieces(*given: bytes, pause_s: float = 0.0) -> AsyncIterator[bytes]:
    for piece in given:
        await asyncio.sleep(pause_s)
        yield piece


@pytest.mark.parametrize(
    ("limits", "name", "words"),
    [
        ({"MAX_BYTES": 10}, "x.pcap", "a file has at most"),
        ({"RECEIVE_S": 0.02}, "x.pcap", "not complete after"),
        ({"READ_S": 0.05}, "x.pcap", "took longer than"),
        ({"READ_S": 0.05}, "x.toml", "took longer than"),
        ({"MAX_FILES": 0}, "x.pcap", "too many files"),
        ({"MAX_BYTES_IN_ALL": 0}, "x.pcap", "too many files"),
    ],
    ids=str,
)
def test_limits(
    limits: dict[str, float], name: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for limit, value in limits.items():
        monkeypatch.setattr(opened_files, limit, value)

    async def run() -> None:
        files = OpenedFiles()
        try:
            with pytest.raises(KiebitzError, match=words):
                await files.open(name, 0, pieces(GAME, b"", pause_s=0.03))
            assert left(tmp_path) == set()
        finally:
            files.close()

    asyncio.run(run())


def test_files_are_opened_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def run() -> None:
        files = OpenedFiles()
        try:
            first = asyncio.create_task(files.open("x.pcap", 0, pieces(b"", b"", pause_s=QUICK_S)))
            await asyncio.sleep(0)
            with pytest.raises(KiebitzError, match="another file is being opened"):
                await files.open("y.pcap", 0, pieces(GAME))
            # The browser has gone.
            first.cancel()
            await asyncio.wait([first])
            assert (await files.open("y.pcap", 0, pieces(GAME)))[1] == [1]
        finally:
            files.close()

    asyncio.run(run())
    assert list(tmp_path.iterdir()) == []
