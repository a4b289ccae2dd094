"""The conformance part of a protocol's file for `kiebitz probe`, with its parts in Python."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from kiebitz.dissectors.conformance.expectations import Conformance, Expectations, Spelling
from kiebitz.dissectors.game.table import python_part
from kiebitz.dissectors.protocol_file.packaged import packaged_file
from kiebitz.dissectors.protocol_file.specification import Specification


def packaged_conformance(package: str, messages: Iterable[str]) -> Conformance:
    """Return the conformance part in the file of a built-in protocol with these messages."""
    return conformance_of(packaged_file(package).whole, messages, package)


def conformance_of(specification: Specification, messages: Iterable[str], package: str = "") -> Conformance:
    """Return the conformance part of a protocol with these messages."""
    probe = specification.probe

    def part(name: str) -> Any:
        return python_part(name, package) if name else None

    return Conformance(
        expectations=Expectations(
            specification.expectations,
            tuple(
                Spelling(
                    each.key,
                    each.say,
                    part(each.frame),
                    each.level,
                    each.clause or None,
                    each.quote or None,
                    each.messages,
                )
                for each in probe.spellings.values()
            ),
            part(probe.violations) or (),
            broken_by=probe.broken_by,
            unreachable=probe.unreachable,
            spares_others=probe.spares_others,
            awaited_messages=" ".join(name.replace(" ", "_") for name in probe.awaited),
            silence_s=probe.silence,
        ),
        bot=part(probe.bot),
        simulated_server=part(probe.simulated_server),
        seats=probe.seats,
        timeouts={
            message: seconds
            for message in messages
            for pattern, seconds in probe.timeouts.items()
            if fnmatchcase(message, pattern)
        },
    )
