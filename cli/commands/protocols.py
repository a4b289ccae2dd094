"""`kiebitz protocols`: print the reference of a protocol from its grammar."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator

import click

from kiebitz.cli.completion.network import complete_protocol
from kiebitz.cli.completion.session import SessionType
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.terminal.console import Candidate, Line, Styled, show_line, with_prefix, wrapped
from kiebitz.cli.terminal.table import Column, batches, show
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import OWN_CLAUSE, MessageType, Rule
from kiebitz.dissectors.registry import dissector_of, file_of, installed
from kiebitz.services.decode_as import unknown_protocol
from kiebitz.services.output_files import STANDARD_OUTPUT, opened
from kiebitz.services.standard_streams import print_error_line
from kiebitz.storage.read.conditions import field_catalog


def _title(dissector: Dissector) -> str:
    grammar = dissector.grammar
    origin = installed().origins.get(grammar.protocol)
    return grammar.title if origin is None else f"{grammar.title} · {origin}"


def _ports(dissector: Dissector) -> str:
    return ", ".join(map(str, sorted(dissector.default_ports))) or "any"


_COLUMNS = (
    Column("name", "name", stays=True, of="protocol"),
    Column("title", "game", least=12, of=_title),
    Column("transport", "over"),
    Column("ports", "ports", of=_ports),
    Column(
        "messages",
        "messages",
        right=True,
        of=lambda one: len({(row.direction, row.name) for row in one.grammar.rows}),
    ),
    Column("events", "events", right=True, of=lambda dissector: len(dissector.grammar.events)),
)

_SENDERS = {"c2s": "client → server", "s2c": "server → client"}


def _complete_names(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """Complete the name of a protocol, or captures after --check."""
    if context.params.get("checked") is not None:
        return SessionType().shell_complete(context, parameter, text)
    return complete_protocol(context, parameter, text)


def _complete_examples(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """Complete the names for --like."""
    from kiebitz.services.protocol_template import examples

    return with_prefix(text, examples())


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME | CAPTURE...]", shell_complete=_complete_names)
@click.option(
    "--check",
    "checked",
    type=click.Path(),
    metavar="FILE",
    help="Check this protocol file; with captures, show how much of their traffic it describes.",
)
@click.option(
    "--new",
    "created",
    type=click.Path(),
    metavar="FILE",
    help="Write a commented protocol file to begin with.",
)
@click.option(
    "--like",
    metavar="NAME",
    shell_complete=_complete_examples,
    help="With --new: begin with the file of this protocol, or with this example, such as pexeso.",
)
@click.option(
    "-T",
    "form",
    type=click.Choice(("lua", "toml")),
    help="Write a Wireshark dissector of the protocol, in Lua, or its protocol file.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="FILE",
    help='File for -T. Default: "-", standard output.',
)
@protocol_option
def protocols(
    names: tuple[str, ...],
    checked: str | None,
    created: str | None,
    like: str | None,
    form: str | None,
    output: str | None,
) -> None:
    """List the protocols, or print one's messages, events, rules and filter names.

    --check shows every mistake in a protocol file with its line and column, and reads and writes sample
    messages. Of captures, it shows the messages that have diagnostics or other names, and warns about rows
    that no message fits. The exit status is 1 if the file has mistakes, and 3 if messages have diagnostics.

    -T lua writes a dissector for Wireshark and tshark, generated from the grammar. What it cannot check, or
    shows under another name, is listed on standard error.

    --new writes a template, or with --like the file of a protocol or of an example: real courses' protocols,
    with events and a board. What a built-in protocol has in Python is left out.

    -T toml writes the protocol's file. Of Kiebitz's own protocols, the game and some types are in Python, so
    -P does not take their files, and --check looks these parts up in the installed protocol.

    \b
    Example:
      kiebitz protocols
      kiebitz protocols maexchen
      kiebitz protocols uno -P uno.toml
      kiebitz protocols --new uno.toml
      kiebitz protocols --new memory.toml --like pexeso
      kiebitz protocols --check uno.toml monday.pcap
      kiebitz protocols maexchen -T lua -o maexchen.lua
      kiebitz protocols maexchen -T toml | kiebitz protocols --check -
    """
    if (form is not None or output is not None) and (form is None or len(names) != 1 or checked or created):
        raise click.UsageError(
            "-T lua or toml [-o FILE] takes the name of one protocol, and no --check or --new"
        )
    if checked is not None and created is not None:
        raise click.UsageError("--check and --new exclude each other")
    if like is not None and created is None:
        raise click.UsageError("--like is for --new FILE")
    if created is not None:
        if names:
            raise click.UsageError("--new takes no further arguments")
        _create(created, like)
    elif checked is not None:
        # Loads what only protocol files need.
        from kiebitz.cli.protocol_check import check_protocol_file

        raise click.exceptions.Exit(check_protocol_file(checked, names))
    elif not names:
        show(_COLUMNS, batches(installed().dissectors.values()), None, "no protocols")
    elif len(names) > 1:
        raise click.UsageError("give one protocol, or captures after --check FILE")
    else:
        dissector = dissector_of(names[0].lower())
        if dissector is None:
            raise click.UsageError(unknown_protocol(names[0].lower()))
        if form is not None:
            write = _write_script if form == "lua" else _write_file
            write(dissector, output or STANDARD_OUTPUT)
            return
        for line in reference(dissector):
            show_line(*line)


def _write_script(dissector: Dissector, path: str) -> None:
    """Write the Wireshark dissector of a protocol. Raises NotExpressible and OSError."""
    from kiebitz.dissectors.wireshark.script import wireshark_script

    script = wireshark_script(dissector)
    with opened(path, STANDARD_OUTPUT) as file:
        file.write(script.text.encode("utf-8", "replace"))
    for limit in script.limits:
        print_error_line(limit)


def _write_file(dissector: Dissector, path: str) -> None:
    """Write the TOML file of a protocol. Raises UsageError if it has none, and OSError."""
    from kiebitz.services.protocol_template import text_of

    text = text_of(dissector)
    if text is None:
        raise click.UsageError(f"{dissector.protocol} is written in Python: it has no file")
    with opened(path, STANDARD_OUTPUT) as output:
        output.write(text.encode())


def _create(path: str, like: str | None) -> None:
    """Write a protocol file to begin with. Raises KiebitzError and OSError."""
    from kiebitz.services.protocol_template import template

    if path != STANDARD_OUTPUT and os.path.lexists(path):
        raise click.UsageError(f"{path} exists: name another file, or delete it first")
    text = template(path, like)
    with opened(path, STANDARD_OUTPUT) as file:
        file.write(text.encode())
    if path != STANDARD_OUTPUT:
        name = shlex.quote(path)
        print_error_line(f"Edit it, then: kiebitz protocols --check {name} CAPTURE")


def reference(dissector: Dissector) -> Iterator[Line]:
    """Yield the lines of a protocol's reference."""
    grammar = dissector.grammar
    yield (Styled(f"{grammar.title} ({grammar.protocol})", bold=True),)
    ports = f"port {_ports(dissector)} by default" if dissector.default_ports else "any port"
    yield (f"{dissector.transport}, {ports}",)
    origin = installed().origins.get(grammar.protocol)
    if origin is not None:
        yield (f"from the {'plug-in' if file_of(grammar.protocol) is None else 'protocol file'} {origin}",)
    for direction, sender in _SENDERS.items():
        yield ()
        yield (Styled(f"Messages, {sender}", bold=True),)
        for row in grammar.rows:
            if row.direction == direction:
                yield from _message(dissector, row)
    if dissector.codec.productions:
        yield ()
        yield (Styled("Productions", bold=True),)
        for production in dissector.codec.productions:
            yield from _wrapped(production, 2)
    yield ()
    yield (Styled("Events", bold=True),)
    for kind in grammar.events.values():
        secret = " (known to the actor alone)" if kind.secret else ""
        yield from _wrapped(f"{kind.kind}{{{', '.join(kind.fields)}}}: {kind.sentence}{secret}", 2)
    if grammar.rules:
        yield ()
        yield (Styled("Rules", bold=True),)
        for rule in grammar.rules.values():
            yield from _rule(rule)
    yield ()
    yield (Styled("Names for filters", bold=True),)
    catalog = field_catalog()
    own = sorted(name for name in set(catalog.names()) if name.split(".")[0] == grammar.protocol)
    yield from ((f"  {name}",) for name in own)


