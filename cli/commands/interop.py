"""`kiebitz interop`: run every server of a plan with every client, and report who works with whom."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from kiebitz.cli.options.records import NamedFile, json_option
from kiebitz.cli.status import INTERRUPTED, VIOLATIONS
from kiebitz.cli.terminal.console import Styled, show_line, write_json
from kiebitz.proxy.system.deferred_signals import signals_handled
from kiebitz.services.output_files import make_folder
from kiebitz.services.standard_streams import print_error_line, warn
from kiebitz.services.wording import counted

if TYPE_CHECKING:
    from kiebitz.services.interop.matrix_run import CellPlan
    from kiebitz.services.interop.plan import Plan
    from kiebitz.services.interop.results import Results

_MAX_JOBS = 16
_MAX_REPEATS = 20


@click.command()
@click.argument("plan_path", metavar="PLAN.toml", type=click.Path())
@click.option(
    "-o",
    "folder",
    type=NamedFile("a report is a folder"),
    metavar="FOLDER",
    help="Write the report to this folder; index.html is its first page.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="SERVER×CLIENT",
    help="Run only these cells; × may be written as x, and * stands for anything.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, _MAX_JOBS),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of cells to run side by side.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, _MAX_REPEATS),
    default=1,
    show_default=True,
    metavar="N",
    help="Run a cell that is not completed N times, to see if the outcome is stable.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Keep the cells of the report in FOLDER whose plan and programs have not changed.",
)
@click.option("--list", "lists", is_flag=True, help="List the cells and exit.")
@json_option("Print the results as one JSON object.")
@click.pass_context
def interop(
    ctx: click.Context,
    plan_path: str,
    folder: str | None,
    only: Sequence[str],
    jobs: int,
    repeat: int,
    resume: bool,
    lists: bool,
    as_json: bool,
) -> None:
    """Run every server of a plan with every client, and report who works with whom.

    The plan names the commands of servers and clients of one protocol. Each cell runs a server with clients
    as processes, connected through a relay that records their games. It is completed if all clients played
    all games to the end; otherwise it ends as violations, refused, idle, left, hung or crashed, with the
    side to blame. The programs run with your rights: use only commands
    that you trust. The exit status is 3 if any cell is not completed.

    \b
    Example:
      kiebitz interop plan.toml --list
      kiebitz interop plan.toml -o report --jobs 2
      kiebitz interop plan.toml -o report --only 'group-a×*' --repeat 3
    """
    from kiebitz.services.interop.matrix_run import cells_of, select_cells
    from kiebitz.services.interop.plan import read_plan

    plan = read_plan(plan_path)
    known = cells_of(plan)
    for pattern in only:
        if not select_cells(known, [pattern]):
            raise click.UsageError(f"no cell of {plan_path} matches {pattern}; --list shows all cells")
    cells = select_cells(known, only)
    if lists:
        if as_json:
            write_json([cell.name for cell in cells])
        else:
            for cell in cells:
                show_line(cell.name)
        return
    if folder is None:
        raise click.UsageError("missing folder for the report: give -o FOLDER")
    make_folder(folder)
    results, is_interrupted = _run(plan, cells, folder, jobs, repeat, resume, only)
    from kiebitz.cli.interop.pages import write_report

    words = ["kiebitz", "interop", plan_path, "-o", folder]
    write_report(results, folder, lambda cell: shlex.join([*words, "--only", f"{cell.server}×{cell.client}"]))
    if as_json:
        import msgspec

        write_json(msgspec.to_builtins(results))
    else:
        _show(results)
    done = sum(cell.is_completed for cell in results.cells)
    print_error_line(
        f"{done} of {counted(len(results.cells), 'cell')} completed: {os.path.join(folder, 'index.html')}"
    )
    if is_interrupted:
        warn("interrupted; --resume continues")
        ctx.exit(INTERRUPTED)
    ctx.exit(0 if done == len(results.cells) else VIOLATIONS)


def _run(
    plan: Plan,
    cells: Sequence[CellPlan],
    folder: str,
    jobs: int,
    repeat: int,
    resume: bool,
    only: Sequence[str],
) -> tuple[Results, bool]:
    """Run the cells that are not known yet; return the results, and True if Ctrl-C interrupted the run."""
    # Slow to import.
    from kiebitz.cli.interop.progress import MatrixView
    from kiebitz.cli.terminal.screen import Live
    from kiebitz.services.interop.matrix_run import MatrixRun, earlier_cells, fingerprint, write_results
    from kiebitz.services.interop.probing import probe
    from kiebitz.services.interop.results import ProbeSummary, Results

    earlier = earlier_cells(folder) if resume else {}
    done = {
        cell.name: earlier[cell.name]
        for cell in cells
        if cell.name in earlier and earlier[cell.name].fingerprint == fingerprint(plan, cell)
    }
    view = MatrixView(cells)
    for cell in done.values():
        view.add(cell)

    probes: list[ProbeSummary] = []

    def results() -> Results:
        in_order = [done[cell.name] for cell in cells if cell.name in done]
        names = [[each.name for each in programs] for programs in (plan.servers, plan.clients)]
        return Results(plan.protocol, names[0], names[1], in_order, probes)

    is_interrupted = False
    try:
        # End the programs on SIGTERM, too.
        with signals_handled(signal.SIGTERM), Live(view):
            left = [cell for cell in cells if cell.name not in done]
            for cell in MatrixRun(plan, folder, repeat, jobs).run(left, view.start):
                done[cell.name] = cell
                view.add(cell)
                # An interrupted run can be continued.
                write_results(results(), folder)
            for program in (*plan.servers, *plan.clients) if plan.probe_s and not only else ():
                view.start(f"probe of {program.role} {program.name}")
                with TemporaryDirectory(prefix="kiebitz-", ignore_cleanup_errors=True) as work:
                    probes.append(probe(plan, program, Path(work)))
                view.finish(f"probe of {program.role} {program.name}")
    except KeyboardInterrupt:
        is_interrupted = True
    write_results(results(), folder)
    return results(), is_interrupted


def _show(results: Results) -> None:
    """Print each cell with its outcome and the reason."""
    from kiebitz.cli.interop.progress import COLOURS
    from kiebitz.services.interop.results import SYMBOLS

    for cell in results.cells:
        attempt = cell.decisive
        outcome = Styled(f"{SYMBOLS[cell.outcome]} {cell.outcome:10}", COLOURS[cell.outcome])
        unstable = "" if cell.is_stable else " (other outcome in another run)"
        show_line(outcome, f" {cell.name}: {attempt.why}{unstable}")
        for client in () if cell.is_completed else attempt.clients:
            joined = "joined" if client.joined else "not joined"
            games = counted(client.games, "game")
            show_line(f"    {client.name}: {joined}, {counted(client.moves, 'move')}, {games} to the end")
