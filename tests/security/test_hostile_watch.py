from __future__ import annotations

import re
from pathlib import Path

import pytest
from command import kiebitz
from damaged_databases import FORGED, SPOTS, Spot, damage
from hostile_text import CAPTURES_OF, is_harmless
from strength import a_few
from watch_driver import Sight, watch

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.services.damage import damaged_database

_LINE = re.compile(rf"^ *{FORGED}", re.MULTILINE)


async def everything(sight: Sight) -> None:
    for keys in (["end"], ["home"], ["n"], ["question_mark"], ["escape"], ["a"], ["down", "enter"], ["end"]):
        await sight.press(*keys)
        safe(sight)
    for _ in range(6):
        await sight.press("tab")
        safe(sight)
        for _ in range(2):
            await sight.press("down")
        safe(sight)
    await sight.press("y")
    safe(sight)
    await sight.press("t")
    safe(sight)


def safe(sight: Sight) -> None:
    assert is_harmless(sight.text)
    assert not _LINE.search(sight.text)


def spoilt(protocol: str, folder: Path, spots: list[Spot]) -> str:
    path = str(folder / "game.db")
    assert kiebitz("import", CAPTURES_OF[protocol], "-w", path).status == 0
    damage(path, spots)
    return path


def look(path: str) -> None:
    try:
        watch(path, everything, (100, 30))
    except Exception as error:
        # The command reports a damaged one then.
        if not isinstance(error, KiebitzError) and damaged_database(["watch", path]) is None:
            raise


@pytest.mark.parametrize("spot", a_few(SPOTS, SPOTS[-3:-2], ".".join))
@pytest.mark.full
def test_no_column_does_anything(spot: Spot, tmp_path: Path) -> None:
    look(spoilt("maexchen", tmp_path, [spot]))


@pytest.mark.parametrize("kind", a_few(["names", "values"], ["values"]))
@pytest.mark.parametrize("protocol", a_few(CAPTURES_OF, ["catan"]))
def test_hostile_game_texts_are_inert(protocol: str, kind: str, tmp_path: Path) -> None:
    words = {"protocol", "transport", "direction", "severity", "kind"}
    look(
        spoilt(
            protocol,
            tmp_path,
            [spot for spot in SPOTS if spot.kind in ("text", kind) and spot.column not in words],
        )
    )


def test_a_sound_one_is_shown_and_the_forged_words_with_it(tmp_path: Path) -> None:
    """Else nothing of the above would show anything."""
    path = spoilt(
        "maexchen", tmp_path, [Spot("events", "actor", "text"), Spot("messages", "fields", "values")]
    )

    async def script(sight: Sight) -> None:
        await sight.press("tab")
        assert FORGED in sight.text

    watch(path, script, (100, 30))
