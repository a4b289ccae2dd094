"""The documents but for their examples: links, files that are named, and the pages made from the program."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest
from command import ROOT

import kiebitz
from kiebitz.cli.main import COMMANDS
from kiebitz.dissectors.conformance.expectations import ROLES
from kiebitz.dissectors.filters.reference import EXAMPLES, FIELDS, NAMES, OPERATORS
from kiebitz.dissectors.probing.case_generator import generate_cases
from kiebitz.dissectors.registry import BUILT_IN
from kiebitz.storage.database.schema import INDEXES, OPTIONAL_TABLES, TABLES

DOCS = ROOT / "docs"
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
DATABASE = (DOCS / "database.md").read_text()
ALL_TABLES = {**TABLES, **OPTIONAL_TABLES}
LONGEST = {"README.md": 150, "ARCHITECTURE.md": 140}


@pytest.fixture(scope="module")
def generated() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generated", DOCS / "generated.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Config:
    def __init__(self) -> None:
        self.nav = [{"Cases": "CASES"}]


def _named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _prose(text: str) -> str:
    """Return a page without what is shown as typed."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", _prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _broken_links(page: Path) -> Iterator[str]:
    for link in re.findall(r"\]\(([^)\s]+)\)", _prose(page.read_text()).replace("\n", " ")):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if link.startswith(("https://", "http://")):
            continue
        if not target.is_file() or (anchor and anchor not in _anchors(target.read_text())):
            yield link
        # The site has nothing but the folder.
        if DOCS in page.parents and DOCS not in target.parents:
            yield link


@pytest.mark.parametrize("page", DOCUMENTS, ids=_named)
def test_each_link_leads_somewhere(page: Path) -> None:
    assert [*_broken_links(page)] == []


@pytest.mark.full(but=24)
@pytest.mark.parametrize("page", DOCUMENTS, ids=_named)
def test_each_file_that_is_named_exists(page: Path) -> None:
    text = page.read_text()
    rooms = "cli|dissectors|proxy|storage|tests|captures|docs|kiebitz"
    named = set(re.findall(rf"`((?:{rooms})/[\w./-]+)", text))
    missing = {name for name in named if not (ROOT / name).exists()}
    # By way of example: one for each protocol, and the log of an older version.
    assert {name for name in missing if "PROTOCOL" not in name} == set()


@pytest.mark.parametrize(("name", "lines"), LONGEST.items())
def test_the_first_output_is_short(name: str, lines: int) -> None:
    assert len((ROOT / name).read_text().splitlines()) <= lines


