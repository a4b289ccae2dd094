from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from altered_captures import CATAN, CGML, MAEXCHEN, OKEY, changed, compared, lost, replaced, swapped, unasked
from altered_sessions import recorded
from command import TINY, Done, kiebitz
from imported_databases import database_of
from session_factory import Conversation, record
from strength import a_few


def lines(done: Done) -> list[str]:
    return [" ".join(line.split()) for line in done.out.splitlines()]


def block(done: Done, title: str) -> list[str]:
    """Return the lines under a title, up to the next empty one."""
    written = lines(done)
    begin = next(number for number, line in enumerate(written) if line.startswith(title))
    end = next((number for number in range(begin, len(written)) if not written[number]), len(written))
    return written[begin:end]


# The first difference.


def test_the_first_difference_is_in_its_context(tmp_path: Path) -> None:
    done = compared(tmp_path, MAEXCHEN, changed("rolled", 0, "4,3", "6,1"))
    assert (done.status, done.err) == (3, "")
    assert lines(done)[1] == "665 events the same; 1 changed"
    assert block(done, "First difference") == [
        "First difference: Mäxchen 127.0.0.1:4711, game 1 (round 1), rolled: other dice",
        "A #7 B #7 0.288s dora joins the round",
        "A #10 B #10 0.538s round 1 starts with carl, dora, alice",
        "A #11 B #11 0.538s it is carl's turn",
        "A #12 B #12 0.539s carl rolls",
        "A #13 0.540s carl has rolled 4,3",
        "B #13 0.540s carl has rolled 6,1",
        'dice: A "4,3" B "6,1"',
    ]
    assert "Other differences" not in done.out


def test_both_pictures_are_drawn_and_then_where_the_states_differ(tmp_path: Path) -> None:
    done = compared(tmp_path, MAEXCHEN, changed("rolled", 0, "4,3", "6,1"))
    first, second = done.out.index("\nA:\n"), done.out.index("\nB:\n")
    assert "carl has rolled 4,3" in done.out[first:second]
    assert "carl has rolled 6,1" in done.out[second:]
    assert block(done, "The states differ") == [
        "The states differ in 1 place:",
        'games.1.private.carl.dice: A "4,3" B "6,1"',
    ]


def test_a_message_missing_on_one_side_is_reported_with_the_next(tmp_path: Path) -> None:
    done = compared(tmp_path, MAEXCHEN, lost("rolled", 1))
    told = block(done, "First difference")
    assert told[0].endswith("game 1 (round 1), rolled only in A")
    assert told[-2] == "A #17 0.542s dora has rolled 5,5"
    assert re.fullmatch(r"B nothing; next is #17 0\.5\d\ds dora announces 5,5", told[-1])


def test_data_after_the_end_of_the_other_direction_is_reported(tmp_path: Path) -> None:
    known = recorded("maexchen-head-tiny.pcap")
    shorter = known.with_said(known.said[:-2]).write(tmp_path / "shorter.db")
    done = kiebitz("diff", TINY, shorter)
    told = block(done, "First difference")
    assert told[-2] == "A #25 1.403s dora joins the round"
    assert told[-1] == "B nothing, and no later event"


def test_two_neighbours_that_are_swapped_are_one_difference(tmp_path: Path) -> None:
    done = compared(tmp_path, MAEXCHEN, swapped("joined", 1))
    assert lines(done)[1].endswith("; 1 in another order")
    assert block(done, "First difference")[0].endswith("joined in another order")


def test_a_game_that_only_one_side_has_is_where_they_part(tmp_path: Path) -> None:
    known = recorded(MAEXCHEN)
    last = max(place for place, one in enumerate(known.said) if one.kind == "score")
    cut = next(place for place, one in enumerate(known.said) if one.kind == "score" and place > last - 300)
    done = kiebitz(
        "diff", database_of(MAEXCHEN), known.with_said(known.said[:cut]).write(tmp_path / "shorter.db")
    )
    assert done.status == 3
    assert re.search(r"; .*\d+ games only in A", lines(done)[1])
    assert len([line for line in block(done, "Only in A") if line.startswith("game ")]) > 1


# The rest.


