from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from command import ROOT, TINY, kiebitz
from imported_databases import database_of
from strength import every
from svg_properties import SHAPES, check, texts
from terminal_scenes import drawn

from kiebitz.cli.render.svg import draw
from kiebitz.cli.render.svg.svg_canvas import SIZES, Drawing, Shape, label
from kiebitz.cli.render.svg.theme import document
from kiebitz.dissectors.game.view import Scene
from kiebitz.storage.read.seek import tables_at

SVG = "{http://www.w3.org/2000/svg}"
MOMENTS = {
    "maexchen": ("maexchen-head-port4711.pcap", "--at", "#63"),
    "catan": ("catan-yaks-g1-3p.pcap.gz", "--at", "8s"),
    "schafkopf": ("schafkopf-1.3-1human-round.pcap", "--at", "20s"),
    "okey": ("okey-seed-game-win.pcap.gz", "--at", "0.7s", "--as", "boran"),
    "cgml": ("cgml-hands.pcap.gz", "--game", "2", "--at", "#172"),
}


def written(protocol: str, path: Path) -> ElementTree.Element:
    capture, *options = MOMENTS[protocol]
    done = kiebitz("state", database_of(capture), *options, "--svg", str(path))
    assert (done.status, done.err) == (0, "")
    return ElementTree.parse(path).getroot()


@pytest.mark.full(but=1)
@pytest.mark.parametrize("protocol", every(2, MOMENTS))
def test_a_document_is_self_contained(protocol: str, tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    root = written(protocol, path)
    title, caption, *words = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert title.count(" · ") >= 3
    assert caption
    assert words
    markup = path.read_text().replace(SVG[1:-1], "")
    assert all(outside not in markup for outside in ("http", "url(", "href", "@import", "<script"))
    # Light and dark by what the reader's machine prefers.
    assert "prefers-color-scheme: dark" in (root.findtext(f"{SVG}style") or "")


@pytest.mark.full
@pytest.mark.skipif(shutil.which("rsvg-convert") is None, reason="rsvg-convert is not installed")
@pytest.mark.parametrize("protocol", every(4, MOMENTS))
def test_librsvg_draws_it(protocol: str, tmp_path: Path) -> None:
    written(protocol, tmp_path / "x.svg")
    subprocess.run(["rsvg-convert", tmp_path / "x.svg", "-o", tmp_path / "x.png"], check=True)
    png = (tmp_path / "x.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == 1600
    assert len(png) > 10_000


def test_a_documents_lines_are_safe_and_each_piece_is_in_its_place() -> None:
    drawing = draw("nothing", Scene({"a": 1}), "wide")
    root = ElementTree.fromstring(document(drawing, "Catan & <more>", "Anna\nbuilds\x1b"))
    title, caption, *_ = [text.text for text in root.iter(f"{SVG}text")]
    assert (title, caption) == ("Catan & <more>", r"Anna\nbuilds\x1b")
    groups = [group for group in root.iter(f"{SVG}g") if "transform" in group.attrib]
    assert len(groups) == len(drawing.pieces)
    assert groups[0].attrib["transform"] == f"translate({drawing.pieces[0].x:g} {drawing.pieces[0].y + 64:g})"


def test_the_picture_in_the_readme_is_what_the_command_draws(tmp_path: Path) -> None:
    written("catan", tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_bytes() == (ROOT / "docs" / "pictures" / "catan.svg").read_bytes()


# The rows of a protocol without a view.


def plain(state: dict[str, Any], shape: Shape = "wide") -> Drawing:
    drawing = draw("unheard-of", Scene(state), shape)
    check(drawing)
    return drawing


@pytest.mark.parametrize("shape", SHAPES)
def test_all_words_are_at_the_terminal_s_positions(shape: Shape) -> None:
    state = {"players": {"anna": {"points": 3, "日本": "two words"}, "bert": {}}, "turn": "anna"}
    drawing = plain(state, shape)
    rows = []
    for piece in drawing.pieces:
        row = ""
        for word in ElementTree.fromstring(drawing.fragments[piece.name]):
            # Viewers treat blanks differently, so none are used.
            assert word.text is not None
            assert word.text.split() == [word.text]
            cell = round((piece.x + float(word.attrib["x"])) / 15.7)
            row += (
                " " * (cell - len(row.encode("utf-16-le")) // 2 - row.count("日") - row.count("本"))
                + word.text
            )
        rows.append(row)
    seen = drawn(state, protocol="unheard-of", width=SIZES[shape][0] // 16)
    assert rows == [line.rstrip() for line in seen.splitlines() if line.strip()]
    assert drawing.words == tuple(row.strip() for row in rows)


@pytest.mark.parametrize(("shape", "room"), [("wide", 23), ("tall", 32)])
def test_rows_for_which_there_is_no_room_are_reported(shape: Shape, room: int) -> None:
    state = {f"key{number}": number for number in range(50)}
    drawing = plain(state, shape)
    assert len(drawing.pieces) == room
    assert drawing.words[-1] == f"and {52 - room + 1} lines more"


@pytest.mark.parametrize(
    "hostile", ["", "<&>\"'", "a\x1b[2Jb\n", "\ud800\ufffe", "x" * 5000, "日本語" * 99, "‮abc"]
)
def test_no_text_of_a_state_harms(hostile: str) -> None:
    for shape in SHAPES:
        assert texts(plain({hostile: [hostile, {"a": hostile}]}, shape))


# The option.


def test_svg_is_of_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kiebitz.cli.commands.state.tables_at", lambda *how: tables_at(*how) * 2)
    done = kiebitz("state", TINY, "--svg", str(tmp_path / "table.svg"))
    assert done.status == 0
    assert "the first of 2 tables" in done.err


def test_words_written_from_right_to_left_are_isolated() -> None:
    """Else a number beside a name would be read at the other one."""
    label(root := ElementTree.Element("svg"), (0, 0), "Noa (42), שרה כהן (51), محمد (31)", 20)
    assert root[0].text == "Noa (42), \u2068שרה כהן\u2069 (51), \u2068محمد\u2069 (31)"
