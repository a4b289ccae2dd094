"""The report of a probe as one HTML file: which any browser opens without a network, and without a script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import BinaryIO

from kiebitz.cli.probing.results import Result, counted, in_words
from kiebitz.storage.escaping import printable

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem; border-bottom: 1px solid #8884; }
pre { overflow-x: auto; padding: .6rem; background: #8882; font-size: .85rem; line-height: 1.35; }
section { border-top: 2px solid #8886; margin-top: 2rem; }
.word { font-weight: bold; white-space: nowrap; }
.failed { color: light-dark(#a00, #f88); }
.ok { color: light-dark(#060, #8d8); }
.non-strict { color: light-dark(#850, #fb6); }
"""


def write_page(title: str, results: Sequence[Result], file: BinaryIO) -> None:
    """Write the report."""
    for piece in _pieces(title, results):
        file.write(piece.encode())


def _pieces(title: str, results: Sequence[Result]) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width">\n'
    yield f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
    yield f"<h1>{_text(title)}</h1>\n<p>{_text(in_words(results))}</p>\n"
    yield "<table>\n<thead><tr><th>verdict</th><th>case</th><th>why</th></tr></thead>\n<tbody>\n"
    # What matters most comes first.
    order = [word for word, _ in counted(results)]
    for result in sorted(results, key=lambda each: order.index(each.verdict)):
        yield (f"<tr><td>{_word(result)}</td><td>{_link(result)}</td><td>{_text(result.why)}</td></tr>\n")
    yield "</tbody>\n</table>\n"
    for result in results:
        if result.messages or result.output:
            yield from _section(result)
    yield "</body>\n</html>\n"


def _section(result: Result) -> Iterator[str]:
    yield f'<section id="{_text(result.case)}">\n<h2>{_text(result.case)}</h2>\n'
    yield f"<p>{_word(result)}: {_text(result.why)}.</p>\n<p>{_text(result.sentence)}</p>\n"
    demand = result.demand
    if demand.clause is not None:
        quote = "" if demand.quote is None else f": <q>{_text(demand.quote)}</q>"
        yield f"<p>{_text(demand.level)}: {_text(demand.clause)}{quote}</p>\n"
    for message in result.messages:
        yield f"<pre>{_lines(message.lines)}</pre>\n"
    if result.left_out:
        yield f"<p>… and {result.left_out} messages more</p>\n"
    if result.output:
        yield "<h3>What the program wrote</h3>\n"
        yield f"<pre>{_lines(result.output.splitlines())}</pre>\n"
    if result.session is not None:
        yield f"<p>Recorded in <code>{_text(result.session)}</code>.</p>\n"
    yield f"<p>Once more: <code>{_text(result.command)}</code></p>\n</section>\n"


def _word(result: Result) -> str:
    kind = result.verdict.lower().replace(" ", "-")
    return f'<span class="word {kind}">{result.verdict}</span>'


def _link(result: Result) -> str:
    name = _text(result.case)
    return f'<a href="#{name}">{name}</a>' if result.messages or result.output else name


def _text(text: str) -> str:
    return escape(printable(text))


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(map(_text, lines))
