"""The home page: its summary, watched folders, alerts, and the page itself in a browser."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from browser import Look, file_address
from command import CAPTURES, kiebitz
from imported_databases import copy_of_database
from inspected_captures import items_of
from live_session import Live
from page_walks import take
from processes_and_rows import until
from recording_relays import relaying
from served_pages import QUICK_S, serving
from strength import a_few
from two_rooms import later, two_rooms
from walks import Walk, walks

from kiebitz.cli.web import records
from kiebitz.dissectors.model import End, Fault, Item, Stream
from kiebitz.storage.recording.recorder import Recorder

GAMES = {
    "catan": "catan-yaks-lobby.pcap.gz",
    "maexchen": "maexchen-head-tiny.pcap",
    "schafkopf": "schafkopf-1.3-badcard.pcap",
}
HOSTILE = '<img src=x onerror="ran()">\x1b\u202e'


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a database for each of some games."""
    folder = tmp_path_factory.mktemp("recorded")
    for name, capture in GAMES.items():
        copy_of_database(capture, folder / f"{name}.db")
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    """Return a copy of the folder to change."""
    return Path(shutil.copytree(recorded, tmp_path / "class"))


@pytest.fixture
def live(folder: Path) -> Iterator[Live]:
    session = Live(folder / "live.db")
    yield session
    session.close()


def names(home: dict[str, Any]) -> list[str]:
    return [one["session"]["name"] for one in home["sessions"]]


# The summary.


@pytest.mark.full
def test_it_lists_all_sessions_of_a_folder_live_ones_first(folder: Path, live: Live) -> None:
    (folder / "notes.txt").write_text("no database")
    (folder / "broken.db").write_bytes(b"SQLite format 3\0" + bytes(2000))
    with serving(str(folder)) as server:
        answer = server.get("api/home")
        home = json.loads(msgspec.json.encode(msgspec.json.decode(answer.body, type=records.Home)))
        assert home == answer.json
        assert names(home)[0] == "live.db:1"
        assert sorted(names(home)[1:]) == ["catan.db:1", "maexchen.db:1", "schafkopf.db:1"]
        starts = [one["started_s"] for one in home["sessions"][1:]]
        assert starts == sorted(starts, reverse=True)
        by_name = {one["session"]["name"]: one for one in home["sessions"]}
        round_ = by_name["maexchen.db:1"]
        assert (round_["players"], round_["games"]) == (["alice", "bob", "carl", "dora", "zuschauer"], 2)
        assert "alice" in round_["result"]
        assert by_name["schafkopf.db:1"]["errors"] == 2
        assert not any(one["trouble"] for one in home["sessions"])
        for one in home["sessions"]:
            for table in one["tables"]:
                query = {"session": one["session"]["number"], "at": table["at"]}
                path = f"api/tables/{table['table']['table']}/picture.svg"
                assert server.get(path, None, "GET", **query).status == 200
        assert server.get("api/home", {"if-none-match": answer.headers["etag"]}).status in (200, 304)
        until(lambda: "broken.db is not served" in server.err, "it says why")


@pytest.mark.full
def test_a_session_is_called_by_the_name_that_it_was_given(tmp_path: Path) -> None:
    def labels() -> list[str | None]:
        return [one["session"]["label"] for one in server.well("api/home")["sessions"]]

    with (
        relaying(tmp_path / "a.db", {}, "--name", "Gruppe 1 – Ayşe & שרה") as named,
        relaying(tmp_path / "b.db") as unnamed,
        serving(str(tmp_path)) as server,
    ):
        until(lambda: len(labels()) == 2, "both are served", QUICK_S)
        assert sorted(labels(), key=str) == ["Gruppe 1 – Ayşe & שרה", None]
        assert (named.stop(), unnamed.stop()) == (0, 0)
        kiebitz("sessions", str(tmp_path / "b.db"), "--rename", "1", "Gruppe 2")
        until(lambda: "Gruppe 2" in labels(), "it is renamed", QUICK_S)


