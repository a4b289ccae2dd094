"""A corpus is whole whatever happens to those who add to it: real schedulers, workers and disks."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from command import CAPTURES, kiebitz, spawn
from corpora import add_here, cluster
from descendants import children, command
from processes_and_rows import until
from recording_relays import small_disk
from strength import GAMES, a_few

from kiebitz.dissectors.version import kiebitz_version
from kiebitz.services.corpus.capture_task import Task, add
from kiebitz.storage.corpus.layout import make
from kiebitz.storage.corpus.runs import Run

SMALL = [str(CAPTURES / name) for name in GAMES.values()]
LARGER = str(CAPTURES / "maexchen-old-20110928-seed-tiny.pcap")


PATIENT_S = 180.0


@contextmanager
def adding(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """`kiebitz corpus add`, which is ended with the block if it has not ended."""
    process = spawn("corpus", "add", str(folder), *arguments)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, err = process.communicate(timeout=PATIENT_S)
    assert b"Traceback" not in err
    return process.returncode, err.decode()


def added(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run `kiebitz corpus add` to its end; return its exit status and what it said."""
    with adding(folder, *arguments) as process:
        return ended(process)


def is_writing(folder: Path) -> bool:
    return any((folder / ".staging").glob("*/*/*"))


def content(folder: Path) -> list[Any]:
    found = []
    for table in ("sessions", "streams", "games", "events", "messages", "diagnostics"):
        but = " exclude (source)" if table == "sessions" else ""
        query = f"select *{but} from {table} order by capture, id"
        found.append(kiebitz("corpus", "query", str(folder), query, "--json").json)
    return found


def assert_whole(folder: Path, captures: list[str], tmp_path: Path) -> None:
    """The corpus holds what it would if nothing had happened, and nothing else is left."""
    add_here(tmp_path / "undisturbed", map(Path, captures))
    there, wanted = content(folder), content(tmp_path / "undisturbed")
    for table, of_table in zip(there, wanted, strict=True):
        assert len(table) == len(of_table)
        assert [row for row, other in zip(table, of_table, strict=True) if row != other] == []
    assert not [*(folder / ".staging").iterdir()]
    assert "none missing" in kiebitz("corpus", "check", str(folder)).out


@pytest.mark.full
def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    captures = [LARGER, *SMALL[:2]]
    with cluster(tmp_path) as dask:
        first = dask.work()
        with adding(folder, *captures, "--scheduler", dask.address) as process:
            until(lambda: is_writing(folder), "a capture is being written")
            first.kill()
            dask.work()
            status, said = ended(process)
    assert status == 0, said
    assert "3 captures added" in said
    assert_whole(folder, captures, tmp_path)


def test_a_worker_elsewhere_that_does_not_see_the_corpus(tmp_path: Path) -> None:
    corpus = make(str(tmp_path / "corpus"))
    with Run(corpus) as run:
        task = Task(SMALL[0], SMALL[0], corpus.path, corpus.id, run.name, "0.0.1")
        assert f"has Kiebitz {kiebitz_version()}, not 0.0.1: install the same there" in str(add(task).stops)
        task = Task(SMALL[0], SMALL[0], str(tmp_path / "nix"), corpus.id, run.name, kiebitz_version())
        assert "cannot read the corpus" in str(add(task).stops)
        task = Task(SMALL[0], SMALL[0], corpus.path, "another", run.name, kiebitz_version())
        assert "is another folder for the worker on" in str(add(task).stops)
        task = Task("/nix.pcap", "nix.pcap", corpus.path, corpus.id, run.name, kiebitz_version())
        assert add(task).is_absent


@pytest.mark.full
def test_a_scheduler_that_is_killed_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    captures = [LARGER, *SMALL]
    with cluster(tmp_path) as dask:
        dask.work()
        with adding(folder, *captures, "--scheduler", dask.address) as process:
            until(lambda: is_writing(folder), "a capture is being written")
            dask.scheduler.kill()
            status, said = ended(process)
    assert status == 1
    assert f"{dask.address} is lost: add again to continue; captures added so far are kept" in said
    done = kiebitz("corpus", "check", str(folder))
    assert done.status == 3
    assert "the run ended before it was added: add it again" in done.out
    assert added(folder, *captures)[0] == 0
    assert_whole(folder, captures, tmp_path)


