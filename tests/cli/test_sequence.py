"""`kiebitz sequence`: arrows, notes, views, formats; Mermaid and PlantUML as their own programs read them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from browser import Eyes
from command import CAPTURES, ODD, TINY, kiebitz
from hostile_text import NAMES, is_harmless, on_a_terminal
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import GAMES, a_few, times

from kiebitz.cli.options.session import open_session
from kiebitz.cli.render.sequence_markup import mermaid, mermaid_text, plantuml, plantuml_text
from kiebitz.cli.render.svg.sequence import sequence_document
from kiebitz.dissectors.escaping import printable
from kiebitz.dissectors.sequence.model import Arrow, Lifeline, Note, Problem, Step
from kiebitz.services.evidence.cells import cell_len
from kiebitz.storage.derived.selection import PartRequest
from kiebitz.storage.sequence.reader import MAX_CLIENTS, read_sequence

HOSTILE = {
    **NAMES,
    "mermaid": "end; #35; %%{init: {}}%% A->>B: x <br/> $$x$$ wrap: nowrap:",
    "plantuml": '!include /etc/passwd\n@enduml %load("x") $x <img:/etc/passwd> **b** [[http://x]] "q" ~',
    "keyword": "end",
    "empty": "",
}
"""Texts that do something where they are not only shown."""

STROKE = re.compile(r"[◀▶✗]")


def arrows(text: str) -> list[str]:
    """Return the lines of a text diagram that have an arrow."""
    return [line for line in text.splitlines() if STROKE.search(line)]


def notes(session: str, player: str | None = None) -> list[str]:
    steps = read_sequence(open_session(session), PartRequest(), player).steps
    return sorted(step.text for step in steps if isinstance(step, Note) and step.severity is None)


# Arrows and notes.


@pytest.mark.parametrize("game", a_few(GAMES, ["maexchen", "catan"]))
def test_each_message_is_in_one_arrow_and_each_event_in_one_note(game: str) -> None:
    session = str(CAPTURES / GAMES[game])
    diagram = read_sequence(open_session(session), PartRequest())
    steps = [*diagram.steps]
    found = [step for step in steps if isinstance(step, Arrow)]
    assert sum(len(arrow.clients) for arrow in found) == len(kiebitz("messages", session, "--json").json)
    assert len(found) < sum(len(arrow.clients) for arrow in found)
    events = kiebitz("events", session, "--json").json
    shown = [step for step in steps if isinstance(step, Note) and step.severity is None]
    assert sorted(note.number or 0 for note in shown) == [event["number"] for event in events]
    assert {note.text for note in shown} == {event["sentence"] for event in events}
    for step in steps:
        ends = (step.first, step.last) if isinstance(step, Note) else (step.sender, *step.receivers)
        assert all(0 <= end < len(diagram.lifelines) for end in ends)


# A player's view.


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("game", "player"),
    a_few(
        [("maexchen", "alice"), ("schafkopf", "Falsch"), ("okey", "boran"), ("cgml", "6533")],
        [("maexchen", "alice"), ("schafkopf", "Falsch")],
    ),
)
def test_a_player_sees_their_own_connection(game: str, player: str) -> None:
    capture = {"okey": "okey-head-game-win.pcap.gz"}.get(game, GAMES[game])
    session = str(CAPTURES / capture)
    events = kiebitz("events", session, "--as", player, "--json").json
    assert notes(session, player) == sorted(event["sentence"] for event in events)
    diagram = read_sequence(open_session(session), PartRequest(), player)
    # CGML's servers call players by number.
    name = {"6533": "wampaire"}.get(player, player)
    assert {lifeline.name for lifeline in diagram.lifelines if not lifeline.is_server} == {name}
    assert all(lifeline.name.startswith("server") for lifeline in diagram.lifelines if lifeline.is_server)
    assert kiebitz("sequence", session, "--as", player).out.splitlines()[0].split()[0] == name


# Formats.


@pytest.mark.full
def test_the_text_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    done = on_a_terminal("sequence", TINY)
    assert max(map(cell_len, done.out.splitlines())) <= 80
    wide = on_a_terminal("sequence", ODD)
    assert "lifelines take" in wide.out
    assert f"{MAX_CLIENTS + 1} lifelines" in wide.out


def test_ascii_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    from kiebitz.cli.render.text.sequence import SequenceText
    from kiebitz.cli.terminal.console import plain

    diagram = read_sequence(open_session(TINY), PartRequest())
    picture = SequenceText(diagram.lifelines, 80, "ascii")
    lines = [plain(picture.header()), *(plain(line) for line in picture.lines(diagram.steps))]
    assert all(line.isascii() for line in lines)
    assert any("|<------" in line for line in lines)


# Hostile texts.


def hostile_diagram(text: str) -> tuple[list[Lifeline], list[Step]]:
    lifelines = [Lifeline(text, text, False), Lifeline("bob", None, False), Lifeline(text, text, True)]
    problem = Problem("error", text, text)
    steps: list[Step] = [
        Arrow(0, 0.0, 1, "s2c", 2, [0, 1], text, {text: text, "other": [text]}),
        Arrow(0, 0.0, 2, "c2s", 2, [0], text, {}, None, text, (problem,)),
        Arrow(0, 0.0, None, "c2s", 2, [1], text, {}, altered="drop", alteration=text, is_kept_back=True),
        Note(0, 0.0, 1, text, 0, 2),
        Note(0, 0.0, None, text, 0, 0, "error"),
    ]
    return lifelines, steps


@pytest.mark.full
@settings(max_examples=times(500))
@given(st.text())
def test_no_text_is_markup(text: str) -> None:
    # `end` by itself would end a block.
    without = re.sub(r"#\d+;", "", mermaid_text(text))
    assert re.fullmatch(r"(?:[ .,=?()·…_-]|\w)*", without)
    assert not re.search(r"\bend\b", mermaid_text(text), re.IGNORECASE)
    assert re.fullmatch(r"(?:[ .,=?()·…_-]|\w)*", re.sub(r"<U\+[0-9A-F]{4,6}>", "", plantuml_text(text)))
    for markup in (mermaid, plantuml):
        lines = [*markup(*hostile_diagram(text), text)]
        harmless = [*markup(*hostile_diagram("x"), "x")]
        assert len(lines) == len(harmless)
        assert is_harmless("\n".join(lines))
    root = ElementTree.fromstring(sequence_document(*hostile_diagram(text), text))
    assert {element.tag.partition("}")[2] for element in root.iter()} == {
        *("svg", "style", "rect", "line", "text", "polygon")
    }


def mermaid_script() -> Path:
    """Return the path of Mermaid's script; skip the test if it is not in a folder of NODE_PATH."""
    for folder in filter(None, os.environ.get("NODE_PATH", "").split(os.pathsep)):
        path = Path(folder) / "mermaid" / "dist" / "mermaid.min.js"
        if path.exists():
            return path
    pytest.skip("mermaid is not in NODE_PATH (npm install mermaid)")


