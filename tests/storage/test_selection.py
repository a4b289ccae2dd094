from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from command import TINY, kiebitz
from hypothesis import given
from hypothesis import strategies as st
from imported_databases import database_of
from page_queries import data_of
from rotated_recording import divided, items_of, timeline_of
from strength import GAMES, a_few

from kiebitz.dissectors.model import Chunk, Direction, End, Gap, Item, Stream
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.derived.trimming import MessagePosition, outline, trim_items

PARTS = [
    ("maexchen-head-tiny.pcap", 1),
    ("maexchen-head-tiny.pcap", 2),
    ("maexchen-old-20111003.pcap", 17),
    ("maexchen-two-servers-restart.pcapng", 9),
    ("maexchen-two-servers-restart.pcapng", 73),
    ("maexchen-fork-pybots.pcap.gz", 33),
    ("schafkopf-1.3-badcard.pcap", 1),
    ("schafkopf-1.3-2humans.pcap", 4),
    ("schafkopf-1.3-crlf.pcap", 3),
    ("schafkopf-old-1.0.pcap", 6),
    ("catan-yaks-g1-3p.pcap.gz", 1),
    ("catan-five-servers.pcapng.gz", 3),
    ("okey-seed-game-win.pcap.gz", 1),
    ("okey-head-malformed.pcap.gz", 1),
    ("okey-seed-malformed.pcap.gz", 2),
    ("cgml-tiny.pcap.gz", 1),
    ("cgml-hands.pcap.gz", 24),
    ("cgml-styles.pcap.gz", 6),
    ("cgml-wrapped.pcap.gz", 5),
]
QUICK = [
    ("maexchen-two-servers-restart.pcapng", 9),
    ("schafkopf-1.3-2humans.pcap", 4),
    ("okey-seed-malformed.pcap.gz", 2),
    ("cgml-tiny.pcap.gz", 1),
]


def _export(session: str, to: Path, *options: str) -> str:
    done = kiebitz("export", session, "-T", "pcapng", "-o", str(to), *options)
    assert (done.status, done.err) == (0, "")
    return str(to)


def _told(session: str, game: int) -> list[tuple[str, str, str]]:
    return [
        (event["kind"], event["actor"], re.sub(r"^round \d+", "round", event["sentence"]))
        for event in kiebitz("events", session, "--json", "-Y", f"game == {game}").json
    ]


def _diagnostics(session: str, severity: str) -> Counter[tuple[str, str]]:
    found = kiebitz("check", session, "--json").json
    return Counter(
        (diagnostic["code"], diagnostic["text"]) for diagnostic in found if diagnostic["severity"] == severity
    )


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("capture", "game"), a_few(PARTS, [*QUICK][:2]))
def test_a_game_is_imported_again_as_that_game(capture: str, game: int, tmp_path: Path) -> None:
    whole = database_of(capture)
    part = _export(whole, tmp_path / "game.pcapng", "--game", str(game))
    assert _told(part, 1) == _told(whole, game) != []
    # No violation is reported for missing packets.
    assert not _diagnostics(part, "error") - _diagnostics(whole, "error")
    assert {code for code, _ in _diagnostics(part, "warning")} <= {
        code for code, _ in _diagnostics(whole, "warning")
    }


def test_errors_of_other_games_are_no_way_in(tmp_path: Path) -> None:
    whole = database_of("maexchen-head-port4711.pcap")
    part = _export(whole, tmp_path / "round9.pcapng", "--game", "9")
    (round_9,) = (game for game in kiebitz("games", whole, "--json").json if game["number"] == 9)
    meanwhile = f"time >= {round_9['started']} && time <= {round_9['ended']}"
    of_the_round = kiebitz("check", whole, "--json", "-Y", f'{meanwhile} && diag.severity == "error"').json
    assert (
        _diagnostics(part, "error")
        == Counter((diagnostic["code"], diagnostic["text"]) for diagnostic in of_the_round)
        != Counter()
    )


ENDED = ("left", "logged_out", "disconnected")


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    "capture", a_few(GAMES.values(), ["maexchen-head-tiny.pcap", "schafkopf-1.3-badcard.pcap"])
)
def test_diff_finds_nothing_in_a_game_that_was_not_in_the_session(capture: str, tmp_path: Path) -> None:
    whole = database_of(capture)
    if not kiebitz("games", whole, "--json").json:
        pytest.skip("no game in this capture")
    part = _export(whole, tmp_path / "game.pcapng", "--game", "1")
    found = kiebitz("diff", whole, part, "--json").json
    assert {event["sort"] for event in found["differences"] if event["kind"] not in ENDED} <= {"only a"}


FILTERS = [
    'msg == "ROLLED"',
    'dir == "c2s"',
    'player == "alice"',
    "event == 20",
    "stream == 3",
    "diag",
    "time > 1.39",
    '!(msg == "SCORE") && game == 1',
]


@pytest.mark.full(but=2)
@pytest.mark.parametrize("wanted", FILTERS)
def test_a_filter_takes_what_messages_lists(wanted: str) -> None:
    listed = kiebitz("messages", TINY, "-Y", wanted, "--json").json
    rows = list(
        csv.DictReader(io.StringIO(kiebitz("export", TINY, "-T", "csv", "-Y", wanted).out, newline=""))
    )
    assert [int(row["message"]) for row in rows] == [message["id"] for message in listed]
    records = [
        json.loads(line) for line in kiebitz("export", TINY, "-T", "jsonl", "-Y", wanted).out.splitlines()
    ]
    by_kind = {
        kind: {r["id"] for r in records if r["record"] == kind} for kind in ("message", "event", "stream")
    }
    assert by_kind == {
        "message": {message["id"] for message in listed},
        "event": {message["event"] for message in listed if message["event"]},
        "stream": {message["stream"] for message in listed},
    }


