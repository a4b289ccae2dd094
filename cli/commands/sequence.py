"""`kiebitz sequence`: draw a session as a sequence diagram."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import click

from kiebitz.cli.options.messages import player_option
from kiebitz.cli.options.part import part_options
from kiebitz.cli.options.records import output_option
from kiebitz.cli.options.session import open_session_as, session_argument
from kiebitz.cli.terminal.console import Line, letters_of_output, plain, show_lines, terminal_columns
from kiebitz.dissectors.sequence.model import Arrow, Step
from kiebitz.services.output_files import STANDARD_OUTPUT, opened
from kiebitz.services.standard_streams import warn
from kiebitz.storage.derived.selection import PartRequest
from kiebitz.storage.sequence.reader import Sequence, read_sequence
from kiebitz.storage.session.session import Session

MAX_MESSAGES = 1000
"""Maximum number of arrows in a picture; viewers of larger ones take minutes, or fail."""

_TEXT = "text"
_FORMS = (_TEXT, "svg", "mermaid", "plantuml")


@click.command()
@session_argument
@click.option(
    "-T", "form", type=click.Choice(_FORMS), default=_TEXT, show_default=True, help="Output format."
)
@output_option
@part_options
@player_option
def sequence(
    session: str,
    form: str,
    output: str | None,
    part: PartRequest,
    player: str | None,
) -> None:
    """Draw a session as a sequence diagram: players, servers, and messages as arrows between them.

    A message to several players is one arrow. Notes are the events of the game. Errors and warnings are red
    or yellow; messages that Kiebitz altered are dashed, with the rule. The formats svg, mermaid and plantuml
    have at most 1,000 messages. mermaid is shown by GitHub and GitLab, plantuml by PlantUML.

    -Y, --game, --from and --to select a part; together, their intersection.

    \b
    Example:
      kiebitz sequence game.db --game 1
      kiebitz sequence game.db --from 12.5s --to 20s -T svg -o slide.svg
      kiebitz sequence game.db -Y 'msg != "HEARTBEAT"' --as alice -T mermaid
    """
    timeline = open_session_as(session, player)
    with timeline.as_of_now():
        diagram = read_sequence(timeline, part, player)
        if not diagram.lifelines:
            warn("no messages in this session")
        elif form == _TEXT and output in (None, STANDARD_OUTPUT):
            show_lines(_text(diagram, terminal_columns(), letters_of_output()))
        else:
            with opened(output, session) as file:
                _write(diagram, form, Session(timeline).name, file)


def _text(diagram: Sequence, columns: int | None, encoding: str) -> Iterator[Line]:
    from kiebitz.cli.render.text.sequence import DEFAULT_WIDTH, SequenceText

    picture = SequenceText(diagram.lifelines, columns or DEFAULT_WIDTH, encoding)
    if columns is not None and picture.width > columns:
        warn(
            f"{len(diagram.lifelines)} lifelines take {picture.width} columns; "
            "-Y or --game select fewer, and less -S does not wrap lines"
        )
    yield picture.header()
    yield from picture.lines(diagram.steps)


def _write(diagram: Sequence, form: str, title: str, file: BinaryIO) -> None:
    if form == _TEXT:
        for line in _text(diagram, None, "utf-8"):
            file.write(f"{plain(line)}\n".encode())
        return
    steps = _first_messages(diagram.steps)
    if form == "svg":
        from kiebitz.cli.render.svg.sequence import sequence_document

        file.write(sequence_document(diagram.lifelines, [*steps], title))
        return
    from kiebitz.cli.render.sequence_markup import mermaid, plantuml

    markup = mermaid if form == "mermaid" else plantuml
    for line in markup(diagram.lifelines, steps, title):
        file.write(f"{line}\n".encode())


def _first_messages(steps: Iterator[Step]) -> Iterator[Step]:
    """Yield the steps up to the maximum number of messages, with a warning if there are more."""
    arrows = 0
    for step in steps:
        if isinstance(step, Arrow):
            arrows += 1
            if arrows > MAX_MESSAGES:
                warn(
                    f"the diagram ends after {MAX_MESSAGES:,} messages, at {step.seconds:.3f}s: "
                    "--from, --to, --game and -Y select others"
                )
                return
        yield step