@pytest.mark.full
def test_sessions_that_appear_in_a_folder_are_served(tmp_path: Path, recorded: Path) -> None:
    with serving(str(tmp_path)) as server:
        assert server.well("api/home") == {
            "version": server.well("api/home")["version"],
            "watching": True,
            "board_every_s": 0.25,
            "sessions": [],
        }
        assert server.well("api/sessions")["home"]
        # Written under another name first, as a copy takes its time.
        shutil.copy(recorded / "maexchen.db", tmp_path / "copy")
        (tmp_path / "copy").rename(tmp_path / "first.db")
        until(lambda: names(server.well("api/home")) == ["first.db:1"], "the copy is served", QUICK_S)
        session = Live(tmp_path / "second.db")
        until(lambda: "second.db:1" in names(server.well("api/home")), "the recording is served", QUICK_S)
        number = server.well("api/home")["sessions"][0]["session"]["number"]
        with server.live(session=number) as stream:
            assert stream.of_kind("status")["live"]
            session.hears(b"ROUND STARTING;b8a6", 1)
            session.hears(b"ROUND STARTED;1;alice", 0.5)
            until(lambda: bool(server.well("api/tables", session=number)["tables"]), "it grows", QUICK_S)
        session.close()
        until(lambda: not server.well("api/home")["sessions"][0]["session"]["live"], "it has ended", QUICK_S)


@pytest.mark.full
@pytest.mark.parametrize("which", [":1", ":*"])
def test_the_sessions_of_a_database(which: str, tmp_path: Path) -> None:
    database = tmp_path / "two.db"
    for name in ("maexchen", "schafkopf"):
        kiebitz("import", str(CAPTURES / GAMES[name]), "-w", str(database))
    with serving(f"{database}{which}") as server:
        first = server.get("api/home")
        assert sorted(names(first.json)) == (["two.db:1", "two.db:2"] if which == ":*" else ["two.db:1"])
        assert not first.json["watching"]
        # A single session has no home page.
        assert server.well("api/sessions")["home"] == (which == ":*")
        again = server.get("api/home", {"if-none-match": first.headers["etag"]})
        assert (again.status, again.body) == (304, b"")


@pytest.mark.full
def test_a_session_that_cannot_be_read_hides_no_other(folder: Path) -> None:
    with serving(*(str(folder / f"{name}.db") for name in GAMES)) as server:
        with closing(sqlite3.connect(folder / "maexchen.db")) as connection, connection:
            connection.execute("DELETE FROM sessions")
        home = server.well("api/home")
        troubles = {one["session"]["name"]: one["trouble"] for one in home["sessions"]}
        assert "there is no session in it" in troubles.pop("maexchen.db:1")
        assert troubles == {"catan.db:1": None, "schafkopf.db:1": None}
        assert len(server.well("api/sessions")["sessions"]) == 2


@pytest.mark.full
def test_a_player_s_link_shows_no_other_sessions(folder: Path) -> None:
    with serving(str(folder), "--player-links") as server:
        until(lambda: "alice" in server.links(), "there is a link", QUICK_S)
        refused = server.get("api/home", None, "GET", key=server.links()["alice"])
        assert (refused.status, refused.sentence) == (403, "this link shows only the view of alice")
        assert not server.well("api/sessions", key=server.links()["alice"])["home"]


def test_an_error_is_an_alarm_for_a_minute(folder: Path, live: Live) -> None:
    def alerts() -> list[str]:
        (one,) = (one for one in server.well("api/home")["sessions"] if one["session"]["live"])
        return [alert for table in one["tables"] for alert in table["alerts"]]

    with serving(str(folder)) as server:
        assert alerts() == [], "no game, so nobody waits"
        live.says(b"HELLO", 90).hears(b"ROUND STARTING;b8a6", 90)
        until(lambda: server.well("api/home")["sessions"][0]["errors"] == 1, "it is read", QUICK_S)
        assert alerts() == [], "an old error is no alarm"
        live.says(f"{HOSTILE};x".encode(), 1)
        until(lambda: len(alerts()) == 1 and alerts()[0].startswith("alice: "), "a new one is", QUICK_S)


GAME = "catan-yaks-g1-3p.pcap.gz"
SECOND_NS = 1_000_000_000
MIDDLE_S = 5.0
"""Time in the capture at which its game is on."""

CLOCK = r"\d\d:\d\d"
WAITS = r"waiting for .+, [34]0 s"
NO_SERVER = rf"server 127\.0\.0\.1:8085: no program listens on that port, since {CLOCK}: start the server"
GONE = rf"\S.*'s client is gone, since {CLOCK}: start it again"


def refused(stream: Stream, ts_ns: int) -> list[Item]:
    """Return a connection for which the server is not there."""
    other = Stream(99, "tcp", "127.0.0.1:50099", stream.server, ts_ns)
    return [
        Fault(other, "c2s", ts_ns, 0, "refused", "no program listens on that port"),
        End(other, ts_ns, "refused"),
    ]


class Moment(NamedTuple):
    """A game until a time, and what follows it; the expected alarm, grey line and result."""

    upto_s: float = MIDDLE_S
    follows: Callable[[Sequence[Item]], Sequence[Item]] = lambda items: ()
    ago_s: float = 40
    alarm: str | None = None
    waiting: str | None = None
    result: str | None = None


