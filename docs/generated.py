"""The pages that are made from the program itself, when `make docs` builds the site; a hook of MkDocs.

Each command's page is made from its help, each protocol's from `kiebitz protocols NAME`, the tables of
filters.md from the reference that `kiebitz help filters` prints, and those of library.md from the records.
None of them is kept: they cannot be stale.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.testing import CliRunner

import kiebitz
from kiebitz.cli.main import COMMANDS
from kiebitz.cli.main import kiebitz as root
from kiebitz.dissectors.registry import BUILT_IN
from kiebitz.storage.filters import reference

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
"""What makes a browser ask another machine, in HTML or in CSS; a link to follow does not."""


def pages() -> dict[str, str]:
    """Path -> text of each page that is made."""
    made = {"commands/index.md": _list_of_commands()}
    for section in COMMANDS.values():
        for name in section:
            made[f"commands/{name}.md"] = command_page(name)
    for name in PROTOCOLS:
        made[f"protocols/{name}.md"] = f"# {_title(name)}\n\n```text\n{_printed('protocols', name)}```\n"
    return made


def command_page(name: str) -> str:
    """A command's page: how it is called, what it does, an example, its options."""
    context = click.Context(root, info_name="kiebitz", help_option_names=["-h", "--help"])
    command = root.get_command(context, name)
    assert command is not None
    context = click.Context(command, context, name)
    usage = command.get_usage(context).removeprefix("Usage: ")
    lines = [f"# kiebitz {name}", "", f"    {' '.join(usage.split())}", ""]
    for paragraph in (command.help or "").split("\n\n"):
        lines += [*_paragraph(paragraph), ""]
    lines += ["| option | meaning |", "| --- | --- |"]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            lines.append(f"| `{record[0]}` | {_plain(record[1])} |")
    return "\n".join(lines) + "\n"


def record_tables() -> str:
    """The library's records, each with its fields and their types."""
    lines = []
    for record in (
        kiebitz.Stream,
        kiebitz.Game,
        kiebitz.Message,
        kiebitz.Alteration,
        kiebitz.Event,
        kiebitz.Diagnostic,
        kiebitz.Table,
    ):
        lines += [
            f"### {record.__name__}",
            "",
            _unindented(record.__doc__ or ""),
            "",
            "| field | type |",
            "| --- | --- |",
        ]
        lines += [f"| `{name}` | `{type_}` |" for name, type_ in record.__annotations__.items()]
        lines.append("")
    return "\n".join(lines)


def _unindented(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def tables() -> dict[str, str]:
    """Marker in a page -> what takes its place."""
    return {"<!-- records -->": record_tables()} | {
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
        lines += [f"## {title}", "", "| command | what it does |", "| --- | --- |"]
        lines += [f"| [{name}]({name}.md) | {_plain(about)} |" for name, (_, about) in section.items()]
        lines.append("")
    return "\n".join(lines)


def _paragraph(text: str) -> Iterator[str]:
    """One paragraph of a help; click marks with \\b what keeps its lines, as examples do."""
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
    """The text with everything escaped that Markdown, a table of it, or HTML would take for its own."""
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))


def _title(protocol: str) -> str:
    return _printed("protocols", protocol).partition("\n")[0]


def _printed(*arguments: str) -> str:
    done = CliRunner().invoke(root, arguments, prog_name="kiebitz", terminal_width=110)
    assert done.exit_code == 0, done.output
    return done.output


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages into the navigation, each section in place of its word."""
    sections = {
        "COMMANDS": [
            "commands/index.md",
            *(f"commands/{name}.md" for names in COMMANDS.values() for name in names),
        ],
        "PROTOCOLS": [f"protocols/{name}.md" for name in PROTOCOLS],
    }
    config.nav = _placed(config.nav, sections)
    return config


def _placed(entry: Any, sections: Mapping[str, list[str]]) -> Any:
    if isinstance(entry, dict):
        return {title: _placed(inside, sections) for title, inside in entry.items()}
    if isinstance(entry, list):
        return [_placed(one, sections) for one in entry]
    return sections.get(entry, entry)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages to those of the folder."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the tables into their pages."""
    for marker, table in tables().items():
        markdown = markdown.replace(marker, table)
    return markdown


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site whose pages ask another machine for anything."""
    from mkdocs.exceptions import PluginError

    for path in Path(config.site_dir).rglob("*"):
        if path.suffix in (".html", ".css") and (found := _FETCHES.search(path.read_text())):
            raise PluginError(f"{path} would ask another machine: {found.group()}")
