"""The report of an interoperability run: static HTML pages, a JUnit file and a badge for each program.

The pages need no network and no scripts. What programs have written is always escaped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from kiebitz.cli.render.html_page import escaped, page_head
from kiebitz.cli.web.html_export import write_html
from kiebitz.cli.web.reader import Reader, ServedSession
from kiebitz.services.interop.results import (
    OUTCOMES,
    SYMBOLS,
    Attempt,
    Cell,
    OutcomeWord,
    ProbeSummary,
    Results,
    new_file,
    open_recording,
)
from kiebitz.services.junit import JunitCase, write_junit
from kiebitz.services.wording import counted

_MAX_LINES = 60
"""Maximum number of lines shown of a program's output."""

_BADGE_COLOURS: dict[OutcomeWord, str] = {
    "completed": "#1b6b2d",
    "violations": "#805000",
    "refused": "#805000",
    "idle": "#a11",
    "left": "#a11",
    "hung": "#a11",
    "crashed": "#a11",
}


def write_report(results: Results, folder: str, command: Callable[[Cell], str]) -> None:
    """Write all pages, the JUnit file and the badges; `command` returns the command that repeats a cell.

    Raises StorageError.
    """
    _Pages(results, folder, command).write_all()
    with new_file(folder, "junit.xml") as file:
        write_junit(f"interop: {results.protocol}", [*map(_junit_case, results.cells)], {}, file)


def _junit_case(cell: Cell) -> JunitCase:
    attempt = cell.decisive
    return JunitCase(
        f"{cell.server}",
        cell.client,
        attempt.seconds,
        "passed" if cell.is_completed else "failed",
        "" if cell.is_completed else f"{cell.outcome}: {attempt.why}",
        [finding.text for finding in attempt.findings],
        [line for output in attempt.outputs for line in _last_lines(output.output)],
    )


