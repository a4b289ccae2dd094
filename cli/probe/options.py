"""The options of `kiebitz probe`, as records."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec

from kiebitz.dissectors.conformance.expectations import TargetRole
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.replay.script import Script
from kiebitz.proxy.relay.modes import endpoint
from kiebitz.services.server_addresses import Address

DEFAULT_TIMEOUT_S = 1.0


class Target(msgspec.Struct, frozen=True):
    """The system under test, its protocol, and the recorded game that leads to the states of cases."""

    role: TargetRole
    place: Address
    dissector: Dissector
    script: Script | None
    protocol_files: Sequence[str]

    @property
    def address(self) -> str:
        """Address as text."""
        return endpoint(*self.place)


class RunOptions(msgspec.Struct, frozen=True):
    """The options for running and recording the cases."""

    via_session: str | None
    restart: str | None
    jobs: int
    database: str | None
    keep: str | None
    timeout_s: float
    rate: float
    max_cases: int
    max_time_s: float

    def command(self, target: Target) -> str:
        """Return the shell command that repeats a case, without `--only`."""
        words = ["kiebitz", "probe", target.role, target.address, "-d", target.dissector.protocol]
        for path in target.protocol_files:
            words += ["-P", path]
        for option, value in (("--via-session", self.via_session), ("--restart", self.restart)):
            words += [option, value] if value is not None else []
        if self.timeout_s != DEFAULT_TIMEOUT_S:
            words += ["--timeout", f"{self.timeout_s:g}"]
        return shlex.join(words)


class Outputs(msgspec.Struct, frozen=True):
    """The requested outputs: files, formats, and the baseline file."""

    as_json: bool
    junit: str | None
    github: bool
    baseline: str | None
    update_baseline: bool
    report: str | None
