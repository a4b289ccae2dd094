from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Look, Served, file_address, served
from command import CAPTURES
from page_queries import PANES, SLIP, exported
from strength import GAMES

pytestmark = pytest.mark.full

SIZES = {"wide": (1440, 900), "projector": (1024, 768), "phone": (390, 844)}


@pytest.fixture(scope="module")
def address() -> Iterator[Served]:
    with served(
        str(CAPTURES / GAMES["schafkopf"]), str(CAPTURES / "maexchen-two-servers-restart.pcapng")
    ) as server:
        yield server


@pytest.mark.parametrize("scheme", ["light", "dark", "forced"])
@pytest.mark.parametrize("size", SIZES)
def test_files_conflict_with_no_existing_ones(size: str, scheme: str, address: Served, look: Look) -> None:
    width, height = SIZES[size]
    # The tool is a script that the page's own policy keeps out.
    given: dict[str, Any] = {"width": width, "height": height, "bypass_csp": True}
    given |= {"forced_colors": "active"} if scheme == "forced" else {"color_scheme": scheme}
    sight = look(address.at(at=30), **given)
    sight.expect(SLIP)
    sight.until_at(30)
    found: dict[str, list[str]] = {}
    for pane in PANES:
        sight.pane(pane)
        sight.rest()
        found[pane] = sight.violations()
    sight.press("n")
    sight.rest()
    sight.pane("message")
    sight.rest()
    found["an error"] = sight.violations()
    sight.press("?")
    found["help"] = sight.violations()
    sight.press("Escape", "/")
    sight.page.keyboard.type("act")
    sight.until(lambda: sight.is_seen("#filter-names li"), "names are offered")
    found["names"] = sight.violations()
    sight.press("Escape", "Escape", "p")
    sight.settle()
    found["projector"] = sight.violations()
    sight.press("Escape")
    sight.be(session=2, several=1)
    sight.until(
        lambda: len([one for one in sight.texts("#several .tile-latest") if one]) == 2, "both are drawn"
    )
    sight.settle()
    found["tables"] = sight.violations()
    assert {name: these for name, these in found.items() if these} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("game", GAMES)
def test_each_drawing_and_its_file_are_harmless(game: str, scheme: str, tmp_path: Path, look: Look) -> None:
    path = exported(str(CAPTURES / GAMES[game]), tmp_path / "game.html")
    sight = look(file_address(path), color_scheme=scheme, bypass_csp=True, offline=True)
    sight.press("End")
    sight.settle()
    found = {"end": sight.violations()}
    sight.pane("messages")
    found["messages"] = sight.violations()
    assert {name: these for name, these in found.items() if these} == {}
