"""The options that select a part of a session."""

from __future__ import annotations

from kiebitz.cli.options.catalog import filter_option
from kiebitz.cli.options.messages import game_option, moment_option
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.records import Command, add_options, as_records
from kiebitz.storage.derived.selection import PartRequest


def part_options(command: Command) -> Command:
    """Add -Y, -P, --game, --from and --to to a command, which receives a PartRequest as `part`."""
    return add_options(
        as_records(part=PartRequest)(command),
        filter_option,
        protocol_option,
        game_option,
        moment_option("--from", "begin", "Start at this moment."),
        moment_option("--to", "end", "Stop at this moment."),
    )
