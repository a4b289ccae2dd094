from __future__ import annotations

import gzip
import http.server
import io
import json
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from browser import Look, Sight
from command import CAPTURES, kiebitz
from firefox import firefox
from strength import GAMES

from kiebitz.cli.web.local_sessions import LocalSessions
from kiebitz.cli.web.static_site import build_archive

ALL = sorted(path.name for path in CAPTURES.glob("*.pcap*"))

DICE = """
protocol = "dice"
port = 4321
[messages]
ROLL = "c: faces=integer"
"""

_BROKEN = DICE.replace("faces=integer", "faces=interger")


_IN_THE_ARCHIVE = """
import sys
# Kiebitz from the archive, and from elsewhere what Python or Pyodide has in the browser.
sys.path = [sys.argv[1], *sys.path, sys.argv[2]]
from kiebitz.cli.web.local_sessions import LocalSessions
sessions = LocalSessions()
for path in sys.argv[3:]:
    number = sessions.add(path)
    assert sessions.export(number, "html", True)
    lists = ("tables", "messages", "messages/1", "diagnostics", "marks")
    for asked in (*lists, "tables/1/picture", "tables/1/timeline", "tables/1/statistics"):
        status, body = sessions.answer(f"/api/{asked}", f"session={number}")
        assert status == 200, (asked, body)
"""


