from __future__ import annotations

from pathlib import Path

import pytest
from altered_captures import CATAN, CGML, MAEXCHEN, OKEY, compared, replaced
from altered_sessions import recorded
from command import kiebitz
from imported_databases import database_of
from strength import a_few


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("capture", "names"),
    [
        (MAEXCHEN, ["alice=carl", "carl=dora", "dora=alice"]),
        ("schafkopf-1.3-2humans.pcap", ["Jürgen Groß=Bärbel", "Bärbel=Jürgen Groß"]),
        (CATAN, ["Jürgen=Anna", "Zoë Weiß=Bert"]),
        (OKEY, ["boran=istref", "istref=boran"]),
        (CGML, ["6533=22", "1216=1", "8678=333", "wampaire=dracula"]),
    ],
)
@pytest.mark.parametrize("moment", a_few(["#20", "#60", "end"], ["#60"]))
def test_states_in_which_only_the_names_differ_are_the_same(
    capture: str, names: list[str], moment: str, tmp_path: Path
) -> None:
    known = recorded(capture)
    other = known.with_said(replaced(*names)(list(known.said))).write(tmp_path / "other.db", other_ports=True)
    done = kiebitz("diff", "--state", f"{database_of(capture)}@{moment}", f"{other}@{moment}", "--json")
    assert [pair["differences"] for pair in done.json] == [[]] * len(done.json)
    assert done.status == 0


HOSTILE = "\x1b[2J[bold]:smile:\u202e"


@pytest.mark.full(but=1)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_hostile_player_names_control_no_terminal(options: tuple[str, ...], tmp_path: Path) -> None:
    done = compared(tmp_path, MAEXCHEN, replaced(f"alice={HOSTILE}", "4,3=6,1"), *options)
    assert done.status == 3
    assert not set(done.out) & {"\x1b", "\u202e"}
    assert "[bold]:smile:" in done.out


@pytest.mark.full
def test_very_long_names_do_not_fill_the_screen(tmp_path: Path) -> None:
    done = compared(tmp_path, MAEXCHEN, replaced(f"alice={'a' * 20_000}", "4,3=6,1"))
    assert done.status == 3
    assert max(map(len, done.out.splitlines())) < 2_000
