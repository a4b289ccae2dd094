"""Corpora from strangers, or in folders of several users: nothing outside is read, deleted or waited for."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from command import CAPTURES, ROOT, kiebitz
from conversation_files import blocks
from corpora import add_here
from foreign_files import give_to_stranger
from processes_and_rows import PATIENCE_S, until
from snapshots import DATA, as_bytes
from strength import GAMES, a_few, every

from kiebitz.services.corpus.cluster import captures
from kiebitz.storage.corpus.engine import Engine
from kiebitz.storage.corpus.layout import CorpusError, make, open_corpus
from kiebitz.storage.corpus.runs import missing, sweep_abandoned

CAPTURE = str(CAPTURES / GAMES["okey"])
RUN = "20261123T144143.148858-75152df2"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "corpus"
    assert add_here(folder, [Path(CAPTURE)])[0].is_new
    return folder


@pytest.fixture
def corpus(sound: Path, tmp_path: Path) -> Path:
    (tmp_path / "victim" / RUN).mkdir(parents=True)
    (tmp_path / "victim" / RUN / "chapter").write_text("text")
    (tmp_path / "victim" / "note").write_text("note")
    return Path(shutil.copytree(sound, tmp_path / "corpus"))


def tree(folder: Path) -> list[tuple[str, bytes | None]]:
    return sorted(
        (str(path.relative_to(folder)), path.read_bytes() if path.is_file() else None)
        for path in folder.rglob("*")
    )


LEFT: dict[str, tuple[str, bool]] = {
    "a run": (RUN, True),
    "a run that is being removed": (f"{RUN}.{'0' * 32}.gone", True),
    "a run without a log": (RUN.replace("2026", "2025"), False),
    "a run with another's log": (RUN.replace("2026", "2024"), False),
    "a run with a pipe as log": (RUN.replace("2026", "2023"), False),
    "a run with a link as log": (RUN.replace("2026", "2022"), False),
    "a folder": ("thesis", False),
    "a name that goes up": (f"{RUN}.jsonl", False),
}
"""Folders in `.staging`, and True for each that is removed."""


def test_only_what_a_run_with_a_log_has_left_is_removed(corpus: Path) -> None:
    staging, runs = corpus / ".staging", corpus / "runs"
    for name, _ in LEFT.values():
        (staging / name / "ab-0").mkdir(parents=True)
        (staging / name / "ab-0" / "games.parquet").write_text("text")
    (staging / "note").write_text("text")
    (staging / RUN / "victim").symlink_to(corpus.parent / "victim")
    logs = {kind: runs / f"{name}.jsonl" for kind, (name, _) in LEFT.items()}
    for kind in ("a run", "a folder", "a run with another's log"):
        logs[kind].touch()
    logs["a run with another's log"].chmod(0o666)
    os.mkfifo(logs["a run with a pipe as log"])
    logs["a run with a link as log"].symlink_to(logs["a run"])
    before = tree(corpus.parent / "victim")
    sweep_abandoned(open_corpus(str(corpus)))
    stay = {name for name, is_removed in LEFT.values() if not is_removed}
    assert {path.name for path in staging.iterdir()} == {"note", *stay}
    assert all((staging / name / "ab-0" / "games.parquet").exists() for name in stay)
    assert tree(corpus.parent / "victim") == before


def test_a_new_corpus_is_private(tmp_path: Path) -> None:
    make(str(tmp_path / "new"))
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to("new")
    assert make(f"{tmp_path}/link/").id == open_corpus(str(tmp_path / "new")).id
    give_to_stranger(tmp_path / "link")
    with pytest.raises(CorpusError, match="this is a link"):
        make(f"{tmp_path}/link/")


LOGS: dict[str, Callable[[Path], object]] = {
    "too long": lambda path: os.truncate(path, 1 << 40),
    "one long line": lambda path: path.write_bytes(b'{"path": "' + b"x" * (5 << 20)),
    "deep": lambda path: path.write_bytes(b"[" * 100_000 + b"\n"),
    "other values": lambda path: path.write_text('[1]\n7\n{"path": {"a": 1}, "source": ["x"]}\n\0\n'),
    "paths that go up": lambda path: path.write_text(
        "".join(
            json.dumps(entry) + "\n"
            for entry in ({"path": "p", "source": "s"}, {"path": "p", "capture": "../../../victim"})
        )
    ),
}


@pytest.mark.parametrize("write", LOGS.values(), ids=LOGS.keys())
def test_a_strange_log_is_read_to_an_end(write: Callable[[Path], object], corpus: Path) -> None:
    log = corpus / "runs" / "x.jsonl"
    log.touch()
    write(log)
    try:
        assert len(missing(open_corpus(str(corpus)))) <= 1
    except CorpusError as error:
        assert "this log is longer than 1 GiB" in str(error)  # noqa: PT017  # only one of the logs is too long


QUERIES = blocks(DATA / "tried_commands.txt")
ANSWERED, REFUSED = (QUERIES[f"test_hostile_corpus {kind}"].steps for kind in ("answered", "refused"))


@pytest.mark.parametrize("query", every(3, [*ANSWERED, *REFUSED]))
def test_a_query_only_selects(query: str, sound: Path) -> None:
    before = tree(sound)
    done = kiebitz("corpus", "query", str(sound), as_bytes(query).decode().replace("DIR", str(sound)))
    assert done.status == (0 if query in ANSWERED else 2), done.err
    assert bool(done.out) == (query in ANSWERED)
    assert tree(sound) == before


def test_captures_are_found_without_leaving_their_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = tmp_path / "given"
    (given / "deep").mkdir(parents=True)
    (tmp_path / "private.pcap").write_bytes(Path(CAPTURE).read_bytes())
    for name in ("one.pcap", "deep/two.pcap.gz", "\x1b[2J\n.pcap", "notes.txt"):
        (given / name).write_bytes(b"")
    (given / "inside.pcap").symlink_to("one.pcap")
    (given / "out.pcap").symlink_to(tmp_path / "private.pcap")
    (given / "up.pcap").symlink_to("../private.pcap")
    # Two links that lead in circles make more paths than can be counted.
    for name in ("a", "b"):
        (given / "deep" / name).symlink_to("..")
    found = [one.source for one in captures(["given", "given/**/t*.gz", "given/out.pcap", "nothing*"])]
    assert found == [
        *("given/\x1b[2J\n.pcap", "given/inside.pcap", "given/one.pcap", "given/deep/two.pcap.gz"),
        *("given/out.pcap", "nothing*"),
    ]
    told = capsys.readouterr().err
    assert told.count("this link leads out of given and is left out: name it to add it") == 2


@pytest.mark.full
def test_query_spill_files_are_bounded_private_and_removed(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spilt, connect = tmp_path / "spilt", duckdb.connect
    spilt.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spilt))
    monkeypatch.setattr("duckdb.connect", lambda path: connect(path, config={"memory_limit": "64MB"}))
    before = tree(sound)
    with Engine(open_corpus(str(sound))) as engine:
        (folder,) = spilt.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        query = "select i, hash(i) as h from range(4_000_000) t(i) order by h"
        answer = engine.ask(query)
        assert next(answer.rows)
        assert any(path.stat().st_size > 1 << 20 for path in folder.rglob("*"))
        limit = "select value from duckdb_settings() where name = 'max_temp_directory_size'"
        ((bound,),) = engine.rows(limit)
        assert not bound.startswith("90%")
    assert [*spilt.iterdir()] == []
    assert tree(sound) == before


@pytest.mark.full
@pytest.mark.parametrize("number", a_few([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], [signal.SIGTERM]))
def test_a_query_that_is_ended_leaves_nothing(number: int, sound: Path, tmp_path: Path) -> None:
    query = "select count(*) from range(10000000) a(i), range(10000000) b(j) where i * j % 7 = 3"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "kiebitz", "corpus", "query", str(sound), query]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
        until(lambda: bool([*tmp_path.iterdir()]), "a query begins")
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err.strip()) == (130, b"")
    assert [*tmp_path.iterdir()] == []