def test_mermaid_reads_what_is_written_for_it(eyes: Eyes) -> None:
    script = mermaid_script()
    sources = [kiebitz("sequence", ODD, "-T", "mermaid").out]
    sources += ["\n".join(mermaid(*hostile_diagram(text), text)) for text in HOSTILE.values()]
    with eyes.opened():
        page = eyes.browser.new_page()
        try:
            page.set_content("<!doctype html><meta charset='utf-8'><body></body>")
            page.add_script_tag(path=script)
            page.evaluate("mermaid.initialize({ startOnLoad: false, maxTextSize: 1e6, maxEdges: 1e4 })")
            shown = [
                page.evaluate(
                    """async ([source, number]) => {
                        const { svg } = await mermaid.render(`drawn${number}`, source);
                        document.body.innerHTML = svg;
                        return [...document.querySelectorAll("text")].map((one) => one.textContent);
                    }""",
                    [source, number],
                )
                for number, source in enumerate(sources)
            ]
        finally:
            page.close()
    assert {"alice", "server"} <= {*shown[0]} or "server" in shown[0]
    for text, found in zip(HOSTILE.values(), shown[1:], strict=True):
        words = printable(text).strip()
        if words:
            assert re.sub(r"\s+", " ", words) in {re.sub(r"\s+", " ", one) for one in found}, found


@pytest.mark.full
def test_plantuml_reads_what_is_written_for_it() -> None:
    if shutil.which("plantuml") is None:
        pytest.skip("plantuml is not installed")
    diagrams = [hostile_diagram(text) for text in HOSTILE.values()]
    lifelines = [lifeline for found, _ in diagrams for lifeline in found]
    steps = [step for number, (_, found) in enumerate(diagrams) for step in _shifted(found, 3 * number)]
    hostile = "".join(f"{line}\n" for line in plantuml(lifelines, steps, HOSTILE["plantuml"]))
    done = subprocess.run(
        ["plantuml", "-Djava.awt.headless=true", "-tsvg", "-pipe", "-charset", "UTF-8"],
        input=kiebitz("sequence", TINY, "--to", "#9", "-T", "plantuml").out + hostile,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, second = [part for part in re.split(r"(?=<\?xml )", done.stdout) if part.strip()]
    assert ">alice<" in first
    drawn = "".join(ElementTree.fromstring(second).itertext())
    assert "Syntax Error" not in drawn
    assert "root:" not in drawn
    for text in HOSTILE.values():
        words = printable(text).strip()
        assert not words.isascii() or _letters(words) in _letters(drawn), words


def _shifted(steps: list[Step], by: int) -> list[Step]:
    """Return steps with other lifelines."""
    return [
        msgspec.structs.replace(step, first=step.first + by, last=step.last + by)
        if isinstance(step, Note)
        else msgspec.structs.replace(
            step, server=step.server + by, clients=[client + by for client in step.clients]
        )
        for step in steps
    ]


def _letters(text: str) -> str:
    return re.sub(r"\s", "", text)
