from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from altered_captures import replaced
from altered_sessions import recorded
from browser import Look, Sight, file_address
from command import ODD, kiebitz
from damaged_databases import SPOTS, spoilt
from hostile_text import PLAYERS, spelt
from page_queries import PANES, exported
from served_pages import Serving, serving
from strength import a_few, times

MARKUP = (
    "<img src=x onerror=ran(1)><svg onload=ran(2)><script>ran(3)</script></script></text></g>"
    "<a href=javascript:ran(4)><style>*{display:none}</style>{{ran(5)}}${ran(6)}'\">"
    "<iframe srcdoc='<script>parent.ran(7)</script>'>"
)

NAMES = {
    "markup": MARKUP,
    "end of script": "</script><script>ran(8)</script><!-- ]]> -->",
    "right to left": "\u202e\u2066evil\u2069\u200f שלום مرحبا",
    "long": "W" * 10_000,
    "piled up": "e" + "\u0301" * 3000,
    "controls": "a\x1b[2J\x00b\x7f\u2028\x85",
    "formula": "=1+1",
    "prototype": "__proto__",
}

ROWS = [(protocol, kind) for protocol in PLAYERS for kind in NAMES]
QUICK = {("maexchen", "markup")}

NO_ELEMENT_OF_THEIRS = """() => [...document.querySelectorAll(
    "img, iframe, object, embed, base, form[action], [onerror], [onload], [onclick], [style*=display]," +
    "script:not([src]):not([id=kiebitz-data]):not([type=module]), a:not([id=skip])," +
    "body style, foreignObject, image, [srcdoc]"
)].map((one) => one.outerHTML.slice(0, 200))"""

HIDDEN = r"""() => {
    const hidden = /[\u0000-\u0008\u000e-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/u;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) found.push(walker.currentNode.data);
    for (const name of ["title", "aria-label", "aria-valuetext"])
        for (const one of document.querySelectorAll(`[${name}]`)) found.push(one.getAttribute(name));
    found.push(document.title);
    return found.filter((text) => hidden.test(text)).map((text) => text.slice(0, 100));
}"""


def made(protocol: str, kind: str, folder: Path) -> str:
    """Return a session in which a player is called so, in a folder that is, too."""
    capture, player = PLAYERS[protocol]
    known = recorded(capture)
    said = replaced(f"{player}={spelt(NAMES[kind], protocol)}")([*known.said])
    inside = folder / ("<b onclick=ran(9)>\u202e" if kind == "markup" else "x")
    inside.mkdir()
    return known.with_said(said).write(inside / "<img src=x onerror=ran(0)>.db")


def harmless(sight: Sight) -> str:
    said = []
    sight.settle()
    players = sight.tell("document.getElementById('as').options.length")
    for step in ("End", "Home")[: times(2, 1)]:
        sight.press(step)
        sight.settle()
        for pane in PANES:
            sight.pane(pane)
            sight.rest()
            assert sight.tell(NO_ELEMENT_OF_THEIRS) == [], pane
            assert sight.tell(HIDDEN) == [], pane
            assert sight.overflow() == 0, pane
            said.append(sight.text("body"))
        assert sight.tell("document.querySelectorAll('style').length") <= 1
    sight.pane("messages")
    sight.one("#pane-messages .row").first.click()
    sight.rest()
    sight.press("n")
    sight.settle()
    if players > 1:
        sight.one("#as").select_option(index=players - 1)
        sight.rest()
        sight.settle()
        assert sight.overflow() == 0
    sight.press("/", "Escape", "p")
    sight.settle()
    assert sight.overflow() == 0
    sight.press("Escape", "y")
    sight.rest()
    sight.press("Escape")
    box = sight.one("#board").bounding_box()
    assert box is not None
    assert box["height"] > 100
    return "".join(said)


