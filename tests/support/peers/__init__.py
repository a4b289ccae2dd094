"""Small servers and players of all five protocols, for tests of what looks for faults in such programs.

Each plays whole games by the specification, and with `--fault NAME` has the one fault of that name, which
`planted.py` describes:

    python tests/support/peers catan-server --port 4000 --seed 7
    python tests/support/peers catan-player --port 4000 --name Anna --games 1 --fault rolls-twice
    python tests/support/peers --list

What they say is written and read by code of their own, so that they and Kiebitz's dissectors can be right or
wrong apart from each other; only what cards there are and which of them is higher is taken from Kiebitz.
Programs are state machines without socket or clock (`program.py`); `loop.py` gives them real sockets on the
loopback, `bench.py` a table in memory where a game takes no time and is always the same.
"""
