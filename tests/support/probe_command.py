"""Probes of the programs in `peers`, by the command."""

from __future__ import annotations

import shlex
from typing import Any

from command import kiebitz, peer_command
from processes_and_rows import free_port

WINDOW_S = 0.3
"""The Mäxchen server's time limit for an answer in seconds, slightly above the specification's."""


def server(port: int, fault: str = "", protocol: str = "maexchen") -> str:
    """Return the shell command of a server with a planted fault."""
    players = {"maexchen": 2, "schafkopf": 4, "catan": 3, "okey": 4, "cgml": 3}[protocol]
    options = ["--port", str(port), "--players", str(players), "--points", "5", "--window", str(WINDOW_S)]
    return shlex.join(peer_command(f"{protocol}-server", *options, fault=fault))


def probed(*only: str, fault: str = "", protocol: str = "maexchen", more: tuple[str, ...] = ()) -> Any:
    """Return the results of cases at a server."""
    port = free_port("udp" if protocol == "maexchen" else "tcp")
    arguments = ["probe", "server", str(port), "-d", protocol, "--restart", server(port, fault, protocol)]
    arguments += [word for pattern in only for word in ("--only", pattern)]
    done = kiebitz(*arguments, "--json", *more)
    assert "Traceback" not in done.err
    found = done.json
    assert done.status == (3 if any(each["verdict"] == "FAILED" for each in found["results"]) else 0), (
        done.err
    )
    return found["results"]
