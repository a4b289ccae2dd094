from __future__ import annotations

import base64
import gzip
import json
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cleanup import close_after_test
from command import CAPTURES, TINY, kiebitz
from pyarrow import parquet
from strength import GAMES, a_few, every
from tcp_segments import handshake, sent, write_pcap

from kiebitz.cli.options.session import open_session
from kiebitz.dissectors.anonymizing.anonymizer import QUOTE_LEFT_OUT, Anonymizer
from kiebitz.dissectors.anonymizing.pseudonyms import Pseudonyms
from kiebitz.dissectors.grammar.field_type import IdentifierKind
from kiebitz.dissectors.model import Fault, Stream
from kiebitz.dissectors.registry import BUILT_IN, dissector_of
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.schema import TABLES
from kiebitz.storage.derived.derived_session import anonymize_session
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.recorder import Recorder

NAMES = sorted(path.name for path in CAPTURES.glob("*.pcap*"))
LARGE = ("catan-niedlichepixel", "catan-five", "catan-infrarot", "catan-eisfrei-game")
"""Captures of Catan games with thousands of messages: of the page, which takes long, one such is enough."""
FORMATS = ("pcapng", "jsonl", "csv", "parquet", "html")
FEWEST = 4
"""A word of no more letters may be part of anything."""


@cache
def own_words() -> set[str]:
    """Return the words that Kiebitz and the protocols themselves bring into an export."""
    texts: list[str] = [*TABLES, *(column for columns in TABLES.values() for column in columns)]
    texts += re.findall(r"\w+", (CAPTURES.parent / "docs" / "database.md").read_text())
    for dissector in BUILT_IN:
        grammar = dissector.grammar
        texts += grammar.words
        texts += [text for row in grammar.rows for text in (row.description, row.clause, row.deviation or "")]
        texts += [field.type.title + field.description for row in grammar.rows for field in row.fields]
        texts += [kind.sentence + " ".join(kind.fields) for kind in grammar.events.values()]
        texts += [f"{rule.text} {rule.expected} {rule.clause}" for rule in grammar.rules.values()]
    for page in (CAPTURES.parent / "cli" / "web" / "static").rglob("*.*s*"):
        texts.append(page.read_text())
    for source in (CAPTURES.parent / "dissectors").rglob("*.py"):
        texts += re.findall(r'"[^"\n]*"', source.read_text())
    # An export is read in other charsets, too, in which they are others.
    texts += [reading for text in texts for reading in readings(text.encode())]
    return {word.lower() for text in texts for word in words_of(text)}


def words_of(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text)


def said(timeline: Timeline) -> Iterator[str]:
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    def name(handle: IdentifierKind, value: object) -> object:
        if handle.of_player and isinstance(value, str):
            found.append(value)
        return value

    for protocol, direction, message, fields in timeline.connection.execute(
        "SELECT s.protocol, m.direction, m.name, m.fields FROM messages AS m JOIN streams AS s"
        " ON s.id = m.stream_id WHERE s.protocol IS NOT NULL AND m.name <> 'unreadable'"
    ):
        dissector = dissector_of(protocol)
        assert dissector is not None
        values = json.loads(fields)
        row = dissector.grammar.row_of(message, direction, values)
        if row is not None:
            row.anonymized(values, note, name)
    for (actor,) in timeline.connection.execute("SELECT DISTINCT actor FROM events WHERE actor IS NOT NULL"):
        found.append(actor)
    yield from dict.fromkeys(found)


def truth_names(name: str) -> Iterator[str]:
    path = CAPTURES / f"{name.split('.pcap')[0]}.truth.json"
    if path.exists():
        yield from re.findall(r'"(?:name|nick|nickname|player)": "([^"]{1,40})"', path.read_text())


def sought(name: str, timeline: Timeline) -> set[str]:
    """Return the words that must not be found any more."""
    ours = own_words()
    words = {word.lower() for text in (*said(timeline), *truth_names(name)) for word in words_of(text)}
    return {word for word in words if len(word) >= FEWEST and word not in ours}


def readings(data: bytes) -> Iterator[str]:
    plain = re.sub(rb"\\\\[bfnrt]", b" ", data)
    for charset in ("utf-8", "cp1252", "iso-8859-2", "utf-16-le", "utf-16-be"):
        for start in (0, 1) if charset.startswith("utf-16") else (0,):
            yield plain[start:].decode(charset, "ignore")
    yield re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), plain.decode("utf-8", "ignore"))