@pytest.mark.full
def test_the_archive_has_all_modules_that_the_page_needs(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(build_archive())) as archive:
        archive.extractall(tmp_path)
    elsewhere = str(Path(msgspec.__file__).parents[1])
    games = [shutil.copy(CAPTURES / name, tmp_path) for name in GAMES.values()]
    script = [sys.executable, "-I", "-S", "-c", _IN_THE_ARCHIVE, str(tmp_path), elsewhere, *games]
    run = subprocess.run(script, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle(self) -> None:
        # A browser that leaves the page breaks off its connections.
        with suppress(ConnectionError):
            super().handle()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "public"
    made = kiebitz("export", "--site", str(folder))
    if "cannot be downloaded" in made.err:
        pytest.skip(f"the parts for the browser come from npm's and Python's registries: {made.err}")
    assert made.status == 0, made.err
    return folder


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    # In a subfolder of a host that sets no headers.
    handler = partial(_Handler, directory=str(site.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{site.name}/"
        server.shutdown()


def wait_for(sight: Sight, selector: str) -> None:
    sight.page.wait_for_selector(selector, timeout=60_000)


def choose(sight: Sight, *files: Path | dict[str, Any]) -> None:
    sight.page.set_input_files("#opener-file", [*files])  # type: ignore[arg-type]  # paths or payloads


def open_example(look: Look, address: str) -> Sight:
    sight = look(address)
    sight.page.get_by_role("button", name="Okey").click()
    wait_for(sight, "html:not(.is-opening)")
    sight.until(lambda: sight.count > 10, "the example is open")
    return sight


def test_an_example_is_opened_without_a_server_and_no_foreign_host_is_asked(address: str, look: Look) -> None:
    sight = open_example(look, address)
    assert "example=okey.pcapng.gz" in sight.tell("location.search")
    sight.expect("blocked|refused by the policy|Content Security Policy|violates")
    script = """async () => {
        const asks = "fetch('http://127.0.0.1:9/').then(() => 'sent', ({ message }) => message)";
        const script = `${asks}.then((words) => postMessage(words));`;
        const worker = new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
        return await new Promise((resolve) => { worker.onmessage = ({ data }) => resolve(data); });
    }"""
    assert "fetch" in sight.tell(script)
    assert not [url for url in sight.asked if ":9/" in url]


_MARKUP = "<img src=x onerror=ran(1)>.pcap"

HOSTILE = [
    ("bomb.pcap.gz", gzip.compress(bytes(1 << 20)) * 500, "bomb.pcap.gz is not a capture"),
    ("odd.db", b"SQLite format 3\0" + b"\xff" * 5000, "odd.db"),
    (_MARKUP, b"no capture", f"{_MARKUP} is not a capture"),
    ("bad.toml", _BROKEN.encode(), "no type interger"),
    ("look.toml", _BROKEN.replace("interger", "/(?=a)/").encode(), "look-around"),
]


def _is_told(sight: Sight, words: str) -> bool:
    return words in sight.text("#opener-problem")


def _is_titled(sight: Sight, title: str) -> bool:
    return sight.text("#title") == title


@pytest.mark.full
def test_a_class_of_files_without_a_server(address: str, look: Look, tmp_path: Path) -> None:
    sight = open_example(look, address)

    # From here on nothing is asked, even of the host, and the network may be gone.
    sight.rest()
    asked = len(sight.asked)
    sight.context.set_offline(True)
    choose(sight, CAPTURES / GAMES["schafkopf"])
    sight.until(lambda: sight.text("#title") == "Schafkopf", "a chosen file is open")
    sight.pane("diagnostics")
    sight.until(lambda: "2 errors" in sight.text("body"), "the errors are counted")
    sight.one("#opener-button").click()
    assert not sight.violations()

    # Hostile files are refused, and others stay usable.
    for name, data, words in HOSTILE:
        choose(sight, {"name": name, "mimeType": "", "buffer": data})
        sight.until(partial(_is_told, sight, words), f"{name} is refused")
    sight.one("#opener-button").click()
    for index, title in enumerate(("Okey", "Schafkopf")):
        sight.one("#session").select_option(index=index)
        sight.until(partial(_is_titled, sight, title), "the other session is still there")
    sight.one("#opener-button").click()

    # A protocol file with a mistake, at its line, and without.
    sight.one("#opener summary").click()
    sight.one("#opener-protocol").fill(_BROKEN)
    sight.one("#opener-use").click()
    sight.until(lambda: "interger" in sight.text("#opener-problem"), "the mistake is shown")
    assert sight.text("#opener-problem").splitlines()[0].startswith("protocol.toml:5:")
    assert "^" in sight.text("#opener-problem")
    sight.one("#opener-protocol").fill(DICE)
    sight.one("#opener-use").click()
    sight.until(lambda: sight.text("#opener-protocols") == "in use: dice", "the protocol is used")

    # What is saved without names has none.
    names = {"Falsch"}
    sight.one("#opener-anonymous").check()
    sight.one("#opener-form").select_option("jsonl")
    with sight.page.expect_download() as saved:
        sight.one("#opener-save button").click()
    saved.value.save_as(tmp_path / "saved.jsonl")
    records = [json.loads(line) for line in (tmp_path / "saved.jsonl").read_text().splitlines()]
    assert {record["record"] for record in records} >= {"session", "stream", "message", "event"}
    assert not [name for name in names if name in (tmp_path / "saved.jsonl").read_text()]
    assert sight.asked[asked:] == [url for url in sight.asked[asked:] if url.startswith(("blob:", "data:"))]

    # The files and the place are still there after a reload, without a network.
    sight.page.reload()
    wait_for(sight, "html:not(.is-opening)")
    sight.until(lambda: sight.text("#title") == "Schafkopf", "the same session is open again")


@pytest.mark.full
def test_firefox_reads_captures_too(address: str, tmp_path: Path) -> None:
    with firefox(tmp_path) as tab:
        tab.go(f"{address}?example=maexchen.pcapng.gz#at=7")
        tab.until("/#7 of \\d+/.test(document.getElementById('place').textContent)")
        tab.choose("#opener-file", CAPTURES / GAMES["schafkopf"])
        tab.until("document.getElementById('title').textContent === 'Schafkopf'")
        tab.until("document.querySelectorAll('#board use').length > 4")
        tab.tell("document.getElementById('tab-diagnostics').click()")
        tab.until("document.getElementById('pane-diagnostics').innerText.includes('error')")
        tab.choose("#opener-file", Path(__file__))
        tab.until("document.getElementById('opener-problem').textContent.includes('is not a capture')")
        # A pattern is stopped as in Chromium, and the worker goes on.
        tab.tell("location.hash += '&filter=' + encodeURIComponent('client matches \"^((([^!]+)+)+)+!$\"')")
        tab.tell("document.getElementById('opener-button').click()")
        tab.until("document.body.innerText.includes('took longer than 1 s')")
        tab.go(address)
        tab.until("document.getElementById('title').textContent === 'Schafkopf'")


@pytest.mark.full
@pytest.mark.parametrize("name", ALL)
def test_the_answers_are_those_of_the_server(
    name: str, site: Path, address: str, look: Look, tmp_path: Path
) -> None:
    (site / "examples" / name).write_bytes((CAPTURES / name).read_bytes())
    (tmp_path / name).write_bytes((CAPTURES / name).read_bytes())
    here = LocalSessions()
    here.add(str(tmp_path / name))
    sight = opened_in_worker(look, address, name)
    for path, query in addresses(here):
        status, body = here.answer(f"/api/{path}", query)
        found = sight.tell("(ask) => window.ask({ ask })", f"api/{path}?{query}")
        assert found == [status, body.decode()], (path, query)


@pytest.mark.full
def test_a_pattern_that_takes_too_long_is_stopped(address: str, look: Look) -> None:
    sight = opened_in_worker(look, address, "okey.pcapng.gz")
    slow = 'client matches "^((([^!]+)+)+)+!$"'
    ask = "([path, filter]) => window.ask({ ask: `${path}?filter=${encodeURIComponent(filter)}` })"
    status, text = sight.tell(ask, ["api/messages", slow])
    assert (status, "took longer than 1 s" in text) == (400, True), text
    status, _ = sight.tell(ask, ["api/messages", "game"])
    assert status == 200


def opened_in_worker(look: Look, address: str, name: str) -> Sight:
    """Open an example in a worker of its own; `ask` on the page returns a response's status and text."""
    sight = look(address)
    sight.tell(
        """async (name) => {
            const worker = new Worker("worker.js", { type: "module" });
            let asked = 0;
            // The texts: as numbers of JavaScript, times would lose their last digits.
            window.ask = (request) => new Promise((resolve) => {
                const id = ++asked;
                worker.addEventListener("message", ({ data }) => {
                    if (data.id !== id || data.begun) return;
                    resolve([data.status ?? data.error ?? 0, new TextDecoder().decode(data.body)]);
                });
                worker.postMessage({ id, ...request });
            });
            const data = await (await fetch(`examples/${name}`)).blob();
            await window.ask({ open: new File([data], name) });
        }""",
        name,
    )
    return sight


def addresses(sessions: LocalSessions) -> Iterator[tuple[str, str]]:
    """Yield paths and queries of requests for all of a session."""
    tables = json.loads(sessions.answer("/api/tables", "")[1])
    yield from ((path, "limit=100") for path in ("messages", "diagnostics"))
    yield from ((path, "") for path in ("tables", "streams", "marks"))
    yield from ((f"messages/{number}", "") for number in (1, 7))
    for table in tables["tables"][:4]:
        number, last = table["table"], table["last"]
        yield from ((f"tables/{number}/{what}", "") for what in ("timeline", "statistics"))
        yield f"tables/{number}/sequence", "limit=100"
        yield from ((f"tables/{number}/events", query) for query in ("limit=200", "filter=game"))
        for at in {1, max(1, last // 2), last} if last else ():
            yield from ((f"tables/{number}/{what}", f"at={at}") for what in ("state", "picture", "fragments"))