class _Pages:
    """The pages of one run."""

    def __init__(self, results: Results, folder: str, command: Callable[[Cell], str]) -> None:
        self._results = results
        self._folder = folder
        self._command = command
        self._cells = {(cell.server, cell.client): cell for cell in results.cells}

    def write_all(self) -> None:
        self._write("index.html", f"{self._results.protocol}: interoperability", self._matrix())
        for cell in self._results.cells:
            for number, attempt in enumerate(cell.attempts, 1):
                if attempt.page is not None:
                    self._write(attempt.page, cell.name, self._cell(cell, attempt, number))
        for role, names in (("server", self._results.servers), ("client", self._results.clients)):
            for name in names:
                self._write(f"programs/{role}-{name}.html", f"{role} {name}", self._program(role, name))
                cells = [cell for cell in self._results.cells if getattr(cell, role) == name]
                done = sum(cell.is_completed for cell in cells)
                outcomes = [cell.outcome for cell in cells]
                worst = next((word for word in OUTCOMES if word in outcomes), OUTCOMES[-1])
                with new_file(self._folder, f"badges/{role}-{name}.svg") as file:
                    file.write(
                        _badge_svg(f"{role} {name}", f"{done}/{len(cells)}", _BADGE_COLOURS[worst]).encode()
                    )

    def _write(self, path: str, title: str, body: Iterable[str]) -> None:
        head = page_head(title, "kiebitz.cli.interop", "interop.css", "; img-src 'self'")
        page = f"{head}<h1>{escaped(title)}</h1>\n{''.join(body)}</body>\n</html>\n"
        with new_file(self._folder, path) as file:
            file.write(page.encode())

    # The matrix.

    def _matrix(self) -> Iterator[str]:
        cells = self._results.cells
        done = sum(cell.is_completed for cell in cells)
        yield f"<p>{done} of {counted(len(cells), 'cell')} completed."
        yield " Rows are servers, columns are clients.</p>\n"
        titles = [*dict.fromkeys((*self._results.clients, *(cell.client for cell in cells)))]
        yield '<div class="wide" tabindex="0"><table class="matrix">\n<thead><tr><th></th>'
        yield "".join(f"<th>{self._program_link('client', name, '')}</th>" for name in titles)
        probes = {(probe.role, probe.name): probe for probe in self._results.probes}
        yield "<th>probe</th></tr></thead>\n<tbody>\n" if probes else "</tr></thead>\n<tbody>\n"
        for server in self._results.servers:
            yield f"<tr><th>{self._program_link('server', server, '')}</th>"
            for client in titles:
                yield self._matrix_cell(self._cells.get((server, client)))
            yield f"{_probe_cell(probes.get(('server', server))) if probes else ''}</tr>\n"
        if probes:
            row = "".join(_probe_cell(probes.get(("client", name))) for name in titles)
            yield f"<tr><th>probe</th>{row}<td></td></tr>\n"
        yield "</tbody>\n</table></div>\n"
        yield '<ul class="legend">\n'
        for word in OUTCOMES[::-1]:
            yield f'<li><b class="{word}">{SYMBOLS[word]}</b> {word}</li>\n'
        yield "<li><b>~</b> other outcome in another run</li>\n</ul>\n"
        yield from self._problems()

    def _matrix_cell(self, cell: Cell | None) -> str:
        if cell is None:
            return "<td></td>"
        attempt = cell.decisive
        mark = "" if cell.is_stable else "<sup>~</sup>"
        who = "" if attempt.culprit is None else f"<small>{escaped(attempt.culprit)}</small>"
        title = escaped(f"{cell.name}: {cell.outcome}: {attempt.why}")
        return (
            f'<td class="{cell.outcome}"><a href="{escaped(attempt.page or "")}" title="{title}">'
            f"<b>{SYMBOLS[cell.outcome]}</b>{mark} <span>{cell.outcome}</span>{who}</a></td>"
        )

    def _problems(self) -> Iterator[str]:
        """Yield a list of all cells that were not completed, worst first."""
        wrong = [cell for cell in self._results.cells if not cell.is_completed]
        if not wrong:
            return
        yield "<h2>Not completed</h2>\n<ul>\n"
        for cell in sorted(wrong, key=lambda cell: OUTCOMES.index(cell.outcome)):
            yield _cell_line(cell, "")
        yield "</ul>\n"

    def _program_link(self, role: str, name: str, up: str) -> str:
        is_known = name in (self._results.servers if role == "server" else self._results.clients)
        text = escaped(name)
        return f'<a href="{up}programs/{role}-{text}.html">{text}</a>' if is_known else text

    # A cell.

    def _cell(self, cell: Cell, attempt: Attempt, number: int) -> Iterator[str]:
        yield f'<p><a href="../index.html">All cells</a></p>\n<p class="verdict {attempt.outcome}">'
        yield f"<b>{SYMBOLS[attempt.outcome]} {attempt.outcome}</b>: {escaped(attempt.why)}.</p>\n"
        culprit = attempt.culprit or "nobody, or unknown"
        games = counted(attempt.games, "finished game")
        yield f"<p>To blame: {escaped(culprit)}. {games} in {attempt.seconds:.1f} s.</p>\n"
        if len(cell.attempts) > 1:
            links = ", ".join(
                f'<a href="../{escaped(each.page or "")}">run {place}: {each.outcome}</a>'
                for place, each in enumerate(cell.attempts, 1)
            )
            yield f"<p>This is run {number}. {links}</p>\n"
        if attempt.database is not None:
            game = None
            # A program may have replaced the recording by anything.
            with suppress(Exception):
                game = self._game_page(attempt)
            if game is not None:
                yield f'<p><a href="{escaped(os.path.basename(game))}">The recorded game</a></p>\n'
            yield f"<p>Recording: <code>{escaped(os.path.basename(attempt.database))}</code></p>\n"
        yield from _clients(attempt)
        yield from self._findings(attempt)
        for output in attempt.outputs:
            ended = "" if output.ended is None else f", ended: {escaped(output.ended)}"
            lines = "\n".join(map(escaped, _last_lines(output.output))) or "(nothing)"
            yield f"<h2>Output of {escaped(output.role)} {escaped(output.name)}{ended}</h2>\n"
            yield f'<pre tabindex="0">{lines}</pre>\n'
        yield f"<h2>Command to repeat it</h2>\n<pre>{escaped(self._command(cell))}</pre>\n"

    def _game_page(self, attempt: Attempt) -> str | None:
        """Write the player of the recorded game, and return its path; None if there is nothing to play."""
        assert attempt.database is not None
        database = os.path.join(self._folder, attempt.database)
        page = attempt.database.removesuffix(".db") + "-game.html"
        written = os.path.join(self._folder, page)
        if not os.path.lexists(database):
            return page if os.path.isfile(written) else None
        if os.path.isfile(written) and os.path.getmtime(written) >= os.path.getmtime(database):
            # Of a cell that was not run again.
            return page
        with open_recording(database) as session:
            timeline = session.timeline
            served = ServedSession(1, database, timeline.session.id, os.path.basename(database))
            reader = Reader(served, timeline)
            if not reader.tables(None):
                return None
            with new_file(self._folder, page) as file:
                write_html(reader, None, file, lambda done, of: None)
        return page

    def _findings(self, attempt: Attempt) -> Iterator[str]:
        if not attempt.findings:
            return
        yield "<h2>Violations</h2>\n<ul>\n"
        for finding in attempt.findings:
            where = "" if finding.message is None else f"message #{finding.message}, byte {finding.offset}: "
            clause = "" if finding.clause is None else f" ({escaped(finding.clause)})"
            times = f" – {finding.count:,} times" if finding.count > 1 else ""
            yield f"<li><b>{escaped(finding.blame)}</b>, {where}{escaped(finding.text)}{clause}{times}</li>\n"
        yield "</ul>\n"

    # A program.

    def _program(self, role: str, name: str) -> Iterator[str]:
        yield '<p><a href="../index.html">All cells</a></p>\n'
        probe = next((each for each in self._results.probes if (each.role, each.name) == (role, name)), None)
        if probe is not None:
            yield f"<p>Probe: {_probe_words(probe)}</p>\n"
            if probe.failed:
                yield (
                    "<ul>\n"
                    + "".join(f"<li><code>{escaped(case)}</code></li>\n" for case in probe.failed)
                    + "</ul>\n"
                )
        cells = [cell for cell in self._results.cells if getattr(cell, role) == name]
        yield "<ul>\n"
        for cell in cells:
            yield _cell_line(cell, "../")
        yield "</ul>\n"
        own: dict[tuple[str, str | None], list[str]] = {}
        for cell in cells:
            for finding in cell.decisive.findings:
                if finding.blame == role:
                    own.setdefault((finding.text, finding.clause), []).append(cell.name)
        if own:
            yield f"<h2>Violations by this {role}</h2>\n<ul>\n"
            for (text, clause), names in own.items():
                where = "" if clause is None else f" ({escaped(clause)})"
                yield f"<li>{escaped(text)}{where}: {escaped(', '.join(names))}</li>\n"
            yield "</ul>\n"


