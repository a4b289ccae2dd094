"""Probes of programs by the command, most of them programs in `peers`."""

from __future__ import annotations

import shlex
from typing import Any

from command import Done, kiebitz, peer_command
from processes_and_rows import free_port

from kiebitz.dissectors.model import Transport

WINDOW_S = 0.3
"""The Mäxchen server's time limit for an answer in seconds, slightly above the specification's."""

_PLAYERS = {"maexchen": 2, "schafkopf": 4, "catan": 3, "okey": 4, "cgml": 3, "noughts": 2, "knobeln": 2}


class Probed(Done):
    """A probe that is over, with its results by their cases, without the protocol."""

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        return {each["case"].partition("/")[2]: each for each in self.json["results"]}

    @property
    def verdicts(self) -> dict[str, str]:
        return {case: each["verdict"] for case, each in self.results.items()}

    @property
    def failed(self) -> dict[str, str]:
        """The failed cases, and why."""
        return {case: each["why"] for case, each in self.results.items() if each["verdict"] == "FAILED"}


def server(port: int | str, fault: str = "", protocol: str = "maexchen") -> str:
    """Return the shell command of a server with a planted fault."""
    options = ["--port", str(port), "--players", str(_PLAYERS[protocol]), "--points", "5"]
    return shlex.join(peer_command(f"{protocol}-server", *options, "--window", str(WINDOW_S), fault=fault))


def player(
    port: int | str, fault: str = "", protocol: str = "maexchen", games: int = 0, name: str = "Anna"
) -> str:
    """Return the shell command of a player; CGML's is sent from one port to the next."""
    options = ["--port", str(port), "--name", name, "--games", str(games)]
    return shlex.join(peer_command(f"{protocol}-player", *options, fault=fault))


def transport_of(protocol: str) -> Transport:
    return "udp" if protocol in ("maexchen", "knobeln") else "tcp"


def probe(
    target: str,
    cases: str,
    *options: str,
    fault: str = "",
    games: int = 0,
    name: str = "Anna",
    port: int = 0,
    restart: str | None = None,
    timeout_s: float = 0.5,
) -> Probed:
    """Probe a target such as "okey-server" with some cases.

    It is a program of `peers`, or what `restart` starts; or, with a port alone, one that is there already.
    """
    protocol, role = target.split("-")
    if restart is None and not port:
        restart = (
            server("{port}", fault, protocol)
            if role == "server"
            else player("{port}", fault, protocol, games)
        )
    words = ["--restart", restart] if restart else []
    words += [word for case in cases.split() for word in ("--only", f"{protocol}/{case}")]
    done = kiebitz(
        *(
            "probe",
            "server" if role == "server" else "client",
            str(port or free_port(transport_of(protocol))),
        ),
        *("-d", protocol, "--timeout", str(timeout_s), *words, *options),
    )
    assert "Traceback" not in done.err
    found = Probed(done.status, done.out, done.err)
    if "--json" in options and done.status in (0, 3):
        assert done.status == (3 if found.failed else 0), done.err
    return found


def results(target: str, cases: str, *options: str, **about: Any) -> dict[str, dict[str, Any]]:
    """Return the results of cases at a target."""
    return probe(target, cases, "--json", *options, **about).results
