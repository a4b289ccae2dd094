from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from command import TINY, kiebitz
from live_session import Live
from maexchen_programs import Player, Server, play
from networks import needs_libpcap, needs_rights
from processes_and_rows import KIEBITZ, PATIENCE_S, free_port, rows, until
from rotating_relays import relaying
from served_pages import QUICK_S, Serving, post, serving
from served_pages import Live as Stream
from session_factory import Conversation
from session_factory import recording as recording_of
from strength import a_few, times

from kiebitz.cli.web import event_stream as feed
from kiebitz.cli.web.query_executor import QueryExecutor
from kiebitz.cli.web.reader import ServedSession
from kiebitz.cli.web.records import Status
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.session.follower import Follower

ENDS_WITHIN_S = 3.0


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Live]:
    made = Live(tmp_path / "game.db")
    yield made
    made.close()


def playing(server: Server, port: int) -> threading.Thread:
    players = [Player(name, ("127.0.0.1", port)) for name in ("alice", "bob")]
    thread = threading.Thread(target=play, args=(server, players))
    thread.start()
    return thread


def all_of(stream: Stream, last: int, patience_s: float = 30.0) -> list[dict[str, Any]]:
    """Return the events up to one, or those received by the timeout."""
    found: list[dict[str, Any]] = []
    end = time.monotonic() + patience_s
    while int(stream.last_id or 0) < last and time.monotonic() < end:
        told = stream.next(end - time.monotonic())
        if told is not None and told.kind == "message":
            found += told.data["events"]
    return found


def once_and_in_order(events: list[dict[str, Any]], first: int, last: int) -> None:
    assert [event["id"] for event in events] == list(range(first, last + 1))


def test_a_game_that_a_relay_records_is_reported_event_by_event(tmp_path: Path) -> None:
    path = tmp_path / "game.db"
    server = Server(2, times(12, 2))
    with relaying("udp", server.port, path) as relay, serving(str(path), "--player-links") as page:
        assert page.well("api/tables") == {"tables": [], "players": []}
        with page.live() as stream, page.live() as second:
            assert stream.of_kind("status") == {"live": True, "trouble": None, "ending": None}
            thread = playing(server, relay.port)
            events = stream.events(10)
            thread.join(PATIENCE_S)
            until(lambda: relay.stop() == 0, "the relay ends")
            last = rows(path, "SELECT max(id) FROM events")[0][0]
            events += all_of(stream, last)
            once_and_in_order(events, 1, last)
            with page.live(after=0) as late:
                assert all_of(late, last) == page.well("api/tables/1/events", limit=1000)["events"]
            assert [event["id"] for event in all_of(second, last)] == list(range(1, last + 1))
            assert stream.of_kind("status") == {
                "live": False,
                "trouble": None,
                "ending": "the recording has ended",
            }
        until(lambda: {"alice", "bob"} == page.links().keys(), "their links come when they do", QUICK_S)
        shown = [event["seq"] for event in page.well("api/tables/1/events", as_="bob", limit=1000)["events"]]
        assert shown == [event["seq"] for event in kiebitz("events", str(path), "--as", "bob", "--json").json]


@pytest.mark.full
def test_after_a_place_and_after_the_server_was_killed(recording: Live) -> None:
    recording.scores(40)
    last = recording.last
    with serving(recording.path) as page:
        port = str(page.port)
        with page.live(after=30) as stream:
            events = all_of(stream, last)
            once_and_in_order(events, 31, last)
            recording.scores(3)
            more = all_of(stream, last + 3)
            once_and_in_order(more, last + 1, last + 3)
            known = stream.last_id
            assert known is not None
            with page.live(after=0, table=1) as other:
                once_and_in_order(all_of(other, last + 3), 1, last + 3)
    # While it is away, more comes.
    recording.scores(2)
    killed = Serving(recording.path, "--port", port).ready()
    killed.kill()
    again = Serving(recording.path, "--port", port).ready()
    try:
        with again.live(headers={"Last-Event-ID": known}, after=0) as stream:
            once_and_in_order(all_of(stream, last + 5), last + 4, last + 5)
            recording.scores(1)
            once_and_in_order(all_of(stream, last + 6), last + 6, last + 6)
        with again.live(headers={"Last-Event-ID": str(last + 6)}) as stream:
            recording.scores(1)
            once_and_in_order(all_of(stream, last + 7), last + 7, last + 7)
    finally:
        again.kill()


