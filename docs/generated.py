"""MkDocs hook for pages that are generated from the program when `make docs` builds the site.

Sources are the commands' help, `kiebitz protocols NAME`, the test cases of `kiebitz probe`, and the reference
of `kiebitz help filters`. The pages are not stored, so they cannot be stale.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import click
from click.testing import CliRunner

from kiebitz.cli.main import COMMANDS
from kiebitz.cli.main import kiebitz as root
from kiebitz.dissectors.conformance.expectations import ANY_REACTION, ROLES
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.filters import reference
from kiebitz.dissectors.probing.case import Case
from kiebitz.dissectors.probing.case_generator import generate_cases
from kiebitz.dissectors.registry import BUILT_IN

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

PROTOCOLS = tuple(dissector.protocol for dissector in BUILT_IN)

_FETCHES = re.compile(
    r"""<(?!link[^>]*rel="?(?:canonical|next|prev))"""
    r"""(?:script|link|img|iframe|source|object|embed|video|audio)[^>]*?"""
    r"""\s(?:src|srcset|href|data|poster)=["']?(?:https?:)?//[^>]*>"""
    r"""|url\(["']?(?:https?:)?//[^)]*\)|@import\s+["'](?:https?:)?//[^"']*"""
)
"""Requests to other machines in HTML or CSS, except links to follow."""


def pages() -> dict[str, str]:
    """Return the text of each generated page by path."""
    made = {"commands/index.md": _list_of_commands()}
    for section in COMMANDS.values():
        for name in section:
            made[f"commands/{name}.md"] = command_page(name)
    for dissector in BUILT_IN:
        name = dissector.protocol
        made[f"protocols/{name}.md"] = f"# {_title(name)}\n\n```text\n{_printed('protocols', name)}```\n"
        made[f"probing/{name}.md"] = cases_page(dissector)
    return made


def command_page(name: str) -> str:
    """Return a command's page: usage, description, example, options, subcommands."""
    context = click.Context(root, info_name="kiebitz", help_option_names=["-h", "--help"])
    command = root.get_command(context, name)
    assert command is not None
    return "\n".join(_command(command, context, name, "#")) + "\n"


def _command(command: click.Command, above: click.Context, name: str, heading: str) -> Iterator[str]:
    context = click.Context(command, above, name)
    usage = command.get_usage(context).removeprefix("Usage: ")
    yield from (f"{heading} {context.command_path}", "", f"    {' '.join(usage.split())}", "")
    for paragraph in cleandoc(command.help or "").split("\n\n"):
        yield from (*_paragraph(paragraph), "")
    yield from ("| option | meaning |", "| --- | --- |")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            yield f"| `{record[0]}` | {_plain(record[1])} |"
    if isinstance(command, click.Group):
        for inner, below in command.commands.items():
            yield ""
            yield from _command(below, context, inner, f"{heading}#")


def cases_page(dissector: Dissector) -> str:
    """Return the page of a protocol's test cases, first those that all messages share."""
    name, title = dissector.protocol, dissector.grammar.title
    lines = [
        f"# {title}: test cases",
        "",
        f"The names of test cases are `{name}/MESSAGE/KIND` or `{name}/MESSAGE/FIELD/KIND`. The last",
        "sections describe [the kinds](#kinds) and quote the specification. [Probing](../probing.md)",
        "explains the selection of cases by name, and the levels.",
        "",
    ]
    for role in ROLES:
        cases = [_Row.of(case) for case in generate_cases(dissector, role)]
        lines += [f"## A {role}: {len(cases):,} cases", ""]
        shared = _shared(cases)
        lines += [
            f"### Without a message ({role})",
            "",
            *_cases_table([case for case in cases if not case.group]),
        ]
        if shared:
            lines += ["", f"### For each message ({role})", "", *_cases_table(shared)]
        lines.append("")
        known = {(case.field, case.kind, case.expectation) for case in shared}
        for group in dict.fromkeys(case.group for case in cases if case.group):
            own = [
                case
                for case in cases
                if case.group == group and (case.field, case.kind, case.expectation) not in known
            ]
            gloss = next(case.gloss for case in own or cases if case.group == group)
            lines += [f"### {_plain(group)} ({role})", "", _plain(gloss or ""), "", *_cases_table(own), ""]
    return "\n".join([*lines, *_meanings(dissector)]) + "\n"


_IN_PLAY = "In an undisturbed game"


class _Row(NamedTuple):
    """A row of a table of cases; `field` is empty for a whole message, `expectation` has the last cells."""

    group: str
    field: str
    kind: str
    sentence: str
    expectation: tuple[str, str, str]
    gloss: str | None

    @classmethod
    def of(cls, case: Case) -> Self:
        of = case.of
        _, *parts = case.name.split("/")
        group = parts.pop(0) if of is not None else _IN_PLAY if case.is_in_play else ""
        is_of_field = case.field is not None or case.is_in_play
        kind = parts.pop() if is_of_field else "/".join(parts)
        field = "/".join(parts) if is_of_field else ""
        sentence = case.sentence
        for name in (case.message, case.checked_message, case.field):
            sentence = sentence.removeprefix(f"{name}: ")
        demand = case.expectation
        right = "any" if demand.right == ANY_REACTION else " or ".join(demand.right)
        expectation = (demand.level, right, demand.clause or "")
        return cls(group, field, kind, sentence, expectation, None if of is None else of.description)


