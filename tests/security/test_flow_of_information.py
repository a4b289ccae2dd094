"""Flow of information: two sessions that differ only in what a player cannot know look alike to it.

Everything that the player can be shown is compared byte by byte: all addresses of the page's server, the
updates, the exported page, and the commands with `--as`.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from file_conversations import Conversation
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from imported_databases import database_of
from inspected_captures import CAPTURES
from player_views import numbering, opened, stored, whole_view
from strength import few_captures, times

from kiebitz.cli.options.session import open_session
from kiebitz.cli.spectator.followed_session import FollowedSession
from kiebitz.cli.web.reader import Reader, ServedSession
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import PUBLIC, Item
from kiebitz.dissectors.registry import ProtocolFile, add_file, dissector_of, remove_files
from kiebitz.storage.read.conditions import compile_optional_filter
from kiebitz.storage.read.recorded_items import RecordedItems
from kiebitz.storage.recording.recorder import Recorder
from kiebitz.storage.recording.rotation import RotatingRecorder

HEAD = """
protocol = "guess"
framing = "lines"
format = "json"
name = "t"
fields = ""

[types]
card = "0..9"

[messages]
login = "c: name=player"
welcome = "s: id=id name=player < login"
added = "s*: id=id name=player"
hand = "s: v=card"
pick = "c: v=card"
picked = "s*: who=id < pick"
note = "c: v=card"
show = "s*: who=id v=card"

[identity]
login = "login"
given = "welcome"
named = "added"