@pytest.mark.parametrize("table", ALL_TABLES)
def test_the_page_of_the_database_has_every_column(table: str) -> None:
    section = DATABASE.partition(f"\n### `{table}`\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [*ALL_TABLES[table]]


def test_the_page_of_the_database_has_every_index() -> None:
    section = DATABASE.partition("\n## Indexes\n")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `(\w+)` \| `([\w, ]+)` \|", section, re.MULTILINE)
    assert named == [(table, ", ".join(index)) for table, indexes in INDEXES.items() for index in indexes]
    assert set(re.findall(r"^### `(\w+)`", DATABASE, re.MULTILINE)) == {*ALL_TABLES}


def test_each_command_has_a_page_with_all_that_its_help_says(generated: ModuleType) -> None:
    pages = generated.pages()
    for name in (name for section in COMMANDS.values() for name in section):
        page = pages[f"commands/{name}.md"]
        command = generated.root.get_command(click.Context(generated.root), name)
        for parameter in command.params:
            assert all(option in page for option in parameter.opts if option.startswith("-"))
        assert f"kiebitz {name}" in page
        assert f"({name}.md)" in pages["commands/index.md"]
        assert len(page) > 0.6 * len(command.help)
        assert "\b" not in page
    for name in generated.PROTOCOLS:
        assert "messages" in pages[f"protocols/{name}.md"].lower()


def test_each_protocol_has_a_page_with_all_its_cases(generated: ModuleType) -> None:
    pages = generated.pages()
    for dissector in BUILT_IN:
        page = pages[f"probing/{dissector.protocol}.md"]
        assert f"probing/{dissector.protocol}.md" in generated.on_config(Config()).nav[0]["Cases"]
        meanings = page.partition("## Kinds")[2]
        for role in ROLES:
            section = page.partition(f"\n## A {role}: ")[2].partition("\n## ")[0]
            parts = {
                heading: _kinds(part)
                for heading, part in re.findall(
                    r"^### (.*) \(\w+\)\n((?:(?!###).*\n)*)", section, re.MULTILINE
                )
            }
            found = 0
            for case in generate_cases(dissector, role):
                _, *names = case.name.split("/")
                group = names.pop(0).replace("_", r"\_") if case.of is not None else "Without a message"
                if case.is_in_play:
                    group = "In an undisturbed game"
                is_of_field = case.field is not None or case.is_in_play
                kind = names.pop() if is_of_field else "/".join(names)
                row = ("/".join(names) if is_of_field else "", kind, case.expectation.level)
                assert row in parts[group] | parts.get("For each message", set()), case.name
                assert f"| `{kind}` |" in meanings or kind.startswith("dialect/")
                found += 1
            assert section.startswith(f"{found:,} cases\n")
        # A telephone opens it.
        assert len(page) < 60_000


def _kinds(part: str) -> set[tuple[str, str, str]]:
    """Field, kind and level of each case in a part of a page of cases."""
    rows = re.findall(r"^\|(?: `([^`]*)`)? +\| (.*?) \| (must|should|open) \|", part, re.MULTILINE)
    return {(field, kind, level) for field, kinds, level in rows for kind in re.findall(r"`([^`]*)`", kinds)}


def test_the_page_of_filters_has_the_whole_reference(generated: ModuleType) -> None:
    page = generated.on_page_markdown((DOCS / "filters.md").read_text())
    assert "<!--" not in page
    for words in (NAMES, FIELDS, OPERATORS, EXAMPLES):
        assert all(f"| `{word}` |" in page for word in words)


def test_the_library_pages_name_everything_public() -> None:
    pages = (DOCS / "library.md").read_text() + (DOCS / "api.md").read_text()
    methods = {name for name in vars(kiebitz.Session) if not name.startswith("_")}
    missing = {name for name in {*kiebitz.__all__, *methods} if not re.search(rf"\b{name}\b", pages)}
    assert missing == set()
    assert {*re.findall(r"^\| `(\w+)\(", pages, re.MULTILINE)} <= methods
    assert {*re.findall(r"^::: kiebitz\.(\w+)$", pages, re.MULTILINE)} == {*kiebitz.__all__}


@pytest.mark.parametrize(
    ("built", "fetches"),
    [
        ('<script src="https://unpkg.com/x.js"></script>', True),
        ('<link rel="stylesheet" href="//fonts.googleapis.com/css">', True),
        ('<img alt="x" src=http://example.com/x.png>', True),
        ("@font-face{src:url(https://fonts.gstatic.com/x.woff2)}", True),
        ('@import "https://example.com/x.css";', True),
        ('<a href="https://example.com/">x</a><link rel="canonical" href="https://example.com/">', False),
        ('<script src="../assets/x.js"></script><style>a{b:url(x.png)}</style>', False),
    ],
)
def test_a_page_that_would_ask_another_machine_is_found(
    generated: ModuleType, built: str, fetches: bool
) -> None:
    assert bool(generated._FETCHES.search(built)) == fetches


def test_the_keys_of_the_page_are_listed() -> None:
    """Each key of the page is in the guide, and each in the guide is one."""
    source = (ROOT / "cli/web/static/keys.js").read_text()
    bound = {found[1].split()[0] for found in re.finditer(r'key\(\s*"([^"]+)"', source)}
    shown = {"ArrowLeft": "←", "ArrowRight": "→", "ArrowUp": "↑", "ArrowDown": "↓"}
    shown |= {"PageUp": "PgUp", "PageDown": "PgDn", "Escape": "Esc"}
    guide = (ROOT / "docs/guides/browser.md").read_text()
    (table,) = re.findall(r"^## Keys\n(.*?)^## ", guide, re.DOTALL | re.MULTILINE)
    listed = {
        word.strip("` ")
        for row in re.findall(r"^\| (.*?) \|", table, re.MULTILINE)
        for word in re.split(r",| to ", row)
    }
    wanted = {shown.get(key, key) for key in bound if not key.startswith("Shift+")} | {"Space", "9"}
    assert listed - {"key", "---"} == wanted - {"e", "d", "r", "g"}