@pytest.mark.full
def test_a_players_copy_that_is_late_is_told_to_them(tmp_path: Path) -> None:
    path = str(tmp_path / "game.db")
    now_ns = time.time_ns()
    bob = Conversation("127.0.0.1:1001", begin_ns=now_ns).says(b"REGISTER;bob").hears(b"REGISTERED")
    alice = Conversation("127.0.0.1:1002", number=2, begin_ns=now_ns)
    alice.says(b"REGISTER;alice").hears(b"REGISTERED")
    with (
        recording_of(tmp_path / "game.db", bob, alice, begin_ns=now_ns) as recorder,
        serving(path) as page,
        page.live(as_="alice") as stream,
    ):
        stream.of_kind("status")
        alice.items.clear()
        recorder.record(alice.hears(b"SCORE;alice:0,bob:1").items)
        recorder.commit()
        assert [event["data"] for event in stream.events(1)] == [{"scores": {"alice": 0, "bob": 1}}]
        bob.items.clear()
        alice.items.clear()
        # The event is stored when bob receives it; alice's copy comes later.
        recorder.record(bob.waits_until(time.time_ns()).hears(b"SCORE;alice:1,bob:2").items)
        recorder.commit()
        time.sleep(0.2)
        recorder.record(alice.waits_until(time.time_ns()).hears(b"SCORE;alice:1,bob:2").items)
        recorder.commit()
        assert [event["data"] for event in stream.events(1)] == [{"scores": {"alice": 1, "bob": 2}}]


@pytest.mark.full
def test_growth_is_reported_at_most_twice_a_second(recording: Live) -> None:
    with serving(recording.path) as page, page.live() as stream:
        stream.of_kind("status")
        begin = time.monotonic()
        grown = []
        while time.monotonic() < begin + 2:
            recording.scores(1)
            if (told := stream.next(0.05)) is not None and told.kind == "growth":
                grown.append(told.data["messages"])
        assert 2 <= len(grown) <= 6
        assert grown == sorted(set(grown))
        (newest,) = rows(Path(recording.path), "SELECT max(id) FROM messages")[0]
        while grown[-1] < newest:
            grown.append(stream.of_kind("growth")["messages"])
        assert grown[-1] == newest


@pytest.mark.full
def test_several_tables(tmp_path: Path) -> None:
    path = str(tmp_path / "game.db")
    talks = [
        Conversation(f"127.0.0.1:4000{number}", f"127.0.0.1:900{number}", number + 1)
        .says(f"REGISTER;p{number}".encode())
        .hears(b"REGISTERED")
        for number in range(2)
    ]
    with (
        recording_of(tmp_path / "game.db", *talks) as recorder,
        serving(path) as page,
        page.live(after=0) as both,
        page.live(after=0, table=2) as one,
    ):
        for number, talk in enumerate(talks):
            talk.items.clear()
            recorder.record(talk.hears(f"SCORE;p{number}:7".encode()).items)
        recorder.commit()
        last = int(rows(Path(path), "SELECT max(id) FROM events")[0][0])
        events = all_of(both, last)
        once_and_in_order(events, 1, last)
        assert {event["table"] for event in events} == {1, 2}
        assert all_of(one, last) == [event for event in events if event["table"] == 2]


@pytest.mark.full
def test_a_picture_comes_with_the_events(recording: Live) -> None:
    with serving(recording.path) as page, page.live() as stream:
        stream.of_kind("status")
        known: set[str] = set()
        for _ in range(3):
            recording.scores(1)
            picture = stream.of_kind("message")["picture"]
            names = {name for shape in ("wide", "tall") for name, _, _ in picture[shape]["pieces"]}
            assert names - known <= picture["fragments"].keys()
            assert not known & picture["fragments"].keys()
            known = names
            asked = page.well("api/tables/1/picture", at=picture["seq"])
            assert asked == {key: part for key, part in picture.items() if key != "fragments"}


@pytest.mark.full
def test_many_events_come_in_pieces_with_a_picture_at_the_end(recording: Live) -> None:
    recording.scores(1300)
    last = recording.last
    with serving(recording.path) as page, page.live(after=0) as stream:
        pushes = []
        while stream.last_id != str(last):
            told = stream.next()
            assert told is not None
            if told.kind == "message":
                pushes.append(told.data)
        assert all(len(push["events"]) <= 500 for push in pushes)
        assert ["picture" in push for push in pushes] == [False] * (len(pushes) - 1) + [True]
        once_and_in_order([event for push in pushes for event in push["events"]], 1, last)


