"""A session's statistics, however it is cut: they add up, are bounded, and are the same in every form.

Those of a recorded game of each protocol are a transcript (`tests/data/commands/stats.txt`), whose figures
were compared with the logs of the programs that played it.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from command import CAPTURES, kiebitz
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import every, few_captures, times

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
from kiebitz.dissectors.statistics.chance import chance_test, upper_gamma
from kiebitz.services.evidence.cells import cell_len
from kiebitz.storage.session.session import Session

ALL = sorted(path.name for path in CAPTURES.glob("*.pcap*"))


@cache
def session(capture: str) -> Session:
    return library.open(str(CAPTURES / capture))


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
    assert upper_gamma(degrees / 2, chi_squared / 2) == pytest.approx(p, rel=2e-3)


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


# Whatever counts.


def figures(result: Any) -> Counter[tuple[str, Any]]:
    """Return the figures of a statistic that add up, by line and column; of a time series its points."""
    match result:
        case None:
            lines: dict[str, Any] = {}
        case results.Histogram():
            lines = {"": result.counts}
        case results.Shares():
            lines = {name: {"part": share.part, "all": share.all} for name, share in result.lines.items()}
        case results.Durations():
            lines = {name: {"count": each.count} for name, each in result.lines.items()}
        case results.TimeSeries():
            lines = {name: Counter(map(tuple, points)) for name, points in result.lines.items()}
        case _:
            lines = result.lines
    return +Counter({(name, column): count for name, line in lines.items() for column, count in line.items()})


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
            assert figures(wanted.get(key)) + figures(rest.get(key)) == figures(whole), key


@pytest.mark.parametrize("capture", ["maexchen-head-port4711.pcap", "cgml-tiny.pcap.gz"])
def test_the_games_come_to_all_that_is_in_games(capture: str) -> None:
    def counted(game: int | None = None) -> Counter[tuple[str, Any]]:
        found = by_key(known.statistics(game=game)).values()
        kinds = [each for each in found if isinstance(each, results.Counts) and each.key != "messages"]
        return sum(map(figures, kinds), Counter())

    known = session(capture)
    in_games = sum((counted(game.id) for game in known.games()), Counter[tuple[str, Any]]())
    assert {key: in_games[key] for key in counted()} == counted()


def test_a_filter_says_what_counts_and_the_readers_know_the_rest() -> None:
    """A bluff that is believed is known by what was rolled before, though that does not count."""
    known = session("maexchen-head-port4711.pcap")
    whole = by_key(known.statistics())[1, "bluffs"].lines["dora"]
    bluffs = by_key(known.statistics('kind in {"announced", "rolls"}'))[1, "bluffs"]
    assert bluffs.lines == {"dora": {key: whole[key] for key in ("told", "believed")}}


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
