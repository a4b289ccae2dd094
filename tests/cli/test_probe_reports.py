from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from browser import Look, file_address
from command import CAPTURES, ROOT, kiebitz
from conversation_files import Block, blocks, check_below
from hostile_text import is_harmless
from probe_command import results, server
from processes_and_rows import free_port
from screens import Filled
from snapshots import DATA, as_bytes
from strength import a_few
from terminals import OnTerminal

import kiebitz as library
from kiebitz.cli.probe.ci_output import write_junit_results
from kiebitz.cli.probe.html_report import COLUMNS, render_message, write_page
from kiebitz.cli.probe.progress import ProgressView
from kiebitz.cli.probe.terminal_report import print_results
from kiebitz.cli.terminal.screen import Console
from kiebitz.dissectors.conformance.expectations import ANY_REACTION
from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.probing.case_generator import generate_cases
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.services.evidence.cells import cell_len
from kiebitz.services.probing.results import (
    ReportedMessage,
    Result,
    SentPiece,
    StatedExpectation,
    group_of,
    unread_bytes,
)
from kiebitz.storage.session.message_detail import MessageDetails

EVIL = "<script>alert(1)</script>\x1b[2J\u202e</pre><img src=x onerror=alert(2)>"
OPEN = StatedExpectation("open", ANY_REACTION, None, None)
MUST = StatedExpectation("must", ("refuses", "closes"), "4.2 Errors", "An error is answered.")


def result(case: str, verdict: str, why: str = "it ignores it", **other: Any) -> Result:
    """Return a result, in which what does not matter is made up."""
    message = case.split("/")[1] if case.count("/") > 1 else None
    made: dict[str, Any] = {
        "role": "server",
        "kind": "kind",
        "group": message or "any message",
        "message": message,
        "field": None,
        "sentence": f"{message}: it is odd",
        "demand": MUST,
        "reactions": ("ignores",),
        "sent": (),
        "unread": b"",
        "messages": (),
        "left_out": 0,
        "session": None,
        "seconds": 0.1,
        "output": None,
        "command": f"kiebitz probe server 9000 --only {case}",
    }
    return Result(case=case, verdict=verdict, why=why, **made | other)


def told(capture: str, numbers: Sequence[int]) -> tuple[ReportedMessage, ...]:
    """Return messages of a recorded session."""
    found = []
    with library.open(str(CAPTURES / capture)) as session:
        in_full = MessageDetails(session.timeline)
        for number in numbers:
            shown = in_full.message(number)
            assert shown is not None
            message = shown.message
            about = (message.id, message.time, message.direction, message.name, message.fields)
            found.append(ReportedMessage(*about, shown.data.hex(), render_message(shown)))
    return tuple(found)


@pytest.mark.parametrize(
    ("sent", "read", "left"),
    [
        ([(1, 0, b"whole;"), (2, 7, b"other;")], [(1, 0, 6), (2, 7, 6)], b""),
        ([(1, 6, b"who")], [(1, 0, 6), (2, 6, 6)], b"who"),
        # In pieces, and several in one piece.
        ([(1, 0, b"who"), (1, 3, b"le;ha")], [(1, 0, 6)], b"ha"),
        ([(1, 0, b"one;two;x")], [(1, 4, 4), (1, 0, 4)], b"x"),
        ([(1, 0, b"x;one;y;")], [(1, 2, 4)], b"x;y;"),
        # A message that began before.
        ([(1, 3, b"le;ha")], [(1, 0, 6)], b"ha"),
        ([], [(1, 0, 6)], b""),
    ],
)
def test_bytes_that_are_no_message_are_found(
    sent: list[tuple[int, int, bytes]], read: list[tuple[int, int, int]], left: bytes
) -> None:
    assert unread_bytes(sent, read) == left


@pytest.mark.full
def test_half_a_message_is_in_the_report(tmp_path: Path) -> None:
    report = tmp_path / "probe.html"
    found = results("schafkopf-server", "NAME/cut/silence", "--report", str(report))["NAME/cut/silence"]
    half = bytes.fromhex(found["sent"][0]["hex"])
    head = b"!NAME\n"
    assert half.startswith(head)
    assert b"!END" not in half
    said = unescape(re.sub("<[^>]*>", "", report.read_text()))
    assert re.search(rf"^ 6  {half[len(head) :].hex(' ')} +\w+$", said, re.MULTILINE)


