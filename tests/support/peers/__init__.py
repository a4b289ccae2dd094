"""Servers and players of all five protocols, as targets for tests of `kiebitz probe`.

They are Kiebitz's simulated servers and bots (`shell.py`) as programs. With `--fault NAME` each has the one
fault of that name, a small change of the messages that it sends or accepts, which `planted.py` describes:

    python tests/support/peers catan-server --port 4000 --seed 7
    python tests/support/peers catan-player --port 4000 --name Anna --games 1 --fault roll
"""