def ends(items: Sequence[Item], count: int) -> list[Item]:
    """Return the ends of this many connections."""
    streams = {item.stream.id: item.stream for item in items}
    return [End(stream, items[-1].ts_ns, "closed") for stream in [*streams.values()][:count]]


MOMENTS = {
    "lobby": Moment(2.0),
    "plays": Moment(ago_s=1),
    "thinks": Moment(waiting=WAITS),
    "one is gone": Moment(follows=lambda items: ends(items, 1), ago_s=1, alarm=GONE),
    "all are gone": Moment(
        follows=lambda items: ends(items, 3), alarm=rf"all connections have ended, since {CLOCK}: .+"
    ),
    "no server": Moment(follows=lambda items: refused(items[0].stream, items[-1].ts_ns + 1), alarm=NO_SERVER),
    "over": Moment(60, result="King .+ wins; points .+"),
    "over, and all have left": Moment(60, lambda items: ends(items, 3), result="King .+ wins; points .+"),
    "over, and the server has ended": Moment(
        60, lambda items: refused(items[0].stream, items[-1].ts_ns + 1), 90, result="King .+ wins; .+"
    ),
}


@contextmanager
def recording(folder: Path, *names: str) -> Iterator[None]:
    """Record these moments, each as a live session of its own."""
    items = items_of(GAME)
    begin_ns = items[0].ts_ns
    with ExitStack() as recorders:
        for name in names:
            moment = MOMENTS[name]
            until_ns = begin_ns + int(moment.upto_s * SECOND_NS)
            first = [item for item in items if item.ts_ns <= until_ns and not isinstance(item, End)]
            later_ns = time.time_ns() - int(moment.ago_s * SECOND_NS) - first[-1].ts_ns
            path = str(folder / f"{name}.db")
            recorder = Recorder(path, "relay", "made up", name=name, started_ns=begin_ns + later_ns)
            recorders.callback(recorder.close)
            recorder.record(later([*first, *moment.follows(first)], later_ns))
            recorder.commit()
        yield


def test_alarms_are_true_at_each_moment_of_a_game(tmp_path: Path) -> None:
    with recording(tmp_path, *MOMENTS), serving(str(tmp_path)) as server:
        found = {one["session"]["label"]: one for one in server.well("api/home")["sessions"]}
        for name, moment in MOMENTS.items():
            (table,) = found[name]["tables"]
            for key, pattern in {"waiting": moment.waiting, "result": moment.result}.items():
                assert re.fullmatch(pattern or "None", str(table[key])), (name, table)
            alarm = " ".join(table["alerts"])
            assert re.fullmatch(moment.alarm or "", alarm), (name, table)


def test_each_of_several_games_at_once_is_a_tile(tmp_path: Path) -> None:
    with two_rooms(tmp_path) as arguments, serving(*arguments) as server:
        (session,) = server.well("api/home")["sessions"]
        tiles = [(one["game"], one["label"], one["latest"], one["result"]) for one in session["tables"]]
        assert tiles == [(1, "room 7", "ann moves", None), (2, "room 9", "bob wins", "bob wins")]
        # The alarm is at the tile of the game whose server sends something wrong.
        alerts = [one["alerts"] for one in session["tables"]]
        assert (alerts[0], len(alerts[1])) == ([], 1)
        assert "MOVED" in alerts[1][0]
        for game, player, sentence in ((1, "ann", "ann moves"), (2, "bob", "bob wins")):
            for view in ("", "&as=public"):
                found = server.well(f"api/tables/1/picture?game={game}{view}")
                assert (found["latest"], "".join(found["words"]).count(player) > 0) == (sentence, True)
                other = {"ann": "bob", "bob": "ann"}[player]
                assert other not in "".join(found["words"])
        during = server.well("api/tables/1/picture?at=6")
        assert during["games"] == {"1": "room 7", "2": "room 9"}


@pytest.mark.full
@pytest.mark.parametrize("walk", walks("page.txt", "*rooms").values())
def test_tiles_of_games_lead_to_their_pictures(walk: Walk, tmp_path: Path, look: Look) -> None:
    page = tmp_path / "rooms.html"
    with two_rooms(tmp_path) as arguments, serving(*arguments) as server:
        assert kiebitz("export", *arguments, "-T", "html", "-o", str(page)).status == 0
        sight = look(server.at(at=6) if walk.session == "rooms" else file_address(page, at=6))
        take(walk, sight)
        sight.leave()


