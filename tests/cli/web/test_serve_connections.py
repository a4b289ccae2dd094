"""`kiebitz serve` under slow and hostile clients: deadlines, evictions, quotas, the limit of open files."""

from __future__ import annotations

import json
import os
import resource
import select
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from http.client import HTTPResponse
from pathlib import Path
from typing import NamedTuple

import pytest
from command import TINY
from processes_and_rows import PATIENCE_S, until
from served_pages import QUICK_S, Live, Serving, serving, target
from session_factory import Conversation, record
from strength import a_few, every, times

from kiebitz.cli.web.admission import BusyError, Holder, Quota, address_group

HOSTS = ["127.0.0.1", "0.0.0.0", "::1"]
LONG_NAME = "b" * 400
EVENTS = 2_500
"""Enough events of 400 bytes to fill all buffers on the way to a client that does not read."""

MEBIBYTE = 1 << 20
FLOOD = times(5_000, 1_100)
SPARE_FILES = 500
SLOW_READERS = 40
SMALL_BUFFER_BYTES = 4096
MOST_FILES = 2_500
"""The documented limits of connections, and the server's own files."""

CONNECTIONS_PER_BROWSER = 4
PENDING = 600
ANSWERS_BYTES = 128 << 20


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("large") / "game.db"
    talk = Conversation().says(b"REGISTER;alice").hears(b"REGISTERED")
    for number in range(EVENTS):
        talk.hears(f"SCORE;alice:{number},{LONG_NAME}:1".encode())
    record(made, talk.items)
    return made


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = FLOOD + SPARE_FILES
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"this system allows {hard} open files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(server: Serving, source: str | None = None, buffer_bytes: int | None = None) -> socket.socket:
    """Connect from an address of this machine, with a receive buffer of that size."""
    sock = socket.socket(socket.AF_INET6 if ":" in server.host else socket.AF_INET)
    sock.settimeout(QUICK_S)
    if buffer_bytes is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    if source is not None:
        sock.bind((source, 0))
    sock.connect((server.host, server.port))
    return sock


def request(server: Serving, path: str, **query: str | int | None) -> bytes:
    """Return a complete GET request with the full key."""
    host = f"[{server.host}]" if ":" in server.host else server.host
    line = target(path, {"key": server.key, **query})
    return f"GET {line} HTTP/1.1\r\nHost: {host}:{server.port}\r\n\r\n".encode()


def cpu_s(server: Serving) -> float:
    """CPU time that the server has used, in seconds."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


# Deadlines.


class Slow(NamedTuple):
    """A slow client: bytes sent at once, bytes repeated every 0.2 s, beginning of the expected answer.

    `KEY` is replaced with the full key. `answer` is None for a client that does not read.
    """

    sent: bytes
    dripped: bytes
    answer: bytes | None


END = b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
GOOD = b"GET /api/tables?key=KEY" + END
HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = (
    b"POST /api/held?key=KEY HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n"
    b"Content-Type: application/json\r\nkiebitz-hands: 1\r\n\r\n"
)
MANY = 500
"""Number of requests for the page's script whose answers together exceed the buffers of a connection."""

SLOW = {
    "nothing sent": Slow(b"", b"", b""),
    "half a head": Slow(HALF, b"", b"HTTP/1.1 408 "),
    "endless head": Slow(HALF, b"X: y\r\n", b"HTTP/1.1 408 "),
    "idle after an answer": Slow(GOOD, b"", b"HTTP/1.1 200 "),
    "half a head after an answer": Slow(GOOD + HALF, b"X: y\r\n", b"HTTP/1.1 200 "),
    "slow body": Slow(POST, b" ", b"HTTP/1.1 408 "),
    "slow body after its answer": Slow(
        GOOD.replace(b"\r\n\r\n", b"\r\nContent-Length: 9999\r\n\r\n"), b"x", b"HTTP/1.1 200 "
    ),
    "no key": Slow(GOOD.replace(b"KEY", b"none"), b"", b"HTTP/1.1 403 "),
    "large answer not read": Slow(b"GET /api/messages?limit=1000&key=KEY" + END, b"", None),
    "event stream not read": Slow(b"GET /api/live?after=0&key=KEY" + END, b"", None),
    "pipelined answers not read": Slow((b"GET /app.js?key=KEY" + END) * MANY, b"", None),
}


class Outcome(NamedTuple):
    """The bytes that a slow client received, and whether the server closed its connection."""

    answer: bytes
    is_closed: bool


@pytest.fixture(scope="module")
def outcomes(path: Path) -> dict[str, Outcome]:
    with serving(str(path), "--host", "0.0.0.0") as server, ThreadPoolExecutor(len(SLOW)) as pool:
        found = dict(zip(SLOW, pool.map(lambda slow: outcome(server, slow), SLOW.values()), strict=True))
        assert server.get("api/tables", key=server.key).status == 200
    return found


