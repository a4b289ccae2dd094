from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from browser import Look, Sight, file_address
from command import CAPTURES
from page_queries import PANES, data_of, exported
from page_walks import take
from strength import GAMES, a_few
from walks import walks

MOST_BYTES = 2_500_000

CATAN = sorted(path.name for path in CAPTURES.glob("catan-*.pcap*"))
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    class Made(dict[str, Path]):
        def __missing__(self, game: str) -> Path:
            folder = tmp_path_factory.mktemp("file")
            self[game] = exported(str(CAPTURES / GAMES[game]), folder / "game.html")
            return self[game]

    return Made()


def opened(look: Look, path: Path, **at: Any) -> Sight:
    """Open it without a network; whatever else than the file is asked for fails the test."""
    sight = look(file_address(path, **at), offline=True)
    assert all(url.startswith(("file:", "data:")) for url in sight.asked), sight.asked
    return sight


@pytest.mark.full
@pytest.mark.parametrize("game", GAMES)
def test_each_game_is_in_its_file(game: str, files: dict[str, Path], look: Look) -> None:
    path = files[game]
    held = data_of(path)
    sight = opened(look, path)
    table = max(held["tables"], key=lambda one: (one["last"], -one["table"]))
    events = held["views"][""]["tables"][str(table["table"])]["events"]
    # Where there is no game, there is nothing better than the first event.
    opening = next((number for number, event in enumerate(events) if event["game"] is not None), 0)
    sight.until_at(opening + 1)
    assert sight.text("#kind") == "recorded · file"
    sight.tells(events[opening]["sentence"])
    sight.press("ArrowRight")
    sight.until_at(opening + 2)
    sight.tells(events[opening + 1]["sentence"])
    sight.press("End")
    sight.until_at(len(events))
    sight.tells(events[-1]["sentence"])
    _, drawing, *_ = held["views"][""]["tables"][str(table["table"])]["steps"][-1]
    pieces = len(held["drawings"][drawing]["wide"]) // 3
    assert sight.tell("document.querySelectorAll('#board use').length") == pieces
    for pane in PANES:
        sight.pane(pane)
    # One message in full.
    told = next(one for one in held["messages"] if one["event"] is not None)
    sight.be(pane="message", message=told["id"], at=1, table=table["table"])
    sight.until(lambda: f"#{told['id']} " in sight.text(".message-name"), "it is shown in full")
    shown = "".join(sight.tell("[...document.querySelectorAll('.dump-hex')].map((one) => one.textContent)"))
    assert (
        bytes.fromhex(shown.replace(" ", ""))
        == held["full"][str(told["id"])]["text"].encode("latin-1")[:1024]
    )
    assert sight.is_seen(".pieces .piece")
    if game == "maexchen":
        (walk,) = walks("page.txt", "file").values()
        take(walk, sight)
    # An address is a moment in a file, too; and over a shoulder.
    for player in held["players"][:1]:
        seen = held["views"][player]["tables"][str(table["table"])]["events"]
        sight.go(file_address(path, table=table["table"], as_=player, at=seen[-1]["seq"]))
        sight.until(lambda: sight.text("#latest") not in ("", "…"), "it is opened")
        sight.tells(seen[-1]["sentence"])
        sight.rest()
        sentences = {one["sentence"].replace("\n", r"\n") for one in seen}
        assert {*sight.texts("#pane-events .row-text")} <= sentences
    assert sight.overflow() == 0


@pytest.mark.parametrize("game", a_few(GAMES, ["maexchen"]))
def test_its_policy_lets_nothing_run_or_come_but_what_is_in_it(game: str, files: dict[str, Path]) -> None:
    text = files[game].read_text()
    (policy,) = POLICY.findall(text)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.replace("&#x27;", "'").split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    assert "connect-src" not in rules
    (script,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    for rule, what in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(what.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    # Before anything else that could load something.
    assert text.index("Content-Security-Policy") < min(text.index("<link"), text.index("<style"))


@pytest.mark.parametrize("capture", a_few(CATAN, ["catan-yaks-lobby.pcap.gz"]))
def test_a_game_of_catan_is_small(capture: str, tmp_path: Path) -> None:
    path = exported(str(CAPTURES / capture), tmp_path / "game.html")
    assert path.stat().st_size < MOST_BYTES


@pytest.mark.full
def test_a_players_file_has_only_that_view(tmp_path: Path, look: Look) -> None:
    path = exported(str(CAPTURES / GAMES["maexchen"]), tmp_path / "game.html", "--as", "bob")
    held = data_of(path)
    assert (held["player"], [*held["views"]]) == ("bob", ["bob"])
    streams = set(held["views"]["bob"]["streams"])
    assert {message["stream"] for message in held["messages"]} <= streams
    assert {stream["id"] for stream in held["streams"]} <= streams
    sight = opened(look, path, as_="somebody else")
    sight.until(lambda: sight.text("#latest") != "", "it is opened")
    assert not sight.is_seen("#as-choice")
    assert "as bob" in sight.text("#viewer")
    for pane in PANES:
        sight.pane(pane)
        assert "rolled 3,3" not in sight.text("body")


@pytest.mark.full
def test_omitted_parts_of_a_file_are_reported(
    tmp_path: Path, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kiebitz.cli.web import html_export as one_file

    monkeypatch.setattr(one_file, "MAX_EVENTS", 10)
    monkeypatch.setattr(one_file, "MAX_DETAILED_MESSAGES", 3)
    path = exported(str(CAPTURES / GAMES["maexchen"]), tmp_path / "game.html")
    left_out = data_of(path)["left_out"]
    assert "of 26 events" in left_out
    sight = opened(look, path, pane="message", message=9)
    sight.press("End")
    sight.until_at(10)
    sight.until(lambda: left_out in sight.text("body"), "it says so")
