"""`kiebitz probe`: is my server, is my client right? Cases made from a protocol's grammar, tried on it."""

from __future__ import annotations

import math
import shlex
import signal
from collections.abc import Sequence
from typing import NamedTuple

import click

from kiebitz.cli.completion.network import complete_protocol
from kiebitz.cli.options.outputs import BESIDE_OUTPUT, DATABASE
from kiebitz.cli.status import FAILED, INTERRUPTED, VIOLATIONS
from kiebitz.cli.terminal.console import write_json
from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION, ROLES, TargetRole
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.dissectors.probing.case import Case, select_cases
from kiebitz.dissectors.probing.case_generator import generate_cases
from kiebitz.dissectors.registry import dissector_of
from kiebitz.dissectors.replay.script import Script
from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.proxy.relay.modes import endpoint
from kiebitz.services.decode_as import unknown_protocol
from kiebitz.services.output_files import opened
from kiebitz.services.probing.results import WORDS, Result, counts_in_words, key_of
from kiebitz.services.probing.totals import totals_of
from kiebitz.services.server_addresses import Address, parse_address
from kiebitz.services.standard_streams import print_error_line, warn
from kiebitz.services.wording import counted

_VERDICTS = {key_of(word): word for word in WORDS}
"""By how they are written in options."""


_WAIT_S = 1.0


class _Asked(NamedTuple):
    """What is to be probed, and how."""

    role: TargetRole
    place: Address
    dissector: Dissector
    script: Script | None
    like: str | None
    restart: str | None
    database: str | None
    keep: str | None
    wait_s: float
    rate: float
    most: int
    seconds: float

    @property
    def address(self) -> str:
        """Where it is, as it is written."""
        return endpoint(*self.place)

    @property
    def command(self) -> str:
        """The beginning of the shell command that tries a case of it again."""
        words = ["kiebitz", "probe", self.role, self.address, "-d", self.dissector.protocol]
        for option, value in (("--like", self.like), ("--restart", self.restart)):
            words += [option, value] if value is not None else []
        if self.wait_s != _WAIT_S:
            words += ["--wait", f"{self.wait_s:g}"]
        return shlex.join(words)