def test_it_is_known_what_is_live_before_a_page_can_come(
    recording: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SlowlyWatched(Follower):
        def __init__(self, timeline: Timeline, path: str) -> None:
            time.sleep(0.1)
            super().__init__(timeline, path)

    async def first_status() -> Status:
        desk = QueryExecutor(QUICK_S)
        begun = feed.EventStream(ServedSession(1, recording.path, 1, "game"), desk)
        await begun.start()
        begun.stop()
        desk.close()
        return begun.status

    monkeypatch.setattr(feed, "Follower", SlowlyWatched)
    assert asyncio.run(first_status()).live


@pytest.mark.full
def test_a_recorder_that_was_killed_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "game.db"
    program = (
        "import sys, time; from pathlib import Path\n"
        "from live_session import Live; recording = Live(Path(sys.argv[1]))\n"
        "print('there', flush=True); time.sleep(60)"
    )
    recorder = subprocess.Popen(
        [KIEBITZ[0], "-c", program, str(path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert recorder.stdout is not None
        assert recorder.stdout.readline() == b"there\n"
        with serving(str(path)) as page, page.live() as stream:
            assert stream.of_kind("status")["live"] is True
            recorder.kill()
            # It may be started again for five seconds.
            assert stream.of_kind("status", 15) == {
                "live": False,
                "trouble": None,
                "ending": "the recording stopped without ending the session",
            }
            assert page.well("api/sessions")["sessions"][0]["live"] is False
            assert page.well("api/tables/1/state")["state"]["players"].keys() == {"alice"}
    finally:
        recorder.kill()
        recorder.wait(PATIENCE_S)
        assert recorder.stdout is not None
        recorder.stdout.close()


@pytest.mark.full
def test_a_recording_that_continues_in_other_databases_is_followed(tmp_path: Path) -> None:
    server = Server(2, 40)
    with relaying("udp", server.port, tmp_path / "game.db", "-b", "duration:0.5") as relay:
        (first,) = tmp_path.glob("game_*.db")
        with (
            serving(str(first)) as page,
            page.live() as stream,
            page.live() as two,
        ):
            thread = playing(server, relay.port)
            thread.join(PATIENCE_S)
            assert relay.stop() == 0
            paths = sorted(tmp_path.glob("game_*.db"))
            assert len(paths) > 2
            # The last one may have none.
            last = max(rows(path, "SELECT coalesce(max(id), 0) FROM events")[0][0] for path in paths)
            once_and_in_order(all_of(stream, last), 1, last)
            once_and_in_order(all_of(two, last), 1, last)
            # All that is asked for comes from the last one.
            (table,) = page.well("api/tables")["tables"]
            assert 0 < table["first"] <= table["last"] == last
            assert page.well("api/tables/1/state")["seq"] == last


# Many, slow and dead ones.


@pytest.mark.parametrize("count", [times(100, 20)])
@pytest.mark.full
def test_many_at_once_are_reported_the_same(count: int, recording: Live) -> None:
    recording.scores(20)
    last = recording.last + 5
    with serving(recording.path) as page, ThreadPoolExecutor(count) as pool:
        ready = threading.Barrier(count + 1)

        def listen(number: int) -> list[int]:
            ready.wait(QUICK_S)
            # Half of them come late, all at once.
            with page.live(after=0) if number % 2 else page.live(headers={"Last-Event-ID": "3"}) as stream:
                return [event["id"] for event in all_of(stream, last)]

        told = [pool.submit(listen, number) for number in range(count)]
        ready.wait(QUICK_S)
        for _ in range(5):
            recording.scores(1)
        begin = time.monotonic()
        assert page.get("api/tables/1/picture").status == 200
        assert time.monotonic() < begin + 5
        for number, future in enumerate(told):
            assert future.result(PATIENCE_S) == list(range(1 if number % 2 else 4, last + 1))
        until(lambda: page.sockets() < 40, "they are let go", QUICK_S)


@pytest.mark.full
def test_a_slow_reader_costs_no_memory_and_gets_everything(recording: Live) -> None:
    flood, pieces = times(12_000, 3_000), 60
    with serving(recording.path) as page, page.live() as reader:
        reader.of_kind("status")
        idle = [page.live(after=0) for _ in range(5)]
        recording.scores(50)
        all_of(reader, recording.last)
        before = page.memory()
        for _ in range(pieces):
            recording.scores(flood // pieces)
            time.sleep(0.02)
        last = recording.last
        events = all_of(reader, last)
        assert events[-1]["id"] == last
        # What the flood makes is some hundred bytes an event, for each of those who do not read.
        assert page.memory() - before < 40_000_000
        for stream in idle:
            once_and_in_order(all_of(stream, last), 1, last)
            stream.close()


# Its end.


@pytest.mark.full
@pytest.mark.parametrize("how", a_few([signal.SIGINT, signal.SIGTERM], [signal.SIGTERM]))
def test_it_ends_at_once_with_its_streams(
    how: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    page = Serving(TINY, "--port", "0").ready()
    try:
        streams = [page.live(after=0) for _ in range(3)]
        waiting = page.live()
        begin = time.monotonic()
        assert page.end(how) == 130
        assert time.monotonic() < begin + ENDS_WITHIN_S
        assert page.err.strip() == ""
        for stream in [*streams, waiting]:
            while stream.next(1) is not None:
                pass
            assert stream.is_over
            stream.close()
    finally:
        page.kill()
    assert list(tmp_path.iterdir()) == []


# During a recording.


@pytest.mark.full
def test_a_relay_serves_what_it_records_with_the_options_of_serve(tmp_path: Path) -> None:
    path, port = tmp_path / "game.db", free_port("tcp")
    server = Server(2, 1)
    options = "--serve", f"127.0.0.1:{port}", "--player-links", "--read-only"
    with relaying("udp", server.port, path, *options) as relay:
        relay.wait_for("Ctrl-C ends it")
        assert f"http://127.0.0.1:{port}/" in relay.said
        page = At(port)
        with page.live() as stream:
            thread = playing(server, relay.port)
            assert len(stream.events(5)) >= 5
            relay.wait_for("?key=")
            assert post(page, {"do": "let-go", "number": 1}).sentence == (
                "this server is read-only: it was started with --read-only"
            )
            thread.join(PATIENCE_S)
            assert relay.stop() == 0
            while stream.next(3) is not None:
                pass
            assert stream.is_over
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 1)
        assert "kiebitz serve exited" not in relay.said


@pytest.mark.full
@needs_rights
@needs_libpcap
def test_a_sniff_serves_what_it_records(tmp_path: Path) -> None:
    port, server = free_port("tcp"), Server(2, 1)
    bpf, path = f"udp port {server.port}", str(tmp_path / "game.db")
    where = f"127.0.0.1:{port}"
    sniff = Serving("-i", "lo", "-f", bpf, "-w", path, "-q", "--serve", where, command="sniff")
    try:
        sniff.ready()
        with At(port).live() as stream:
            thread = playing(server, server.port)
            assert len(stream.events(5)) >= 5
            thread.join(PATIENCE_S)
        assert sniff.end() == 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 1)
    finally:
        sniff.kill()


@pytest.mark.full
def test_a_relay_continues_without_its_page(tmp_path: Path) -> None:
    path = tmp_path / "game.db"
    server = Server(2, 1)
    with (
        socket.create_server(("127.0.0.1", free_port("tcp"))) as taken,
        relaying("udp", server.port, path, "--serve", f"127.0.0.1:{taken.getsockname()[1]}") as relay,
    ):
        relay.wait_for("this port is in use; choose another with serve --port or relay --serve")
        relay.wait_for("kiebitz serve exited with status 1; still recording")
        playing(server, relay.port).join(PATIENCE_S)
        assert relay.stop() == 0
    assert rows(path, "SELECT count(*) FROM events")[0][0] > 5


@pytest.mark.full
def test_a_page_ends_with_a_relay_that_was_killed(tmp_path: Path) -> None:
    port = free_port("tcp")
    with relaying("udp", 9, tmp_path / "game.db", "--serve", f"127.0.0.1:{port}") as relay:
        relay.wait_for("Ctrl-C ends it")
        relay.process.kill()

        def is_gone() -> bool:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except ConnectionRefusedError:
                return True
            return False

        until(is_gone, "the page ends", QUICK_S)


class At(Serving):
    """A server that another command has started, at a port of the loopback."""

    def __init__(self, port: int) -> None:
        self._port = port

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}/"
