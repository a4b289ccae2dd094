"""Taps and collectors at a real nats-server: nothing is lost and nothing is twice, whatever is killed."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest
from certificates import Authority
from command import kiebitz
from okey_script import Script
from okey_talk import four
from processes_and_rows import PATIENCE_S, Said, child_of, free_port, rows, speak, until
from taps_and_nats import (
    GAMES,
    NEEDS_NATS,
    Lab,
    Program,
    Tap,
    collect,
    count,
    packets_of,
    place_at,
    publish,
    runs_heard,
    seed,
    server,
    until_recorded,
)

from kiebitz.dissectors.extras import EXTRAS
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.taps.nats_url import parse_nats_url
from kiebitz.proxy.taps.wire_format import VERSION, Batch, encode
from kiebitz.services.publishing.tap_supervisor import TapSupervisor
from kiebitz.services.publishing.tap_target import TapTarget

CUT_S = 60.0


pytestmark = NEEDS_NATS


def kill_server(lab: Lab) -> None:
    lab.nats.kill()
    lab.give(1, 3)
    time.sleep(0.5)
    lab.nats.start()


def cut_network(lab: Lab) -> None:
    lab.way.cut()
    mended = time.monotonic() + CUT_S
    lab.give(1, 3)
    for tap in lab.taps:
        tap.until_says("cannot publish to")
    lab.collector.until_says("cannot read from")
    time.sleep(max(0.0, mended - time.monotonic()))
    lab.way.mend()
    for program in (*lab.taps, lab.collector):
        program.until_says("is reachable again")


def kill_publisher(lab: Lab) -> None:
    for tap in lab.taps:
        os.kill(child_of(tap.process.pid), signal.SIGKILL)
    lab.give(1, 3)


def kill_collector(lab: Lab) -> None:
    lab.collector.kill()
    lab.give(1, 3)
    lab.collector = collect(lab.folder, lab.way.port, lab.database)
    lab.collector.until_says("resuming session 1")


def all_of_it(lab: Lab) -> None:
    lab.nats.kill()
    kill_publisher(lab)
    lab.collector.kill()
    lab.nats.start()
    lab.collector = collect(lab.folder, lab.way.port, lab.database)


FAULTS: dict[str, Callable[[Lab], None]] = {
    "the server": kill_server,
    "the network, for a minute": cut_network,
    "each tap's publisher": kill_publisher,
    "the collector": kill_collector,
    "all but the recorders": all_of_it,
}


@pytest.mark.full
@pytest.mark.parametrize("killed", FAULTS, ids=str)
def test_nothing_is_lost_and_nothing_is_twice(killed: str, lab: Lab) -> None:
    lab.give(0, 3)
    until(lambda: count(lab.database, "chunks") > 10, "the first part is collected")
    FAULTS[killed](lab)
    lab.give(2, 3)
    lab.is_whole()


@pytest.mark.full
def test_players_behind_several_taps_are_at_one_table(tmp_path: Path) -> None:
    """Each player's relay publishes; all of them pass through one more relay, which records in one place."""
    names = ("ada", "ben", "cem", "dilek")
    script = Script(11)
    four(script, 1, *names)
    script.play(script.tables[1], 5)
    script.win(script.tables[1])
    script.logout(*names)
    said = [Said(step.client, step.direction, step.data) for step in script.steps]
    database, one = tmp_path / "class.db", tmp_path / "one.db"
    with ExitStack() as ending, socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        nats = ending.enter_context(server(tmp_path))
        inner = free_port("tcp")

        def relay(name: str, port: int, to: int, *more: str) -> Program:
            mode = f"reverse:tcp://127.0.0.1:{to}@{port}"
            log = tmp_path / f"{name}.log"
            program = ending.enter_context(Program(log, "relay", "-q", "-m", mode, *more))
            program.until_says("listening on")
            return program

        relays = [relay("one", inner, listener.getsockname()[1], "-w", str(one))]
        ports = {}
        for name in names:
            ports[name] = free_port("tcp")
            where = ("-w", str(tmp_path / f"{name}.db"), "--publish", place_at(nats.port), "--tap", "lab")
            relays.append(relay(name, ports[name], inner, *where))
        collector = ending.enter_context(collect(tmp_path, nats.port, database))
        until(lambda: len(runs_heard(nats.port)) == len(names), "all taps have begun")
        first = iter(dict.fromkeys(step.client for step in said))

        def connect() -> socket.socket:
            return socket.create_connection(("127.0.0.1", ports[next(first)]), PATIENCE_S)

        speak(said, listener, connect)
        for program in reversed(relays):
            assert program.end() == 0, program.said
        until_recorded(database, count(one, "chunks"))
        until(lambda: rows_open(database) == 0, "all streams are over")
        assert collector.end() == 0
    diff = kiebitz("diff", str(one), str(database))
    assert diff.status == 0, diff.out
    assert count(database, "tables") == 1
    assert rows(database, "SELECT id FROM diagnostics WHERE severity != 'note'") == []


def rows_open(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute("SELECT count(*) FROM streams WHERE closed_ns IS NULL").fetchone()[0])