def _bounded(ctx: click.Context, param: click.Parameter, value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise click.BadParameter("write a number above 0", ctx, param)
    return value


@click.command()
@click.argument("role", type=click.Choice(ROLES))
@click.argument("address", metavar="[[HOST:]PORT]", required=False)
@click.option(
    "-d",
    "protocol",
    metavar="PROTOCOL",
    shell_complete=complete_protocol,
    help="What it speaks, as in kiebitz protocols.",
)
@click.option(
    "--like",
    metavar="SESSION",
    help="Reach the places of cases by this recorded game, and not by the one that comes with Kiebitz.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help="Only cases of this name; * stands for anything, and the beginning up to a slash for all below it.",
)
@click.option(
    "--again",
    type=click.Choice([*_VERDICTS]),
    metavar="VERDICT",
    help="Only cases that came out so the last time, as the database of -w has it: "
    + ", ".join(_VERDICTS)
    + ".",
)
@click.option("--list", "lists", is_flag=True, help="List the cases, and try none.")
@click.option(
    "--restart",
    metavar="COMMAND",
    help="Start the program under test with this command, and again when it has ended, or where a case's "
    "place cannot be reached in the state that it is in. It ends with the probe.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object with all results.")
@click.option("--report", type=BESIDE_OUTPUT, metavar="FILE.html", help="Write a report, with all bytes.")
@click.option(
    "--keep", type=BESIDE_OUTPUT, metavar="FOLDER", help="Write a capture of each case that failed."
)
@click.option("-w", "database", type=DATABASE, metavar="DB", help="Record everything into this database.")
@click.option(
    "--wait",
    "wait_s",
    type=float,
    default=_WAIT_S,
    show_default=True,
    callback=_bounded,
    metavar="SECONDS",
    help="How long an answer is waited for.",
)
@click.option(
    "--rate",
    type=float,
    default=20.0,
    show_default=True,
    callback=_bounded,
    metavar="N",
    help="Begin no more than so many cases a second.",
)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=2000,
    show_default=True,
    metavar="N",
    help="Try no more cases than these.",
)
@click.option(
    "--time",
    "seconds",
    type=float,
    default=3600.0,
    show_default=True,
    callback=_bounded,
    metavar="SECONDS",
    help="Begin no case after this time.",
)
@click.option("--yes", is_flag=True, help="Do not ask, where the server is on another machine.")
@click.pass_context
def probe(
    ctx: click.Context,
    role: TargetRole,
    address: str | None,
    protocol: str | None,
    like: str | None,
    only: Sequence[str],
    again: str | None,
    lists: bool,
    restart: str | None,
    as_json: bool,
    report: str | None,
    keep: str | None,
    database: str | None,
    wait_s: float,
    rate: float,
    most: int,
    seconds: float,
    yes: bool,
) -> None:
    """Try on a server, or on a client, what its protocol's specification demands, recommends and leaves open.

    Each case sends one thing at one place of a game: a message whole, byte by byte, spelt in another way,
    with a field left out, too long or of another type, at the wrong moment, twice, never. What the program
    does then is compared with the specification. Only what that demands can be FAILED; to live on, to let
    others in and to say only what the grammar allows is demanded always. The exit status is 3 if a case
    failed.

    A server is called at ADDRESS; a client is to be told to connect there. Nothing is sent anywhere else.

    \b
    Example:
      kiebitz probe server -d maexchen --list
      kiebitz probe server 127.0.0.1:9000 -d maexchen --restart './server 9000' --report probe.html
      kiebitz probe server 127.0.0.1:9000 -d maexchen --only 'maexchen/JOIN/token'
      kiebitz probe client 9000 -d maexchen --restart './client 9000'
    """
    place = None if address is None else _place(address)
    if place is None and not lists:
        raise click.UsageError(f"where is the {role}? Say its address, as in 127.0.0.1:9000")
    if again is not None and database is None:
        raise click.UsageError("--again goes with -w: the database tells what came out the last time")
    dissector, script = _spoken(role, place, protocol, like)
    cases = _wanted(dissector, role, only, again, database)
    if lists:
        from kiebitz.cli.probe.case_listing import show_cases

        show_cases(cases, as_json)
        return
    assert place is not None
    asked = _Asked(role, place, dissector, script, like, restart, database, keep, wait_s, rate, most, seconds)
    results, left, is_interrupted = _tried(asked, cases, yes)
    if as_json:
        told = [result.as_json() for result in results]
        write_json({"protocol": dissector.protocol, "role": role, "address": asked.address, "results": told,
                    "left_out": left})  # fmt: skip
    else:
        from kiebitz.cli.probe.terminal_report import print_results

        print_results(results)
    if report is not None:
        _write_report(report, asked, results, left)
    print_error_line(counts_in_words(totals_of(results).total))
    if left is not None:
        warn(f"left out: {left}")
    ctx.exit(_status(results, is_interrupted))


def _place(address: str) -> Address:
    place = parse_address(address)
    if place[1] == 0:
        raise click.UsageError(f"{address}: 0 is no port to probe; write the port, as in 127.0.0.1:9000")
    return place


def _spoken(
    role: TargetRole, place: Address | None, protocol: str | None, like: str | None
) -> tuple[Dissector, Script | None]:
    """The protocol that is probed, and the game of --like."""
    from kiebitz.cli.probe.preflight import recognise_protocol
    from kiebitz.services.probing.recorded_samples import script_in

    named = None if protocol is None else dissector_of(protocol.lower())
    if protocol is not None and named is None:
        raise click.UsageError(unknown_protocol(protocol.lower()))
    script = None if like is None else script_in(like, named.protocol if named is not None else None)
    if named is None and script is not None:
        spoken = {each.protocol for each in script.roles}
        if len(spoken) > 1:
            raise click.UsageError(f"{like} has games of {', '.join(sorted(spoken))}: say which with -d")
        named = dissector_of(spoken.pop())
    if named is None and role == "server" and place is not None:
        named = recognise_protocol(place)
    if named is None:
        raise click.UsageError("which protocol? Say -d PROTOCOL, or --like with a game of it")
    return named, script