[events]
"""
BOARD = """
[board]
hand = "private.{player}.x"
figures = { x = "players.{player}.x", b = "b.{player}" }
dice = "a"
text = ["{a} {c} {cells}"]
"""


CAPTURE_NAMES = sorted(path.name for path in CAPTURES.iterdir() if ".pcap" in path.name)


class Step(NamedTuple):
    """A message of a game, and of its values the one in each of two sessions."""

    name: str
    by: str
    values: tuple[int, int]

    @property
    def is_secret(self) -> bool:
        return self.by == "b" and self.name in ("hand", "pick", "note")


FIELDS = {"hand": "v", "pick": "v", "note": "v", "show": "v", "picked": "who"}
PATHS = ("a", "c", "b.{who}", "players.{who}.x", "private.{who}.x", "d.e")
VALUES = st.integers(0, 2)


@st.composite
def expressions(draw: st.DrawFn, field: str) -> str:
    # The request of a message to all may be another player's secret.
    asked = ["asked.v", "asked.v", "asked"] if field == FIELDS["picked"] else []
    name = st.sampled_from([field, "who", *PATHS, *asked])
    one, two = draw(name), draw(name)
    return draw(st.sampled_from((one, one, f"{one} + 1", f"{one} + {two}", "7", "c.#", "cells", "d")))


@st.composite
def conditions(draw: st.DrawFn, field: str) -> str:
    path = draw(st.sampled_from((field, *PATHS)))
    return draw(
        st.sampled_from((f"{path} == 1", f"{path} != 1", f"not (c contains {field})", f"{path} > {field}"))
    )


@st.composite
def event_rows(draw: st.DrawFn, number: int, message: str) -> str:
    field = FIELDS[message]
    targets = draw(
        st.lists(st.sampled_from((*PATHS, f"cells.{{{field}}}", "cells.{a}")), max_size=2, unique=True)
    )
    row = {
        "on": message,
        "say": f"{message} {{{draw(expressions(field))}}} {{{draw(expressions(field))}}}",
        "put": {target: draw(expressions(field)) for target in targets},
        "when": draw(st.one_of(st.just(""), st.just(""), conditions(field))),
        "opens": draw(st.sampled_from((False, False, False, True))),
        "secret": draw(st.sampled_from((False, False, False, True))),
        "actor": draw(st.sampled_from(("", "", "", "e.{who}"))).replace("e.", "b."),
    }
    if row["opens"]:
        row["label"] = f"game of {{{draw(expressions(field))}}}"
    parts = ", ".join(f"{key} = {_toml(value)}" for key, value in row.items() if value)
    return f"e{number} = {{ {parts} }}"


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(part)}" for key, part in value.items()) + " }"
    return json.dumps(value)


@st.composite
def files(draw: st.DrawFn) -> str:
    messages = draw(st.lists(st.sampled_from([*FIELDS]), min_size=3, max_size=7))
    # Each path is put somewhere.
    rows = [
        "zero = { on = 'added', put = { a = 1, c = [], 'b.{name}' = 1, 'players.{name}.x' = 1,"
        " 'private.{name}.x' = 1, 'd.e' = 1, 'cells.x' = 1 } }"
    ]
    rows += [draw(event_rows(number, message)) for number, message in enumerate(messages)]
    return HEAD + "\n".join(rows) + BOARD


steps = st.lists(
    st.builds(Step, st.sampled_from([*FIELDS]), st.sampled_from("ab"), st.tuples(VALUES, VALUES)),
    min_size=3,
    max_size=14,
)


def talk(conversation: Conversation, game: list[Step], world: int, shares_times: bool) -> list[Item]:
    """Return the items of a game in one of its two worlds."""

    def send(sign: str, **fields: object) -> None:
        conversation.send(f"{sign} {json.dumps(fields)}")

    for number, name in enumerate("ab", 1):
        send(f"{name}>", t="login", name=name)
        send(f"{name}<", t="welcome", id=number, name=name)
        send("*<", t="added", id=number, name=name)
    send("b<", t="added", id=1, name="a")
    # From here on, a connection is known to be the player's.
    send("a<", t="hand", v=0)
    for step in game:
        value = step.values[world if step.is_secret else 0]
        if step.name == "picked":
            send("*<", t="picked", who="ab".index(step.by) + 1)
        elif step.name == "show":
            send("*<", t="show", who="ab".index(step.by) + 1, v=value)
        else:
            send(f"{step.by}{'<' if step.name == 'hand' else '>'}", t=step.name, v=value)
    for item in conversation.items if shares_times else ():
        item.ts_ns //= 15_625_000
        item.ts_ns *= 15_625_000
    return conversation.items


@pytest.fixture(autouse=True)
def _forget(protocol_files_forgotten: None) -> None:
    """Load no protocol file for later tests."""


def guess(text: str) -> Dissector:
    remove_files(["guess"])
    add_file(ProtocolFile("guess", text, "guess.toml"))
    dissector = dissector_of("guess")
    assert dissector is not None
    return dissector


# A failure has thousands of bytes, and takes minutes to shrink.
@settings(
    max_examples=times(24, 2), suppress_health_check=[*HealthCheck], deadline=None, phases=[Phase.generate]
)
@given(files(), steps, st.booleans())
def test_values_that_a_player_cannot_know_change_nothing_for_it(
    tmp_path: Path, text: str, game: list[Step], shares_times: bool
) -> None:
    dissector = guess(text)
    paths = [
        stored(tmp_path / f"{world}.db", talk(Conversation(dissector), game, world, shares_times))
        for world in (0, 1)
    ]
    # Only a player who is known by a connection has a link.
    links = [grant.player for grant in opened(paths[0]).player_grants()]
    assume("a" in links and numbering(paths[0]) == numbering(paths[1]))
    for viewer in ("a", PUBLIC):
        for one, other in zip(*(whole_view(path, viewer, ["a"], 3) for path in paths), strict=True):
            assert one == other


def test_ids_of_diagnostics_are_not_in_a_view(tmp_path: Path) -> None:
    """They depend on the diagnostics of other connections."""
    steps = [Step("note", by, (said, said)) for by, said in (("b", 33), ("a", 44), ("b", 33), ("a", 55))]
    items = talk(Conversation(guess(HEAD)), steps, 0, False)
    views = []
    for factor in (1, 3):
        path = stored(tmp_path / "game.db", items)
        with closing(sqlite3.connect(path)) as database, database:
            changed = database.execute("UPDATE diagnostics SET id = -id * ?", (factor,)).rowcount
            assert changed == 4
            database.execute("UPDATE diagnostics SET id = -id")
        views.append([*whole_view(path, "a", ["a"], 3)])
    assert sum(b'"code":' in answer for _, answer in views[0]) > 3
    for one, other in zip(*views, strict=True):
        assert one == other


POT = f"""{HEAD}
dealt = {{ on = "hand", say = "{{who}} gets {{v}}", put = {{ "private.{{who}}.x" = "v" }} }}
sorted = {{ on = "hand", say = "{{who}} sorts {{v}}" }}
pick = {{ on = "pick", say = "{{who}} picks {{v}}", put = {{ a = "v", "b.{{who}}" = "v" }} }}
picked = {{ on = "picked", say = "{{who}}: {{a}} in the pot", put = {{ "players.{{who}}.x" = "b.{{who}}" }} }}
three = {{ on = "picked", when = "a == 3", say = "three" }}
"""
SECRETS = [Step("hand", "b", (8, 8)), Step("pick", "a", (2, 2)), Step("picked", "a", (0, 0))]
SECRETS += [Step("pick", "b", (3, 3)), Step("picked", "b", (0, 0))]


def watched_rows(path: str, player: str, wanted: str) -> list[list[int]]:
    """Return the events (by number at the first table), messages and diagnostics that `watch` finds."""
    timeline = open_session(path)
    followed = FollowedSession(timeline, None, player, compile_optional_filter(wanted))
    table = timeline.tables()[0]
    course, messages, diagnostics = (
        followed.course(table),
        followed.shown.search_messages(None),
        followed.shown.search_diagnostics(None),
    )
    while (
        course.go_on(1)
        or messages.go_on(timeline.last_id("messages"), 1)
        or diagnostics.go_on(timeline.last_id("diagnostics"), 1)
    ):
        pass
    return [[*course.numbers], [*messages.found], [*diagnostics.found]]


WATCHED = ("diag", "kind", 'event && actor != "x"', 'diag.group == "rules"', 'dir == "s2c" && named == "1"')


@pytest.mark.full(but=2)
@pytest.mark.parametrize("capture", few_captures(CAPTURE_NAMES))
def test_watch_and_the_page_find_the_same(capture: str) -> None:
    path = database_of(capture)
    reader = opened(path)
    for player, wanted in product(reader.players()[:2], WATCHED):
        rows = reader.rows(player, compile_optional_filter(wanted))
        events = [event.seq for event in rows.events(reader.tables()[0].id, 0, None)]
        messages = [row.id for row in rows.messages(None, 0, None)]
        numbers = [row.id for row in rows.diagnostics(None, 0, None)]
        found, messages_found, diagnostics_found = watched_rows(path, player, wanted)
        assert (found, messages_found, len(diagnostics_found)) == (events, messages, len(numbers)), wanted


def shown(reader: Reader, player: str) -> tuple[list[tuple[int, str]], State]:
    """Return the events and the last state of a player."""
    found = reader.rows(player).events(1, 0, None)
    events = [(event.id, reader.visibility.sentence(event)) for event in found]
    return events, reader.visibility.state(player, 1, reader.timeline.last_seq(1))


def test_a_live_session_grows_as_it_is_read_later(tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    items = talk(Conversation(guess(POT)), SECRETS * 3, 0, False)
    for item in items:
        # Only of the latest events, copies may still arrive.
        item.ts_ns += time.time_ns()
    recorder = Recorder(str(path), "relay", "made up", started_ns=0)
    recorder.record(items[:6])
    recorder.commit()
    reader = opened(str(path))
    for item in items[6:]:
        recorder.record([item])
        recorder.commit()
        reader.look()
        fresh = opened(str(path))
        for player in fresh.players():
            assert shown(reader, player) == shown(fresh, player)
    recorder.close()


def test_a_link_continues_in_the_next_database(tmp_path: Path) -> None:
    items = talk(Conversation(guess(POT)), [*SECRETS, *SECRETS[:3]], 0, False)
    recorder = RotatingRecorder(str(tmp_path / "one.db"), "relay", "made up", started_ns=0)
    recorder.record(items[:-4])
    recorder.commit()
    served = ServedSession(1, str(tmp_path / "one.db"), 1, "game.db")
    reader = Reader(served)
    assert shown(reader, "a")[0][-1] == (8, "b: 2 in the pot")
    rest = recorder.record_until_settled(items[-4:])
    recorder.continue_in(str(tmp_path / "two.db"))
    recorder.record(rest)
    recorder.close()
    served.path, served.session_id = recorder.path, recorder.session_id
    reader.look()
    assert reader.timeline.session.continues
    events, state = shown(reader, "a")
    assert events == [(12, "a picks 2"), (13, "a: 2 in the pot")]
    assert state == {"a": 2, "b": {"a": 2}, "players": {"a": {"x": 2}}, "private": {"a": {"x": 0}}}
    reader.close()
    # Read by itself, this database does not have the messages with the player's name.
    served = ServedSession(1, recorder.path, recorder.session_id, "game.db")
    with closing(Reader(served)) as alone:
        assert shown(alone, "a")[0] == [(12, "? picks 2"), (13, "1: 2 in the pot")]


# Built-in protocols.


def observed(path: str, player: str) -> Counter[str]:
    reader = opened(path)
    found = reader.timeline.events()
    return Counter(event.kind for event in found if reader.visibility.seen(event, player) is not None)


@pytest.mark.parametrize("capture", few_captures(CAPTURE_NAMES))
def test_equal_times_show_no_more(tmp_path: Path, capture: str) -> None:
    """A coarse clock makes no event the companion of another message's."""
    timeline = open_session(database_of(capture))
    items = [*RecordedItems(timeline).items()]
    for item in items:
        item.ts_ns -= item.ts_ns % 15_625_000
        item.stream.protocol = item.stream.closed_ns = item.stream.close_reason = None
    path = stored(tmp_path / "coarse.db", items)
    players = opened(path).players()[:3]
    for player in players:
        assert observed(path, player) <= observed(database_of(capture), player)


def test_hidden_victory_points_are_those_of_own_copies() -> None:
    """A Catan server includes hidden cards in the points that it reports to their owner."""
    reader = opened(database_of("catan-niedlichepixel-game2-3p.pcap.gz"))
    query = "SELECT fields FROM messages WHERE event_id = ? AND name = 'Statusupdate' AND stream_id = ?"
    hidden = 0
    for player in reader.players():
        (stream,) = reader.visibility.streams_of(player)
        told: dict[str, int] = {}
        for event in reader.timeline.events():
            for (fields,) in reader.timeline.connection.execute(query, (event.id, stream)):
                about = json.loads(fields)["Spieler"]
                told[str(about["id"])] = about["Siegpunkte"]
            if event.seq % 40:
                continue
            for own in reader.visibility.state(player, event.table_id, event.seq).get("games", {}).values():
                known = {
                    number: seat["points"] for number, seat in own["players"].items() if "points" in seat
                }
                assert known.items() <= told.items()
                (whole,) = reader.visibility.state(None, event.table_id, event.seq)["games"].values()
                hidden += any(whole["players"][number]["points"] != known[number] for number in known)
    assert hidden > 5
