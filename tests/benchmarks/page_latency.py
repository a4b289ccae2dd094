"""Benchmark of the time from a game server's datagram to its sentence on the page.

A Mäxchen server sends announcements through `kiebitz relay`; Chromium shows the table on a page of
`kiebitz serve`. The same is measured with a hundred browsers on the home page, which shows several live
tables, and while another table behind the same relay is flooded.
"""

from __future__ import annotations

import http.client
import itertools
import json
import re
import shutil
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from processes_and_rows import free_port
from relay_processes import watched_relay
from relay_udp import ANSWER, LOST_SECONDS, Registering, serve, udp_socket
from relays import HOST, START_SECONDS, process
from report import Report, new_table
from served_pages import Serving, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BROWSERS = 100
TABLES = 4
"""Number of live tables; one of them is measured."""

MEASURED = "measured"
MESSAGES = 100
EVERY_SECONDS = 0.12
WARM_UP_SECONDS = 6
AIM_MS = 100
FLOOD = 5_000
"""Registrations a second at another table, each with an answer."""

OBSERVE = """() => {
    window.seen = [];
    const latest = document.getElementById("latest");
    const note = () => {
        const text = latest.textContent;
        // The first callback runs before the frame with the text is painted, the second after it.
        requestAnimationFrame(() => requestAnimationFrame(() => window.seen.push([text, Date.now() / 1000])));
    };
    new MutationObserver(note).observe(latest, {childList: true, characterData: true, subtree: true});
}"""


class Game:
    """A game server with one player, who is connected through a relay."""

    def __init__(self, server: socket.socket, port: int, player: str) -> None:
        self._server = server
        with udp_socket() as client:
            client.sendto(f"REGISTER;{player}".encode(), (HOST, port))
            _, self._relay = server.recvfrom(65_535)
        self.send(ANSWER)
        self.send(b"ROUND STARTING;token")
        self.send(f"ROUND STARTED;1;{player}".encode())

    def send(self, data: bytes) -> None:
        self._server.sendto(data, self._relay)


@contextmanager
def games(folder: Path, *options: str) -> Iterator[list[Game]]:
    """Yield the games, the measured one first; each is recorded in a folder of its own.

    The relay of the measured game also has these `options`.
    """
    with ExitStack() as held:
        found = []
        for number in range(TABLES):
            server = held.enter_context(udp_socket())
            server.settimeout(START_SECONDS)
            server.bind((HOST, 0))
            place = folder / str(number)
            place.mkdir()
            port = free_port("udp")
            mode = f"reverse:udp://{HOST}:{server.getsockname()[1]}@{HOST}:{port}"
            more = options if number == 0 else ()
            held.enter_context(watched_relay(mode, place / "game.db", *more))
            found.append(Game(server, port, f"player{number}" if number else MEASURED))
        yield found


def home(connection: http.client.HTTPConnection, tag: str | None = None) -> tuple[Any, str | None]:
    """Return the home page's summary, None if it is unchanged since `tag`, and its new tag."""
    connection.request("GET", "/api/home", headers={"if-none-match": tag} if tag else {})
    answer = connection.getresponse()
    text = answer.read()
    return json.loads(text) if answer.status == 200 else None, answer.headers["etag"]


def show_home(port: int, number: int) -> None:
    """Request what one browser's home page does: a summary every two seconds, and changed boards."""
    time.sleep(number * 2 / BROWSERS)
    connection = http.client.HTTPConnection(HOST, port)
    tag = None
    boards: dict[tuple[int, int], tuple[int, float]] = {}
    while True:
        began_s = time.monotonic()
        summary, tag = home(connection, tag)
        for session in summary["sessions"] if summary is not None else ():
            for table in session["tables"]:
                place, at = (session["session"]["number"], table["table"]["table"]), table["at"]
                shown, loaded_s = boards.get(place, (-1, 0.0))
                if shown != at and began_s - loaded_s >= summary["board_every_s"]:
                    boards[place] = at, began_s
                    address = f"/api/tables/{place[1]}/picture.svg?session={place[0]}&at={at}"
                    connection.request("GET", address)
                    connection.getresponse().read()
        time.sleep(max(0.0, began_s + 2 - time.monotonic()))