# While cases run.


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 50), (76, 12), (50, 16), (40, 12)])
def test_a_picture_fits_its_terminal(columns: int, rows: int) -> None:
    cases = generate_cases(OKEY, "client")
    watching = ProgressView(cases)
    for number, case in enumerate(cases[:400]):
        verdict = ("OK", "FAILED", "NOT TRIED", "INFORMATIONAL", "NON-STRICT")[number % 5]
        watching.add(result(case.name, verdict, f"{EVIL} {number}", group=group_of(case)))
    lines = drawn(watching, columns, rows)
    assert len(lines) < rows
    assert all(cell_len(line) <= columns for line in lines)
    assert any(cases[400].name[: columns - 5] in line for line in lines)
    assert sum("FAILED okey/" in line for line in lines) == 4
    assert cases[396].name[: columns - 10] in lines[-1]
    assert is_harmless("\n".join(lines))
    if columns < 50:
        assert any(line.startswith("80 FAILED, 80 NON-STRICT") for line in lines[1:3])
        return
    (total,) = (line.split() for line in lines if line.startswith("all"))
    assert total[1:] == ["80", "80", "80", "80", "80", str(len(cases) - 400)]
    assert any(" more" in line for line in lines) == (rows < 30)


def drawn(watching: ProgressView, columns: int, rows: int) -> list[str]:
    """Return the lines of a picture."""
    file = io.StringIO()
    Console(file=file, width=columns, height=rows).print(watching)
    return file.getvalue().splitlines()


def test_a_picture_counts_what_is_left_by_message() -> None:
    cases = [case for case in generate_cases(MAEXCHEN, "server") if case.message in ("JOIN", "ROLL")]
    watching = ProgressView(cases)
    lines = drawn(watching, 80, 24)
    assert f"0 of {len(cases)} cases" in lines[0]
    watching.add(result(cases[0].name, "OK"))
    lines = drawn(watching, 80, 24)
    count = sum(case.message == "JOIN" for case in cases)
    assert [line.split() for line in lines if line.startswith("JOIN")] == [["JOIN", "1", str(count - 1)]]
    assert not any("FAILED " in line for line in lines[2:])
    for case in cases[1:]:
        watching.add(result(case.name, "OK"))
    assert not any(line.startswith("now") for line in drawn(watching, 80, 24))


@pytest.mark.full
def test_on_a_terminal_progress_and_result_are_shown() -> None:
    port = free_port("udp")
    words = ["--restart", server(port, "dies-on-an-unknown-word"), "--timeout", "0.4"]
    only = ["--only", "maexchen/unknown-message", "--only", "maexchen/JOIN"]
    with Filled("probe", "server", str(port), "-d", "maexchen", *words, *only) as command:
        command.until("FAILED maexchen/unknown-message: it has ended")
        assert re.search(r"^now maexchen/JOIN/\w+", command.screen, re.MULTILINE)
        assert command.ended() == 3
        assert command.is_as_it_was()
        lines = command.screen.splitlines()
    assert not any(line.startswith("now") for line in lines)
    assert any(line.startswith("FAILED maexchen/JOIN/") for line in lines)


# In the end.


def results_of(block: Block) -> Iterator[Result]:
    """Yield the results that a block of tests/data/probe_results.txt describes."""
    for step in re.findall(r"^.+(?:\n\|.*)*", "\n".join(block.steps), re.MULTILINE):
        first, *lines = step.split("\n")
        found = re.fullmatch(r"(\S+)(?: x(\d+))? = ([A-Z -]+)(?:: (.*))?", first)
        assert found, first
        more: dict[str, Any] = {}
        for name, _, value in (line.removeprefix("| ").partition(" ") for line in lines):
            match name:
                case "messages":
                    capture, _, numbers = value.partition(" ")
                    start, end = map(int, numbers.split("-"))
                    more[name] = told(capture, range(start, end + 1))
                case "unread":
                    more[name] = as_bytes(value)
                case "unreadable":
                    got = ReportedMessage(1, 0.0, "s2c", UNREADABLE, {}, as_bytes(value).hex(), "")
                    more["messages"] = (got,)
                case "other":
                    more[name] = result(found[1], "OK", messages=told("maexchen-head-odd.pcap", [int(value)]))
                case _:
                    more[name] = value
        for number in range(int(found[2] or 1)):
            yield result(found[1].format(number), found[3], found[4] or "it ignores it", **more)


