from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
import segno
from command import TINY
from hypothesis import given
from hypothesis import strategies as st
from processes_and_rows import free_port
from screens import ASCII, Filled
from strength import a_few

from kiebitz.cli.terminal.scan_code import code_of, half_blocks

HALVES = {" ": (0, 0), "▄": (0, 1), "▀": (1, 0), "█": (1, 1)}

QUIET = 4


def modules(lines: list[str], are_dark: bool) -> list[list[bool]]:
    """Return the modules that lines of half blocks show."""
    rows = []
    for line in lines:
        for half in (0, 1):
            rows.append([bool(HALVES[letter][half]) == are_dark for letter in line])
    return rows


def text_of(shown: list[list[bool]], text: str) -> bool:
    code = [[bool(module) for module in row] for row in segno.make(text, error="l", micro=False).matrix]
    size = len(code) + 2 * QUIET
    light = [False] * size
    framed = [[False] * QUIET + row + [False] * QUIET for row in code]
    wanted = [light] * QUIET + framed + [light] * QUIET
    # Two rows are in a line, so there is one more below.
    return shown == [*wanted, light][: len(shown)] and len(shown) - size in (0, 1)


@given(st.text(min_size=1, max_size=300), st.booleans())
def test_half_blocks_are_read_back(text: str, are_dark: bool) -> None:
    assert text_of(modules(half_blocks(code_of(text), are_dark), are_dark), text)


def lines_of_code(screen: str, size: int, are_dark: bool) -> list[str]:
    """Return the lines of a screen that are a code's; at their ends blanks may be missing."""
    lines = screen.split("\n")
    found = [number for number, line in enumerate(lines) if set(line.strip()) & {"▀", "▄", "█"}]
    # Two lines of the quiet zone are blank where it is not drawn.
    above = QUIET // 2 if are_dark else 0
    begin = found[0] - above
    return [line.ljust(size)[:size] for line in lines[begin : begin + (size + 1) // 2]]


@pytest.mark.full
@pytest.mark.parametrize(
    ("environment", "are_dark"), a_few([({}, True), ({"NO_COLOR": "1"}, False)], lambda row: row[1])
)
def test_the_code_of_the_page_is_its_address(environment: dict[str, str], are_dark: bool) -> None:
    arguments = ("serve", TINY, "--host", "0.0.0.0", "--port", str(free_port("tcp")))
    with Filled(*arguments, columns=80, rows=40, **environment) as serve:
        screen = serve.until("Ctrl-C ends it")
        serve.signal(signal.SIGINT)
        serve.ended()
    address = next(line for line in screen.split("\n") if line.startswith("http://"))
    lines = lines_of_code(screen, len(code_of(address)), are_dark)
    assert text_of(modules(lines, are_dark), address)
    # Black on white is right whatever the terminal's own colours are.
    assert (b"\x1b[38;5;16;48;5;231m" in serve.written) == are_dark


@pytest.mark.full
@pytest.mark.parametrize(
    ("size", "environment", "why"),
    a_few(
        [
            ((80, 12), {}, r"it requires \d\d columns and \d\d rows"),
            ((30, 60), {}, r"it requires \d\d columns and \d\d rows"),
            ((80, 40), ASCII, "it requires a terminal with UTF-8"),
        ],
        lambda row: row[1] == ASCII,
    ),
)
def test_why_there_is_no_code_is_reported(
    size: tuple[int, int], environment: dict[str, str], why: str
) -> None:
    arguments = ("serve", TINY, "--host", "0.0.0.0", "--port", str(free_port("tcp")))
    with Filled(*arguments, columns=size[0], rows=size[1], **environment) as serve:
        serve.until("Ctrl-C ends it")
        serve.signal(signal.SIGINT)
        serve.ended()
    said = " ".join(" ".join(serve.lines).split())
    assert re.search(f"QR code not shown: {why}", said)
    assert not {"▀", "▄", "█"} & {*said}


@pytest.mark.full
@pytest.mark.parametrize("quiet", [False, True])
def test_the_configuration_of_a_wireguard_peer(tmp_path: Path, quiet: bool) -> None:
    mode = f"wireguard@0.0.0.0:{free_port('udp')}"
    keys = f"confdir={tmp_path / 'keys'}"
    arguments = ["relay", "-m", mode, "-w", str(tmp_path / "game.db"), "--set", keys]
    with Filled(*arguments, *(["-q"] if quiet else []), columns=100, rows=60) as relay:
        relay.until(lambda seen: "Endpoint" in seen and (quiet or seen.count("█▀▀▀▀▀█") == 3))
        screen = relay.for_a_while()
        relay.signal(signal.SIGINT)
        assert relay.ended() == 0
    if quiet:
        assert "█" not in screen
        return
    configuration = screen.partition("configuration of its peer:\n\n")[2].partition("\n\n\n")[0]
    assert configuration.startswith("[Interface]\nPrivateKey = ")
    lines = lines_of_code(screen, len(code_of(configuration)), are_dark=True)
    assert text_of(modules(lines, are_dark=True), configuration)