@pytest.mark.full
def test_an_addition_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    captures = [LARGER, *SMALL]
    with adding(folder, *captures) as process:
        until(lambda: is_writing(folder), "a capture is being written")
        process.kill()
        process.communicate()
    done = kiebitz("corpus", "check", str(folder))
    assert "the run ended before it was added" in done.out
    assert added(folder, *captures)[0] == 0
    assert_whole(folder, captures, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("moment", ["Dask starts", "a capture is being written"])
def test_an_addition_is_interrupted(tmp_path: Path, moment: str) -> None:
    folder = tmp_path / "corpus"
    with adding(folder, LARGER, *SMALL) as process:
        until(lambda: is_writing(folder) if "capture" in moment else bool(children(process.pid)), moment)
        process.send_signal(signal.SIGINT)
        status, said = ended(process)
    assert status == 130
    assert said.startswith(f"{folder}: ")
    assert "Traceback" not in said
    assert not [*(folder / ".staging").glob("*")]


@pytest.mark.full
def test_a_process_of_this_machine_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    captures = [LARGER, *SMALL]
    with adding(folder, *captures) as process:
        until(lambda: is_writing(folder), "a capture is being written")
        worker, *_ = [child for child in children(process.pid) if "spawn_main" in command(child)]
        os.kill(worker, signal.SIGKILL)
        status, said = ended(process)
    assert status == 0, said
    assert_whole(folder, captures, tmp_path)


@pytest.mark.full
def test_two_simultaneous_additions(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    captures = [LARGER, *SMALL]
    with cluster(tmp_path) as dask:
        dask.work()
        dask.work()
        given = (*captures, "--scheduler", dask.address)
        with adding(folder, *given) as one, adding(folder, *given) as other:
            said = [ended(one), ended(other)]
    assert [status for status, _ in said] == [0, 0], said
    assert_whole(folder, captures, tmp_path)


@pytest.mark.full
def test_a_capture_that_kills_its_workers_stops_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    with cluster(tmp_path) as dask, adding(folder, LARGER, "--scheduler", dask.address) as process:
        for _ in range(4):
            worker = dask.work()
            until(lambda: is_writing(folder), "a capture is being written")
            worker.kill()
            worker.wait()
            shutil.rmtree(next(iter((folder / ".staging").glob("*/*"))))
        status, said = ended(process)
    assert status == 1
    assert "workers died of it 4 times: has each enough memory?" in said
    assert "workers died of it" in kiebitz("corpus", "check", str(folder)).out


@pytest.mark.full
def test_no_worker_is_running(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    status, said = added(folder, SMALL[0], "--scheduler", "tcp://127.0.0.1:1")
    assert status == 1
    assert "tcp://127.0.0.1:1: no scheduler answers there" in said
    with cluster(tmp_path) as dask, adding(folder, SMALL[0], "--scheduler", dask.address) as process:
        assert process.stderr is not None
        told = process.stderr.readline().decode()
        process.send_signal(signal.SIGINT)
        status, _ = ended(process)
    assert status == 130
    assert told.startswith(f"kiebitz: {dask.address} has no workers: start some with dask worker")


@pytest.mark.full
def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "300k") as disk:
        status, said = added(disk / "corpus", LARGER, *SMALL)
        assert status == 1
        assert "disk is" in said
        for capture in (disk / "corpus").glob("capture=*"):
            assert (capture / "sessions.parquet").stat().st_size
        assert not [*(disk / "corpus" / ".staging").iterdir()]


PEERS = {
    "silent": (b"", "no scheduler answers there within 10 s"),
    "garbage": (b"HTTP/1.1 400 Bad Request\r\n\r\n" * 100, "this is not a Dask scheduler: "),
    "a frame that no memory holds": (
        struct.pack("<QQ", 1, 1 << 61) + bytes(100),
        "this is not a Dask scheduler: ",
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("kind", a_few(PEERS, ["garbage"]))
def test_a_peer_that_is_no_scheduler_is_reported(kind: str, tmp_path: Path) -> None:
    answer, words = PEERS[kind]

    def meet() -> None:
        with suppress(OSError):
            while True:
                peer, _ = listener.accept()
                with peer:
                    peer.sendall(answer)
                    while peer.recv(1 << 16):
                        pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=meet, daemon=True).start()
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        status, said = added(tmp_path / "corpus", SMALL[0], "--scheduler", address)
        listener.shutdown(socket.SHUT_RDWR)
    assert status == 1
    assert re.search(f"kiebitz: {address}: {words}", said), said
    assert len(said.splitlines()) == 2


@pytest.mark.full
def test_tls_without_certificates_is_reported(tmp_path: Path) -> None:
    status, said = added(tmp_path / "corpus", SMALL[0], "--scheduler", "tls://127.0.0.1:1")
    assert status == 1
    assert "tls://127.0.0.1:1: name the certificates for it in Dask's configuration" in said
