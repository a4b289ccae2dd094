from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from cleanup import close_after_test
from command import ROOT, TINY, kiebitz
from filter_rows import Session, database, live, stored
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark
from lark.lexer import PatternStr
from snapshots import DATA, as_bytes, as_text, check
from strength import a_few

from kiebitz.cli.live_view import LiveView
from kiebitz.dissectors.filters import FieldCatalog, FilterError, compile_filter, expressions
from kiebitz.dissectors.filters.expressions import searching
from kiebitz.dissectors.filters.fields import ALIASES, COLUMNS, TRANSPORTS
from kiebitz.dissectors.filters.parser import FILTER_GRAMMAR
from kiebitz.dissectors.filters.reference import EXAMPLES, FIELDS, NAMES
from kiebitz.dissectors.filters.syntax import WORDS
from kiebitz.dissectors.model import Diagnostic, Findings, Message, Stream
from kiebitz.storage.database.schema import MEMORY
from kiebitz.storage.filters.sql import original_error
from kiebitz.storage.read.conditions import field_catalog
from kiebitz.storage.recording.recorder import Recorder

CATALOG = FieldCatalog({"maexchen": {"CHAT": {"chat": ""}}}, {"maexchen": {}})

HOSTILE = [
    # A pattern, and a text that takes Python's own engine hours, or for ever.
    (r"(a|aa)+$", "a" * 200 + "!"),
    (r"(a|a)*$", "a" * 200 + "!"),
    (r"a*[bc]", "a" * 1_000_000),
    (r"(\\w+\\s*)+:", "word " * 100_000),
]


def saying(text: str) -> Session:
    stream = Stream(1, "udp", "10.0.0.1:4000", "10.0.0.9:9000", 0, "maexchen")
    row = Message(1, stream, "c2s", 0, "CHAT", {"chat": text}, f'{{"chat":"{text}"}}', 0, 9, None, None)
    return Session(1, 0, [stream], messages=[row])


def by_predicate(text: str, session: Session) -> None:
    live(compile_filter(text, CATALOG), "messages", session)


def by_sql(text: str, session: Session) -> None:
    stored(compile_filter(text, CATALOG), "messages", database(session))


@pytest.mark.parametrize(("pattern", "text"), a_few(HOSTILE, HOSTILE[1::2], lambda row: row[0]))
@pytest.mark.parametrize("ask", [by_predicate, by_sql])
def test_a_pattern_that_takes_too_long_is_an_error(
    monkeypatch: pytest.MonkeyPatch, pattern: str, text: str, ask: Callable[[str, Session], None]
) -> None:
    monkeypatch.setattr(expressions, "PATIENCE_S", 0.05)
    written = f'dir == "c2s" && chat matches "{pattern}"'
    try:
        ask(written, saying(text))
    except (FilterError, sqlite3.OperationalError) as raised:
        error = original_error(raised)
        assert isinstance(error, FilterError)
        sentence = str(error)
        shown, carets = error.excerpt()
        assert "took longer than" in sentence
        assert "simplify the pattern" in sentence
        assert shown[carets.index("^") : carets.rindex("^") + 1] == f'"{pattern}"'
    else:
        # Some that are hopeless for Python are none for this engine.
        assert pattern == HOSTILE[-1][0]


