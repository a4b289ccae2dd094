from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from command import CAPTURES, ROOT, Done, kiebitz, spawn
from corpora import add_here
from processes_and_rows import until
from pyarrow import parquet
from pyarrow.dataset import dataset
from recording_relays import small_disk
from strength import GAMES, a_few, every
from zstd_data import zstd_compressed

from kiebitz.services.corpus import capture_task as adding
from kiebitz.storage.corpus.capture_writer import write_capture
from kiebitz.storage.corpus.layout import COLUMNS, make, open_corpus
from kiebitz.storage.corpus.runs import RequestedCapture, Run, missing, sweep_abandoned
from kiebitz.storage.database.schema import TABLES

FILTERS = {
    "events": ['kind == "turn" && game == 1', 'named == "alice"', "!(player) && time < 2", "diag"],
    "messages": [
        'name matches "^R" && !(diag)',
        'who == "alice" || who contains "127"',
        'maexchen.name == "alice"',
        "catan && length > 99.5",
        'event in {1, 2.0, 3.5} || diag.severity == "error"',
    ],
    "check": ['diag.severity == "error"', 'diag.code matches "field" && stream == 2', "tcp && offset < 100"],
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "games"
    outcomes = add_here(folder, [CAPTURES / name for name in GAMES.values()])
    assert all(outcome.is_new for outcome in outcomes)
    return folder


def ask(*arguments: str) -> Done:
    return kiebitz("corpus", *arguments)


def of_each(command: str, *options: str) -> dict[str, list[dict[str, Any]]]:
    return {name: kiebitz(command, str(CAPTURES / name), *options, "--json").json for name in GAMES.values()}


def by_source(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the corpus's rows by source; `capture` and `source` are its additional columns."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in GAMES.values()}
    for row in rows:
        assert len(row.pop("capture")) == 64
        found[row.pop("source")].append(row)
    return found


@pytest.mark.full
@pytest.mark.parametrize("command", a_few(["games", "events", "messages", "check"], ["events"]))
def test_it_says_what_each_capture_says(corpus: Path, command: str) -> None:
    assert by_source(ask(command, str(corpus), "--json").json) == of_each(command)


ASKED = [(command, wanted) for command, some in FILTERS.items() for wanted in some]


@pytest.mark.full
@pytest.mark.parametrize(("command", "wanted"), a_few(ASKED, ASKED[1:2]))
def test_a_filter_finds_the_same(corpus: Path, command: str, wanted: str) -> None:
    found = by_source(ask(command, str(corpus), "-Y", wanted, "--json").json)
    assert found == of_each(command, "-Y", wanted)
    assert any(found.values()), "it finds nothing at all"


@pytest.mark.full
def test_the_sessions_are_the_captures(corpus: Path) -> None:
    rows = ask("sessions", str(corpus), "--json").json
    assert {row["source"] for row in rows} == {*GAMES.values()}
    for row in rows:
        events = kiebitz("games", str(CAPTURES / row["source"]), "--json").json
        assert row["games"] == len(events)
        assert row["messages"] > 0
        assert row["started"]


@pytest.mark.full
@pytest.mark.parametrize("wanted", a_few([None, 'kind != "turn"'], ['kind != "turn"']))
def test_counts_equal_the_sums_of_each_session(corpus: Path, wanted: str | None) -> None:
    options = ["--json"] if wanted is None else ["--json", "-Y", wanted]
    counted = {each["protocol"]: each for each in ask("stats", str(corpus), *options).json["protocols"]}
    for protocol, name in GAMES.items():
        tables = kiebitz("stats", str(CAPTURES / name), *options).json["tables"]
        for what in ("events", "messages"):
            assert counted[protocol][what] == sum(table[what] for table in tables)
        if len(tables) == 1:
            of_table = tables[0]["statistics"]
            timeless = [one for one in of_table if one["kind"] not in ("course", "rate")]
            assert counted[protocol]["statistics"] == timeless


# Files, for any reader.


def test_others_read_it_without_kiebitz(corpus: Path) -> None:
    files = [str(file) for file in corpus.glob("capture=*/protocol=*/games.parquet")]
    table = dataset(files, partitioning="hive").to_table()
    labels = dict(zip(table["protocol"].to_pylist(), table["label"].to_pylist(), strict=True))
    (game,) = kiebitz("games", str(CAPTURES / GAMES["schafkopf"]), "--json").json
    assert labels["schafkopf"] == game["label"]


def test_no_column_is_forgotten() -> None:
    page = (ROOT / "docs" / "corpus.md").read_text()
    told = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", page, re.MULTILINE)
    assert told == [
        (table, column) for table in COLUMNS for column in COLUMNS[table] if column not in TABLES[table]
    ]
    left_out = {"chunks", "alterations", "snapshots", "taps", "tapped"}
    assert TABLES.keys() - COLUMNS.keys() == left_out
    for table, columns in COLUMNS.items():
        assert [*columns][: len(TABLES[table]) - ("protocol" in TABLES[table])] == [
            column for column in TABLES[table] if column != "protocol"
        ]


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    "query",
    every(
        3,
        [
            "copy messages to 'DIR/out.parquet'",
            "create table mine as select 1",
            "drop view messages",
            "select 1; select 2",
            "attach 'DIR/other.db'",
            "install httpfs",
            "set memory_limit = '1GB'",
            "pragma version",
            "select * from read_csv('/etc/passwd')",
            "select * from read_text('DIR/../elsewhere')",
            "select * from 'DIR/../elsewhere'",
            "select * from glob('/*')",
            "select nothing from messages",
            "selekt 1",
            "",
        ],
    ),
)
def test_a_query_can_do_nothing_else(corpus: Path, query: str) -> None:
    (corpus.parent / "elsewhere").write_text("secret")
    before = sorted(corpus.rglob("*"))
    done = ask("query", str(corpus), query.replace("DIR", str(corpus)))
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("kiebitz: ")
    assert sorted(corpus.rglob("*")) == before


@pytest.mark.parametrize("query", ["select error('no')", "select cast(fields as int) from messages"])
def test_an_error_in_the_middle_is_reported(corpus: Path, query: str) -> None:
    done = ask("query", str(corpus), query)
    assert done.status == 2
    assert done.err.startswith("kiebitz: ")
    assert "Traceback" not in done.err


def test_a_pattern_that_takes_too_long_is_reported(corpus: Path) -> None:
    query = "named matches " + json.dumps("(" + "[a-z]+" * 2 + ")*[!]" + "(.*.*.*.*.*.*.*)*[~]")
    done = ask("events", str(corpus), "-Y", query)
    assert done.status in (0, 2)
    assert "Traceback" not in done.err


@pytest.mark.full
def test_control_c_ends_a_query(corpus: Path) -> None:
    query = "select count(*) from range(10000000) a(i), range(10000000) b(j) where i * j % 7 = 3"
    with spawn("corpus", "query", str(corpus), query) as process:
        until(lambda: _cpu_s(process.pid) > 4, "it is at work")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err.strip()) == (130, b"")