def found_in(data: bytes, words: set[str]) -> set[str]:
    """Return which of these words are in some bytes, in hexadecimal digits or in base64 in them, too."""
    hidden = [bytes.fromhex(run.decode()) for run in re.findall(rb"(?:[0-9a-fA-F]{2}){4,}", data)]
    for run in re.findall(rb"[0-9A-Za-z+/]{8,}", data):
        hidden += [base64.b64decode(run[at:][: (len(run) - at) // 4 * 4]) for at in range(4)]
    everything = (data, b" ".join(hidden))
    return {
        word
        for part in everything
        for text in readings(part)
        for word in words_of(text.lower())
        if word in words
    }


def texts_in(path: Path) -> bytes:
    """Return the bytes of an export; what is packed in Parquet or in a page, as text."""
    data = path.read_bytes()
    if path.suffix == ".html":
        data, pages = re.subn(
            rb"H4sI[0-9A-Za-z+/]{100,}=*", lambda packed: gzip.decompress(base64.b64decode(packed[0])), data
        )
        assert pages == 1
    if path.suffix == ".parquet":
        data += repr(parquet.read_table(path).to_pylist()).encode()
    return data


def exports() -> list[Any]:
    rows = [(name, form) for name in NAMES for form in FORMATS]
    rows = [(name, form) for name, form in rows if form != "html" or not name.startswith(LARGE)]
    few = [(name, form) for name, form in rows if name in GAMES.values() and form in ("jsonl", "pcapng")]
    return a_few(rows, few[::5], "-".join)


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("name", "form"), exports())
def test_no_export_has_a_player_s_text(name: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / f"game.{form}"
    capture = str(CAPTURES / name)
    done = kiebitz("export", capture, "-T", form, "-o", str(path), "--anonymize")
    assert (done.status, done.err) == (0, "")
    timeline = open_session(capture)
    with closing(timeline.connection):
        words = sought(name, timeline)
        addresses = {
            endpoint.rpartition(":")[0].strip("[]")
            for (endpoint,) in timeline.connection.execute(
                "SELECT client FROM streams UNION SELECT server FROM streams"
            )
        }
    data = texts_in(path)
    assert not found_in(data, words)
    assert not [one for one in addresses if not ip_address(one).is_loopback and one.encode() in data]
    assert name.split(".")[0].encode() not in data


def test_searched_values_are_found_without_anonymization(tmp_path: Path) -> None:
    path = tmp_path / "game.jsonl"
    capture = str(CAPTURES / GAMES["okey"])
    kiebitz("export", capture, "-T", "jsonl", "-o", str(path))
    timeline = open_session(capture)
    with closing(timeline.connection):
        words = sought(GAMES["okey"], timeline)
    assert found_in(path.read_bytes(), words) == words >= {"boran", "pascal", "robin"}


def rows(timeline: Timeline, query: str) -> list[Sequence[object]]:
    return timeline.connection.execute(query).fetchall()


SAME = {
    "messages": "SELECT stream_id, direction, ts_ns, name, offset, length, game_id, event_id FROM messages",
    # Bytes in a text that are of no charset are replaced, perhaps by what is wrong in another way.
    "diagnostics": "SELECT stream_id, direction, ts_ns, severity, grp, code, offset, blame FROM diagnostics"
    " WHERE code NOT IN ('charset', 'control-character')",
    "events": "SELECT table_id, game_id, seq, ts_ns, kind FROM events",
    "games": "SELECT table_id, protocol, label, started_ns, ended_ns FROM games",
    "streams": "SELECT protocol, transport, opened_ns, closed_ns, close_reason FROM streams",
}


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", a_few(NAMES, [GAMES["schafkopf"], GAMES["okey"]]))
def test_it_is_the_same_game(name: str, tmp_path: Path) -> None:
    database, original = str(tmp_path / "anonymized.db"), str(tmp_path / "original.db")
    capture = str(CAPTURES / name)
    assert kiebitz("import", capture, "-w", original).status == 0
    # Both from its database, which names each server's protocol: otherwise rows may be in another order.
    assert kiebitz("import", original, "-w", database, "--anonymize").status == 0
    assert kiebitz("import", original, "-w", str(tmp_path / "again.db")).status == 0
    before, after = open_session(str(tmp_path / "again.db")), open_session(database)
    with closing(before.connection), closing(after.connection):
        for table, query in SAME.items():
            assert rows(after, query) == rows(before, query), table


FREE = ("text", "why", "reason")


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", every(3, GAMES.values()))
def test_compared_with_the_original_only_the_names_differ(name: str, tmp_path: Path) -> None:
    path = tmp_path / "game.pcapng"
    capture = str(CAPTURES / name)
    assert kiebitz("export", capture, "-T", "pcapng", "-o", str(path), "--anonymize").status == 0
    difference = kiebitz("diff", capture, str(path), "--json").json
    kinds = {(one["sort"], one["kind"], *one["fields"]) for one in difference["differences"]}
    assert {(sort, field) for sort, _, field in kinds} <= {("changed", field) for field in FREE}
    assert all(sides["a"] != sides["b"] for table in difference["tables"] for sides in table["players"])


def test_the_list_of_pseudonyms_is_written_on_request(tmp_path: Path) -> None:
    listed = tmp_path / "who.txt"
    arguments = ("export", TINY, "-T", "jsonl", "--anonymize", "--mapping-file", str(listed))
    done = kiebitz(*arguments)
    assert done.status == 0
    pairs = dict(line.split("\t") for line in listed.read_text().splitlines())
    assert pairs.keys() >= {"alice", "bob", "carl", "dora"}
    assert all(other.capitalize() in done.out or other in done.out for other in pairs.values())
    assert stat.S_IMODE(listed.stat().st_mode) == 0o600
    again = kiebitz(*arguments)
    assert (again.status, again.out) == (1, "")
    assert "file exists" in again.err
    assert kiebitz("import", TINY, "--mapping-file", "x").status == 2


def test_a_player_is_named_by_the_name_that_the_session_has(tmp_path: Path) -> None:
    path = tmp_path / "dora.html"
    done = kiebitz("export", TINY, "-T", "html", "-o", str(path), "--anonymize", "--as", "dora")
    assert (done.status, b"dora" in path.read_bytes()) == (0, False)


@pytest.mark.full
def test_several_files_have_the_same_pseudonyms(tmp_path: Path) -> None:
    database = str(tmp_path / "two.db")
    first, second = (str(CAPTURES / f"maexchen-{name}.pcap") for name in ("head-tiny", "old-20111003"))
    assert kiebitz("import", first, second, "-w", database, "--anonymize").status == 0
    actors = [
        {event["actor"] for event in kiebitz("events", f"{database}:{number}", "--json").json}
        for number in (1, 2)
    ]
    assert len(actors[0] & actors[1] - {None}) >= 4
    names = [session["name"] for session in kiebitz("sessions", database, "--json").json]
    assert names == ["anonymized 1", "anonymized 2"]


def test_the_text_of_a_rst_is_left_out(tmp_path: Path) -> None:
    segments = [*handshake(), sent(1, "c", "PA", b"LOGI anna\r\n"), sent(2, "s", "RA", b"anna: bye", ack=11)]
    write_pcap(tmp_path / "reset.pcap", segments)
    shown = {}
    for options in ((), ("--anonymize",)):
        database = str(tmp_path / f"{len(options)}.db")
        assert kiebitz("import", *options, str(tmp_path / "reset.pcap"), "-w", database).status == 0
        (stream,) = json.loads(kiebitz("streams", "--json", database).out)
        shown[options] = stream["close_reason"]
    assert shown == {(): "reset: anna: bye", ("--anonymize",): "reset"}


@pytest.mark.parametrize("is_stored", [False, True])
def test_the_text_of_a_fault_is_left_out_if_it_quotes_a_peer(is_stored: bool, tmp_path: Path) -> None:
    stream = Stream(1, "tcp", "10.0.0.1:50000", "10.0.0.2:9000", 1)
    ours = Fault(stream, "c2s", 1, 0, "refused", "the server refused the connection")
    said = Fault(
        stream, "c2s", 2, 0, "divergence", "anna was named", 0, "state", "client", "Bert", quotes=True
    )
    names = Pseudonyms(())
    if is_stored:
        recorder = Recorder(str(tmp_path / "game.db"), "replay", "game")
        recorder.record([ours, said])
        recorder.close()
        connection = close_after_test(open_existing(recorder.path))
        timeline = anonymize_session(Timeline(connection, sessions(connection)[0]), names, lambda *_: None)
        found = timeline.connection.execute("SELECT code, text, expected FROM diagnostics").fetchall()
    else:
        anonymizer = Anonymizer((), {}, names)
        items = [*anonymizer.feed(ours), *anonymizer.feed(said), *anonymizer.finish()]
        found = [(item.code, item.text, item.expected) for item in items if isinstance(item, Fault)]
    assert found == [
        ("refused", "the server refused the connection", None),
        ("divergence", QUOTE_LEFT_OUT, None),
    ]