def _shared(cases: Sequence[_Row]) -> list[_Row]:
    """Return the cases that every message of the specification has, with the same expectation."""
    groups = {case.group for case in cases if case.kind == "whole"}
    having: dict[tuple[str, str, tuple[str, str, str]], list[_Row]] = {}
    for case in cases:
        if case.group:
            having.setdefault((case.field, case.kind, case.expectation), []).append(case)
    return [found[0] for found in having.values() if {case.group for case in found} == groups]


def _cases_table(cases: Sequence[_Row]) -> Iterator[str]:
    """Yield a table with a row for each field and expectation."""
    alike: dict[tuple[str, tuple[str, str, str]], list[_Row]] = {}
    for case in cases:
        alike.setdefault((case.field, case.expectation), []).append(case)
    if alike:
        yield "| field | kind | level | right | clause |"
        yield "| --- | --- | --- | --- | --- |"
    for (field, demand), rows in alike.items():
        kinds = ", ".join(
            f"`{row.kind}`" + (f" ({_plain(row.sentence)})" if _varies(row) else "") for row in rows
        )
        cells = " | ".join(map(_plain, demand))
        yield f"| {f'`{field}`' if field else ''} | {kinds} | {cells} |"


def _varies(row: _Row) -> bool:
    """Return True if the meaning of a kind depends on the message."""
    return row.kind.startswith("dialect/")


def _meanings(dissector: Dissector) -> Iterator[str]:
    """Yield the meanings of the kinds, and the texts of the clauses."""
    cases = [case for role in ROLES for case in generate_cases(dissector, role)]
    sentences: dict[str, dict[str, None]] = {}
    quotes: dict[tuple[str, str], None] = {}
    for case in cases:
        row = _Row.of(case)
        if not _varies(row):
            sentences.setdefault(row.kind, {})[row.sentence] = None
        if case.expectation.clause is not None and case.expectation.quote is not None:
            quotes[case.expectation.clause, case.expectation.quote] = None
    yield from ("## Kinds", "", "| kind | action |", "| --- | --- |")
    for kind in sorted(sentences):
        yield f"| `{kind}` | {_plain('; '.join(sentences[kind]))} |"
    yield from ("", "## Clauses of the specification", "", "| clause | text |", "| --- | --- |")
    for clause, quote in quotes:
        yield f"| {_plain(clause)} | {_plain(' '.join(quote.split()))} |"


def tables() -> dict[str, str]:
    """Return the replacement for each marker in a page."""
    return {
        f"<!-- filters: {name} -->": _table(heading, rows)
        for name, heading, rows in (
            ("names", "name", reference.NAMES),
            ("fields", "name", reference.FIELDS),
            ("operators", "operator", reference.OPERATORS),
            ("examples", "filter", reference.EXAMPLES),
        )
    }


def _list_of_commands() -> str:
    lines = ["# Commands", "", "`kiebitz COMMAND -h` prints each of these pages in the terminal.", ""]
    for title, section in COMMANDS.items():
        lines += [f"## {title}", "", "| command | purpose |", "| --- | --- |"]
        lines += [f"| [{name}]({name}.md) | {_plain(about)} |" for name, about in section.items()]
        lines.append("")
    return "\n".join(lines)


def _paragraph(text: str) -> Iterator[str]:
    r"""Yield the Markdown of a help's paragraph; after click's \b line breaks are kept."""
    marked, _, kept = text.partition("\b")
    if not kept:
        yield _plain(" ".join(marked.split()))
        return
    for line in kept.strip("\n").split("\n"):
        if line.startswith(" "):
            yield f"    {line.strip()}"
        else:
            yield from ("", _plain(line.strip()), "")


def _table(heading: str, rows: Mapping[str, str]) -> str:
    lines = [f"| {heading} | meaning |", "| --- | --- |"]
    lines += [f"| `{word}` | {_plain(sentence)} |" for word, sentence in rows.items()]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Return the text escaped for Markdown, its tables and HTML."""
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))


def _title(protocol: str) -> str:
    return _printed("protocols", protocol).partition("\n")[0]


def _printed(*arguments: str) -> str:
    done = CliRunner().invoke(root, arguments, prog_name="kiebitz", terminal_width=110)
    assert done.exit_code == 0, done.output
    return done.output


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace the words of generated sections in the navigation by their pages."""
    sections = {
        "COMMANDS": [
            "commands/index.md",
            *(f"commands/{name}.md" for names in COMMANDS.values() for name in names),
        ],
        "CASES": [f"probing/{name}.md" for name in PROTOCOLS],
        "PROTOCOLS": [f"protocols/{name}.md" for name in PROTOCOLS],
    }
    config.nav = _placed(config.nav, sections)
    return config


def _placed(entry: Any, sections: Mapping[str, list[str]]) -> Any:
    if isinstance(entry, dict):
        return {title: _placed(inside, sections) for title, inside in entry.items()}
    if isinstance(entry, list):
        return [_placed(item, sections) for item in entry]
    return sections.get(entry, entry)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the markers in a page by tables."""
    for marker, table in tables().items():
        markdown = markdown.replace(marker, table)
    return markdown


def on_post_build(config: MkDocsConfig) -> None:
    """Reject a site with requests to other machines.

    Raises:
        PluginError: A page would load something from another machine.
    """
    from mkdocs.exceptions import PluginError

    for path in Path(config.site_dir).rglob("*"):
        if path.suffix in (".html", ".css") and (found := _FETCHES.search(path.read_text())):
            raise PluginError(f"{path} would request from another machine: {found.group()}")
