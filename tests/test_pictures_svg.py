"""A terminal's pictures as SVG: all is in its place, whatever a viewer makes of blanks and fonts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command import CAPTURES, ROOT, kiebitz

SVG = "{http://www.w3.org/2000/svg}"
STATES = {
    "maexchen": ("maexchen-head-port4711.pcap", "--at", "#63"),
    "schafkopf": ("schafkopf-1.3-1human-round.pcap", "--at", "20s"),
    "okey": ("okey-seed-game-win.pcap.gz", "--at", "0.7s", "--as", "boran"),
    "cgml": ("cgml-hands.pcap.gz", "--game", "2", "--at", "#172"),
}

FRAMES = "─│╭╮╯╰┬┴▒"


def drawn(protocol: str, path: Path) -> ElementTree.Element:
    capture, *options = STATES[protocol]
    done = kiebitz("state", str(CAPTURES / capture), *options, "--svg", str(path))
    assert (done.status, done.err) == (0, "")
    return ElementTree.parse(path).getroot()


@pytest.mark.parametrize("protocol", STATES)
def test_each_word_has_a_place_of_its_own_and_no_blanks(protocol: str, tmp_path: Path) -> None:
    title, *words = drawn(protocol, tmp_path / "x.svg").iter(f"{SVG}text")
    assert title.text is not None
    assert title.text.count(" · ") >= 3
    for word in words:
        assert word.text
        assert word.text.split() == [word.text]
        assert {"x", "y"} <= word.attrib.keys()
        assert len(word) == 0
    places = [(word.get("x"), word.get("y")) for word in words]
    assert len({*places}) == len(places)


@pytest.mark.parametrize("protocol", STATES)
def test_all_words_stand_where_a_terminal_has_them(protocol: str, tmp_path: Path) -> None:
    _, *words = drawn(protocol, tmp_path / "x.svg").iter(f"{SVG}text")
    rows: dict[float, dict[int, str]] = {}
    for word in words:
        row = rows.setdefault(float(word.get("y", "")), {})
        start = round((float(word.get("x", "")) - 16) / 10)
        row.update(enumerate(word.text or "", start))
    found = ["".join(row.get(cell, " ") for cell in range(100)).rstrip() for _, row in sorted(rows.items())]
    capture, *options = STATES[protocol]
    done = subprocess.run(
        [sys.executable, "-m", "kiebitz", "state", str(CAPTURES / capture), *options],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    blanks = str.maketrans(dict.fromkeys(FRAMES, " "))
    shown = [line.translate(blanks).rstrip() for line in done.stdout.splitlines()[1:]]
    assert found == [line for line in shown if line]


@pytest.mark.skipif(shutil.which("rsvg-convert") is None, reason="rsvg-convert is not installed")
@pytest.mark.parametrize("protocol", STATES)
def test_librsvg_draws_it(protocol: str, tmp_path: Path) -> None:
    drawn(protocol, tmp_path / "x.svg")
    subprocess.run(["rsvg-convert", tmp_path / "x.svg", "-o", tmp_path / "x.png"], check=True)
    png = (tmp_path / "x.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == 1032
    assert len(png) > 10_000