@pytest.mark.full
def test_each_collector_gets_everything_and_continues_where_it_ended(lab: Lab) -> None:
    second = lab.folder / "second.db"
    lab.give(0, 2)
    other = collect(lab.folder, lab.nats.port, second, name="second")
    until(lambda: count(second, "chunks") > 30, "the first half is collected")
    # Ended, not killed: what comes later is a session of its own, in the same database.
    assert other.end() == 0, other.said
    lab.give(1, 2)
    other = collect(lab.folder, lab.nats.port, second, name="again")
    lab.is_whole()
    until_recorded(second, count(lab.database, "chunks"))
    assert other.end() == 0, other.said
    assert [kind for (kind,) in rows(second, "SELECT kind FROM sessions")] == ["collect", "collect"]
    query = "SELECT direction, sum(length), count(*) FROM chunks WHERE data IS NOT NULL GROUP BY direction"
    assert rows(second, query) == rows(lab.database, query)
    # One who comes when all is over gets all of it, too.
    late = collect(lab.folder, lab.nats.port, lab.folder / "late.db", name="late")
    until_recorded(lab.folder / "late.db", count(lab.database, "chunks"))
    assert late.end() == 0
    lab.equals(lab.folder / "late.db", lab.folder / "one.db")


@pytest.mark.full
def test_unpublished_data_is_published_by_the_next_tap(tmp_path: Path) -> None:
    packets = packets_of(GAMES[0])
    with server(tmp_path) as nats:
        nats.kill()
        idle = Tap(tmp_path, "idle", place_at(nats.port))
        idle.give([])
        idle.finish()
        assert "kept" not in idle.said
        assert not [*tmp_path.glob(".tap-*")]
        tap = Tap(tmp_path, "lab", place_at(nats.port))
        tap.give(packets)
        tap.finish()
        assert "unpublished data is kept in" in tap.said
        (kept,) = tmp_path.glob(".tap-lab-spool-*")
        nats.start()
        tap = Tap(tmp_path, "lab", place_at(nats.port))
        tap.give(packets_of(GAMES[1]))
        tap.finish()
        assert not kept.exists()
        assert not [*tmp_path.glob(".tap-*")]
        database = tmp_path / "class.db"
        collector = collect(tmp_path, nats.port, database)
        until_recorded(database, count(tmp_path / "lab.db", "chunks"))
        assert collector.end() == 0
    assert [*rows(database, "SELECT protocol FROM tables ORDER BY 1")] == [("maexchen",), ("okey",)]
    assert count(database, "messages") == count(tmp_path / "lab.db", "messages")


@pytest.mark.full
def test_a_hostile_publisher_is_harmless(tmp_path: Path) -> None:
    packets = packets_of(GAMES[0])
    database = tmp_path / "class.db"
    forged = encode(Batch(VERSION, "lab", "r1", 0, 1, 0, [], []))
    newer = encode(Batch(VERSION + 1, "mallory", "r1", 0, 1, 0, [], []))
    hostile = [
        b"",
        b"\x1b[2Jgarbage\n",
        forged,
        newer,
        *[os.urandom(1 << 20) for _ in range(1000)],
        *[encode(Batch(VERSION, "mallory", "r2", number + 1, 1, 0, [], [])) for number in range(100)],
    ]
    with server(tmp_path) as nats, ExitStack() as ending:
        collector = ending.enter_context(collect(tmp_path, nats.port, database))
        tap = ending.enter_context(Tap(tmp_path, "lab", place_at(nats.port)))
        tap.give(packets[:30])
        until(lambda: count(database, "chunks") > 10, "the first part is collected")
        publish(nats.port, [("class.mallory", data) for data in hostile])
        tap.give(packets[30:])
        tap.finish()
        until_recorded(database, count(tmp_path / "lab.db", "chunks"))
        status = Path(f"/proc/{collector.process.pid}/status").read_text()
        (peak_kb,) = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")]
        assert collector.end() == 0
    assert kiebitz("diff", str(tmp_path / "lab.db"), str(database)).status == 0
    assert peak_kb < 250_000
    said = collector.said
    assert "a message under class.mallory is left out: it is not a batch of items" in said
    assert "\x1b" not in said
    assert "Traceback" not in said
    assert len(said) < 5000