def outcome(server: Serving, slow: Slow) -> Outcome:
    """Run a slow client until the server closes its connection, or the test's patience ends."""
    assert server.key is not None
    reads = slow.answer is not None
    answer = b""
    end = time.monotonic() + PATIENCE_S
    with connect(server, buffer_bytes=None if reads else SMALL_BUFFER_BYTES) as sock:
        poll = select.poll()
        # An error is reported in any case.
        poll.register(sock, select.POLLIN if reads else 0)
        sock.sendall(slow.sent.replace(b"KEY", server.key.encode()))
        while time.monotonic() < end:
            try:
                if poll.poll(200):
                    piece = sock.recv(65_536) if reads else b""
                    if not piece:
                        return Outcome(answer, True)
                    answer += piece
                elif slow.dripped:
                    sock.send(slow.dripped)
            except ConnectionError:
                return Outcome(answer, True)
    return Outcome(answer, False)


@pytest.mark.full
@pytest.mark.parametrize("name", SLOW)
def test_a_slow_client_is_answered_and_closed(name: str, outcomes: dict[str, Outcome]) -> None:
    expected, found = SLOW[name].answer, outcomes[name]
    assert found.is_closed
    assert found.answer.startswith(expected or b"")
    assert bool(found.answer) == bool(expected)


# Crowds.


@pytest.mark.full
@pytest.mark.parametrize("host", a_few(HOSTS, ["0.0.0.0"]))
def test_a_crowd_of_connections_does_not_keep_a_new_client_out(
    host: str, path: Path, many_files: None, record_property: Callable[[str, object], None]
) -> None:
    # The server raises its own limit.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (1024, hard))
    with serving(str(path), "--host", host, preexec_fn=low) as server, ExitStack() as held:
        assert server.get("api/tables", key=server.key).status == 200
        before = server.memory()
        asked = (request(server, "api/messages", limit=1000), request(server, "api/live", after=0))
        for query in asked * SLOW_READERS:
            held.enter_context(connect(server, buffer_bytes=SMALL_BUFFER_BYTES)).sendall(query)
        longest_s = 0.0
        for number in range(FLOOD):
            half = held.enter_context(connect(server))
            half.sendall(b"GET / HTTP/1.1\r\n")
            if number % 100 == 0:
                begin = time.monotonic()
                assert server.get("", key=server.key).status == 200
                longest_s = max(longest_s, time.monotonic() - begin)
        record_property("longest_s", longest_s)
        assert server.sockets() < MOST_FILES
        assert server.memory() - before < 256 * MEBIBYTE
        assert server.err.strip() == ""


@pytest.mark.full
@pytest.mark.parametrize(("player", "browsers"), every(2, [(None, times(100, 15)), ("alice", 30)]))
def test_a_class_at_one_address_is_served(player: str | None, browsers: int, many_files: None) -> None:
    with serving(TINY, "--host", "0.0.0.0", "--player-links") as server, ExitStack() as held:
        until(lambda: "alice" in server.links(), "there are players' links")
        key = server.key if player is None else server.links()[player]
        streams = [held.enter_context(server.live(key=key)) for _ in range(browsers)]
        assert {stream.status for stream in streams} == {200}
        connections = [held.enter_context(connect(server)) for _ in range(browsers * CONNECTIONS_PER_BROWSER)]
        # Once on new connections, and once on those that were kept open.
        for path in ("app.js", "api/tables/1/picture"):
            for sock in connections:
                sock.sendall(request(server, path, key=key))
            for sock in connections:
                response = HTTPResponse(sock)
                response.begin()
                assert response.status == 200
                assert response.read()
                response.close()


@pytest.mark.full
def test_a_flood_from_one_address_evicts_its_own_connections(many_files: None) -> None:
    with serving(TINY) as server, ExitStack() as held:
        try:
            early = held.enter_context(connect(server, source="127.0.0.2"))
        except OSError:
            pytest.skip("this system has one loopback address only")
        early.sendall(HALF)
        flood = [held.enter_context(connect(server)) for _ in range(2 * PENDING)]
        for sock in flood:
            sock.sendall(HALF)
        # All of the flood has been accepted.
        assert server.get("api/tables").status == 200
        early.sendall(b"\r\n")
        assert early.recv(100).startswith(b"HTTP/1.1 200 ")
        assert server.sockets() < PENDING + SPARE_FILES
        # What it sent may not have been read when it was closed.
        with suppress(ConnectionResetError):
            assert flood[0].recv(100) == b""