def test_the_rest_is_grouped_by_game_and_sort(tmp_path: Path) -> None:
    done = compared(tmp_path, MAEXCHEN, replaced({"4,3": "6,1"}))
    rest = block(done, "Other differences")
    assert rest[0] == "Other differences"
    assert rest[1] == "Mäxchen 127.0.0.1:4711, game 1 (round 1)"
    assert rest[2] == "announced: other dice"
    assert rest[3:5] == ["A #14 0.540s carl announces 4,3", "B #14 0.540s carl announces 6,1"]
    assert any(re.fullmatch(r"\d+ × announced: other dice", line) for line in rest) or len(rest) > 10


@pytest.mark.full
def test_many_groups_are_bounded_and_it_is_reported_how_many_more() -> None:
    done = kiebitz("diff", database_of(MAEXCHEN), database_of("maexchen-old-20111003.pcap"))
    assert done.status == 3
    assert re.search(r"\n  and [\d,]+ differences more, in \d+ groups\n", done.out)
    assert re.search(r"\n  and \d+ more\n", done.out)
    assert len(done.out.splitlines()) < 250


@pytest.mark.full
def test_messages_without_an_event_are_counted(tmp_path: Path) -> None:
    done = compared(tmp_path, CATAN, unasked("Handel anbieten", 0))
    assert lines(done)[1].endswith(" events the same; 1 message without an event")
    assert re.fullmatch(
        r"1 × c2s Handel anbieten: only in A \(A #\d+\)", block(done, "Messages without an event")[1]
    )


def test_players_and_conversations_of_one_side_are_named(tmp_path: Path) -> None:
    known = recorded(MAEXCHEN)
    silent = next(one.stream for one in known.said if b"REGISTER;kaos" in one.data)
    without = known.with_said([one for one in known.said if one.stream != silent])
    done = kiebitz("diff", database_of(MAEXCHEN), without.write(tmp_path / "without.db"))
    assert "a conversation of kaos, stream 4" in block(done, "Only in A")


# Filters.


@pytest.mark.full
def test_a_filter_leaves_out_what_does_not_meet_it(tmp_path: Path) -> None:
    alter = changed("rolled", 0, "4,3", "6,1")
    assert compared(tmp_path, MAEXCHEN, alter, "-Y", 'kind == "announced"').status == 0
    (tmp_path / "altered.db").unlink()
    done = compared(tmp_path, MAEXCHEN, alter, "-Y", 'kind == "rolled"')
    assert (done.status, lines(done)[1]) == (3, "78 events the same; 1 changed")


def test_a_filter_by_name_takes_each_side_s_own_players(tmp_path: Path) -> None:
    done = compared(tmp_path, CGML, replaced({"6533": "77"}), "-Y", 'kind == "played"')
    assert done.status == 0
    assert " are the same: 30 events" in done.out


@pytest.mark.full
def test_players_that_do_not_come_up_in_what_is_filtered_do_not_matter(tmp_path: Path) -> None:
    known = recorded(MAEXCHEN)
    spectator = next(one.stream for one in known.said if b"REGISTER_SPECTATOR;" in one.data)
    without = known.with_said([one for one in known.said if one.stream != spectator])
    written = without.write(tmp_path / "without.db")
    assert kiebitz("diff", database_of(MAEXCHEN), written, "-Y", 'kind == "rolled"').status == 0
    assert "the player sp" in block(kiebitz("diff", database_of(MAEXCHEN), written), "Only in A")


# States.


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("capture", "names"),
    [
        (MAEXCHEN, {"alice": "carl", "carl": "dora", "dora": "alice"}),
        ("schafkopf-1.3-2humans.pcap", {"Jürgen Groß": "Bärbel", "Bärbel": "Jürgen Groß"}),
        (CATAN, {"Jürgen": "Anna", "Zoë Weiß": "Bert"}),
        (OKEY, {"boran": "istref", "istref": "boran"}),
        (CGML, {"6533": "22", "1216": "1", "8678": "333", "wampaire": "dracula"}),
    ],
)
@pytest.mark.parametrize("moment", a_few(["#20", "#60", "end"], ["#60"]))
def test_states_in_which_only_the_names_differ_are_the_same(
    capture: str, names: dict[str, str], moment: str, tmp_path: Path
) -> None:
    known = recorded(capture)
    other = known.with_said(replaced(names)(list(known.said))).write(tmp_path / "other.db", other_ports=True)
    done = kiebitz("diff", "--state", f"{database_of(capture)}@{moment}", f"{other}@{moment}", "--json")
    assert [pair["differences"] for pair in done.json] == [[]] * len(done.json)
    assert done.status == 0