def _wanted(
    dissector: Dissector, role: TargetRole, only: Sequence[str], again: str | None, database: str | None
) -> list[Case]:
    """The cases that are asked for. Raises click.UsageError where there is none."""
    from kiebitz.services.probing.previous_results import cases_with_verdict

    known = generate_cases(dissector, role)
    for pattern in only:
        if not select_cases(known, [pattern]):
            near = _near(pattern, known)
            hint = did_you_mean(*near) if near else "--list shows all"
            raise click.UsageError(f"no case of {dissector.protocol} has the name {pattern}; {hint}")
    cases = select_cases(known, only)
    if again is not None and database is not None:
        names = {*cases_with_verdict(database, role, _VERDICTS[again])}
        # All that is in play was recorded as one game.
        game = f"{dissector.protocol}/game"
        cases = [case for case in cases if (game if case.is_in_play else case.name) in names]
        if not cases:
            raise click.UsageError(f"no case in {database} was {_VERDICTS[again]} the last time")
    return cases


def _near(pattern: str, cases: Sequence[Case]) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(pattern, [case.name for case in cases], n=3)


def _tried(asked: _Asked, cases: Sequence[Case], is_agreed: bool) -> tuple[list[Result], str | None, bool]:
    """Try the cases: what came of them, why some were left out, and whether Ctrl-C has ended it."""
    # They take their time to load.
    from kiebitz.cli.probe.message_html import render_message
    from kiebitz.cli.probe.preflight import confirm_target
    from kiebitz.cli.probe.progress import ProgressView
    from kiebitz.cli.terminal.screen import Live
    from kiebitz.dissectors.probing.baseline import Baseline
    from kiebitz.services.probing.connection_setup import ProbeSetup
    from kiebitz.services.probing.program import TargetProgram
    from kiebitz.services.probing.test_run import RunLimits, TestRun

    if asked.role == "server":
        confirm_target(asked.place, asked.dissector, is_agreed)
    script = asked.script or _sample(asked)
    if script is not None and asked.role == "client":
        # Of several players the one that is probed takes the first one's part.
        script = script.only({script.roles[0].number})
    program = None
    if asked.restart is not None:
        port = asked.place[1] if asked.role == "server" else None
        program = TargetProgram(asked.restart, asked.dissector.transport, port)
    test_run = TestRun(
        ProbeSetup(
            asked.dissector,
            asked.role,
            asked.place,
            script,
            asked.script is not None,
            asked.wait_s,
            Baseline(asked.dissector, OPPOSITE[INPUT_DIRECTION[asked.role]]),
        ),
        RunLimits(asked.most, asked.rate, asked.seconds),
        asked.command,
        program=program,
        database=asked.database,
        keep=asked.keep,
        render=render_message,
    )
    if asked.role == "client" and asked.restart is None:
        print_error_line(
            f"Let the client connect to {asked.address}, again and again: each connection is a case."
        )
    results: list[Result] = []
    # The program that was started ends with the probe, also where that is told to end.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        watching = ProgressView(cases[: asked.most])
        with Live(watching):
            for result in test_run.run(cases):
                results.append(result)
                watching.add(result)
    except KeyboardInterrupt:
        left = counted(len(cases) - len(results), "case")
        return results, f"{left}: it was interrupted", True
    finally:
        signal.signal(signal.SIGTERM, before)
    return results, test_run.left_out, False


def _sample(asked: _Asked) -> Script | None:
    """The game that comes with Kiebitz. Raises StorageError where there is none, and nobody to play."""
    from kiebitz.services.probing.recorded_samples import has_sample, sample_of, script_in

    protocol = asked.dissector.protocol
    if asked.dissector.conformance.bot is not None and not has_sample(protocol):
        return None
    with sample_of(protocol) as sample:
        return script_in(sample)


def _write_report(path: str, asked: _Asked, results: Sequence[Result], left: str | None) -> None:
    from kiebitz.cli.probe.html_report import write_page

    title = f"{asked.dissector.grammar.title}: the {asked.role} at {asked.address}"
    with opened(path, asked.database or "") as file:
        write_page(title, results, left, file)


def _status(results: Sequence[Result], is_interrupted: bool) -> int:
    if is_interrupted:
        return INTERRUPTED
    if any(result.is_failed for result in results):
        return VIOLATIONS
    # Where no place was reached at all, nothing is known of the program.
    return 0 if any(result.reactions for result in results) else FAILED
