"""Every view, dialog and report in a browser, in light, dark and forced colours: axe has no objections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Look, Sight, file_address
from command import CAPTURES, ROOT, kiebitz
from page_queries import PANES, SLIP, exported
from probe_command import server
from processes_and_rows import free_port
from served_pages import Serving, serving
from strength import GAMES

pytestmark = pytest.mark.full

SIZES = {"wide": (1366, 768), "projector": (1024, 768), "phone": (390, 844)}
SCHEMES: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "forced": {"forced_colors": "active"},
}


@pytest.fixture(scope="module")
def address() -> Iterator[Serving]:
    with serving(
        str(CAPTURES / GAMES["schafkopf"]), str(CAPTURES / "maexchen-two-servers-restart.pcapng")
    ) as server:
        yield server


VIEWS = {
    **{pane: (f"#tab-{pane}",) for pane in PANES},
    "columns": ("#tab-messages", "#pane-messages .columns summary"),
    "an error": ("Home", "n", "3"),
    "help": ("?",),
    "share": ("Escape", "#copy-button"),
    "mark": ("Escape", "m"),
    "completion": ("Escape", "/", "a", "c", "t"),
    "projector": ("Escape", "Escape", "p"),
    "files": ("Escape", "#opener-button"),
    "tables": ("#opener-button", "#session=2&several=1"),
    "home": ("#home=1",),
    "home on a projector": ("p",),
}
"""View -> the way to it from the one before: keys, elements to click, and addresses."""


def follow(sight: Sight, step: str) -> None:
    if "=" in step:
        sight.tell(f"void (location.hash = {step!r})")
    elif step.startswith("#"):
        sight.one(step).click()
    else:
        sight.press(step)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", SIZES)
def test_no_view_has_violations(size: str, scheme: str, address: Serving, look: Look) -> None:
    width, height = SIZES[size]
    # The tool is a script that the page's own policy keeps out.
    sight = look(address.at(at=30), width=width, height=height, bypass_csp=True, **SCHEMES[scheme])
    sight.expect(SLIP)
    sight.until_at(30)
    found: dict[str, list[str]] = {}
    for view, steps in VIEWS.items():
        for step in steps:
            follow(sight, step)
        # A completion is asked for after a pause.
        sight.page.wait_for_timeout(400)
        sight.rest()
        sight.settle()
        found[view] = sight.violations()
    assert {name: these for name, these in found.items() if these} == {}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages that commands write."""
    folder = tmp_path_factory.mktemp("reports")
    port = free_port("udp")
    probe = ["probe", "server", str(port), "-d", "maexchen", "--restart", server(port)]
    assert kiebitz(*probe, "--only", "*/JOIN/*", "--report", str(folder / "probe.html")).status in (0, 3)
    plan = str(ROOT / "docs" / "examples" / "interop" / "plan.toml")
    kiebitz("interop", plan, "-o", str(folder / "interop"), "--only", "group-b×group-a")
    (folder / "class.toml").write_text(
        f'page = "127.0.0.1:{free_port("tcp")}"\nfolder = "monday"\n'
        f'[[group]]\nname = "Gruppe 1"\nlisten = "127.0.0.1:{port}"\nserver = "127.0.0.1:9"\n'
    )
    assert kiebitz("class", str(folder / "class.toml"), "--sheet").status == 0
    return {
        **{game: exported(str(CAPTURES / path), folder / f"{game}.html") for game, path in GAMES.items()},
        "probe": folder / "probe.html",
        "interop": folder / "interop" / "index.html",
        "cell": folder / "interop" / "cells" / "group-b--group-a.html",
        "program": folder / "interop" / "programs" / "client-group-a.html",
        "sheet": folder / "monday" / "sheet.html",
    }


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("report", [*GAMES, "probe", "interop", "cell", "program", "sheet"])
def test_no_report_has_violations(report: str, scheme: str, reports: dict[str, Path], look: Look) -> None:
    sight = look(file_address(reports[report]), bypass_csp=True, offline=True, **SCHEMES[scheme])
    if report in GAMES:
        sight.press("End", "2")
        sight.settle()
    sight.tell("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert sight.violations() == []
