"""The command line: `python tests/support/peers PROTOCOL-ROLE --port N [--fault NAME]`, or `--list`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

SUPPORT = Path(__file__).parent.parent
# Python puts the folder that it runs first, but its modules are imported as a package's.
sys.path[:1] = [str(SUPPORT), str(SUPPORT.parent.parent)]

from peers import loop  # noqa: E402 (the path is set first)
from peers.planted import FAULTS, PEERS, PLUGIN_FAULTS, PLUGIN_PEERS, Programs  # noqa: E402 (likewise)
from peers.program import Player, Server, Setup  # noqa: E402 (likewise)

HOST = "127.0.0.1"
ALL_PEERS = Programs([*PEERS, *PLUGIN_PEERS])
ALL_FAULTS = (*FAULTS, *PLUGIN_FAULTS)
LIFE_S = 900.0
"""Maximum lifetime of a program in seconds, if it is not stopped."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="peers", description="Servers and players with planted faults.")
    parser.add_argument("peer", nargs="?", choices=sorted(ALL_PEERS))
    parser.add_argument("--list", action="store_true", help="show all faults")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--fault", default="", metavar="NAME")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--games", type=int, default=0, help="end after so many")
    parser.add_argument("--name", default="Anna", help="a player's")
    parser.add_argument("--players", type=int, default=0, help="a server waits for so many")
    parser.add_argument("--points", type=int, default=10, help="what wins a game of Catan")
    parser.add_argument(
        "--url", default="", help="where CGML players are sent; else the server's second port"
    )
    parser.add_argument("--window", type=float, default=1.0, help="how long a Mäxchen server waits (seconds)")
    options = parser.parse_args()
    if options.list:
        for fault in ALL_FAULTS:
            print(f"{fault.peer}  {fault.name}: {fault.sentence} ({fault.clause})")
        return 0
    if options.peer is None:
        parser.error("say which program, such as catan-server")
    faults = {fault.name for fault in ALL_FAULTS if fault.peer == options.peer}
    if options.fault and options.fault not in faults:
        parser.error(f"{options.peer} has no fault {options.fault}; --list shows all")
    setup = Setup(
        fault=options.fault,
        seed=options.seed,
        games=options.games,
        name=options.name,
        players=options.players,
        points=options.points,
        url=options.url,
        window=options.window,
    )
    program = ALL_PEERS[options.peer]
    try:
        if issubclass(program, Server):
            _serve(program, setup, options.port)
            return 0
        assert issubclass(program, Player)
        return 0 if loop.play(program(setup), HOST, options.port, LIFE_S) else 1
    except KeyboardInterrupt:
        return 0
    except OSError as problem:
        print(f"{options.peer}: {HOST}:{options.port}: {problem.strerror or problem}", file=sys.stderr)
        return 1


def _serve(program: type[Server], setup: Setup, port: int) -> None:
    doors = loop.listen(HOST, port, program.doors, program.transport)
    ports = [door.socket.getsockname()[1] for door in doors]
    if not setup.url:
        setup = Setup(**{**vars(setup), "url": f"{HOST}:{ports[-1]}"})
    print(f"listening on {HOST}:{','.join(map(str, ports))}", file=sys.stderr, flush=True)
    loop.Carrier(program(setup), doors).run(LIFE_S)


if __name__ == "__main__":
    sys.exit(main())