@pytest.mark.full
def test_large_answers_that_are_not_read_take_limited_memory(path: Path) -> None:
    with serving(str(path)) as server, ExitStack() as held:
        query = request(server, "api/messages", limit=1000)
        size = int(server.get("api/messages", limit=1000).headers["content-length"])
        before = server.memory()
        slow = []
        for _ in range(2 * ANSWERS_BYTES // size):
            slow.append(held.enter_context(connect(server, buffer_bytes=SMALL_BUFFER_BYTES)))
            slow[-1].sendall(query * 20)
        # Refused ones wait at most until others are closed.
        begins = {sock: sock.recv(15) for sock in slow}
        assert set(begins.values()) <= {b"HTTP/1.1 200 OK", b"HTTP/1.1 503 Se"}
        # What a refused client sent ahead is not answered.
        refused = [sock for sock, begin in begins.items() if begin.endswith(b"503 Se")]
        assert refused
        for sock in refused:
            with suppress(ConnectionResetError):
                assert b"HTTP/1.1" not in b"".join(iter(partial(sock.recv, 4096), b""))
        assert server.memory() - before < 1.5 * ANSWERS_BYTES


@pytest.mark.full
@pytest.mark.parametrize(
    ("player", "limit", "whose"), [("alice", 100, "by this player's link"), (None, 400, "from this address")]
)
def test_one_link_or_address_cannot_take_all_event_streams(
    player: str | None, limit: int, whose: str
) -> None:
    with serving(TINY, "--host", "0.0.0.0", "--player-links") as server, ExitStack() as held:
        until(lambda: {"alice", "bob"} <= server.links().keys(), "there are players' links")
        key = server.key if player is None else server.links()[player]

        def listen(key: str | None) -> Live:
            return held.enter_context(server.live(key=key))

        streams = [listen(key)]
        while streams[-1].status == 200:
            streams.append(listen(key))
        assert len(streams) == limit + 1
        refused = streams[-1]
        assert refused.status == 503
        assert refused.headers["retry-after"]
        assert json.loads(refused.body()) == {"error": f"too many live connections {whose} (limit {limit})"}
        if player is not None:
            assert listen(server.links()["bob"]).status == 200
            assert listen(server.key).status == 200
        # A browser that reloads its page closes its stream.
        streams[0].close()
        again = partial(server.get, "api/live", None, "HEAD", key=key)
        until(lambda: again().status == 200, "the closed stream makes room")


# The limit of open files.


@pytest.mark.full
@pytest.mark.parametrize("files", a_few([64, 256], [64]))
def test_a_low_limit_of_open_files_is_reported_once(files: int) -> None:
    low = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (files, files))
    with serving(TINY, preexec_fn=low) as server, ExitStack() as held:
        for _ in range(2 * files):
            held.enter_context(connect(server)).sendall(HALF)
        for _ in range(5):
            assert server.get("api/tables").status == 200
        assert server.err.count("\n") == 1
        assert f"the system allows this process {files} open files" in server.err


@pytest.mark.full
def test_running_out_of_files_is_reported_once_costs_no_cpu_and_ends() -> None:
    with serving(TINY) as server, ExitStack() as held:
        assert server.get("api/tables").status == 200
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with ExitStack() as busy:
            # Streams cannot be evicted to make room.
            for _ in range(5):
                busy.enter_context(server.live())
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (server.sockets(), hard))
            for _ in range(100):
                held.enter_context(connect(server)).sendall(HALF)
            until(lambda: "no new connection can be accepted" in server.err, "the warning is printed")
            before_s, begin = cpu_s(server), time.monotonic()
            # A loop that is always busy uses as much CPU as it gets.
            until(lambda: time.monotonic() > begin + 2, "two seconds pass")
            assert cpu_s(server) - before_s < 1
        assert server.get("api/tables").status == 200
        assert server.err.count("\n") == 1
        assert "Too many open files" in server.err


# Quotas.

FULL = None


@pytest.mark.parametrize(
    ("held", "asked", "limit"),
    [
        ([("alice", "a")] * 20, ("alice", "b"), 20),
        ([("alice", "a")] * 20, ("bob", "a"), None),
        ([("alice", "a")] * 20, (FULL, "a"), None),
        ([(f"p{number}", "a") for number in range(80)], ("alice", "a"), 80),
        ([(f"p{number}", str(number)) for number in range(80)], ("alice", "a"), 80),
        ([(f"p{number}", "a") for number in range(80)], (FULL, "a"), None),
        ([(FULL, "a")] * 80, (FULL, "a"), 80),
        ([(FULL, "a")] * 80, (FULL, "b"), None),
        ([(FULL, "a")] * 80, ("alice", "a"), None),
        ([(FULL, "a")] * 80 + [(FULL, "b")] * 20, (FULL, "c"), 100),
    ],
)
def test_a_quota_is_shared(
    held: list[tuple[str | None, str]], asked: tuple[str | None, str], limit: int | None
) -> None:
    quota = Quota("streams", 100)
    with ExitStack() as uses:
        for player, address in held:
            uses.enter_context(quota.hold(Holder(player, address)))
        if limit is None:
            uses.enter_context(quota.hold(Holder(*asked)))
        else:
            with pytest.raises(BusyError, match=rf"too many streams.* \(limit {limit}\)"):
                uses.enter_context(quota.hold(Holder(*asked)))
    # All of it is free again.
    with ExitStack() as uses:
        for _ in range(20):
            uses.enter_context(quota.hold(Holder("alice", "a")))


def test_an_answer_beyond_a_quota_is_sent_alone() -> None:
    quota = Quota("answers", 100, " bytes")
    with quota.hold(Holder("alice", "a"), 500), pytest.raises(BusyError), quota.hold(Holder("alice", "a"), 1):
        pass
    with quota.hold(Holder("alice", "a"), 1):
        pass


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("", ""),
    ],
)
def test_an_ipv6_host_counts_as_one_address(host: str, group: str) -> None:
    assert address_group(host) == group
