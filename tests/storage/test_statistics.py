"""A session's statistics agree with the programs' own logs, however the session is cut.

The expected figures are computed from the captures' truth files, independently of Kiebitz.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from command import CAPTURES, TINY, kiebitz
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import a_few, every, few_captures, times

import kiebitz as library
from kiebitz.cli.render.svg.charts import document_of
from kiebitz.cli.render.text.charts import Charts
from kiebitz.cli.terminal.console import plain
from kiebitz.dissectors.statistics import (
    Counts,
    Durations,
    Histogram,
    Read,
    Sample,
    Shares,
    TimeSeries,
    results,
)
from kiebitz.dissectors.statistics.accumulators import MAX_LINES, MAX_POINTS, Accumulator
from kiebitz.dissectors.statistics.chance import chance_test, p_value, upper_gamma
from kiebitz.services.evidence.cells import cell_len
from kiebitz.storage.session.session import Session

ALL = sorted(path.name for path in CAPTURES.glob("*.pcap*"))


@cache
def session(capture: str) -> Session:
    return library.open(str(CAPTURES / capture))


def truth(capture: str) -> Any:
    return json.loads((CAPTURES / f"{capture.partition('.pcap')[0]}.truth.json").read_text())


def found(capture: str, protocol: str) -> dict[str, Any]:
    tables = [table for table in session(capture).statistics() if table.protocol == protocol]
    table = max(tables, key=lambda table: table.events)
    return {each["key"]: each for each in map(msgspec.to_builtins, table.statistics)}


def lines(result: Any) -> dict[str, dict[str, int]]:
    """Return the lines of counts without what is 0."""
    kept = {name: {key: n for key, n in line.items() if n} for name, line in result["lines"].items()}
    return {name: line for name, line in kept.items() if line}


def nested(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    made: dict[str, dict[str, int]] = {}
    for (line, column), count in counts.items():
        made.setdefault(line, {})[column] = count
    return made


# The test itself.


@pytest.mark.parametrize(
    ("chi_squared", "degrees", "p"),
    [
        # The critical values of every textbook.
        *((3.841, 1, 0.05), (6.635, 1, 0.01), (5.991, 2, 0.05), (11.070, 5, 0.05), (15.086, 5, 0.01)),
        *((18.307, 10, 0.05), (23.209, 10, 0.01), (31.410, 20, 0.05), (45.315, 20, 0.001)),
        *((0.554, 5, 0.99), (3.940, 10, 0.95), (4.351, 5, 0.5), (124.342, 100, 0.05), (0.0, 7, 1.0)),
    ],
)
def test_p_values_are_those_of_the_tables(chi_squared: float, degrees: int, p: float) -> None:
    assert p_value(chi_squared, degrees) == pytest.approx(p, rel=2e-3)


@given(st.floats(0, 500))
def test_the_gamma_function_has_its_closed_forms(x: float) -> None:
    assert upper_gamma(1, x) == pytest.approx(math.exp(-x), rel=1e-9, abs=1e-12)
    assert upper_gamma(0.5, x) == pytest.approx(math.erfc(math.sqrt(x)), rel=1e-9, abs=1e-12)
    assert upper_gamma(3, x) == pytest.approx(math.exp(-x) * (1 + x + x * x / 2), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ((2, 3, 4, 4, 3, 3), "19 dice: too few to tell fair from unfair. The test needs 30"),
        ((5, 5, 5, 5, 5, 5), "30 dice: nothing speaks against chance, which is at least this uneven in 100%"),
        ((10, 12, 9, 11, 8, 10), "60 dice: nothing speaks against chance"),
        ((5, 8, 9, 8, 10, 20), "60 dice: unusual. Chance is at least this uneven in one of 50 such records"),
        ((0, 0, 0, 0, 0, 60), "60 dice: hardly chance"),
    ],
)
def test_a_sentence_says_what_the_dice_show(counts: tuple[int, ...], says: str) -> None:
    faces = {str(face): count for face, count in enumerate(counts, 1)}
    chance = chance_test("dice", faces, dict.fromkeys(faces, Fraction(1, 6)))
    assert chance.says.startswith(says)
    assert (chance.p is None) == (sum(counts) < 30)


# Against what the programs logged.


@pytest.mark.parametrize(
    "capture",
    a_few(
        ["maexchen-head-tiny.pcap", "maexchen-head-port4711.pcap", "maexchen-old-20110928-seed-tiny.pcap"],
        ["maexchen-head-port4711.pcap"],
    ),
)
def test_maexchen_agrees_with_the_servers_log(capture: str) -> None:
    log, counted = truth(capture), found(capture, "maexchen")
    unfinished = log["unfinished"] or {"actions": []}
    rolls: Counter[str] = Counter()
    said: Counter[tuple[str, str]] = Counter()
    bluffs: Counter[tuple[str, str]] = Counter()
    sights: Counter[tuple[str, str]] = Counter()
    order = list(counted["rolls"]["counts"])
    for a_round in [*log["round_list"], unfinished]:
        dice, bluffer, seer = "", None, None
        for action in a_round["actions"]:
            who = action["who"]
            if action["t"] == "rolled":
                dice = action["dice"]
                rolls[dice] += 1
                if bluffer:
                    bluffs[bluffer, "believed"] += 1
                bluffer = None
            elif action["t"] == "announced":
                above = order.index(action["dice"]) - order.index(dice)
                said[who, "bluff" if above > 0 else "less" if above else "as rolled"] += 1
                bluffer = who if above > 0 else None
                bluffs[who, "told"] += above > 0
            elif action["t"] == "sees":
                seer = who
        reason = a_round.get("reason")
        if reason in ("CAUGHT_BLUFFING", "LIED_ABOUT_MIA"):
            assert bluffer is not None
            bluffs[bluffer, "caught"] += 1
        if seer and reason:
            sights[seer, "rightly"] += reason == "CAUGHT_BLUFFING"
            sights[seer, "all"] += 1
    assert {dice: count for dice, count in counted["rolls"]["counts"].items() if count} == rolls
    assert counted["rolls"]["chance"]["seen"] == sum(rolls.values())
    assert sum(counted["faces"]["counts"].values()) == 2 * sum(rolls.values())
    assert lines(counted["announcements"]) == nested(said)
    assert lines(counted.get("bluffs", {"lines": {}})) == nested(+bluffs)
    if "sights" in counted:
        told = {name: (share["part"], share["all"]) for name, share in counted["sights"]["lines"].items()}
        assert told == {
            name: (sights[name, "rightly"], sights[name, "all"]) for name, column in sights if column == "all"
        }
    lost = {name: sum(line.values()) for name, line in counted["losses"]["lines"].items()}
    assert lost == log["losses_by_player"]
    points = {name: line[-1][1] for name, line in counted["course"]["lines"].items()}
    assert points == log["final_score"]


@pytest.mark.parametrize(
    "capture",
    every(3, ["schafkopf-1.3-1human-round.pcap", "schafkopf-1.3-2humans.pcap", "schafkopf-1.3-crlf.pcap"]),
)
def test_schafkopf_agrees_with_the_servers_log(capture: str) -> None:
    log, counted = truth(capture), found(capture, "schafkopf")
    games: Counter[tuple[str, str]] = Counter()
    ends: Counter[tuple[str, bool]] = Counter()
    tricks: Counter[str] = Counter()
    points: Counter[str] = Counter()
    for a_round in log["rounds"]:
        seats, played = a_round["seats"], a_round.get("modus")
        if not played:
            continue
        player = seats[a_round["spielt"]]
        games[player, played.removesuffix("du").removesuffix("DU").rstrip("abcdefghijklmnopqrstuvwxyz")] += 1
        # Ten more than a seat is one that lost.
        told = a_round["sieger"]
        named = {seat % 10 for seat in told if seat != 4}
        won = (a_round["spielt"] in named) == (told[0] < 10)
        ends[player, won] += 1
        for trick in a_round["stiche"]:
            tricks[seats[trick["gewinner"]]] += 1
            points[seats[trick["gewinner"]]] += trick["punkte"]
    told_games = {
        (name, kind.partition(" ")[0].upper()): count
        for name, line in lines(counted["games"]).items()
        for kind, count in line.items()
    }
    assert told_games == games
    for name, share in counted["declarers"]["lines"].items():
        assert (share["part"], share["all"]) == (ends[name, True], ends[name, True] + ends[name, False])
    assert {name: line["count"] for name, line in counted["tricks"]["lines"].items()} == tricks
    assert {name: line["count"] for name, line in counted["trick-points"]["lines"].items()} == points
    for name, line in counted["course"]["lines"].items():
        if name in log["konto_last_round_start"]:
            assert line[-1][1] == log["konto_last_round_start"][name]


@pytest.mark.full
@pytest.mark.parametrize(
    "capture",
    a_few(
        [
            "catan-niedlichepixel-game2-3p.pcap.gz",
            "catan-yaks-g1-3p.pcap.gz",
            "catan-infrarot-game2-3p.pcap.gz",
        ],
        ["catan-niedlichepixel-game2-3p.pcap.gz"],
    ),
)
def test_catan_agrees_with_the_servers_log(capture: str) -> None:
    log, counted = truth(capture), found(capture, "catan")
    names = {int(number): about["Name"] for number, about in log["players"].items()}
    sums = Counter(str(sum(dice)) for _, dice in log["dice_in_order"])
    faces = Counter(str(face) for _, dice in log["dice_in_order"] for face in dice)
    assert {total: count for total, count in counted["sums"]["counts"].items() if count} == sums
    assert counted["faces"]["counts"] == faces
    # One server reports a road twice; another writes without umlauts.
    standing = {(player, kind, str(place)) for player, kind, place in log["buildings_in_order"]}
    built = Counter((names[player], kind.replace("Strasse", "Straße")) for player, kind, _ in standing)
    assert lines(counted["built"]) == nested(built)


def test_okey_agrees_with_the_servers_log() -> None:
    capture = "okey-head-game-win.pcap.gz"
    log, counted = truth(capture), found(capture, "okey")
    stacks = {"m": "main stack", "e": "put by another"}
    moves = [(move["name"], move) for game in log["games"] for move in game["moves"]]
    draws = Counter((name, stacks[move["draw"]["stack"]]) for name, move in moves if "draw" in move)
    assert lines(counted["draws"]) == nested(draws)
    puts = Counter(name for name, move in moves if "put" in move)
    assert {name: share["all"] for name, share in counted["puts"]["lines"].items()} == puts
    winner = log["games"][0]["outcome"]["winner"]
    assert {name: line[-1][1] for name, line in counted["wins"]["lines"].items()} == {winner: 1}


@pytest.mark.full
def test_cgml_agrees_with_the_simulators_log() -> None:
    capture = "cgml-hands.pcap.gz"
    log, counted = truth(capture), found(capture, "cgml")
    names = {player["id"]: player["name"] for player in log["players"]}
    hands = [hand for group in log["groups"] for hand in group["hands"]]
    tricks: Counter[str] = Counter()
    money: Counter[str] = Counter()
    games: Counter[str] = Counter()
    wins: Counter[str] = Counter()
    fleks: Counter[tuple[str, str]] = Counter()
    bids: Counter[tuple[str, str]] = Counter()
    for hand in hands:
        for bid in hand["bids"]:
            passed = bid["answer"] in ("PASS", "NO")
            bids[names[bid["player"]], "passed" if passed else "bid"] += 1
        for flek in hand["fleks"] or ():
            levels = {tuple(f"{flek[key]}:1".split(":")[:2]) for key in ("ask", "answer")}
            raised = len(levels) == 2
            fleks[names[flek["player"]], "raised" if raised else "left it"] += 1
        for trick in hand["tricks"] or ():
            if trick["complete"]:
                tricks[names[trick["winner"]]] += 1
        if hand["end"] == "result":
            player = names[hand["declarer"]]
            games[player] += 1
            wins[player] += hand["declarer"] in hand["winners"]
            for number, amount in hand["money"].items():
                money[names[int(number)]] += amount
    told = {name: (share["part"], share["all"]) for name, share in counted["declarers"]["lines"].items()}
    assert told == {name: (wins[name], count) for name, count in games.items()}
    assert {name: line["count"] for name, line in counted["tricks"]["lines"].items()} == tricks
    assert {name: line[-1][1] for name, line in counted["course"]["lines"].items()} == money
    assert lines(counted["bids"]) == nested(bids)
    assert lines(counted["fleks"]) == nested(fleks)


# Whatever counts.


def added(one: Any, other: Any) -> Any:
    match one:
        case results.Histogram():
            return Counter(one.counts) + Counter(other.counts)
        case results.Counts():
            return Counter(figures(one)) + Counter(figures(other))
        case results.Shares():
            names = {*one.lines, *other.lines}
            none = results.Share(0, 0)
            pairs = {name: (one.lines.get(name, none), other.lines.get(name, none)) for name in names}
            return {name: (a.part + b.part, a.all + b.all) for name, (a, b) in pairs.items()}
        case results.TimeSeries():
            names = {*one.lines, *other.lines}
            return {name: sorted([*one.lines.get(name, ()), *other.lines.get(name, ())]) for name in names}
        case results.Durations():
            names = {*one.lines, *other.lines}
            no_time = results.Times(0, 0.0, 0.0, 0.0)
            both = {name: (one.lines.get(name, no_time), other.lines.get(name, no_time)) for name in names}
            return {name: (a.count + b.count, max(a.longest, b.longest)) for name, (a, b) in both.items()}
        case results.Rate():
            return None
    raise AssertionError(one)


def figures(result: results.Counts) -> dict[tuple[str, str], int]:
    return {
        (name, column): count
        for name, line in result.lines.items()
        for column, count in line.items()
        if count
    }


def empty(result: Any) -> Any:
    """Return the same statistic with nothing in it."""
    cleared: dict[str, Any] = {"counts": {}} if isinstance(result, results.Histogram) else {"lines": {}}
    return result if isinstance(result, results.Rate) else msgspec.structs.replace(result, **cleared)


def by_key(tables: list[results.TableStatistics]) -> dict[tuple[int, str], Any]:
    return {(table.table, each.key): each for table in tables for each in table.statistics}


PLAYED = [
    "maexchen-head-port4711.pcap",
    "schafkopf-1.3-2humans.pcap",
    "catan-yaks-lobby.pcap.gz",
    "okey-head-game-win.pcap.gz",
    "cgml-tiny.pcap.gz",
]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("capture", every(2, PLAYED))
@settings(max_examples=times(60, 4), deadline=None)
@given(data=st.data())
def test_scores_and_events_that_not_all_receive(capture: str, data: st.DataObject) -> None:
    known = session(capture)
    numbers = [event.id for event in known.events()]
    chosen = data.draw(st.lists(st.sampled_from(numbers), min_size=1, max_size=60, unique=True))
    condition = f"event in {{{', '.join(map(str, chosen))}}}"
    wanted, rest = by_key(known.statistics(condition)), by_key(known.statistics(f"!({condition})"))
    for key, whole in by_key(known.statistics()).items():
        if key[1] != "messages" and key[1] != "rate":
            parts = added(wanted.get(key, empty(whole)), rest.get(key, empty(whole)))
            assert added(whole, empty(whole)) == parts, key


@pytest.mark.parametrize("capture", ["maexchen-head-port4711.pcap", "cgml-tiny.pcap.gz"])
def test_the_games_come_to_all_that_is_in_games(capture: str) -> None:
    known = session(capture)
    in_games: Counter[tuple[str, str]] = Counter()
    for game in known.games():
        for table in known.statistics(game=game.id):
            for each in table.statistics:
                if isinstance(each, results.Counts):
                    in_games.update(figures(each))
    whole: Counter[tuple[str, str]] = Counter()
    for table in known.statistics():
        for each in table.statistics:
            if isinstance(each, results.Counts) and each.key != "messages":
                whole.update(figures(each))
    assert {key: in_games[key] for key in whole} == whole


def test_a_filter_says_what_counts_and_the_readers_know_the_rest() -> None:
    """A bluff that is believed is known by what was rolled before, though that does not count."""
    capture = "maexchen-head-port4711.pcap"
    whole = found(capture, "maexchen")["bluffs"]["lines"]
    (table,) = session(capture).statistics('kind in {"announced", "rolls"}')
    (bluffs,) = (each for each in table.statistics if each.key == "bluffs")
    assert isinstance(bluffs, results.Counts)
    assert bluffs.lines == {"dora": {key: whole["dora"][key] for key in ("told", "believed")}}


# The memory is bounded.


def nothing() -> Read:
    return lambda event, state: ()


def test_a_tally_has_room_for_so_many() -> None:
    made_up = [Sample(f"player {number}", f"did {number}") for number in range(3 * MAX_LINES)]
    for kind in (
        Histogram(key="k", title="", reads=nothing, of="things"),
        Counts(key="k", title="", reads=nothing),
        Shares(key="k", title="", reads=nothing, part="did 1", rest=""),
        TimeSeries(key="k", title="", reads=nothing, unit="points"),
        Durations(key="k", title="", reads=nothing),
    ):
        accumulator = Accumulator(kind)
        for sample in made_up:
            accumulator.add(sample, 1.0)
        result = accumulator.result()
        assert result is not None
        assert not isinstance(result, results.Rate)
        assert result.left_out == 2 * MAX_LINES


def test_a_long_course_keeps_its_ends() -> None:
    accumulator = Accumulator(TimeSeries(key="k", title="", reads=nothing, unit="points"))
    for moment in range(20 * MAX_POINTS):
        accumulator.add(Sample("alice", amount=moment), float(moment))
    result = accumulator.result()
    assert isinstance(result, results.TimeSeries)
    kept = result.lines["alice"]
    assert len(kept) <= MAX_POINTS
    assert (kept[0], kept[-1]) == ((0.0, 0), (20.0 * MAX_POINTS - 1, 20 * MAX_POINTS - 1))
    assert kept == sorted(kept)


@given(st.lists(st.integers(0, 10**13), min_size=1))
def test_a_median_is_near_one_of_the_middle(durations: list[int]) -> None:
    accumulator = Accumulator(Durations(key="k", title="", reads=nothing))
    for ns in durations:
        accumulator.add(Sample("alice", amount=ns), 0.0)
    result = accumulator.result()
    assert isinstance(result, results.Durations)
    told = result.lines["alice"]
    middle = sorted(durations)[(len(durations) - 1) // 2] / 1e9
    assert told.median == pytest.approx(middle, rel=0.03)
    assert told.longest == max(durations) / 1e9
    assert told.mean == pytest.approx(sum(durations) / len(durations) / 1e9)


# The command.


@pytest.mark.full(but=1)
@pytest.mark.parametrize("capture", few_captures(ALL))
def test_json_is_what_the_library_gives(capture: str) -> None:
    done = kiebitz("stats", str(CAPTURES / capture), "--json")
    assert done.status == 0
    assert done.json.keys() == {"session", "game", "tables"}
    read = msgspec.convert(done.json["tables"], list[results.TableStatistics])
    assert read == session(capture).statistics()


def test_the_messages_of_all_directions_are_counted() -> None:
    known = session(TINY)
    (table,) = known.statistics()
    by_name = Counter(message.name for message in known.messages())
    (messages,) = (each for each in table.statistics if each.key == "messages")
    assert isinstance(messages, results.Counts)
    assert {name: sum(line.values()) for name, line in messages.lines.items()} == by_name
    (rate,) = (each for each in table.statistics if isinstance(each, results.Rate))
    assert sum(rate.counts) == table.messages == sum(by_name.values())


@pytest.mark.full(but=1)
@pytest.mark.parametrize("capture", PLAYED)
def test_charts_on_a_terminal_keep_to_its_width_and_letters(capture: str) -> None:
    for table in session(capture).statistics():
        for columns in (40, 60, 80, 160):
            for encoding in ("utf-8", "ascii", "latin-1"):
                rows = [plain(line) for line in Charts(columns, encoding).lines(table)]
                assert max(map(cell_len, rows)) <= columns, (columns, encoding)
                "\n".join(rows).encode(encoding)
                assert len(rows) > len(table.statistics)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("capture", every(2, PLAYED))
def test_a_drawing_is_self_contained_and_has_all_titles(capture: str, tmp_path: Path) -> None:
    path = tmp_path / "charts.svg"
    tables = session(capture).statistics()
    done = kiebitz("stats", str(CAPTURES / capture), "--svg", str(path))
    assert (done.status, done.out) == (0, "")
    assert ("with the most events" in done.err) == (len(tables) > 1)
    root = ElementTree.parse(path).getroot()
    words = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    busiest = max(tables, key=lambda table: table.events)
    assert {each.title for each in busiest.statistics} <= words
    markup = path.read_text().replace("http://www.w3.org/2000/svg", "")
    assert all(outside not in markup for outside in ("http", "url(", "href", "@import", "<script"))
    # Large enough for the back of a room.
    sizes = [float(text.get("font-size", 0)) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert min(sizes) >= 24
    height = float(root.get("height", 0))
    assert all(float(text.get("y", 0)) <= height for text in root.iter("{http://www.w3.org/2000/svg}text"))


@pytest.mark.full
def test_the_documents_picture_is_as_the_command_draws_it(tmp_path: Path) -> None:
    capture = str(CAPTURES / "catan-niedlichepixel-game2-3p.pcap.gz")
    assert kiebitz("stats", capture, "--svg", str(tmp_path / "x.svg")).status == 0
    drawn = (tmp_path / "x.svg").read_bytes()
    assert drawn == (CAPTURES.parent / "docs" / "pictures" / "stats.svg").read_bytes()


def test_names_at_the_ends_of_lines_are_separated() -> None:
    lines_of = {f"player {number}": [(0.0, 0), (1.0, 5)] for number in range(12)}
    course = results.TimeSeries("k", "Points over time", "points", lines_of)
    table = results.TableStatistics(1, "maexchen", "127.0.0.1:9000", 0, 1, [course])
    root = ElementTree.fromstring(document_of(table, "x"))
    named = {
        text.text: float(text.get("y", 0))
        for text in root.iter("{http://www.w3.org/2000/svg}text")
        if (text.text or "").startswith("player ")
    }
    assert len(named) == 12
    heights = sorted(named.values())
    assert min(b - a for a, b in itertools.pairwise(heights)) >= 24