def _cpu_s(process: int) -> float:
    times = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.full
def test_a_folder_may_be_called_anything(corpus: Path, tmp_path: Path) -> None:
    odd = tmp_path / "it's [a] *corpus*? {é}"
    shutil.copytree(corpus, odd)
    assert len(ask("sessions", str(odd), "--json").json) == 5
    assert len(ask("messages", str(odd), "-Y", "event == 1", "--json").json)


def _garbage(path: Path) -> None:
    path.write_bytes(b"PAR1 nonsense PAR1")


def _no_columns(path: Path) -> None:
    parquet.write_table(pa.table({"id": [1, 2]}), path)


def _with(column: str, value: str) -> Callable[[Path], None]:
    def replace(path: Path) -> None:
        table = parquet.read_table(path, partitioning=None)
        place = table.column_names.index(column)
        parquet.write_table(table.set_column(place, column, pa.array([value] * len(table))), path)

    return replace


DAMAGES: list[tuple[str, str, Callable[[Path], None], str]] = [
    ("messages stats check", "messages", _garbage, ""),
    ("messages stats check", "messages", _no_columns, ""),
    ("messages stats check", "messages", _with("fields", "{"), ""),
    ("messages stats check", "messages", _with("ts_ns", "soon"), ""),
    # Columns with values that Kiebitz never writes.
    ("stats", "messages", _with("direction", "across"), "Kiebitz never writes such a row"),
    ("stats", "events", _with("data", "{}"), "Kiebitz never writes such a row"),
    ("stats", "events", _with("data", "7"), "Kiebitz never writes such a row"),
    ("stats", "events", _with("changes", "[7]"), "Kiebitz never writes such a row"),
    ("stats", "events", _with("kind", "sneezed"), "Kiebitz never writes such a row"),
    ("messages", "messages", _with("fields", "7"), "Kiebitz never writes such a row"),
]


