"""The report of a test run as one HTML file, which any browser opens without a network and without scripts.

It begins with the totals by verdict and message. Failed cases come next and are open; all others can be
opened. Data from the network is always escaped.

A complete message in HTML for the report, in lines as narrow as a phone's screen.

Emphasis is a `span` with its style as class (`bold`, `dim`, or the colour of a diagnostic); data from the
network is escaped.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from html import escape
from typing import BinaryIO

from kiebitz.cli.render.html_page import escaped, page_head
from kiebitz.cli.terminal.byte_rows import ByteRows
from kiebitz.cli.terminal.message_block import message_lines
from kiebitz.cli.terminal.screen import Console, Style, Text
from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION
from kiebitz.dissectors.escaping import field_words
from kiebitz.dissectors.grammar.dissection_tree import Piece
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.services.probing.results import (
    IN_FULL,
    NOT_TRIED,
    WORDS,
    Result,
    by_verdict,
    expectation_in_words,
    key_of,
    totals_of,
)
from kiebitz.services.wording import counted
from kiebitz.storage.session.message_detail import MessageDetail

COLUMNS = 44
"""Width of a phone's screen in columns."""

_MAX_LINES = 80
"""Maximum number of lines per message."""

_CONSOLE = Console(width=COLUMNS)


def render_message(shown: MessageDetail) -> str:
    """Render a message: its header, its annotated bytes with diagnostics, and its event."""
    return _render_lines(message_lines(shown, COLUMNS))


def render_bytes(data: bytes, about: str) -> str:
    """Render bytes that are no message, with a remark about them."""
    rows = ByteRows(data, [Piece(0, len(data), 0, "markup", about)], (), COLUMNS)
    return _render_lines([*rows.lines()])


def _render_lines(lines: Sequence[Text]) -> str:
    kept = [_in_markup(line) for line in lines[:_MAX_LINES]]
    if len(lines) > _MAX_LINES:
        kept.append(f"… and {len(lines) - _MAX_LINES} lines more")
    return "\n".join(kept)


def _in_markup(line: Text) -> str:
    # Rich leaves the style of a whole text to its console.
    around = _CONSOLE.get_style(line.style)
    return "".join(_span(segment.text, segment.style or around) for segment in line.render(_CONSOLE, end=""))


def _span(raw: str, style: Style) -> str:
    text = escape(raw)
    if not text.strip():
        return text
    if style.color is not None:
        look = style.color.name
    else:
        look = "bold" if style.bold else "dim" if style.dim else ""
    return f'<span class="{look}">{text}</span>' if look else text


_MAX_OPEN = 5
"""Maximum number of failed cases that are open initially."""

_MAX_RENDERED = 4_000_000
"""Maximum number of characters of rendered messages: a larger page does not open on a phone."""

_MAX_FIELDS_LENGTH = 200
"""Maximum number of characters shown of the fields of a message that is not rendered."""

_MAX_OUTPUT = 4_000
"""Maximum number of characters shown of a program's output in a case that did not fail."""


def write_page(title: str, results: Sequence[Result], left: str | None, file: BinaryIO) -> None:
    """Write the report; `left` says why cases were left out, None if none were."""
    for piece in _Page(title, results, left).pieces():
        file.write(piece.encode())


