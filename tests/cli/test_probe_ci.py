"""JUnit files, annotations for GitHub Actions, and known failures of `kiebitz probe`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from command import kiebitz
from hypothesis import given
from hypothesis import strategies as st
from probe_command import server
from processes_and_rows import free_port
from test_probe_reports import EVIL, result

from kiebitz.cli.probe.ci_output import append_summary, show_annotations, write_junit_results
from kiebitz.services.probing.known_failures import KnownFailures
from kiebitz.services.probing.results import Result

VERDICTS = ("FAILED", "UNSTABLE", "KNOWN", "NON-STRICT", "INFORMATIONAL", "OK", "NOT TRIED")


def junit(path: Path, results: list[Result]) -> ElementTree.Element:
    """Return the test suite of a JUnit file."""
    with path.open("wb") as file:
        write_junit_results("Noughts: the server", results, None, file)
    suite = ElementTree.parse(path).getroot().find("testsuite")
    assert suite is not None
    return suite


@given(st.text(), st.binary(max_size=50))
def test_any_text_is_valid_in_a_junit_file(
    tmp_path_factory: pytest.TempPathFactory, text: str, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("junit", numbered=True)
    more: dict[str, Any] = {"sentence": text, "command": text, "output": text, "unread": data}
    (case,) = junit(folder / "probe.xml", [result("p/GIVE/x", "FAILED", text, **more)]).findall("testcase")
    assert case.find("failure") is not None


def test_no_text_is_a_command_of_a_workflow(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hostile = f"{EVIL}\n::warning::made up\r\n::set-output name=x::y"
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    results = [
        result("p/GIVE/x", verdict, hostile, sentence=hostile, command=hostile) for verdict in VERDICTS
    ]
    show_annotations(results)
    lines = capsys.readouterr().out.splitlines()
    assert [re.match(r"::(\w+) title=(\S+ ?\S*)::", line) is not None for line in lines] == [True] * 3
    assert [line.split(" ")[0] for line in lines] == ["::error", "::warning", "::notice"]
    append_summary(f"Noughts | {EVIL}", results)
    text = summary.read_text()
    assert "\n| message | FAILED | UNSTABLE |" in text
    assert "<script" not in text
    assert "\x1b" not in text
    assert len(text.splitlines()) == 2 + 3 + 1 + 3


def probed(folder: Path, *options: str, fault: str = "dies-on-an-unknown-word") -> Any:
    port = free_port("udp")
    only = ("--only", "maexchen/unknown-message", "--only", "maexchen/JOIN/whole")
    return kiebitz(
        *("probe", "server", str(port), "-d", "maexchen", "--restart", server(port, fault)),
        *("--timeout", "0.7", "--baseline", str(folder / "known.json"), *only, *options),
    )


@pytest.mark.full
def test_known_failures_do_not_fail_a_run(tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    done = probed(tmp_path)
    assert (done.status, done.out) == (1, "")
    assert "known.json: there is no such file; --update-baseline creates it" in done.err
    assert probed(tmp_path, "--update-baseline").status == 0
    assert json.loads(known.read_text()) == {
        "known_failures": {"maexchen/unknown-message": "it has ended: exit status 1"}
    }
    report = tmp_path / "probe.xml"
    done = probed(tmp_path, "--junit", str(report), "--github")
    assert done.status == 0
    assert "1 KNOWN, 1 OK" in done.err
    assert "::error" not in done.out
    assert "KNOWN maexchen/unknown-message" in done.out
    assert 'skipped="1"' in report.read_text()
    done = probed(tmp_path, fault="")
    assert done.status == 0
    assert f"fixed: maexchen/unknown-message: --update-baseline removes them from {known}" in done.err
    KnownFailures(str(known)).update(
        [result("maexchen/unknown-message", "OK"), result("p/x", "FAILED", "oh")]
    )
    assert json.loads(known.read_text()) == {"known_failures": {"p/x": "oh"}}