@pytest.mark.parametrize("target", ["name", "chat"])
def test_columns_and_fields_have_the_same_limit(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setattr(expressions, "PATIENCE_S", 0.05)
    session = saying("a" * 200 + "!")
    session.messages[0].name = "a" * 200 + "!"
    compiled = compile_filter(f'{target} matches "(a|aa)+$"', CATALOG)
    with pytest.raises(sqlite3.OperationalError) as raised:
        stored(compiled, "messages", database(session))
    behind = original_error(raised.value)
    assert isinstance(behind, FilterError)
    with pytest.raises(FilterError) as also:
        live(compiled, "messages", session)
    assert (str(behind), behind.excerpt()) == (str(also.value), also.value.excerpt())


def test_another_error_of_sqlite_stays_what_it_is() -> None:
    error = sqlite3.OperationalError("database is locked")
    assert original_error(error) is error


def test_the_command_reports_it_with_status_2(monkeypatch: pytest.MonkeyPatch) -> None:
    # No text of the capture is long enough for a whole second.
    monkeypatch.setattr(expressions, "PATIENCE_S", 1e-6)
    done = kiebitz("messages", TINY, "-Y", 'server matches "(.|.)+(.|.)+(.|.)+§"', "--nl")
    assert done.status == 2
    assert "took longer than" in done.err
    assert "^^^^" in done.err
    assert "Traceback" not in done.err


def test_a_slow_filter_does_not_stop_a_recording(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(expressions, "PATIENCE_S", 0.05)
    recorder = Recorder(MEMORY, "relay", "here", started_ns=0)
    close_after_test(recorder.connection)
    view = LiveView(recorder, compile_filter('diag.text matches "(a|aa)+$"', CATALOG), quiet=False)
    found = _malformed("a" * 200 + "!")
    for _ in range(3):
        view.show(found)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("took longer than") == 1
    assert told.err.endswith("output stopped; everything is still recorded\n")


def test_a_filter_that_is_slow_in_all_is_given_up_live(capsys: pytest.CaptureFixture[str]) -> None:
    recorder = Recorder(MEMORY, "relay", "here", started_ns=0)
    close_after_test(recorder.connection)
    view = LiveView(
        recorder, compile_filter('diag.text matches "a*[bc]"', CATALOG), quiet=False, patience_s=0.02
    )
    found = _malformed("a" * 1000)
    found.diagnostics *= 1000
    view.show(found)
    told = capsys.readouterr()
    assert told.out == ""
    assert "the filter takes too long" in told.err


def _malformed(text: str) -> Findings:
    stream = Stream(1, "udp", "10.0.0.1:4000", "10.0.0.9:9000", 0, "maexchen")
    return Findings(diagnostics=[Diagnostic(stream, "c2s", 0, "error", "rule", "x", text, 0, 1)])


# The same as Python's own.


def test_a_pattern_means_what_it_means_in_python() -> None:
    lines = []
    for line in (DATA / "patterns.txt").read_text().splitlines():
        if not line.startswith("    "):
            lines.append(line)
        if row := re.fullmatch("/(.*)/ (.*)", line):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = re.compile(row[1]).search
            search = searching(row[1])
            texts = [as_bytes(text).decode() for text in row[2].split(" ¦ ")]
            found = [text for text in texts if search(text)]
            assert found == [text for text in texts if expected(text)], line
            lines.append(f"    {' ¦ '.join(as_text(text.encode()) for text in found) or 'none'}")
    check(DATA / "patterns.txt", "\n".join([*lines, ""]))


ATOMS = st.sampled_from(
    [*"abiß1²{}.^$-#~ ", "{e}", "[[:alpha:]]", "[a-c]", "[^a]", "[a&&b]"]
) | st.sampled_from([rf"\{letter}" for letter in "wWsSdDbBAZ1."] + [r"[^\W\d]", r"[\w-]"])
QUANTIFIERS = st.sampled_from(["", "", "", "*", "+", "?", "*?", "+?", "*+", "{2}", "{1,2}", "{,2}", "{1,}"])
OPENINGS = st.sampled_from(["(", "(?:", "(?=", "(?!", "(?<=", "(?>", "(?i:", "(?s:", "(?m:", "(?(1)", "(?x:"])


def _sequence(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.builds(str.__add__, parts, QUANTIFIERS), min_size=1, max_size=3).map("".join)


PATTERNS = st.builds(
    str.__add__,
    st.sampled_from(["", "", "(?i)", "(?s)", "(?m)", "(?x)", "(?a)"]),
    st.recursive(
        _sequence(ATOMS),
        lambda inner: _sequence(
            ATOMS | st.builds("{}{})".format, OPENINGS, inner) | st.builds("({}|{})".format, inner, inner)
        ),
        max_leaves=4,
    ),
)
TEXTS = st.text(st.sampled_from("abBciİıIßſs\u0301 \n_1²٣{}[]-&|:ph#A\0."), max_size=8)


@given(PATTERNS, st.lists(TEXTS, min_size=5, max_size=10))
def test_any_pattern_means_what_it_means_in_python(pattern: str, texts: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = re.compile(pattern).search
        except (re.error, OverflowError):
            with pytest.raises(ValueError, match="not a regular expression"):
                searching(pattern)
            return
    search = searching(pattern)
    assert [search(text) for text in texts] == [expected(text) is not None for text in texts]


@pytest.mark.full
def test_no_filter_no_engine() -> None:
    program = (
        "import sys; from kiebitz.cli.main import run; run(sys.argv[1:]); assert 'regex' not in sys.modules"
    )
    command = [sys.executable, "-c", program, "messages", str(Path(TINY)), "--nl"]
    subprocess.run(command, capture_output=True, check=True, cwd=ROOT, timeout=30)


CATAN = "catan-yaks-g1-3p.pcap.gz"


def told() -> set[str]:
    done = kiebitz("help", "filters")
    assert (done.status, done.err) == (0, "")
    firsts = [line[2:].split("  ")[0] for line in done.out.splitlines() if re.match(r"  \S", line)]
    return {word for first in firsts for word in re.split(r"[ ,]+", first)}


def test_every_name_is_in_the_reference() -> None:
    assert {*COLUMNS, *ALIASES, *TRANSPORTS, "diag"} <= told()


def test_every_word_and_operator_is_in_the_reference() -> None:
    assert {*WORDS} <= told()
    signs = {"==", "!=", "<=", ">=", "<", ">"}
    for terminal in Lark(FILTER_GRAMMAR, parser="lalr", lexer="basic").terminals:
        if isinstance(terminal.pattern, PatternStr):
            signs.add(terminal.pattern.value)
    text = kiebitz("help", "filters").out
    assert {sign for sign in signs if sign not in text} == set()


def test_references_are_resolved() -> None:
    catalog = field_catalog()
    for names in NAMES:
        for name in names.split(", "):
            compile_filter(name, catalog)
    for text in (*FIELDS, *EXAMPLES):
        compile_filter(text, catalog)
