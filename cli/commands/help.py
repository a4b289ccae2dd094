"""`kiebitz help`: help for a command, all commands, or filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

import click

from kiebitz.cli.terminal.console import (
    Candidate,
    Line,
    Styled,
    show_line,
    show_lines,
    terminal_columns,
    with_prefix,
    wrapped,
)
from kiebitz.dissectors.suggestions import did_you_mean

_FILTERS = "filters"
_COLUMNS = 110
_WIDEST = 34
"""Width of a term (cells) above which its explanation starts on the next line."""


def _completed(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    group = context.find_root().command
    names = group.list_commands(context) if isinstance(group, click.Group) else []
    return with_prefix(text, ((name, None) for name in (*names, _FILTERS)))


@click.command("help")
@click.argument("topic", required=False, metavar="[TOPIC]", shell_complete=_completed)
@click.pass_context
def help(ctx: click.Context, topic: str | None) -> None:
    """Show help for a command, or for the filters of -Y.

    TOPIC is a command, or filters.

    \b
    Example:
      kiebitz help
      kiebitz help state
      kiebitz help filters
    """
    root = ctx.find_root()
    assert isinstance(root.command, click.Group)
    if topic == _FILTERS:
        for line in _filters():
            show_line(*line)
        return
    if topic is None:
        show_lines(root.get_help().split("\n"))
        return
    command = root.command.get_command(root, topic)
    if command is None:
        near = get_close_matches(topic, [*root.command.list_commands(root), _FILTERS])
        hint = did_you_mean(*near) if near else "kiebitz help lists the commands"
        raise click.UsageError(f"no help on {topic}; {hint}", ctx)
    with command.make_context(topic, [], parent=root, resilient_parsing=True) as of_command:
        show_lines(command.get_help(of_command).split("\n"))


def _filters() -> Iterator[Line]:
    from kiebitz.dissectors.filters.reference import EXAMPLES, FIELDS, NAMES, OPERATORS

    yield (Styled("Filters for -Y", bold=True),)
    yield ("A filter is one or more conditions. Only what matches is listed, shown or compared.",)
    for title, rows in (
        ("Names", NAMES),
        ("Names of the protocols", FIELDS),
        ("Operators and values", OPERATORS),
        ("Examples", EXAMPLES),
    ):
        yield ()
        yield (Styled(f"{title}:", bold=True),)
        yield from _rows(rows)
    yield ()
    yield ("Quote a filter for the shell: kiebitz events game.db -Y 'kind == \"rolled\"'",)


def _rows(rows: Mapping[str, str]) -> Iterator[Line]:
    columns = min(terminal_columns() or _COLUMNS, _COLUMNS)
    indent = " " * (2 + _WIDEST + 2)
    for word, sentence in rows.items():
        first = f"  {word:{_WIDEST}}  "
        if len(word) > _WIDEST:
            yield (f"  {word}",)
            first = indent
        for line in wrapped(sentence, max(columns, len(indent) + _WIDEST), first, indent):
            yield (line,)