@pytest.mark.full(but=2)
@pytest.mark.parametrize(("commands", "name", "damage", "words"), DAMAGES)
def test_a_damaged_file_is_reported(
    commands: str, name: str, damage: Callable[[Path], None], words: str, corpus: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(corpus, folder)
    for file in folder.glob(f"capture=*/protocol=*/{name}.parquet"):
        damage(file)
    for command in commands.split():
        done = ask(command, str(folder))
        # Not every command looks at what is damaged.
        assert done.status == 1 or command != commands.split()[0]
        assert not words or f"this corpus is damaged: {words}" in done.err
        assert "Traceback" not in done.err
        assert "internal error of Kiebitz" not in done.err


def test_a_mark_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "corpus.json")
    assert "corpus.json was not written by Kiebitz" in ask("games", str(tmp_path)).err


# Adding.


def test_the_same_capture_twice_is_nothing(tmp_path: Path) -> None:
    capture = CAPTURES / "maexchen-head-tiny.pcap"
    packed, zst, other = (tmp_path / name for name in ("again.pcap.gz", "again.zst", "other.pcap"))
    packed.write_bytes(gzip.compress(capture.read_bytes(), mtime=1))
    zst.write_bytes(zstd_compressed(capture.read_bytes()))
    shutil.copy(capture, other)
    outcomes = add_here(tmp_path / "corpus", [capture, packed, zst, other])
    assert [outcome.is_new for outcome in outcomes] == [True, False, False, False]
    assert len({outcome.capture for outcome in outcomes}) == 1
    assert missing(open_corpus(str(tmp_path / "corpus"))) == []


@pytest.mark.full
def test_unreadable_messages_are_listed(tmp_path: Path) -> None:
    broken, cut, empty = (tmp_path / name for name in ("broken.pcap", "cut.pcap", "empty.pcap"))
    broken.write_bytes(b"no capture at all")
    cut.write_bytes((CAPTURES / "maexchen-head-tiny.pcap").read_bytes()[:2000])
    empty.write_bytes(b"")
    os.mkfifo(tmp_path / "pipe.pcap")
    captures = [broken, cut, empty, tmp_path / "pipe.pcap", tmp_path / "gone.pcap"]
    outcomes = add_here(tmp_path / "corpus", captures)
    assert [outcome.is_new for outcome in outcomes] == [False, True, False, False, False]
    told = {one.source: one.reason for one in missing(open_corpus(str(tmp_path / "corpus")))}
    assert "is not a capture" in told["broken.pcap"]
    assert "is empty" in told["empty.pcap"]
    assert "is not a regular file" in told["pipe.pcap"]
    assert "No such file" in told["gone.pcap"]
    rows = ask("check", str(tmp_path / "corpus"), "--json").json
    assert [row["source"] for row in rows if row["code"] == "missing"] == sorted(told)
    done = ask("check", str(tmp_path / "corpus"))
    assert done.status == 3
    assert f"missing: {told['broken.pcap']}\n" in done.out
    assert "1 capture, 4 missing" in done.out
    (row,) = ask("query", str(tmp_path / "corpus"), "select lacks from sessions", "--json").json
    assert "the capture ends inside packet" in row["lacks"]
    # What is right in the end is missing no more.
    shutil.copy(CAPTURES / GAMES["okey"], broken)
    add_here(tmp_path / "corpus", [broken])
    assert "1 capture, 4 missing" not in ask("check", str(tmp_path / "corpus")).out