def show_homes(port: int) -> None:
    """Be all browsers on the home page."""
    threads = [Thread(target=show_home, args=(port, number)) for number in range(BROWSERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def register_evenly(port: int, per_second: int) -> None:
    """Run a client that registers this often, and waits for each answer."""
    player = Registering(0, port)
    player.socket.settimeout(LOST_SECONDS)
    begin = time.monotonic()
    for number in itertools.count():
        time.sleep(max(0.0, begin + number / per_second - time.monotonic()))
        player.send(0)
        with suppress(TimeoutError):
            player.receive()


def measured_session(server: Serving) -> int:
    """Return the number of the measured game's session once its table is known."""
    end_s = time.monotonic() + START_SECONDS
    while time.monotonic() < end_s:
        for one in server.well("api/home")["sessions"]:
            if MEASURED in one["players"] and one["tables"]:
                return int(one["session"]["number"])
        time.sleep(0.1)
    raise RuntimeError("the measured game does not appear on the home page")


def delays(browser: Browser, server: Serving, playing: Sequence[Game]) -> list[float]:
    """Send announcements; return the time in ms until each, or a later one, was seen."""
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(server.at(session=measured_session(server), table=1))
    page.wait_for_timeout(WARM_UP_SECONDS * 1000)
    page.evaluate(OBSERVE)
    sent_s = []
    for number in range(MESSAGES):
        sent_s.append(time.time())
        playing[0].send(b"ANNOUNCED;p%d;3,1" % number)
        if number % 5 == 0:
            for other in playing[1:]:
                other.send(b"ANNOUNCED;p%d;3,1" % number)
        page.wait_for_timeout(EVERY_SECONDS * 1000)
    page.wait_for_timeout(1000)
    seen = []
    for text, at_s in page.evaluate("window.seen"):
        found = re.search(r"\bp(\d+) announces", text)
        if found is not None:
            seen.append((int(found.group(1)), float(at_s)))
    page.close()
    shown = [min((at_s for other, at_s in seen if other >= one), default=None) for one in range(MESSAGES)]
    if None in shown:
        raise RuntimeError(f"of {MESSAGES} announcements, the last ones never appeared on the page")
    return [(at_s - sent) * 1000 for at_s, sent in zip(shown, sent_s, strict=True) if at_s is not None]


def measured(browsers: int, per_second: int) -> list[float]:
    """Return the delays in ms.

    Meanwhile there are this many browsers on the home page (none or all), and another table behind the same
    relay has this many registrations per second.
    """
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, ExitStack() as held:
        options: tuple[str, ...] = ()
        if per_second:
            flooded_server, flooded_relay = free_port("udp"), free_port("udp")
            held.enter_context(process(serve, flooded_server))
            options = "-m", f"reverse:udp://{HOST}:{flooded_server}@{HOST}:{flooded_relay}"
        playing = held.enter_context(games(Path(name), *options))
        if per_second:
            # Only now, as the page shows the first table of the session.
            held.enter_context(process(register_evenly, flooded_relay, per_second))
        server = held.enter_context(serving(*map(str, sorted(Path(name).iterdir()))))
        if browsers:
            held.enter_context(process(show_homes, server.port))
        playwright = held.enter_context(sync_playwright())
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        held.callback(browser.close)
        return delays(browser, server, playing)


def compared(report: Report, rounds: int) -> None:
    """Measure without other browsers and with them."""
    if shutil.which("chromium") is None:
        report.show("There is no Chromium here, so the time from a datagram to the page was not measured.")
        return
    title = f"From a datagram to the page, {TABLES} live tables"
    result = new_table(title, "p50 ms|p95 ms|max ms|p95 ms of each round", "beside it")
    conditions = {
        "no other browser": (0, 0),
        f"{BROWSERS} browsers on the home page": (BROWSERS, 0),
        f"{2 * FLOOD:,} datagrams a second of another table": (0, FLOOD),
    }
    for beside, (browsers, per_second) in conditions.items():
        each = [sorted(measured(browsers, per_second)) for _ in range(rounds)]
        every = sorted(delay for one in each for delay in one)
        p95 = _p95(every)
        of_rounds = " ".join(f"{_p95(one):.0f}" for one in each)
        result.add_row(beside, f"{statistics.median(every):.0f}", f"{p95:.0f}", f"{every[-1]:.0f}", of_rounds)
        report.limit(f"{title}, {beside}: p95 ms", p95, AIM_MS, ".0f")
    report.show(result)


def _p95(ascending: Sequence[float]) -> float:
    return ascending[int(len(ascending) * 0.95)]