@pytest.mark.parametrize(
    ("options", "events"),
    [
        (["--from", "#20"], range(20, 27)),
        (["--to", "#3"], range(1, 4)),
        (["--from", "#11", "--to", "#13"], range(11, 14)),
        (["--from", "1.4s", "--to", "1.402"], range(19, 24)),
        (["--game", "1", "--from", "#20"], range(20, 22)),
        (["--game", "2"], range(22, 27)),
        (["--to", "end", "--game", "1"], range(6, 22)),
    ],
)
def test_moments_are_those_of_replay(options: list[str], events: range) -> None:
    lines = kiebitz("export", TINY, "-T", "jsonl", *options).out.splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["id"] for record in records if record["record"] == "event"] == list(events)
    told = {record["event_id"] for record in records if record["record"] == "message"} - {None}
    assert told == set(events)


def test_a_page_has_the_part_and_the_way_in(tmp_path: Path) -> None:
    kiebitz("export", TINY, "-T", "html", "--game", "2", "-o", str(tmp_path / "x.html"))
    page = json.dumps(data_of(tmp_path / "x.html"))
    assert "alice is registered" in page
    assert "dora joins the round" in page
    assert "has rolled" not in page


@pytest.mark.full
@pytest.mark.parametrize(
    "capture",
    a_few(
        ["schafkopf-1.3-1human-round.pcap", "okey-head-game-win.pcap.gz"], ["schafkopf-1.3-1human-round.pcap"]
    ),
)
def test_a_continued_session_reports_no_violation(capture: str, tmp_path: Path) -> None:
    with closing(open_existing(database_of(capture))) as connection:
        paths = divided(tmp_path, items_of(timeline_of(connection)))
    for number, path in enumerate(paths[1:], 2):
        for options in (["--from", "0s"], ["-Y", "number > 10"]):
            part = _export(str(path), tmp_path / f"{number}.pcapng", *options)
            assert not _diagnostics(part, "error") - _diagnostics(str(path), "error")


@pytest.mark.full
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize(
    ("capture", "options"),
    a_few(
        [
            ("schafkopf-1.3-2humans.pcap", ["--game", "3"]),
            ("okey-seed-game-win.pcap.gz", ["-Y", 'dir == "s2c" || number > 100']),
            ("maexchen-head-tiny.pcap", ["--from", "#12"]),
        ],
        lambda row: row[0].startswith("okey"),
    ),
)
def test_tshark_reads_a_part(capture: str, options: list[str], tmp_path: Path) -> None:
    part = _export(database_of(capture), tmp_path / "part.pcapng", *options)
    command = ["tshark", "-r", part, "-T", "fields"]
    for field in (
        "frame.comment",
        "_ws.malformed",
        "tcp.analysis.retransmission",
        "tcp.analysis.out_of_order",
    ):
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert any(comment for comment, *_ in rows)
    assert {tuple(bad) for _, *bad in rows} == {("", "", "")}


def _talk(sizes: list[int], transport: str) -> tuple[list[Item], list[MessagePosition]]:
    """Messages of these sizes, each in a chunk of its own, one way after the other."""
    stream = Stream(1, "tcp" if transport == "tcp" else "udp", "10.0.0.1:4000", "10.0.0.2:9000", 1)
    come: dict[Direction, int] = {"c2s": 0, "s2c": 0}
    items: list[Item] = []
    said = []
    for number, size in enumerate(sizes, 1):
        direction: Direction = "c2s" if number % 2 else "s2c"
        items.append(Chunk(stream, direction, number, come[direction], bytes([number % 256]) * size))
        said.append(MessagePosition(number, 1, direction, number, come[direction], size))
        come[direction] += size
    return [*items, End(stream, len(sizes) + 1, "closed")], said


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=20), st.sampled_from(["tcp", "udp"]))
def test_kept_data_is_complete_and_dropped_data_leaves_its_length(
    messages: list[tuple[int, bool]], transport: str
) -> None:
    items, said = _talk([size for size, _ in messages], transport)
    kept = {number for number, (_, is_kept) in enumerate(messages, 1) if is_kept}
    if not kept:
        return
    found = list(trim_items(items, outline(said, kept, {1: max(kept)}, "missing"), {1}))
    chunks = [item for item in found if isinstance(item, Chunk)]
    assert [(chunk.ts_ns, len(chunk.data)) for chunk in chunks] == [
        (number, size) for number, (size, is_kept) in enumerate(messages, 1) if is_kept
    ]
    # Offsets follow each other, with gaps in between and never before the first.
    come: Counter[str] = Counter()
    for item in found:
        if isinstance(item, Chunk | Gap):
            assert item.offset == come[item.direction]
            come[item.direction] += len(item.data) if isinstance(item, Chunk) else item.length or 0
    is_joined = any(not is_kept for _, is_kept in messages[: max(kept)])
    marks = [item for item in found if isinstance(item, Gap) and item.length is None]
    assert len(marks) == (2 if is_joined and transport == "tcp" else 0)
    assert isinstance(found[-1], End) == (len(messages) in kept)
