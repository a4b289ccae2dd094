"""JUnit XML files, the format in which CI systems read test results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import BinaryIO, Literal
from xml.etree import ElementTree

import msgspec

from kiebitz.dissectors.escaping import printable

Outcome = Literal["passed", "failed", "skipped"]


class JunitCase(msgspec.Struct, frozen=True):
    """A test case for a JUnit file.

    Attributes:
        classname: Group of the case, with dots between its levels.
        name: Name of the case within the group.
        seconds: Duration.
        outcome: CI systems count only `failed` against a build.
        message: Reason in one line; empty if it passed.
        details: Lines about a case that did not pass.
        output: Lines that the tested programs have written.
    """

    classname: str
    name: str
    seconds: float
    outcome: Outcome
    message: str = ""
    details: Sequence[str] = ()
    output: Sequence[str] = ()


_ELEMENTS = {"failed": "failure", "skipped": "skipped"}


def write_junit(
    suite: str, cases: Sequence[JunitCase], properties: Mapping[str, str], file: BinaryIO
) -> None:
    """Write a file with one test suite. Unprintable characters are escaped, as XML allows few of them."""
    root = ElementTree.Element("testsuites")
    element = ElementTree.SubElement(
        root,
        "testsuite",
        name=printable(suite),
        tests=str(len(cases)),
        failures=str(sum(case.outcome == "failed" for case in cases)),
        errors="0",
        skipped=str(sum(case.outcome == "skipped" for case in cases)),
        time=f"{sum(case.seconds for case in cases):.3f}",
    )
    named = ElementTree.SubElement(element, "properties")
    for name, value in properties.items():
        ElementTree.SubElement(named, "property", name=name, value=printable(value))
    for case in cases:
        _add_case(element, case)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)


def _add_case(suite: ElementTree.Element, case: JunitCase) -> None:
    element = ElementTree.SubElement(
        suite,
        "testcase",
        classname=printable(case.classname),
        name=printable(case.name),
        time=f"{case.seconds:.3f}",
    )
    if case.outcome != "passed":
        outcome = ElementTree.SubElement(element, _ELEMENTS[case.outcome], message=printable(case.message))
        outcome.text = _lines(case.details)
    if case.output:
        ElementTree.SubElement(element, "system-out").text = _lines(case.output)


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(map(printable, lines))