def test_a_bomb_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adding, "MAX_CONTENT_BYTES", 1 << 20)
    bomb = tmp_path / "bomb.pcap.zst"
    head = (CAPTURES / "maexchen-head-tiny.pcap").read_bytes()[:24]
    bomb.write_bytes(zstd_compressed(head + bytes(3 << 20)))
    (outcome,) = add_here(tmp_path / "corpus", [bomb])
    assert outcome.failed is not None
    assert "unpacks to more than" in outcome.failed
    monkeypatch.setattr(adding, "MAX_CONTENT_BYTES", 1 << 30)
    monkeypatch.setattr(adding, "MAX_DATABASE_BYTES", 1 << 16)
    (outcome,) = add_here(tmp_path / "corpus", [CAPTURES / "maexchen-head-odd.pcap"])
    assert outcome.failed is not None
    assert "GiB as a session" in outcome.failed
    assert not [*(tmp_path / "corpus").glob("capture=*")]
    assert not [*(tmp_path / "corpus" / ".staging").iterdir()]


def test_a_capture_that_changes_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = tmp_path / "growing.pcap"
    shutil.copy(CAPTURES / "maexchen-head-tiny.pcap", capture)

    def written(*given: Any) -> None:
        write_capture(*given)
        with capture.open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(adding, "write_capture", written)
    (outcome,) = add_here(tmp_path / "corpus", [capture])
    assert outcome.failed == "growing.pcap changed while it was read: add it again when it is complete"
    assert not [*(tmp_path / "corpus").glob("capture=*")]


def test_a_fault_of_ours_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*given: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(adding, "write_capture", raises)
    (outcome,) = add_here(tmp_path / "corpus", [CAPTURES / GAMES["okey"]])
    assert outcome.failed is not None
    assert "internal error of Kiebitz" in outcome.failed
    assert outcome.stops is None


@pytest.mark.full
def test_a_full_disk_stops_all(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "100k") as disk:
        outcomes = add_here(disk / "corpus", [CAPTURES / "maexchen-head-odd.pcap"])
        assert "the disk is full" in str(outcomes[0].stops)
        assert not [*(disk / "corpus").glob("capture=*")]
        assert not [*(disk / "corpus" / ".staging").iterdir()]


def test_two_simultaneous_additions_of_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = CAPTURES / GAMES["okey"]

    def written(*given: Any) -> None:
        write_capture(*given)
        monkeypatch.setattr(adding, "write_capture", write_capture)
        assert [outcome.is_new for outcome in add_here(tmp_path / "corpus", [capture])] == [True]

    monkeypatch.setattr(adding, "write_capture", written)

    assert [outcome.is_new for outcome in add_here(tmp_path / "corpus", [capture])] == [False]
    assert len([*(tmp_path / "corpus").glob("capture=*")]) == 1
    assert len(ask("sessions", str(tmp_path / "corpus"), "--json").json) == 1


def test_files_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    corpus = make(str(tmp_path / "corpus"))
    program = (
        "import os, signal; from kiebitz.storage.corpus.layout import open_corpus;"
        "from kiebitz.storage.corpus.runs import RequestedCapture, Run;"
        f"corpus = open_corpus({corpus.path!r}); run = Run(corpus).__enter__();"
        "run.asked([RequestedCapture('/x/a.pcap', 'a.pcap')]); corpus.stage(run.name, 'ab');"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", program], check=False, cwd=ROOT)
    left = [*(tmp_path / "corpus" / ".staging").glob("*/*")]
    assert len(left) == 1
    with Run(corpus) as run:
        run.asked([RequestedCapture("/x/b.pcap", "b.pcap")])
        corpus.stage(run.name, "cd")
        assert [one.reason for one in missing(corpus)] == [
            "a.pcap: the run ended before it was added: add it again",
            "b.pcap: it is being added",
        ]
        sweep_abandoned(corpus)
        (staged,) = (tmp_path / "corpus" / ".staging").glob("*/*")
        assert staged.name.startswith("cd-")
    assert not [*(tmp_path / "corpus" / ".staging").iterdir()]