@pytest.mark.parametrize("block", blocks(DATA / "probe_results.txt").values(), ids=lambda block: block.title)
def test_results_are_reported_so(block: Block, capsys: pytest.CaptureFixture[str]) -> None:
    results, file = [*results_of(block)], io.BytesIO()
    if block.title.startswith("JUnit"):
        write_junit_results("Noughts: the server", results, None, file)
    else:
        print_results(results)
    lines = (file.getvalue().decode() or capsys.readouterr().out).splitlines()
    check_below(block, lines)


# The list.


@pytest.mark.full
@pytest.mark.parametrize("columns", a_few([60, 80, 120], [80]))
def test_on_a_terminal_cases_are_listed_by_message(columns: int) -> None:
    with OnTerminal("probe", "server", "-d", "catan", "--list", columns=columns) as command:
        assert command.ended() == 0
    lines = command.lines
    assert max(map(cell_len, lines)) <= columns
    at = next(place for place, line in enumerate(lines) if line.startswith("catan/Hallo/"))
    counts = next(line for line in lines[at:] if line.endswith("open)"))
    words = [line.split() for line in lines[at:]]
    assert ["whole", "must", "as", "it", "is"] in [row[:5] for row in words]
    every = listed("catan")
    assert re.fullmatch(r"\d+ must, \d+ should, \d+ open", lines[-1])
    assert sum(map(int, re.findall(r"\d+", lines[-1]))) == len(every)
    # Each case in the list is found by both parts of its name. The server's own output is separate.
    of_hallo = [case for case in every if case.startswith("catan/Hallo/") and not case.endswith("/said")]
    names = {case.removeprefix("catan/Hallo/") for case in of_hallo}
    assert sum(map(int, re.findall(r"\d+", counts))) == len(names)
    end = lines.index("", at)
    assert names <= {row[0] for row in words[: end - at]}


def listed(protocol: str) -> list[str]:
    """Return the names of all cases."""
    done = kiebitz("probe", "server", "-d", protocol, "--list", "--json")
    return [each["case"] for each in done.json]


def test_in_a_pipe_each_case_is_one_line() -> None:
    done = kiebitz("probe", "server", "-d", "cgml", "--list")
    rows = done.out.splitlines()[1:]
    assert [row.split()[0] for row in rows] == listed("cgml")
    assert done.err == ""


# The report.


def page(
    path: Path, results: Sequence[Result], title: str = "Noughts: the server", left: str | None = None
) -> str:
    """Return a report, as its text."""
    with path.open("wb") as file:
        write_page(title, results, left, file)
    return path.read_text()


def test_a_report_has_what_failed_first_and_the_bytes_of_each_case(tmp_path: Path) -> None:
    messages = told("maexchen-head-odd.pcap", [624, 625])
    results = [
        *(result(f"p/GIVE/{number}", "OK") for number in range(30)),
        *(result(f"p/GIVE/{number}x", "NOT TRIED", "nobody is there") for number in range(3)),
        result("p/GIVE/odd", "FAILED", messages=messages, output="Traceback: oh\n", session="probe.db:7"),
    ]
    text = page(tmp_path / "page.html", results, left="12 cases: it was interrupted")
    assert text.index('id="p/GIVE/odd"') < text.index('id="p/GIVE/0"')
    assert text.count("<details") - text.count('class="group"') == 31
    failed = text[text.index('id="p/GIVE/odd" open') : text.index("</details>")]
    said = unescape(re.sub("<[^>]*>", "", failed))
    assert "#624 ANNOUNCE: announces a roll" in said
    assert " 9  37 2c 37                 7,7\n    ^^                       ^\n" in said
    # The mark is in the colour of what is wrong.
    assert re.search(r'<span class="red"> *\^\^ +\^', failed)
    for word in (
        "must: refuses or closes",
        "4.2 Errors",
        "An error is answered.",
        "Traceback: oh",
        "probe.db:7",
    ):
        assert word in said
    assert "kiebitz probe server 9000 --only p/GIVE/odd" in said
    assert "12 cases: it was interrupted" in text
    assert all(len(line) <= COLUMNS for line in said[said.index("#624") : said.index("12  3b")].splitlines())