@pytest.mark.full
def test_each_tap_has_rights_of_its_own(tmp_path: Path) -> None:
    """Credentials are files; the credentials of alice do not allow publishing as another."""
    keys = {name: seed(tmp_path / f"{name}.nk")[1] for name in ("teacher", "alice")}
    rights = {"teacher": '["$JS.API.>"]', "alice": '["class.alice"]'}
    users = ", ".join(
        f'{{ nkey: {keys[name]}, permissions: {{ publish: {rights[name]}, subscribe: ["_INBOX.>"] }} }}'
        for name in keys
    )
    with server(tmp_path, f"authorization {{ users = [ {users} ] }}") as nats, ExitStack() as ending:
        database = tmp_path / "class.db"
        key = ("--nats-creds", str(tmp_path / "teacher.nk"))
        collector = ending.enter_context(collect(tmp_path, nats.port, database, *key))
        taps = {}
        for name in ("alice", "bob"):
            own = ("--nats-creds", str(tmp_path / "alice.nk"))
            taps[name] = ending.enter_context(Tap(tmp_path, name, place_at(nats.port), *own))
            taps[name].give(packets_of(GAMES[0]))
        taps["bob"].until_says("ermissions violation for publish")
        for tap in taps.values():
            tap.finish()
        until_recorded(database, count(tmp_path / "alice.db", "chunks"))
        nobody = ending.enter_context(Tap(tmp_path, "nobody", place_at(nats.port)))
        nobody.give(packets_of(GAMES[0]))
        nobody.until_says("it requires credentials")
        nobody.finish()
        assert collector.end() == 0
    assert rows(database, "SELECT DISTINCT name FROM taps") == [("alice",)]


def test_collect_without_the_extra_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRAS, "taps", ("no_such_module",))
    done = kiebitz("collect", "nats://127.0.0.1/class", "-w", str(tmp_path / "game.db"))
    assert done.status == 1
    assert "[taps" in done.err.replace("corpus,mitmproxy,parquet,", "")


@pytest.mark.full
def test_a_tap_that_is_killed_continues_where_it_was(lab: Lab) -> None:
    """With all its processes, while it cannot publish: the next one on that machine publishes the rest."""
    lab.give(0, 3)
    until(lambda: all(count(tap.database, "chunks") for tap in lab.taps), "the first part is recorded")
    lab.way.cut()
    lab.give(1, 3)
    for tap in lab.taps:
        tap.until_says("cannot publish to")
        tap.kill()
    lab.way.mend()
    lab.taps = [Tap(lab.folder, f"tap-{number}", place_at(lab.way.port)) for number in range(len(lab.taps))]
    lab.give(2, 3)
    one = lab.in_one_place()
    for tap in lab.taps:
        tap.finish()
    until_recorded(lab.database, count(one, "chunks"))
    assert lab.collector.end() == 0
    # Continued streams are reported to lack their beginning.
    query = "SELECT direction, sum(length), count(data) FROM chunks GROUP BY direction"
    assert rows(lab.database, query) == rows(one, query)


@pytest.mark.full
def test_more_than_may_wait_is_a_gap_of_known_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The limit is 1 GiB; a lower one is tested."""
    bounded = partial(JournalWriter, max_bytes=4 << 20)
    monkeypatch.setattr("kiebitz.services.publishing.tap_supervisor.JournalWriter", bounded)
    with server(tmp_path) as nats, ExitStack() as ending:
        nats.kill()
        place = parse_nats_url(place_at(nats.port))
        tap = TapSupervisor(TapTarget(place, "lab", None), str(tmp_path / "lab.db"))
        ending.callback(tap.discard)
        tap.start()
        stream = tap.journal.open("udp", "127.0.0.1:40176", "127.0.0.1:9000", time.time_ns())
        total = 0

        def until_told(words: str, data: bytes) -> None:
            """Record the same again and again."""

            def told() -> bool:
                nonlocal total
                tap.journal.chunk(stream, "c2s", time.time_ns(), total, data)
                total += len(data)
                tap.look()
                return words in capfd.readouterr().err

            until(told, words)

        until_told(f"the backlog for {place} is full", bytes(50_000))
        nats.start()
        database = tmp_path / "class.db"
        collector = ending.enter_context(collect(tmp_path, nats.port, database))
        until_told("the backlog has room again", b"ROLL")
        tap.journal.close()
        tap.finish()
        until(lambda: rows(database, "SELECT sum(length) FROM chunks") == [(total,)], "all is told of")
        assert collector.end() == 0
    ((lost,),) = rows(database, "SELECT sum(length) FROM chunks WHERE data IS NULL")
    assert 0 < lost < total
    assert rows(database, "SELECT data FROM chunks ORDER BY id DESC LIMIT 1") == [(b"ROLL",)]


@pytest.mark.full
def test_with_tls_a_game_goes_all_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names the authority of the certificate; without it the error is reported."""
    authority = Authority(tmp_path)
    pem, database = authority.server(), tmp_path / "class.db"
    tls = f'tls {{ cert_file: "{pem}", key_file: "{pem}" }}'
    with server(tmp_path, tls) as nats, ExitStack() as ending:
        place = f"tls://127.0.0.1:{nats.port}/class"
        monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
        other = str(tmp_path / "no.db")
        distrustful = ending.enter_context(Program(tmp_path / "no.log", "collect", place, "-w", other))
        distrustful.until_says("its certificate is not trusted")
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.path))
        collector = ending.enter_context(Program(tmp_path / "it.log", "collect", place, "-w", str(database)))
        tap = ending.enter_context(Tap(tmp_path, "lab", place))
        tap.give(packets_of(GAMES[0]))
        tap.finish()
        until_recorded(database, count(tap.database, "chunks"))
        assert collector.end() == 0, collector.said
        assert distrustful.end() == 0, distrustful.said
    assert kiebitz("diff", str(tap.database), str(database)).status == 0
