"""The programs, and the table of faults: each is a small change of one program, made only by `--fault NAME`.

`tests/data/planted_faults.txt` contains them, and describes its form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from kiebitz.dissectors.conformance.expectations import TargetRole
from peers.program import Program

TABLE = Path(__file__).parents[2] / "data" / "planted_faults.txt"


class Programs(Mapping[str, type[Program]]):
    """Programs by name, such as `catan-server`, each imported when it is asked for.

    Programs are started by the hundred, and most of the time of a start would go to other protocols' modules.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)

    def __getitem__(self, name: str) -> type[Program]:
        if name not in self._names:
            raise KeyError(name)
        protocol, role = name.split("-")
        program: type[Program] = getattr(
            import_module(f"peers.{protocol}_{role}"), f"{protocol.title()}{role.title()}"
        )
        return program

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Fault(NamedTuple):
    """A planted fault.

    It shows as the codes in `shows` in ordinary play. `cases` of a probe find it, or there is a `reason` why
    none does. Lines in `shown` show it otherwise. The last message in `fatal` ends the program.
    """

    peer: str
    name: str
    sentence: str
    clause: str
    shows: list[str]
    cases: list[str]
    alone: bool
    reason: str
    shown: list[str]
    fatal: list[str]

    @property
    def protocol(self) -> str:
        return self.peer.partition("-")[0]

    @property
    def role(self) -> TargetRole:
        return "server" if self.peer.endswith("-server") else "client"


def _read() -> Iterator[tuple[str, list[str], list[Fault]]]:
    """Yield the programs of the table: their names, the cases that are tried with each fault, the faults."""
    for part in TABLE.read_text().split("\n== ")[1:]:
        head, *blocks = part.rstrip("\n").split("\n\n")
        peer, _, controls = head.partition("\n")
        yield peer, controls.split(), [_fault(peer, *block.split("\n")) for block in blocks]


def _fault(peer: str, head: str, *lines: str) -> Fault:
    found: dict[str, list[str]] = {}
    for line in lines:
        kind, _, text = line.strip().partition(": ")
        found.setdefault(kind, []).append(text)

    def of(kind: str) -> str:
        return " ".join(found.get(kind, []))

    name, sentence = head.split(": ", 1)
    clause = of("breaks") or "every peer must survive, and others' game must go on"
    cases = (of("probe") or of("probe alone")).split()
    return Fault(
        *(peer, name, sentence, clause, of("check").split(), cases),
        *("probe alone" in found, of("no case finds it")),
        *(found.get("shown by", []), found.get("dies at", [])),
    )


_TABLE = {peer: (controls, faults) for peer, controls, faults in _read()}
_OF_PLUGINS = [peer for peer in _TABLE if peer.startswith(("noughts", "knobeln"))]

PLUGIN_PEERS = Programs(_OF_PLUGINS)
PEERS = Programs(peer for peer in _TABLE if peer not in _OF_PLUGINS)
CONTROLS = {peer: controls for peer, (controls, _) in _TABLE.items()}
"""Cases of different kinds that are tried with each fault of a program."""

FAULTS = [fault for peer in PEERS for fault in _TABLE[peer][1]]
PLUGIN_FAULTS = [fault for peer in PLUGIN_PEERS for fault in _TABLE[peer][1]]
