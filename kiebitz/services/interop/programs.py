"""The programs of a cell as processes with limits, each in a working folder of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import Transport
from kiebitz.services.interop.plan import Plan, Program
from kiebitz.services.plan_file import filled, filled_words
from kiebitz.services.probing.program import TargetProgram

_MAX_OPEN_FILES = 1024
_MAX_FILE_BLOCKS = 2_000_000
"""Maximum size of a file that a program writes, in blocks of 512 bytes."""

_LIMITED = f'ulimit -t "$1"; ulimit -n {_MAX_OPEN_FILES}; ulimit -f {_MAX_FILE_BLOCKS}; shift; exec "$@"'
"""A shell script that limits processor seconds, open files and the size of files, and becomes the program."""

_ENGINES = ("podman", "docker")

_CONTAINED = """\
engine=$1; shift
end() { while kill -0 "${run-$$}" && ! "$engine" kill "kiebitz-$$"; do sleep 0.1; done > /dev/null 2>&1; }
trap end TERM
"$engine" run --rm --name "kiebitz-$$" --network=host "$@" &
run=$!
wait $run
status=$?
trap - TERM
wait
[ $status -le 128 ] || kill -$((status - 128)) $$
exit $status
"""
"""A shell script that runs a container, ends it at SIGTERM, and ends like it, also by its signal.

A container is no child of the engine's command, and its first process ignores SIGTERM unless it handles it.
"""

HOST = "127.0.0.1"


class NoEngineError(KiebitzError):
    """A plan has an image, and no container engine is installed."""


def program_of(
    plan: Plan,
    program: Program,
    values: Mapping[str, str],
    transport: Transport,
    port: int | None,
    folder: Path,
) -> TargetProgram:
    """Return a program of the plan, ready to start.

    Args:
        plan: The plan.
        program: The server or client.
        values: Values of the placeholders: host, port, port+1, relay+1, name, seed.
        transport: The transport of the port.
        port: The port at which it must listen; None for a client.
        folder: Its working folder, which is created. Relative paths in the command still work, as the first
            word is looked for in the plan's folder.

    Raises:
        NoEngineError: It needs a container engine.
    """
    folder.mkdir(parents=True, exist_ok=True)
    words = limited_words(plan, program, values)
    return TargetProgram(words, transport, port, f"{program.role} {program.name}", str(folder))


def limited_words(plan: Plan, program: Program, values: Mapping[str, str]) -> list[str]:
    """Return the words of a command with its placeholders filled, which limits itself.

    Raises NoEngineError.
    """
    if program.image:
        words = [filled(word, values) for word in program.command]
        limits = [f"--memory={plan.memory}"]
        bounds = {"cpu": plan.cpu_s, "nofile": _MAX_OPEN_FILES, "fsize": _MAX_FILE_BLOCKS * 512}
        for name, most in bounds.items():
            limits += ["--ulimit", f"{name}={most}:{most}"]
        return ["/bin/sh", "-c", _CONTAINED, "sh", _engine(program), *limits, program.image, *words]
    words = filled_words(program.command, values, plan.folder)
    return ["/bin/sh", "-c", _LIMITED, "sh", str(plan.cpu_s), *words]


def _engine(program: Program) -> str:
    for engine in _ENGINES:
        if shutil.which(engine) is not None:
            return engine
    raise NoEngineError(
        f"{program.role} {program.name} has an image, and neither {' nor '.join(_ENGINES)} is installed:"
        " install one, or leave out image"
    )


def resident_bytes(processes: Iterable[int]) -> int:
    """Return the memory in use by processes, by their numbers; 0 where the system does not tell."""
    pages = 0
    for process in processes:
        with suppress(OSError, ValueError, IndexError):
            pages += int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