@pytest.mark.full
def test_states_as_json(tmp_path: Path) -> None:
    done = compared(tmp_path, MAEXCHEN, changed("rolled", 0, "4,3", "6,1"), "--state", "--json")
    assert (done.status, done.json[0]["differences"]) == (0, [])
    altered = str(tmp_path / "altered.db")
    (found,) = kiebitz("diff", "--state", f"{database_of(MAEXCHEN)}@#13", f"{altered}@#13", "--json").json
    assert found["a"] == {
        "table": 1, "protocol": "maexchen", "server": "127.0.0.1:4711", "event": 13, "time": 0.539598,
    }  # fmt: skip
    path = ["games", "1", "private", "carl", "dice"]
    assert found["differences"] == [{"path_a": path, "path_b": path, "a": "4,3", "b": "6,1"}]


# JSON.


def test_json_has_every_event_with_its_words(tmp_path: Path) -> None:
    told = compared(tmp_path, MAEXCHEN, changed("rolled", 0, "4,3", "6,1"), "--json").json
    (one,) = told["differences"]
    assert one["a"] == {
        "number": 13,
        "id": 13,
        "time": 0.539598,
        "sentence": "carl has rolled 4,3",
        "kind": "rolled",
        "actor": "carl",
        "data": {"dice": "4,3", "name": "carl"},
    }
    assert one["b"]["data"] == {"dice": "6,1", "name": "carl"}
    assert told["tables"][one["table"]]["a"]["server"] == "127.0.0.1:4711"
    assert told["games"][one["game"]]["b"]["id"] == 1
    assert (told["equal"], told["same"]) == (False, 665)


# What cannot be compared, and what is empty.


def empty_session(folder: Path) -> str:
    return record(folder / "empty.db", Conversation().says(b"\xff\xfe nothing of a game").items)


def test_two_sessions_without_events_are_the_same(tmp_path: Path) -> None:
    empty = empty_session(tmp_path)
    done = kiebitz("diff", empty, empty)
    assert (done.status, done.err) == (0, "")
    assert done.out.endswith(" are the same: 0 events\n")


def test_a_session_without_events_lacks_the_server_of_the_other(tmp_path: Path) -> None:
    done = kiebitz("diff", empty_session(tmp_path), TINY)
    assert done.status == 3
    assert block(done, "Only in B") == ["Only in B", "the server Mäxchen 127.0.0.1:9000, 26 events"]


def test_sessions_without_games_are_compared(tmp_path: Path) -> None:
    done = compared(tmp_path, "catan-eisfrei-lobby.pcap.gz", lost("ready", 0))
    assert (done.status, lines(done)[1]) == (3, "15 events the same; 1 only in A")


def test_a_file_may_have_an_at_in_its_name(tmp_path: Path) -> None:
    other = shutil.copy(TINY, tmp_path / "game@end")
    assert kiebitz("diff", str(other), TINY).status == 0
    assert kiebitz("diff", "--state", f"{other}@#14", f"{TINY}@#14").status == 0


HOSTILE = "\x1b[2J[bold]:smile:\u202e"


@pytest.mark.full(but=1)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_hostile_player_names_control_no_terminal(options: tuple[str, ...], tmp_path: Path) -> None:
    done = compared(tmp_path, MAEXCHEN, replaced({"alice": HOSTILE, "4,3": "6,1"}), *options)
    assert done.status == 3
    assert not set(done.out) & {"\x1b", "\u202e"}
    assert "[bold]:smile:" in done.out


@pytest.mark.full
def test_very_long_names_do_not_fill_the_screen(tmp_path: Path) -> None:
    done = compared(tmp_path, MAEXCHEN, replaced({"alice": "a" * 20_000, "4,3": "6,1"}))
    assert done.status == 3
    assert max(map(len, done.out.splitlines())) < 2_000