def _cell_line(cell: Cell, up: str) -> str:
    attempt = cell.decisive
    return (
        f'<li><b class="{cell.outcome}">{SYMBOLS[cell.outcome]}</b>'
        f' <a href="{up}{escaped(attempt.page or "")}">{escaped(cell.name)}</a>: {cell.outcome}:'
        f" {escaped(attempt.why)}</li>\n"
    )


def _clients(attempt: Attempt) -> Iterator[str]:
    """Yield the table of the clients and their part in the games."""
    if not attempt.clients:
        return
    yield '<h2>Clients</h2>\n<div class="wide" tabindex="0"><table class="matrix">\n<thead><tr>'
    titles = ("client", "program", "joined", "moves", "games to the end")
    yield "".join(f"<th>{title}</th>" for title in titles) + "</tr></thead>\n<tbody>\n"
    for client in attempt.clients:
        joined = "yes" if client.joined else "no"
        yield f"<tr><th>{escaped(client.name)}</th><td>{escaped(client.program)}</td><td>{joined}</td>"
        yield f"<td>{client.moves:,}</td><td>{client.games:,}</td></tr>\n"
    yield "</tbody>\n</table></div>\n"


def _badge_svg(label: str, value: str, colour: str) -> str:
    left, right = 7 * len(label) + 12, 8 * len(value) + 14
    width = left + right
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img"'
        f' aria-label="{escaped(label)}: {value}">'
        f'<rect width="{width}" height="20" rx="3" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="20" rx="3" fill="{colour}"/>'
        '<g fill="#fff" font-family="DejaVu Sans,Verdana,sans-serif" font-size="11">'
        f'<text x="6" y="14">{escaped(label)}</text><text x="{left + 7}" y="14">{value}</text></g></svg>\n'
    )


def _probe_cell(probe: ProbeSummary | None) -> str:
    return f"<td>{_probe_words(probe).replace(', ', '<br>')}</td>"


def _probe_words(probe: ProbeSummary | None) -> str:
    if probe is None:
        return ""
    if probe.why_not is not None:
        return escaped(probe.why_not)
    return escaped(", ".join(f"{count:,} {word}" for word, count in probe.verdicts.items()))


def _last_lines(output: str) -> list[str]:
    return output.strip().splitlines()[-_MAX_LINES:]