def _message(dissector: Dissector, row: MessageType) -> Iterator[Line]:
    yield "  ", Styled(row.name, bold=True), f": {row.description}"
    notation = dissector.codec.notation(row)
    if notation is not None:
        yield from _wrapped(notation, 4)
    for field in row.fields:
        # Productions are listed once, below.
        title = [field.type.title] if field.type.title not in dissector.codec.productions else []
        identifier = field.type.identifier
        remarks = [
            *title,
            *(["new in every game"] if field.generated else []),
            *([f"{identifier.title}, differs between games"] if identifier and not field.generated else []),
            *(["optional"] if field.optional else []),
        ]
        remark = f" ({'; '.join(remarks)})" if remarks else ""
        yield from _wrapped(f"{field.name}: {field.description}{remark}", 4)
    if row.answers:
        yield from _wrapped(f"answers {', '.join(row.answers)}", 4)
    if row.broadcast:
        yield ("    each client gets a copy",)
    if row.deviation is not None:
        yield from _wrapped(f"dialect: {row.deviation}", 4)
    yield from _wrapped(f"see: {row.clause}", 4)


def _rule(rule: Rule) -> Iterator[Line]:
    yield from _wrapped(f"{rule.code} ({rule.severity}, {rule.group}): {rule.text}", 2)
    if rule.expected is not None:
        yield from _wrapped(f"expected: {rule.expected}", 4)
    if rule.clause is None:
        yield from _wrapped(f"no clause: {rule.unwritten}", 4)
    else:
        own = f"the clause of {rule.message or 'the message'}"
        yield from _wrapped(f"see: {rule.clause.replace(OWN_CLAUSE, own)}", 4)


def _wrapped(text: str, indent: int) -> Iterator[Line]:
    """Wrap a text to the terminal's width, or to 80 columns in a file or pipe."""
    first = " " * indent
    return ((line,) for line in wrapped(text, shutil.get_terminal_size().columns, first, first + "    "))
