"""The results of a test run for CI systems: JUnit XML, and annotations and a summary for GitHub Actions."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import BinaryIO

from kiebitz.cli.probe.terminal_report import specification, transcript
from kiebitz.cli.terminal.console import show_line
from kiebitz.dissectors.escaping import printable
from kiebitz.services.junit import JunitCase, Outcome, write_junit
from kiebitz.services.probing.results import KNOWN, NOT_TRIED, UNSTABLE, Result, by_verdict, totals_of
from kiebitz.storage.database.schema import StorageError

_OUTCOMES: dict[str, Outcome] = {
    "FAILED": "failed",
    UNSTABLE: "skipped",
    KNOWN: "skipped",
    NOT_TRIED: "skipped",
}
"""Outcomes in JUnit files; other verdicts pass."""

_LEVELS = {"FAILED": "error", UNSTABLE: "warning", "NON-STRICT": "notice"}
"""Levels of annotations; other verdicts have none."""

_SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"

_MAX_MESSAGES = 24


def write_junit_results(title: str, results: Sequence[Result], left: str | None, file: BinaryIO) -> None:
    """Write the results as JUnit XML; `left` says why cases were left out, None if none were."""
    write_junit(title, [_junit_case(result) for result in results], {"left_out": left or ""}, file)


def _junit_case(result: Result) -> JunitCase:
    protocol, _, name = result.case.partition("/")
    outcome = _OUTCOMES.get(result.verdict, "passed")
    return JunitCase(
        f"{protocol}.{result.role}.{result.group}",
        name,
        result.seconds,
        outcome,
        f"{result.verdict}: {result.why}",
        [*_details(result)] if outcome != "passed" and result.verdict != NOT_TRIED else (),
        (result.output or "").splitlines() if outcome == "failed" else (),
    )


def _details(result: Result) -> Iterator[str]:
    yield result.sentence
    yield specification(result)
    yield from _transcript_lines(result)
    if result.other is not None:
        yield f"in the other run, which was {result.other.verdict}:"
        yield from _transcript_lines(result.other)
    yield result.command


def _transcript_lines(result: Result) -> Iterator[str]:
    for heading, text in transcript(result, _MAX_MESSAGES):
        yield f"{heading:<13} {text}"


@contextmanager
def commands_off() -> Iterator[None]:
    """Let GitHub Actions ignore commands in what is printed meanwhile: programs may have written some."""
    token = secrets.token_hex(16)
    show_line(f"::stop-commands::{token}")
    try:
        yield
    finally:
        show_line(f"::{token}::")


def show_annotations(results: Sequence[Result]) -> None:
    """Print a workflow command for each result that needs attention."""
    for result in results:
        level = _LEVELS.get(result.verdict)
        if level is not None:
            title = _data(f"{result.verdict} {result.case}").replace(":", "%3A").replace(",", "%2C")
            text = _data(f"{result.sentence}: {result.why}\n{specification(result)}\n{result.command}")
            show_line(f"::{level} title={title}::{text}")


def append_summary(title: str, results: Sequence[Result]) -> None:
    """Append a table to the job's summary, if GitHub Actions has named a file for it. Raises StorageError."""
    path = os.environ.get(_SUMMARY_VARIABLE)
    if not path:
        return
    totals = totals_of(results)
    words = [word for word, _ in by_verdict(totals.total)]
    rows = [["message", *words], ["---", *("---:" for _ in words)]]
    for group in totals.groups:
        rows.append([group, *(str(totals.of(group)[word] or "") for word in words)])
    lines = [f"### {_cell(title)}", "", *("| " + " | ".join(map(_cell, row)) + " |" for row in rows), ""]
    lines += [
        f"- **{each.verdict}** `{each.case}`: {_cell(each.sentence)}: {_cell(each.why)}"
        for each in results
        if each.verdict in _LEVELS
    ]
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}: ${_SUMMARY_VARIABLE} names this file") from error


def _data(text: str) -> str:
    shown = "\n".join(map(printable, text.split("\n")))
    return shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _cell(text: str) -> str:
    """Return a text for a Markdown table, without any markup in it."""
    return "".join(f"\\{each}" if each in "\\`*_{}[]#|!~" else escape(each) for each in printable(text))