class _Page:
    """The page, in pieces."""

    def __init__(self, title: str, results: Sequence[Result], left: str | None) -> None:
        self._title, self._results, self._left = title, results, left
        self._totals = totals_of(results)
        self._room = _MAX_RENDERED

    def pieces(self) -> Iterator[str]:
        """Yield the whole page."""
        yield page_head(self._title, "kiebitz.cli.probe", "page.css")
        about = f"{time.strftime('%Y-%m-%d %H:%M')}, {counted(len(self._results), 'case')}"
        yield f"<header>\n<h1>{escaped(self._title)}</h1>\n<p>{escaped(about)}</p>\n"
        yield from self._counts()
        if self._left is not None:
            yield f"<p>Left out: {escaped(self._left)}</p>\n"
        yield "</header>\n<main>\n"
        yield from self._sums()
        for word in IN_FULL:
            found = self._results_with(word)
            if found:
                yield _heading(word, len(found))
                for result in found:
                    yield from self._case(result, result.is_failed and len(found) <= _MAX_OPEN)
                yield "</section>\n"
        for word in WORDS:
            if word not in IN_FULL and word != NOT_TRIED:
                yield from self._grouped_cases(word)
        yield from self._not_tried()
        yield "</main>\n</body>\n</html>\n"

    # Totals.

    def _counts(self) -> Iterator[str]:
        """Yield the totals, as a bar and in words."""
        found = [*by_verdict(self._totals.total)]
        yield '<div class="bar" aria-hidden="true">'
        for word, count in found:
            yield f'<span class="{key_of(word)}" style="flex-grow: {count}"></span>'
        yield '</div>\n<ul class="counts">\n'
        for word, count in found:
            yield f'<li><a class="{key_of(word)}" href="#{key_of(word)}"><b>{count:,}</b> {word}</a></li>\n'
        yield "</ul>\n"

    def _sums(self) -> Iterator[str]:
        words = [word for word, _ in by_verdict(self._totals.total)]
        if not words:
            return
        titles = "".join(f"<th>{word}</th>" for word in words)
        yield '<section>\n<h2>By message</h2>\n<div class="wide" tabindex="0"><table>\n'
        yield f"<thead><tr><th>message</th>{titles}</tr></thead>\n<tbody>\n"
        for group in self._totals.groups:
            count = self._totals.of(group)
            cells = "".join(f'<td class="{key_of(word)}">{count[word] or ""}</td>' for word in words)
            yield f"<tr><th>{escaped(group)}</th>{cells}</tr>\n"
        yield "</tbody>\n</table></div>\n</section>\n"

    # Cases.

    def _results_with(self, word: str) -> list[Result]:
        return [result for result in self._results if result.verdict == word]

    def _grouped_cases(self, word: str) -> Iterator[str]:
        found = self._results_with(word)
        if not found:
            return
        yield _heading(word, len(found))
        for group in dict.fromkeys(result.group for result in found):
            inside = [result for result in found if result.group == group]
            yield f'<details class="group"><summary>{escaped(group)} <span>{len(inside)}</span></summary>\n'
            for result in inside:
                yield from self._case(result, False)
            yield "</details>\n"
        yield "</section>\n"

    def _not_tried(self) -> Iterator[str]:
        found = self._results_with(NOT_TRIED)
        if not found:
            return
        yield _heading(NOT_TRIED, len(found))
        for why, groups in self._totals.reasons():
            yield f'<details class="group"><summary>{escaped(why)} <span>{groups.total()}</span></summary>\n'
            yield "<ul>\n"
            for result in found:
                if result.why == why:
                    yield f"<li><code>{escaped(result.case)}</code>: {escaped(result.sentence)}</li>\n"
            yield "</ul>\n</details>\n"
        yield "</section>\n"

    def _case(self, result: Result, is_open: bool) -> Iterator[str]:
        """Yield a case: its sentence, the specification, the messages, and the command to repeat it."""
        name = escaped(result.case)
        yield f'<details class="case {key_of(result.verdict)}" id="{name}"{" open" if is_open else ""}>\n'
        yield f"<summary><b>{result.verdict}</b> <code>{name}</code>"
        yield f" <span>{escaped(result.sentence)}</span> <span>{escaped(result.why)}</span></summary>\n"
        yield f"<p>{escaped(expectation_in_words(result))}"
        demand = result.demand
        if demand.clause is not None:
            yield f"<br>{escaped(demand.clause)}"
        if demand.quote is not None:
            yield f"<br><q>{escaped(demand.quote)}</q>"
        yield "</p>\n"
        yield from self._messages(result)
        yield from self._output(result)
        if result.other is not None:
            yield f"<h3>The other run: {result.other.verdict}</h3>\n"
            yield from self._messages(result.other)
            yield from self._output(result.other)
        yield f'<h4>Command to repeat it</h4>\n<pre class="command">{escaped(result.command)}</pre>\n'
        if result.session is not None:
            yield f"<p>Recorded as <code>{escaped(result.session)}</code>, {result.seconds:.1f} s.</p>\n"
        yield "</details>\n"

    def _messages(self, result: Result) -> Iterator[str]:
        ours = INPUT_DIRECTION[result.role]
        yield '<h4>Messages in order</h4>\n<div class="said">\n'
        if result.unread:
            yield self._message("sent", "", render_bytes(result.unread, "no message was read in it"), "")
        for message in result.messages:
            direction = "sent" if message.direction == ours else "got"
            fields = shortened(field_words(message.fields), _MAX_FIELDS_LENGTH)
            words = f"#{message.id} {message.name} {fields}".rstrip()
            yield self._message(direction, f" {message.time:.3f} s", message.drawn, words)
        yield "</div>\n"
        if result.left_out:
            yield f"<p>… and {result.left_out:,} more</p>\n"
        if not result.messages and not result.unread:
            yield "<p>Nothing.</p>\n"

    def _message(self, direction: str, time: str, drawn: str, otherwise: str) -> str:
        """Return one message, rendered if there is room for it."""
        self._room -= len(drawn)
        is_drawn = drawn and self._room >= 0
        inside = f'<pre tabindex="0">{drawn}</pre>' if is_drawn else f"<p>{escaped(otherwise)}</p>"
        return f'<div class="{direction}"><b>{direction}{time}</b>{inside}</div>\n'

    def _output(self, result: Result) -> Iterator[str]:
        if not result.output:
            return
        output = result.output
        if not result.is_failed and len(output) > _MAX_OUTPUT:
            output = f"…{output[-_MAX_OUTPUT:]}"
        lines = "\n".join(map(escaped, output.splitlines()))
        yield f'<h4>Output of the program</h4>\n<pre class="output" tabindex="0">{lines}</pre>\n'


def _heading(word: str, count: int) -> str:
    return f'<section id="{key_of(word)}">\n<h2 class="{key_of(word)}">{count:,} {word}</h2>\n'
