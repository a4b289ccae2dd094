"""`kiebitz probe`: test a server or a client with cases generated from its protocol's grammar."""

from __future__ import annotations

import math
from collections.abc import Sequence

import click

from kiebitz.cli.completion.network import complete_protocol
from kiebitz.cli.options.protocol_files import given_protocol_files, protocol_option
from kiebitz.cli.options.records import BESIDE_OUTPUT, DATABASE, RenamedOption, as_records, json_option
from kiebitz.cli.probe.options import DEFAULT_TIMEOUT_S, Outputs, RunOptions, Target
from kiebitz.dissectors.conformance.expectations import ROLES, TargetRole
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.probing.case import Case, select_cases
from kiebitz.dissectors.probing.case_generator import generate_cases
from kiebitz.dissectors.registry import dissector_of
from kiebitz.dissectors.replay.script import Script
from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.services.decode_as import unknown_protocol
from kiebitz.services.probing.results import KNOWN, WORDS, key_of
from kiebitz.services.server_addresses import Address, parse_address

_PORT = "{port}"
"""Placeholder for the port in the command of --restart."""

_MAX_JOBS = 64

_VERDICTS = {key_of(word): word for word in WORDS if word != KNOWN}
"""Verdicts by their spelling in options."""


def _bounded(ctx: click.Context, param: click.Parameter, value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise click.BadParameter("must be a number above 0", ctx, param)
    return value


@click.command()
@click.argument("role", type=click.Choice(ROLES))
@click.argument("address", metavar="[[HOST:]PORT]", required=False)
@click.option(
    "-d",
    "protocol",
    metavar="PROTOCOL",
    shell_complete=complete_protocol,
    help="Protocol to test; kiebitz protocols lists them. Optional for a server, where it is recognised.",
)
@protocol_option
@click.option(
    "--via-session",
    cls=RenamedOption,
    former="--like",
    metavar="SESSION",
    help="Bring the target into the state of each case with this recorded game instead of the built-in one.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help="Run only cases with this name; * matches anything, and a prefix up to a slash all cases below it.",
)
@click.option(
    "--last-verdict",
    cls=RenamedOption,
    former="--again",
    type=click.Choice([*_VERDICTS]),
    metavar="VERDICT",
    help="Run only cases that had this verdict in the last run recorded in the database of -w: "
    + ", ".join(_VERDICTS)
    + ".",
)
@click.option("--list", "lists", is_flag=True, help="List the cases and exit.")
@click.option(
    "--restart",
    metavar="COMMAND",
    help="Start the system under test with this command. Restart it when it exits, or when its "
    "state prevents the setup of a case. It is stopped at the end.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, _MAX_JOBS),
    default=1,
    show_default=True,
    metavar="N",
    help="Test N instances side by side; the command of --restart must contain {port}.",
)
@json_option("Print all results as one JSON object.")
@click.option(
    "--junit", type=BESIDE_OUTPUT, metavar="FILE.xml", help="Write the results as JUnit XML for a CI system."
)
@click.option(
    "--github", is_flag=True, help="Print annotations, and write a job summary, for GitHub Actions."
)
@click.option(
    "--baseline",
    type=BESIDE_OUTPUT,
    metavar="FILE.json",
    help="Failures in this file are known, and do not change the exit status.",
)
@click.option(
    "--update-baseline",
    is_flag=True,
    help="Add new failures to the file of --baseline, remove fixed ones.",
)
@click.option(
    "--report", type=BESIDE_OUTPUT, metavar="FILE.html", help="Write an HTML report with all bytes."
)
@click.option(
    "--keep", type=BESIDE_OUTPUT, metavar="FOLDER", help="Write a capture of each failed case to this folder."
)
@click.option("-w", "database", type=DATABASE, metavar="DB", help="Record all traffic into this database.")
@click.option(
    "--timeout",
    "timeout_s",
    cls=RenamedOption,
    former="--wait",
    type=float,
    default=DEFAULT_TIMEOUT_S,
    show_default=True,
    callback=_bounded,
    metavar="SECONDS",
    help="Time to wait for an answer.",
)
@click.option(
    "--rate",
    type=float,
    default=20.0,
    show_default=True,
    callback=_bounded,
    metavar="N",
    help="Maximum number of cases to start per second.",
)
@click.option(
    "--max-cases",
    cls=RenamedOption,
    former="--most",
    type=click.IntRange(1),
    default=2000,
    show_default=True,
    metavar="N",
    help="Maximum number of cases to run.",
)
@click.option(
    "--max-time",
    "max_time_s",
    cls=RenamedOption,
    former="--time",
    type=float,
    default=3600.0,
    show_default=True,
    callback=_bounded,
    metavar="SECONDS",
    help="Start no case after this time.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation if the server is on another machine.")
@click.pass_context
@as_records(run=RunOptions, outputs=Outputs)
def probe(
    ctx: click.Context,
    role: TargetRole,
    address: str | None,
    protocol: str | None,
    only: Sequence[str],
    last_verdict: str | None,
    lists: bool,
    yes: bool,
    run: RunOptions,
    outputs: Outputs,
) -> None:
    """Test a server or a client against the specification of its protocol.

    Each case sends one message, or a variation of it, in one state of a game: whole, byte by byte, in
    another spelling, with a field missing, too long or of another type, at the wrong time, twice or never.
    The reaction is compared with the specification. A case can only be FAILED for what the specification
    requires. In addition, the target must always keep running, accept other clients and send only valid
    messages. The exit status is 3 if a case failed.

    A server is tested at ADDRESS. A client must connect to ADDRESS, where Kiebitz listens. Nothing is sent
    to any other address.

    \b
    Example:
      kiebitz probe server -d maexchen --list
      kiebitz probe server 127.0.0.1:9000 -d maexchen --restart './server 9000' --report probe.html
      kiebitz probe server 127.0.0.1:9000 -d maexchen --only 'maexchen/JOIN/token'
      kiebitz probe client 9000 -d maexchen --restart './client 9000'
    """
    place = None if address is None else _parse_address(address)
    if place is None and not lists:
        raise click.UsageError(f"missing address of the {role}, as in 127.0.0.1:9000")
    if run.jobs > 1 and _PORT not in (run.restart or ""):
        raise click.UsageError(f"--jobs requires --restart with {_PORT}, as in --restart './server {_PORT}'")
    if outputs.update_baseline and outputs.baseline is None:
        raise click.UsageError("--update-baseline requires --baseline FILE.json")
    if last_verdict is not None and run.database is None:
        raise click.UsageError("--last-verdict requires -w: the database has the verdicts of the last run")
    dissector, script = _protocol_and_script(role, place, protocol, run.via_session)
    cases = _select_cases(dissector, role, only, last_verdict, run.database)
    if lists:
        from kiebitz.cli.probe.terminal_report import show_cases

        show_cases(cases, outputs.as_json)
        return
    # Slow to import.
    from kiebitz.cli.probe.run import run_cases

    assert place is not None
    target = Target(role, place, dissector, script, given_protocol_files())
    ctx.exit(run_cases(target, run, cases, yes, outputs))


def _parse_address(address: str) -> Address:
    place = parse_address(address)
    if place[1] == 0:
        raise click.UsageError(f"{address}: port 0 cannot be tested; give the port, as in 127.0.0.1:9000")
    return place


def _protocol_and_script(
    role: TargetRole, place: Address | None, protocol: str | None, via_session: str | None
) -> tuple[Dissector, Script | None]:
    """Return the protocol to test and the game of --via-session. Raises click.UsageError."""
    from kiebitz.cli.probe.options import recognise_protocol
    from kiebitz.services.probing.route_selection import script_in

    named = None if protocol is None else dissector_of(protocol.lower())
    if protocol is not None and named is None:
        raise click.UsageError(unknown_protocol(protocol.lower()))
    script = (
        None if via_session is None else script_in(via_session, named.protocol if named is not None else None)
    )
    if named is None and script is not None:
        spoken = {each.protocol for each in script.roles}
        if len(spoken) > 1:
            raise click.UsageError(
                f"{via_session} has games of {', '.join(sorted(spoken))}: choose one with -d"
            )
        named = dissector_of(spoken.pop())
    if named is None and role == "server" and place is not None:
        named = recognise_protocol(place)
    if named is None:
        raise click.UsageError("unknown protocol: give -d PROTOCOL, or --via-session with a game of it")
    return named, script


def _select_cases(
    dissector: Dissector,
    role: TargetRole,
    only: Sequence[str],
    last_verdict: str | None,
    database: str | None,
) -> list[Case]:
    """Return the selected cases. Raises click.UsageError if there are none."""
    from kiebitz.services.probing.session_store import cases_with_verdict

    known = generate_cases(dissector, role)
    for pattern in only:
        if not select_cases(known, [pattern]):
            from difflib import get_close_matches

            near = get_close_matches(pattern, [case.name for case in known], n=3)
            hint = did_you_mean(*near) if near else "--list shows all cases"
            raise click.UsageError(f"no case of {dissector.protocol} matches {pattern}; {hint}")
    cases = select_cases(known, only)
    if last_verdict is not None and database is not None:
        names = {*cases_with_verdict(database, role, _VERDICTS[last_verdict])}
        # All cases in play were recorded as one game.
        game = f"{dissector.protocol}/game"
        cases = [case for case in cases if (game if case.is_in_play else case.name) in names]
        if not cases:
            raise click.UsageError(f"no case in {database} was {_VERDICTS[last_verdict]} in the last run")
    return cases