def test_all_reported_texts_are_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more: dict[str, Any] = dict.fromkeys(("sentence", "session", "command", "output"), EVIL)
    more |= {"demand": StatedExpectation("must", ("answers",), EVIL, EVIL), "unread": EVIL.encode()}
    more["other"] = result(f"p/{EVIL}/x", "OK", EVIL, output=EVIL)
    messages = (ReportedMessage(1, 0.0, "s2c", EVIL, {EVIL: EVIL}, EVIL.encode().hex(), ""),)
    results = [
        result(f"p/{case}/{verdict}", verdict, f"{EVIL} {verdict}", messages=said, **more)
        for case, said in ((EVIL.replace("/", ""), ()), ("GIVE", messages))
        for verdict in ("FAILED", "UNSTABLE", "NON-STRICT", "OK", "NOT TRIED")
    ]
    print_results(results)
    told = capsys.readouterr().out
    assert "alert(2)" in told
    assert is_harmless(told)
    text = page(tmp_path / "page.html", results, EVIL, EVIL)
    assert "<script" not in text
    assert "<img" not in text
    assert is_harmless(text)


def test_a_report_is_no_larger_than_a_telephone_can_open(tmp_path: Path) -> None:
    many = tuple(ReportedMessage(number, 0.0, "c2s", "GIVE", {}, "", "x" * 50_000) for number in range(24))
    results = [result(f"p/GIVE/{number}", "OK", messages=many) for number in range(20)]
    results.append(result("p/GIVE/odd", "FAILED", messages=many))
    text = page(tmp_path / "page.html", results)
    assert len(text) < 5_000_000
    # What failed has its bytes.
    failed = text[text.index('id="p/GIVE/odd"') :].partition("</details>")[0]
    assert failed.count("x" * 50_000) == 24


@pytest.mark.parametrize(
    ("width", "scheme"),
    a_few([(1280, "light"), (390, "light"), (390, "dark"), (320, "light")], [(390, "dark")]),
)
def test_a_report_is_read_in_a_browser(width: int, scheme: Any, look: Look, tmp_path: Path) -> None:
    messages = told("catan-yaks-lobby.pcap.gz", range(1, 8))
    results = [result("p/GIVE/odd", "FAILED", messages=messages, output="oh " * 200)]
    results.append(result("p/GIVE/weak", "NON-STRICT", messages=messages))
    results += [
        result(f"p/{'LONG_NAME' * 4}/{number}", "OK", demand=OPEN, messages=messages) for number in range(9)
    ]
    page(tmp_path / "page.html", results)
    sight = look(file_address(tmp_path / "page.html"), width=width, color_scheme=scheme, offline=True)
    assert len(sight.asked) == 1
    assert sight.overflow() == 0
    assert sight.is_seen("#p\\/GIVE\\/odd .command")
    assert not sight.one("details.case.ok").first.is_visible()
    # On paper, all evidence is open, and passed cases have a line each.
    sight.page.emulate_media(media="print")
    assert sight.one("details.case.ok summary").first.is_visible()
    assert not sight.one("details.case.ok pre").first.is_visible()
    assert sight.is_seen("#p\\/GIVE\\/weak .said pre")
    assert sight.tell("getComputedStyle(document.documentElement).colorScheme") == "light"
    sight.page.emulate_media(media="screen")
    for summary in ("details.group summary", "details.case.ok summary"):
        sight.one(summary).first.click()
    assert sight.one("details.case.ok").first.is_visible()
    # All bytes of a row are seen.
    rows = sight.one(".said pre:visible").evaluate_all("all => all.map(e => e.scrollWidth - e.clientWidth)")
    assert len(rows) == 14
    assert max(rows) <= 0
    assert sight.violations() == []


# The documents.


def test_the_page_of_probing_has_each_field_of_its_json() -> None:
    text = (ROOT / "docs" / "probing.md").read_text()
    table = text[text.index("## As JSON") :]
    hidden = {"unread", "drawn", "group"}
    for record in (Result, SentPiece, ReportedMessage, StatedExpectation):
        for name in {*record.__struct_fields__} - hidden:
            assert f"`{name}`" in table, name