@pytest.mark.full
def test_a_server_that_is_not_there_is_an_alarm_before_the_first_game(tmp_path: Path) -> None:
    with relaying(tmp_path / "lost.db") as relay, serving(str(tmp_path)) as server:
        relay.server.close()
        relay.client.sendto(b"REGISTER;ida", ("127.0.0.1", relay.port))

        def alarms() -> str:
            (one,) = server.well("api/home")["sessions"]
            return str([*one["alerts"], *(alert for table in one["tables"] for alert in table["alerts"])])

        until(lambda: "no program listens on that port, since" in alarms(), "it is an alarm", QUICK_S)
        assert relay.stop() == 0


def test_the_home_page_s_event_stream_has_news_at_once(tmp_path: Path) -> None:
    with relaying(tmp_path / "game.db") as relay, serving(str(tmp_path)) as server:
        with server.live(path="api/home/live") as stream:
            assert stream.of_kind("home")["sessions"][0]["tables"] == []
            relay.round_trip(b"REGISTER;ida")
            (changed,) = stream.of_kind("sessions")["sessions"]
            assert changed["session"]["name"] == "game.db:1"
        assert relay.stop() == 0


# In a browser.

SIZES = [(1920, 1080), (1280, 720), (390, 844)]


@pytest.mark.parametrize(("width", "height"), a_few(SIZES, [(390, 844)]))
def test_the_page_begins_with_all_sessions(
    width: int, height: int, folder: Path, live: Live, look: Look
) -> None:
    live.says(f"{HOSTILE};x".encode(), 1)
    with serving(str(folder)) as server:
        sight = look(server.address, width=width, height=height)
        sight.until(lambda: len(sight.texts(".tile")) == 4, "there are four cards")
        assert sight.text("#home-counts") == "4 sessions · 1 live table"
        (wall,) = sight.texts("#home-live .tile")
        assert "alice: " in wall
        assert "\x1b" not in wall
        assert "\u202e" not in wall
        assert not sight.violations()
        assert sight.overflow() == 0
        assert not sight.is_seen("#stage")
        sight.leave()


SHARE = """(selector) => [...document.querySelectorAll(selector)].reduce((area, one) => {
    const { width, height } = one.getBoundingClientRect();
    return area + width * height;
}, 0) / (innerWidth * innerHeight)"""


@pytest.mark.parametrize(("width", "height"), a_few(SIZES, [(1920, 1080)]))
def test_six_tables_fill_the_projector(width: int, height: int, tmp_path: Path, look: Look) -> None:
    names = ["all are gone", "no server", "one is gone", "over", "plays", "thinks"]
    with recording(tmp_path, *names), serving(str(tmp_path)) as server:
        sight = look(server.address, width=width, height=height)
        sight.expect("net::ERR_|status of 503")
        sight.until(lambda: sight.texts(".tile-title") == names, "all have their places")
        sight.press("p")
        sight.until(sight.is_alone, "there is nothing else")
        assert sight.overflow() == 0
        size = float(
            sight.tell("parseFloat(getComputedStyle(document.querySelector('.tile-title')).fontSize)")
        )
        if width > 1000:
            assert sight.tell(SHARE, ".tile") > 0.9
            assert sight.tell(SHARE, ".tile-board") > 0.6
            assert size > width / 60
        assert size >= 16
        alarmed = [text.splitlines()[0] for text in sight.tell(TEXTS, ".has-alerts")]
        assert alarmed == names[:3]
        assert "wins" in sight.tell(TEXTS, ".is-finished")[0]
        assert "waiting for" in sight.tell(TEXTS, ".is-waiting")[0]
        server.end()
        sight.until(lambda: sight.is_seen("#trouble"), "the loss of the server is seen")
        sight.leave()


TEXTS = "(selector) => [...document.querySelectorAll(selector)].map((one) => one.innerText)"


@pytest.mark.full
def test_one_comes_to_a_session_and_back(folder: Path, look: Look) -> None:
    (walk,) = walks("page.txt", "folder").values()
    with serving(str(folder)) as server:
        sight = look(server.address)
        take(walk, sight)
        sight.leave()


@pytest.mark.full
def test_a_new_session_and_a_new_alert_appear(tmp_path: Path, look: Look) -> None:
    with serving(str(tmp_path)) as server:
        sight = look(server.address)
        sight.until(lambda: "no session yet" in sight.text("#home-empty"), "it says that it waits")
        live = Live(tmp_path / "game.db")
        sight.until(lambda: sight.is_seen("#home-live"), "the table is there")
        live.says(b"NONSENSE", 0)
        sight.until(lambda: "alice: " in sight.text(".tile-alerts"), "the error is shown")
        sight.until(lambda: "alice: " in sight.text("#said"), "and announced")
        live.close()
        sight.until(lambda: sight.is_seen("#home-recorded"), "it has ended")
        sight.leave()
