"""Small servers and players of all five protocols, as targets for tests of `kiebitz probe`.

Each plays whole games by the specification, and with `--fault NAME` has the one fault of that name, which
`planted.py` describes:

    python tests/support/peers catan-server --port 4000 --seed 7
    python tests/support/peers catan-player --port 4000 --name Anna --games 1 --fault roll
"""