@pytest.mark.parametrize(("protocol", "kind"), a_few(ROWS, QUICK, lambda row: "-".join(row)))
def test_a_name_is_text_on_the_page_and_in_the_file(
    protocol: str, kind: str, tmp_path: Path, look: Look
) -> None:
    database = made(protocol, kind, tmp_path)
    with serving(database) as server:
        sight = look(server.at())
        said = harmless(sight)
        # As it is, it is there to be read.
        assert "onerror=ran(1)" in said or "onerror=ran(1)" not in kiebitz("events", database).out
        small = look(server.at(at=10**6), width=390, height=844)
        small.settle()
        assert small.overflow() == 0
        small.leave()
        sight.leave()
    # The quick run looks at a file of a sound session alone.
    path = exported(database, tmp_path / "game.html")
    text = path.read_text()
    assert text.count("<script") == 2
    assert text.count("</script>") == 2
    if times(2, 1) > 1:
        harmless(look(file_address(path), offline=True))


@pytest.mark.full
@pytest.mark.parametrize("kind", ["text", "names", "values"])
def test_a_spoilt_database_is_text_too(kind: str, tmp_path: Path, look: Look) -> None:
    # Without these it is not read at all.
    kept = {"protocol", "transport", "direction", "severity", "kind", "client", "server"}
    spots = [spot for spot in SPOTS if spot.kind == kind and spot.column not in kept]
    with serving(spoilt(tmp_path, Path(ODD).name, spots, MARKUP)) as server:
        sight = look(server.at())
        # Of such a database some questions have no answer but a sentence.
        sight.expect("status of (400|404|503)")
        for pane in PANES:
            sight.pane(pane)
            sight.rest()
            assert sight.tell(NO_ELEMENT_OF_THEIRS) == []
            assert sight.overflow() == 0
        sight.leave()


@pytest.mark.full
def test_chatter_of_the_tests_own_players_is_text(look: Look, tmp_path: Path) -> None:
    with serving(ODD) as server:
        sight = look(server.at())
        harmless(sight)
        sight.leave()
    harmless(look(file_address(exported(ODD, tmp_path / "odd.html")), offline=True))


# The policy.


@pytest.fixture(scope="module")
def tiny() -> Iterator[Serving]:
    with serving(ODD) as server:
        yield server


def put(tag: str, where: str = "head", then: str = "", **given: str) -> str:
    """Return a script that puts such an element into the page."""
    return (
        f"const put = Object.assign(document.createElement({tag!r}), {json.dumps(given)});"
        f" document.{where}.append(put); {then}"
    )


ELSEWHERE = "http://192.0.2.1/x"

FORBIDDEN = {
    "an inline script": put("script", textContent="ran(1)"),
    "a handler": "document.body.setAttribute('onclick', 'ran(1)'); document.body.click()",
    "an inline style": put("style", textContent="*{}"),
    "a foreign script": put("script", src=ELSEWHERE),
    "a foreign image": put("img", "body", src=ELSEWHERE),
    "a foreign style": put("link", rel="stylesheet", href=ELSEWHERE),
    "a foreign question": f"fetch('{ELSEWHERE}').catch(() => 0)",
    "a frame": put("iframe", "body", src=ELSEWHERE),
    "a form": put("form", "body", "put.submit()", action=ELSEWHERE),
    "another base": put("base", "head", "void document.baseURI", href=ELSEWHERE),
    "code made of text": "setTimeout('ran(1)', 0)",
}


@pytest.mark.full
@pytest.mark.parametrize("what", FORBIDDEN)
def test_the_policy_refuses(what: str, tiny: Serving, tmp_path: Path, look: Look) -> None:
    path = exported(ODD, tmp_path / "game.html")
    for address in (tiny.at(), file_address(path)):
        sight = look(address)
        sight.rest()
        # A request cancelled by the browser is reported all the same.
        sight.expect("Content Security Policy|refused by the policy|asked elsewhere: |failed: .*: csp$")
        sight.tell(f"() => {{ {FORBIDDEN[what]} }}")
        sight.until(partial(sight.tell, "window.refused.length > 0"), f"{what} is refused")
        assert sight.page.url.split("#")[0] == address.split("#")[0]
